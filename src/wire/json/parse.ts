import { usageError } from '../../errors.ts'
import type * as z from '../zod.ts'
import { isJsonDeeperThan } from './scanner.ts'
import { findJsonSyntaxError } from './syntax.ts'

/** Deeper JSON would overflow the stack of recursive code. */
export const maxJsonDepth = 1000

/**
 * Throws a `SyntaxError` if the text is invalid or nested too deep. Do not print the message of this error:
 * it may quote a secret from the text.
 */
export function parseJson(text: string): unknown {
  if (isJsonDeeperThan(text, maxJsonDepth)) throw new SyntaxError(jsonTooDeepReason)
  return JSON.parse(text)
}

export function tryParseJson(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}

export function parseInputJson(text: string, name: string, hint?: string): unknown {
  try {
    return parseJson(text)
  } catch {
    throw usageError(`${name}: not valid JSON: ${describeJsonError(text)}${hint ? `; ${hint}` : ''}`)
  }
}

export const jsonTooDeepReason = `nested more than ${maxJsonDepth} levels deep`

/**
 * Returns the place and the reason of a syntax error. Never quotes the text, because the text may contain a
 * secret.
 */
export function describeJsonError(text: string): string {
  if (text.trim() === '') return 'it is empty'
  const fault = findJsonSyntaxError(text, maxJsonDepth)
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

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Formats a path, for example as `events[2].content[0].text`. */
export function formatFieldPath(path: readonly PropertyKey[]): string {
  return path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '')
}

export function describeSchemaIssues(error: z.core.$ZodError): string[] {
  return error.issues.map(({ path, message }) =>
    path.length > 0 ? `${formatFieldPath(path)}: ${message}` : message,
  )
}
