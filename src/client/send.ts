import { CliError } from '../errors.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import type { Exchange, HttpRequest, HttpResponse } from '../wire/exchange.ts'
import { decodeBody } from './decode.ts'
import { readHead, readRefusal } from './refusal.ts'
import { decideRetry, type FailedAttempt, type RetryPolicy } from './retry.ts'
import type { Timers } from './timer.ts'

export interface SendOptions {
  exchange: Exchange
  policy: RetryPolicy
  timers: Timers
  /** Called before each wait, in milliseconds. */
  onRetry(failure: CliError, wait: number): void
}

/** An answer of status 2xx. */
export interface Answer extends HttpResponse {
  /** How many it took. */
  attempts: number
}

/**
 * Sends a request, again where that is safe, until there is an answer of status 2xx. Every attempt sends the same
 * bytes. Throws the last attempt's `CliError` where none succeeds.
 */
export async function send(
  request: HttpRequest,
  endpoint: Endpoint,
  { exchange, policy, timers, onRetry }: SendOptions,
): Promise<Answer> {
  let earlier: CliError | undefined
  for (let attempt = 1; ; attempt++) {
    const result = await tryOnce(request, endpoint, exchange)
    if ('status' in result) return { ...result, attempts: attempt }
    const decision = decideRetry(policy, result, { attempt, now: Date.now(), random: Math.random() })
    const failure = withEarlier(result.error, earlier)
    if (!decision.again) throw finalFailure(failure, attempt, endpoint, decision.because)
    if (failure.details.sent !== 'no' && earlier?.details.sent !== 'unknown') earlier = failure
    onRetry(failure, decision.wait)
    await timers.wait(decision.wait)
  }
}

/** That the last attempt sent nothing is no comfort where an earlier one did: the furthest that any got counts. */
function withEarlier(failure: CliError, earlier: CliError | undefined): CliError {
  if (failure.kind !== 'not-sent' || !earlier) return failure
  const { sent = 'yes' } = earlier.details
  const message = `${failure.message}; before that, ${earlier.message}`
  return new CliError(sent === 'unknown' ? 'unknown' : 'not-sent', message, { ...failure.details, sent })
}

function finalFailure(
  failure: CliError,
  attempts: number,
  endpoint: Endpoint,
  because: string | undefined,
): CliError {
  const details = { ...failure.details, attempts, safeToRetry: isSafeToRetry(failure, endpoint) }
  return new CliError(failure.kind, because ? `${failure.message} (${because})` : failure.message, details)
}

/**
 * Adds what is known of an exchange to a failure of its answer's body, or of putting that body anywhere; returns
 * any other failure as it is.
 */
export function completeFailure(failure: CliError, answer: Answer, endpoint: Endpoint): CliError {
  const { sent = 'no', attempts, safeToRetry = isSafeToRetry(failure, endpoint) } = failure.details
  const isOfAnswer = sent === 'yes' || (sent === 'unknown' && failure.kind === 'response')
  const isLater = attempts === undefined && (isOfAnswer || failure.kind === 'file')
  if (!isLater) return failure
  return failure.with({
    ...readHead(answer.headers),
    status: answer.status,
    attempts: answer.attempts,
    sent: sent === 'unknown' ? sent : 'yes',
    safeToRetry,
  })
}

async function tryOnce(
  request: HttpRequest,
  endpoint: Endpoint,
  exchange: Exchange,
): Promise<HttpResponse | FailedAttempt> {
  let response: HttpResponse
  try {
    response = decodeBody(await exchange(request))
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return { error }
  }
  return response.status < 300 ? response : readRefusal(response, endpoint)
}

function isSafeToRetry(error: CliError, { repeat }: Endpoint): boolean {
  if (error.kind === 'not-sent' || error.kind === 'rate-limited') return true
  return repeat !== 'refused' && ['service', 'response', 'unknown'].includes(error.kind)
}
