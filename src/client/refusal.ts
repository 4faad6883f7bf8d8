import { CliError, type FailureDetails, type Kind } from '../errors.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import type { HttpResponse } from '../wire/exchange.ts'
import { tryParseJson } from '../wire/json/parse.ts'
import { readProblem } from '../wire/problem/problem.ts'
import { type FailedAttempt, parseRetryAfter } from './retry.ts'

/** Error bodies are read up to here. */
const longestBody = 1024 * 1024

/** Reads an answer whose status is no 2xx into the failure that it tells of. */
export async function readRefusal(response: HttpResponse, { service }: Endpoint): Promise<FailedAttempt> {
  const { status, statusText, headers } = response
  const rawBody = await collectStart(response)
  const body = parseBody(rawBody)
  const problem = readProblem(body)
  const said = readHead(headers)
  const { retryAfter, requestId } = { ...problem, ...said }
  const details: FailureDetails = {
    sent: 'yes',
    status,
    head: { status, statusText, headers },
    rawBody,
    body,
    ...(retryAfter === undefined ? {} : { retryAfter }),
    ...(requestId === undefined ? {} : { requestId }),
    ...(problem.message === undefined ? {} : { serviceMessage: problem.message }),
  }
  const what = status < 400 ? describeRedirect(headers.location) : `${nameOf[service]} answered`
  const message = `${what} ${status}${statusText ? ` ${statusText}` : ''}`
  const error = new CliError(kindOfStatus(status, said.retryAfter !== undefined), message, details)
  return {
    error,
    ...(retryAfter === undefined ? {} : { retryAfter }),
    isFinal: headers['x-should-retry']?.toLowerCase() === 'false',
  }
}

/** What an answer's headers say that a failure tells. */
export function readHead(headers: HttpResponse['headers']): { retryAfter?: number; requestId?: string } {
  const retryAfter = parseRetryAfter(headers, Date.now())
  const requestId = idHeaders.map((name) => headers[name]).find((id) => id !== undefined && id !== '')
  return {
    ...(retryAfter === undefined ? {} : { retryAfter }),
    ...(requestId === undefined ? {} : { requestId }),
  }
}

const idHeaders = ['request-id', 'x-request-id', 'x-amzn-requestid', 'x-goog-request-id', 'x-correlation-id']

const nameOf = { gateway: 'the gateway', agents: 'the session service' }

/** The body as far as it comes: the status counts, also where its explanation breaks off. */
async function collectStart(response: HttpResponse): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of response.body) {
      chunks.push(chunk.subarray(0, longestBody - size))
      size += chunk.length
      if (size >= longestBody) break
    }
  } catch (error) {
    if (!(error instanceof CliError)) throw error
  }
  return Buffer.concat(chunks)
}

function kindOfStatus(status: number, hasRetryAfter: boolean): Kind {
  if (status === 401 || status === 403 || status === 407) return 'credentials'
  if (status === 402) return 'payment'
  if (status === 429 || (status === 503 && hasRetryAfter)) return 'rate-limited'
  return status >= 500 ? 'service' : 'refused'
}

/** The target of a redirect that is not followed, without a user name or password. */
function describeRedirect(location: string | undefined): string {
  const target = location
    ?.split(/([/\\])/)
    .map((part) => part.slice(part.lastIndexOf('@') + 1))
    .join('')
  return `redirect not followed${target ? `, to ${target}` : ''}:`
}

/** JSON where it is, else text. */
function parseBody(bytes: Uint8Array): unknown {
  const text = new TextDecoder().decode(bytes)
  const value = tryParseJson(text)
  return value === undefined ? text : value
}
