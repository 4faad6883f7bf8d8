import { CliError, type FailureDetails, type Kind } from '../errors.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import { collect, type Exchange, type HttpRequest, type HttpResponse } from '../wire/exchange.ts'
import { readProblem } from '../wire/problem.ts'
import { decodeBody } from './decode.ts'
import { decideRetry, type FailedAttempt, parseRetryAfter, type RetryPolicy } from './retry.ts'

export interface SendOptions {
  exchange: Exchange
  policy: RetryPolicy
  /** Called before each wait, in milliseconds. */
  onRetry(failure: CliError, wait: number): void
}

/** Error bodies are read up to here. */
const longestErrorBody = 1024 * 1024

/**
 * Sends a request, again where that is safe, until there is an answer of status 2xx. Every attempt sends the same
 * bytes. Throws the last attempt's `CliError` where none succeeds.
 */
export async function send(
  request: HttpRequest,
  endpoint: Endpoint,
  { exchange, policy, onRetry }: SendOptions,
): Promise<HttpResponse> {
  for (let attempt = 1; ; attempt++) {
    const result = await tryOnce(request, endpoint, exchange)
    if ('status' in result) return result
    const decision = decideRetry(policy, result, { attempt, now: Date.now(), random: Math.random() })
    if (!decision.again) {
      const { because } = decision
      const failure = result.error.with({
        attempts: attempt,
        safeToRetry: isSafeToRetry(result.error, endpoint),
      })
      throw because ? new CliError(failure.kind, `${failure.message} (${because})`, failure.details) : failure
    }
    onRetry(result.error, decision.wait)
    await new Promise((resolve) => setTimeout(resolve, decision.wait))
  }
}

async function tryOnce(
  request: HttpRequest,
  endpoint: Endpoint,
  exchange: Exchange,
): Promise<HttpResponse | FailedAttempt> {
  let response: HttpResponse
  try {
    response = await decodeBody(await exchange(request))
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return { error }
  }
  return response.status < 300 ? response : readFailure(response, endpoint)
}

async function readFailure(response: HttpResponse, { service }: Endpoint): Promise<FailedAttempt> {
  const { status, statusText, headers } = response
  const rawBody = await collect(response.body, longestErrorBody).catch(() => new Uint8Array())
  const body = parseBody(rawBody)
  const problem = readProblem(body)
  const retryAfter = parseRetryAfter(headers, Date.now()) ?? problem.retryAfter
  const requestId = headers['request-id'] ?? headers['x-request-id'] ?? problem.requestId
  const details: FailureDetails = {
    sent: 'yes',
    status,
    rawBody,
    body,
    ...(retryAfter === undefined ? {} : { retryAfter }),
    ...(requestId === undefined ? {} : { requestId }),
    ...(problem.message === undefined ? {} : { serviceMessage: problem.message }),
  }
  const what = status < 400 ? describeRedirect(headers.location) : `${nameOf[service]} answered`
  const message = `${what} ${status}${statusText ? ` ${statusText}` : ''}`
  const error = new CliError(kindOfStatus(status, headers), message, details)
  return {
    error,
    ...(retryAfter === undefined ? {} : { retryAfter }),
    isFinal: headers['x-should-retry'] === 'false',
  }
}

const nameOf = { gateway: 'the gateway', agents: 'the session service' }

function kindOfStatus(status: number, headers: Record<string, string>): Kind {
  if (status === 401 || status === 403 || status === 407) return 'credentials'
  if (status === 402) return 'payment'
  if (status === 429 || (status === 503 && headers['retry-after'] !== undefined)) return 'rate-limited'
  return status >= 500 ? 'service' : 'refused'
}

/** The target of a redirect that is not followed, without a user name or password. */
function describeRedirect(location: string | undefined): string {
  const target = location?.replace(/\/\/[^/@]*@/, '//').slice(0, 200)
  return `redirect not followed${target ? `, to ${target}` : ''}:`
}

/** JSON where it is, else text. */
function parseBody(bytes: Uint8Array): unknown {
  const text = new TextDecoder().decode(bytes)
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function isSafeToRetry(error: CliError, { repeat }: Endpoint): boolean {
  if (error.kind === 'not-sent' || error.kind === 'rate-limited') return true
  return repeat !== 'refused' && ['service', 'response', 'unknown'].includes(error.kind)
}
