import { CliError } from '../errors.ts'
import type { Timers } from '../timers.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import type { Exchange, HttpRequest, HttpResponse } from '../wire/exchange.ts'
import { type AnswerHead, readHead } from './answer-head.ts'
import { decodeBody } from './decode.ts'
import { readErrorAnswer } from './error-answer.ts'
import { decideRetry, type FailedAttempt, type RetryPolicy } from './retry.ts'

export interface SendOptions {
  exchange: Exchange
  policy: RetryPolicy
  timers: Timers
  /** Called when the first byte of an attempt leaves. */
  onSent?: (() => void) | undefined
  /** Called before each wait, in milliseconds. */
  onRetry(failure: CliError, wait: number): void
}

/** An answer of status 2xx. */
export interface Answer extends HttpResponse {
  head: AnswerHead
  /** How many attempts there were, this one included. */
  attempts: number
}

/**
 * Sends a request, and again where that is safe, until an answer has a status of 2xx. Every attempt sends the same
 * bytes. Throws the last attempt's `CliError`.
 */
export async function send(
  request: HttpRequest,
  endpoint: Endpoint,
  { exchange, policy, timers, onSent, onRetry }: SendOptions,
): Promise<Answer> {
  let earlier: CliError | undefined
  for (let attempt = 1; ; attempt++) {
    const result = await tryOnce(endpoint, timers, () => exchange(request, onSent))
    if ('status' in result) return { ...result, attempts: attempt }
    const decision = decideRetry(policy, result, { attempt, now: timers.now(), random: Math.random() })
    const failure = withEarlier(result.error, earlier)
    if (!decision.again) throw finalFailure(failure, attempt, endpoint, decision.because)
    if (failure.details.sent !== 'no' && earlier?.details.sent !== 'unknown') earlier = failure
    onRetry(failure, decision.wait)
    await timers.wait(decision.wait)
  }
}

/** Where the last attempt sent nothing but an earlier one did, the earlier one counts. */
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
 * Adds what is known of an exchange to a failure of reading its answer, or of writing it anywhere; returns any other
 * failure as it is.
 */
export function completeFailure(failure: CliError, answer: Answer, endpoint: Endpoint): CliError {
  const { sent = 'no', attempts, safeToRetry = isSafeToRetry(failure, endpoint) } = failure.details
  const isOfAnswer = sent === 'yes' || (sent === 'unknown' && failure.kind === 'response')
  const isLater = attempts === undefined && (isOfAnswer || failure.kind === 'file')
  if (!isLater) return failure
  const message = failure.details.isInBody
    ? `the service answered ${answer.status} with an error`
    : failure.message
  return new CliError(failure.kind, message, {
    ...failure.details,
    retryAfter: answer.head.retryAfter ?? failure.details.retryAfter,
    requestId: answer.head.requestId ?? failure.details.requestId,
    status: answer.status,
    attempts: answer.attempts,
    sent: sent === 'unknown' ? sent : 'yes',
    safeToRetry,
  })
}

async function tryOnce(
  endpoint: Endpoint,
  { now }: Timers,
  attempt: () => Promise<HttpResponse>,
): Promise<Omit<Answer, 'attempts'> | FailedAttempt> {
  let response: HttpResponse
  try {
    response = decodeBody(await attempt())
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return { error }
  }
  const head = await readHead(response.headers, now())
  return response.status < 300 ? { ...response, head } : readErrorAnswer(response, endpoint, head)
}

function isSafeToRetry(error: CliError, { repeat }: Endpoint): boolean {
  if (error.kind === 'not-sent' || error.kind === 'rate-limited') return true
  return repeat !== 'not-taken' && ['service', 'response', 'unknown'].includes(error.kind)
}
