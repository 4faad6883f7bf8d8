import { CliError } from '../errors.ts'
import { parseJson, tooDeep } from './json.ts'
import { failureInstead, readProblem } from './problem.ts'

/** Parses a body that is one JSON value. Throws a `CliError` of kind `response` that says what came instead. */
export function parseBody(body: string, contentType: string): unknown {
  if (body.trim() === '') throw notUnderstood('the answer is empty')
  const what = contentType.startsWith('application/json') || !contentType ? '' : ` (${contentType})`
  try {
    return JSON.parse(body)
  } catch {
    throw failureOfText(body, `the answer${what} is not JSON`)
  }
}

/** How much of a text that is no JSON is kept, in characters. */
const longestKept = 64 * 1024

/** Words that were to be JSON are told, but not half of a JSON text: it may hold anything. */
function failureOfText(text: string, message: string): CliError {
  const body = text.slice(0, longestKept)
  return /^\s*[[{"]/.test(body) ? notUnderstood(message).with({ body }) : failureInstead(body, message)
}

/** Parses JSON that a service sent; `what` names it in the message. Throws a `CliError` of kind `response`. */
export function parse(text: string, what: string): unknown {
  if (isTooDeep(text)) throw notUnderstood(`${what} is nested more than ${deepest} levels deep`)
  try {
    return parseJson(text)
  } catch (error) {
    if ((error as Error).message === tooDeep) throw notUnderstood(`${what} is ${tooDeep}`)
    // The engine's own message quotes the text.
    const { message } = /^\s*</.test(text) ? readProblem(text) : {}
    throw notUnderstood(`${what} is not JSON`, message)
  }
}

/** How many lists and objects may stand in each other; what walks through a value would fail far beyond that. */
const deepest = 1000

function isTooDeep(text: string): boolean {
  if (text.length <= 2 * deepest) return false
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    const char = text[i]
    if (char === '"') {
      i = endOfString(text, i)
      if (i < 0) return false
    } else if (char === '[' || char === '{') {
      if (++depth > deepest) return true
    } else if (char === ']' || char === '}') depth--
  }
  return false
}

/** Where the string that begins at `start` ends; -1 where it does not. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0
  while (text[at - slashes - 1] === '\\') slashes++
  return slashes % 2 === 1
}

/** A failure of kind `response`; `serviceMessage` is what the service said instead, unescaped. */
export const notUnderstood = (message: string, serviceMessage?: string) =>
  new CliError('response', message, {
    sent: 'yes',
    ...(serviceMessage === undefined ? {} : { serviceMessage }),
  })
