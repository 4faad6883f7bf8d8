/**
 * Returns the first `length` UTF-16 units of a text, or one unit less if the end would cut a surrogate pair.
 */
export function getTextStart(text: string, length: number): string {
  if (text.length <= length) return text
  return text.slice(0, length).replace(/[\ud800-\udbff]$/, '')
}
