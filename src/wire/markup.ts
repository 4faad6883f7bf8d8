/** Returns whether a body is HTML or XML. The body may then be the web page of a proxy or another server. */
export const isMarkup = (body: unknown): boolean => typeof body === 'string' && /^\s*</.test(body)
