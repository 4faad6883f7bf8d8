import { CliError } from '../errors.ts'
import { serviceNames } from '../settings/resolve.ts'
import { schedule, type Timers } from '../timers.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import { createBodyCollector, type HttpResponse } from '../wire/exchange.ts'
import { tryParseJson } from '../wire/json/parse.ts'
import { readErrorBody } from '../wire/problem/problem.ts'
import { findFailureKindOfStatus } from './retry.ts'

export type RetryAndRequestId = ReturnType<typeof readRetryAndRequestId>

export const readRetryAndRequestId = (headers: HttpResponse['headers'], wallTimeMs: number) => ({
  retryAfterSeconds: readRetryAfterSeconds(headers, wallTimeMs),
  requestId: idHeaders.map((name) => headers[name]).find((id) => id !== undefined && id !== ''),
})

const idHeaders = ['request-id', 'x-request-id', 'x-amzn-requestid', 'x-goog-request-id', 'x-correlation-id']

/**
 * Returns the seconds of `Retry-After` (whole seconds or an HTTP date), and `undefined` for any other value. A
 * date is compared with the header `Date`, because the local clock may be wrong. If `Date` is missing or
 * malformed, the date is compared with the local clock.
 */
export function readRetryAfterSeconds(headers: HttpResponse['headers'], wallTimeMs: number) {
  const { 'retry-after': value = '' } = headers
  if (/^\d+$/.test(value)) return Math.min(Number(value), Number.MAX_SAFE_INTEGER)
  const at = parseHttpDate(value)
  return at && Math.max(0, (at - (parseHttpDate(headers.date) ?? wallTimeMs)) / 1000)
}

/**
 * Returns milliseconds since the epoch, or `undefined` if the date does not exist or has a wrong weekday.
 * Adds GMT, because HTTP also allows the format of asctime, which has no zone. A second GMT has no effect.
 */
function parseHttpDate(text = ''): number | undefined {
  const time = Date.parse(`${text} GMT`)
  if (Number.isNaN(time)) return undefined
  return new Date(time).toUTCString().slice(0, 3) === text.slice(0, 3) ? time : undefined
}

/**
 * Limits for reading an error body, which may never end. The failure is certain from the head of the response,
 * so a part of the body is enough.
 */
const [maxErrorBodyBytes, maxErrorBodyMs] = [1024 * 1024, 10_000]

/** A 3xx is a failure, too, because parley follows no redirect. */
export async function readErrorResponse(
  response: HttpResponse,
  { service }: Endpoint,
  { retryAfterSeconds }: RetryAndRequestId,
  timers: Timers,
): Promise<CliError> {
  const { status, statusText, headers } = response
  const bytes = await readErrorBytes(response, timers)
  const text = new TextDecoder().decode(bytes)
  const value = tryParseJson(text)
  const body = value === undefined ? text : value
  const problem = readErrorBody(body)
  // The address of the redirect may contain a user name and a password, which no message may show.
  const target = headers.location?.replace(/(?<![^/\\])[^/\\]*@/g, '')
  const redirect = `redirect not followed${target ? `, to ${target}` : ''}:`
  const what = status < 400 ? redirect : `${serviceNames[service]} answered`
  const message = `${what} ${status}${statusText ? ` ${statusText}` : ''}`
  return new CliError(findFailureKindOfStatus(status, retryAfterSeconds !== undefined), message, {
    response: { status, statusText, headers, bytes },
    body,
    retryAfterSeconds: problem.retryAfterSeconds,
    requestId: problem.requestId,
    serviceMessage: problem.message,
    isPermanent: headers['x-should-retry']?.toLowerCase() === 'false' || undefined,
  })
}

/** Returns the received part if the body is cut or a limit is reached. */
export async function readErrorBytes({ body, close }: HttpResponse, timers: Timers): Promise<Uint8Array> {
  const start = createBodyCollector(maxErrorBodyBytes)
  const cancel = schedule(timers, maxErrorBodyMs, close)
  try {
    for await (const chunk of body) if (start.add(chunk) >= maxErrorBodyBytes) break
  } catch (error) {
    if (!(error instanceof CliError)) throw error
  } finally {
    cancel()
  }
  return start.bytes()
}
