import { usageError } from '../../errors.ts'
import type * as z from '../zod.ts'
import { isDeeperThan } from './scanner.ts'
import { findFault } from './syntax.ts'

/** How deep values may be nested: code that walks through them recursively must not run out of stack. */
const deepest = 1000

/** Parses JSON from anywhere. Throws a `SyntaxError`, which may quote the text. It also throws if the text is nested too deep. */
export function parseJson(text: string): unknown {
  if (isDeeperThan(text, deepest)) throw new SyntaxError(tooDeep)
  return JSON.parse(text)
}

/** The same, or `undefined` if a text is not JSON. */
export function tryParseJson(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}

/** Parses JSON that a person gave; `name` is what messages call it. Throws a usage error that says where it is wrong. */
export function parseGivenJson(text: string, name: string, hint?: string): unknown {
  try {
    return parseJson(text)
  } catch {
    throw usageError(`${name}: not valid JSON: ${describeJsonError(text)}${hint ? `; ${hint}` : ''}`)
  }
}

/** The message of `parseJson`'s error for a text that is nested too deep. */
export const tooDeep = `nested more than ${deepest} deep`

/** Where and why `parseJson` fails, without a quotation: the text may contain a secret. */
export function describeJsonError(text: string): string {
  if (text.trim() === '') return 'it is empty'
  const fault = findFault(text, deepest)
  const offset = fault?.offset ?? text.length
  let line = 1
  let lineStart = 0
  for (let end = text.indexOf('\n'); end >= 0 && end < offset; end = text.indexOf('\n', lineStart)) {
    line++
    lineStart = end + 1
  }
  const place = `line ${line}, column ${offset - lineStart + 1}`
  return fault ? `${place}: ${fault.reason}` : place
}

/** Whether it is a JSON object: not a list, not a single value. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A place in a JSON value as a person writes it: `events[2].content[0].text`. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '')
}

/** Every problem that a schema found, with its place. */
export function describeIssues(error: z.core.$ZodError): string[] {
  return error.issues.map(({ path, message }) =>
    path.length > 0 ? `${formatPath(path)}: ${message}` : message,
  )
}
