import type { CliError } from '../errors.ts'
import { parseJson, tooDeep, tryParseJson } from './json/parse.ts'
import { failureInstead, notUnderstood, readProblem } from './problem/problem.ts'

/**
 * Parses the body of an answer, which is one JSON value. Throws a `CliError` that says what came instead. An empty body, a
 * page or cut JSON is often a gateway's, so the same request may succeed later.
 */
export function parseReceivedBody(body: string, contentType: string): unknown {
  if (body.trim() === '') throw notUnderstood('the answer is empty').with({ retry: 'later' })
  const what = contentType.startsWith('application/json') || !contentType ? '' : ` (${contentType})`
  return parse(body, `the answer${what}`, (message) => failureOfText(body, message))
}

/** How much of a text that is not JSON is kept, in characters. */
const longestKept = 64 * 1024

/** Words are shown, but not a half JSON text: it may contain anything. */
function failureOfText(text: string, message: string): CliError {
  const body = text.slice(0, longestKept)
  const failure = /^\s*[[{"]/.test(body)
    ? notUnderstood(message).with({ body })
    : failureInstead(body, message)
  // The type of an error decides by itself.
  return failure.kind === 'response' && !failure.details.isErrorInSuccess
    ? failure.with({ retry: 'later' })
    : failure
}

/** Parses JSON that a service sent; `what` names it in the message. Throws a `CliError`. */
export const parseReceived = (text: string, what: string): unknown =>
  parse(text, what, (message) =>
    notUnderstood(message, /^\s*</.test(text) ? readProblem(text).message : undefined),
  )

function parse(text: string, what: string, failure: (message: string) => CliError): unknown {
  try {
    return parseJson(text)
  } catch (error) {
    if ((error as Error).message === tooDeep) throw notUnderstood(`${what} is ${tooDeep}`)
    // The engine's own message quotes the text.
    throw failure(`${what} is not JSON`)
  }
}

/** The data of an `error` event: JSON, or the words themselves. */
export const readErrorEvent = (data: string): unknown => tryParseJson(data) ?? data
