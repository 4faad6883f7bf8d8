import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { printRaw } from '../io/raw-printer.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import type { HttpRequest, HttpResponse } from '../wire/exchange.ts'
import { consequenceOf } from './consequence.ts'
import type { Reach } from './reach.ts'
import { type Answer, completeFailure, type SendOptions, send } from './send.ts'

/** An answer of status 2xx that is read piece by piece. */
export interface OpenAnswer extends HttpResponse {
  /** How many there were, this one included. */
  attempts: number
  /** The answer was read. */
  finish(): void
  /** Adds what is known of the call to a failure of reading the answer, or of writing it anywhere. */
  complete(error: unknown): unknown
}

interface Sending extends Pick<SendOptions, 'exchange' | 'policy'> {
  reach: Reach
  /** Where the request's secret came from, in words. */
  secretOrigin: string | undefined
  showWaiting<T>(work: Promise<T>): Promise<T>
}

/** Sends a request up to the answer's head. Throws a `CliError` that says what its failure means. */
export async function openAnswer(
  context: Context,
  { endpoint, request }: { endpoint: Endpoint; request: HttpRequest },
  { reach, secretOrigin, showWaiting, ...options }: Sending,
): Promise<OpenAnswer> {
  const { facts } = context
  try {
    const sending = send(request, endpoint, {
      ...options,
      exchange(request, onSent) {
        facts.attempts++
        return options.exchange(request, onSent)
      },
      timers: context.timers,
      onSent() {
        if (facts.sent === 'no') facts.sent = 'unknown'
        reach.leave()
      },
      onRetry(failure, wait) {
        reach.fail(failure)
        context.note(`${failure.message}; trying again in ${(wait / 1000).toFixed(1)} s`)
      },
    })
    const answer = await showWaiting(sending)
    reach.answer()
    facts.sent = 'yes'
    facts.requestId = answer.head.requestId
    return {
      ...answer,
      finish: reach.finish,
      complete(error) {
        reach.end()
        return explain(error, answer, endpoint, secretOrigin)
      },
    }
  } catch (error) {
    reach.end()
    if (!(error instanceof CliError)) throw error
    if (error.details.sent === 'yes') facts.sent = 'yes'
    const { rawBody } = error.details
    if (context.flags.raw && rawBody) await printRaw(context.output, rawBody)
    throw error.with(consequenceOf(error, endpoint, secretOrigin))
  }
}

function explain(
  error: unknown,
  answer: Answer,
  endpoint: Endpoint,
  secretOrigin: string | undefined,
): unknown {
  if (!(error instanceof CliError)) return error
  const whole = completeFailure(error, answer, endpoint)
  const isSaid = whole === error || whole.details.consequence !== undefined
  return isSaid ? whole : whole.with(consequenceOf(whole, endpoint, secretOrigin))
}
