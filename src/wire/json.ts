import type * as z from './zod.ts'

/** Where and why a text is not JSON, without quoting it: it may hold a secret. */
export async function describeJsonError(text: string): Promise<string> {
  const { parseTree, printParseErrorCode } = await import('jsonc-parser')
  const errors: import('jsonc-parser').ParseError[] = []
  parseTree(text, errors)
  const first = errors[0]
  const before = text.slice(0, first?.offset ?? text.length).split('\n')
  const reason = first
    ? printParseErrorCode(first.error).replace(/(?<=[a-z])[A-Z]/g, (upper) => ` ${upper}`)
    : ''
  const place = `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`
  return reason ? `${place}: ${reason.toLowerCase()}` : place
}

/** A place in a JSON value as a person writes it: `events[2].content[0].text`. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '')
}

/** Every problem of a value that a schema refused, with its place. */
export function describeIssues(error: z.core.$ZodError): string[] {
  return error.issues.map(({ path, message }) =>
    path.length > 0 ? `${formatPath(path)}: ${message}` : message,
  )
}
