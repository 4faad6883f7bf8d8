import { CliError } from '../errors.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import type { HttpResponse } from '../wire/exchange.ts'
import { tryParseJson } from '../wire/json/parse.ts'
import { readProblem } from '../wire/problem/problem.ts'
import { kindOfStatus } from './retry.ts'

/** What a response's headers say that a failure shows. */
export interface ResponseHead {
  /** Seconds. */
  retryAfter: number | undefined
  requestId: string | undefined
}

/** `now` is in milliseconds since the epoch. */
export async function readHead(headers: HttpResponse['headers'], now: number): Promise<ResponseHead> {
  return {
    retryAfter: await readRetryAfter(headers, now),
    requestId: idHeaders.map((name) => headers[name]).find((id) => id !== undefined && id !== ''),
  }
}

const idHeaders = ['request-id', 'x-request-id', 'x-amzn-requestid', 'x-goog-request-id', 'x-correlation-id']

/**
 * Reads `Retry-After` (whole seconds or an HTTP date) or `Retry-After-Ms` into seconds; anything else counts as
 * absent. `now` is in milliseconds since the epoch.
 */
export async function readRetryAfter(
  headers: HttpResponse['headers'],
  now: number,
): Promise<number | undefined> {
  const { 'retry-after': value = '', 'retry-after-ms': milliseconds = '' } = headers
  if (/^\d+(\.\d+)?$/.test(milliseconds)) return toFinite(Number(milliseconds) / 1000)
  if (/^\d+$/.test(value)) return toFinite(Number(value))
  if (value === '') return undefined
  // Part of a file that is loaded already: the response came through undici.
  const { parseHttpDate } = await import('./undici-client.ts')
  const date = parseHttpDate(value)
  return date && Math.max(0, (date.getTime() - now) / 1000)
}

const toFinite = (seconds: number) => Math.min(seconds, Number.MAX_SAFE_INTEGER)

/** How much of an error body is read, in bytes. */
const longestBody = 1024 * 1024

/** Turns a response whose status is not 2xx into a failure. */
export async function readErrorResponse(
  response: HttpResponse,
  { service }: Endpoint,
  head: ResponseHead,
): Promise<CliError> {
  const { status, statusText, headers } = response
  const rawBody = await collectStart(response)
  const body = jsonOrText(rawBody)
  const problem = readProblem(body)
  const what = status < 400 ? describeRedirect(headers.location) : `${nameOf[service]} answered`
  const message = `${what} ${status}${statusText ? ` ${statusText}` : ''}`
  return new CliError(kindOfStatus(status, head.retryAfter !== undefined), message, {
    status,
    head: { status, statusText, headers },
    rawBody,
    body,
    retryAfter: head.retryAfter ?? problem.retryAfter,
    requestId: head.requestId ?? problem.requestId,
    serviceMessage: problem.message,
    isPermanent: headers['x-should-retry']?.toLowerCase() === 'false' || undefined,
  })
}

const nameOf = { gateway: 'the gateway', agents: 'the session service' }

/** The body as far as it comes: the status counts even when the body breaks off. */
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

/** Names the target of a redirect that is not followed, without a user name or password. */
function describeRedirect(location: string | undefined): string {
  const target = location
    ?.split(/([/\\])/)
    .map((part) => part.slice(part.lastIndexOf('@') + 1))
    .join('')
  return `redirect not followed${target ? `, to ${target}` : ''}:`
}

function jsonOrText(bytes: Uint8Array): unknown {
  const text = new TextDecoder().decode(bytes)
  const value = tryParseJson(text)
  return value === undefined ? text : value
}
