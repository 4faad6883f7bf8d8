import type { CliError } from '../errors.ts'
import { jsonTooDeepReason, parseJson, tryParseJson } from './json/parse.ts'
import { isMarkup } from './markup.ts'
import { createResponseError, createUnexpectedBodyFailure } from './problem/problem.ts'

/**
 * Parses a response's body. Throws a `CliError` if the body is not one JSON value. An empty body, a web page
 * or incomplete JSON often comes from a proxy, so the failure advises to retry later.
 */
export function parseReceivedBody(body: string, contentType: string): unknown {
  if (body.trim() === '') throw createResponseError('the answer is empty').with({ retry: 'later' })
  const what = contentType.startsWith('application/json') || !contentType ? '' : ` (${contentType})`
  return parse(
    () => parseJson(body),
    `the answer${what}`,
    (message) => createTextFailure(body, message),
  )
}

const maxSavedLength = 64 * 1024

/** The message does not quote incomplete JSON, because the JSON may contain a secret. */
function createTextFailure(text: string, message: string): CliError {
  const body = text.slice(0, maxSavedLength)
  const failure = /^\s*[[{"]/.test(body)
    ? createResponseError(message).with({ body })
    : createUnexpectedBodyFailure(body, message)
  // If the body contains an error, the failure already has retry advice for this error.
  return failure.kind === 'response' && !failure.details.errorIn ? failure.with({ retry: 'later' }) : failure
}

/**
 * Parses received JSON. `what` names the JSON in messages. `read` may replace `parseJson` and must throw the
 * same errors. Throws a `CliError`, which advises to retry later if the text is not JSON.
 */
export const parseReceivedJson = (
  json: string | Buffer,
  what: string,
  read = () => parseJson(`${json}`),
): unknown =>
  parse(read, what, (message) =>
    isMarkup(`${json}`)
      ? createTextFailure(`${json}`, message)
      : createResponseError(message).with({ retry: 'later' }),
  )

function parse(read: () => unknown, what: string, failure: (message: string) => CliError): unknown {
  try {
    return read()
  } catch (error) {
    if ((error as Error).message === jsonTooDeepReason)
      throw createResponseError(`${what} is ${jsonTooDeepReason}`)
    // parley does not print the message of `JSON.parse`: it quotes the text, which may contain a secret.
    throw failure(`${what} is not JSON`)
  }
}

/** Some services send plain text instead of JSON in an error event. */
export const readErrorEvent = (data: string): unknown => tryParseJson(data) ?? data
