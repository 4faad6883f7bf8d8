import { CliError } from '../errors.ts'
import type { Call } from '../fate.ts'
import type { Timers } from '../timers.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import type { Exchange, HttpRequest, HttpResponse } from '../wire/exchange.ts'
import { decodeBody } from './decode.ts'
import { type ResponseHead, readErrorResponse, readHead } from './response.ts'
import { decideRetry, type FailedAttempt, fateOf, type RetryPolicy, retryOf } from './retry.ts'

export interface AttemptOptions {
  endpoint: Endpoint
  call: Call
  exchange: Exchange
  policy: Omit<RetryPolicy, 'repeat'>
  timers: Timers
  /** From then on it is not sent again. */
  isStopped?: (() => boolean) | undefined
  /** Called before each attempt: throws if nothing more may be sent. */
  requireRight?: (() => void) | undefined
  /** Called before each wait, in milliseconds. */
  onRetry(failure: CliError, wait: number): void
  /** For a failure: where what is wrong about the request came from, and what replaces it. */
  wayToMend?(failure: CliError): string | undefined
}

/** A response of status 2xx. */
export interface Response extends HttpResponse {
  head: ResponseHead
  /** How many attempts there were, this one included. */
  attempts: number
}

/**
 * Sends a request, and again if that is safe, until a response has a status of 2xx. Every attempt sends the same bytes.
 * Throws a `CliError` that says how far the call got.
 */
export async function sendRequest(request: HttpRequest, options: AttemptOptions): Promise<Response> {
  const { endpoint, call, timers, isStopped = () => false, onRetry } = options
  const policy = { ...options.policy, repeat: endpoint.repeat }
  /** Of the attempt that got furthest. */
  let furthest: CliError | undefined
  for (let attempt = 1; ; attempt++) {
    options.requireRight?.()
    const result = await tryOnce(request, options)
    if ('status' in result) return { ...result, attempts: attempt }
    const { error } = result
    const before = call.fate()
    call.reach(fateOf(error))
    const failure = withEarlier(error, furthest)
    const decision = decideRetry(policy, result, { attempt, now: timers.now(), random: timers.random() })
    const end = (because?: string, deadline?: boolean) =>
      explain(
        new CliError(failure.kind, because ? `${failure.message} (${because})` : failure.message, {
          ...failure.details,
          attempts: attempt,
          deadline: failure.details.deadline ?? deadline,
        }),
        call,
        options,
      )
    if (!decision.again) throw end(decision.because, decision.deadline)
    if (error.kind !== 'not-sent' && (!furthest || call.fate() !== before)) furthest = error
    onRetry(failure, decision.wait)
    await timers.wait(decision.wait)
    if (isStopped()) throw end()
  }
}

async function tryOnce(
  request: HttpRequest,
  { endpoint, call, exchange, timers }: AttemptOptions,
): Promise<Omit<Response, 'attempts'> | FailedAttempt> {
  call.attempt()
  let response: HttpResponse
  try {
    response = decodeBody(await exchange(request, () => call.reach('sent')))
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return { error }
  }
  const head = await readHead(response.headers, timers.date())
  if (response.status >= 300) return readErrorResponse(response, endpoint, head)
  call.reach('answered')
  return { ...response, head }
}

/** If the last attempt sent nothing but one before it did, that one is the call's failure: that nothing was sent is not true. */
function withEarlier(failure: CliError, furthest: CliError | undefined): CliError {
  if (failure.kind !== 'not-sent' || !furthest) return failure
  const { deadline } = failure.details
  const message = `${failure.message}; before that, ${furthest.message}`
  return new CliError(furthest.kind, message, { ...furthest.details, deadline })
}

/** A failure of reading a response, or of writing it anywhere, with what is known of its call. */
export function completeFailure(
  failure: CliError,
  call: Call,
  { status, attempts, head, wayToMend }: Response & Pick<AttemptOptions, 'wayToMend'>,
): CliError {
  const { kind, message, details } = failure
  // It is another call's.
  if (details.attempts !== undefined) return failure
  return explain(
    new CliError(kind, details.isInBody ? `the service answered ${status} with an error` : message, {
      ...details,
      retryAfter: head.retryAfter ?? details.retryAfter,
      requestId: head.requestId ?? details.requestId,
      status,
      attempts,
    }),
    call,
    { wayToMend },
  )
}

/** Adds what the fate of a call means to its failure. */
function explain(failure: CliError, call: Call, { wayToMend }: Pick<AttemptOptions, 'wayToMend'>): CliError {
  const meaning = call.meaning()
  const { sent, failed } = meaning
  const { retry, consequence } = failure.details
  const why = wayToMend?.(failure) ?? failed
  return failure.with({
    fate: call.fate(),
    sent,
    retry: retry ?? retryOf(failure, meaning),
    // Whoever threw it may know more.
    consequence: consequence ?? why,
  })
}
