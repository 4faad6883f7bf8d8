import { isCertainlyUnaccepted } from '../../delivery-state.ts'
import { CliError } from '../../errors.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { listEventsOldestFirst } from '../listing/event-list.ts'
import { ReconnectPolicy } from '../reconnect-policy.ts'
import { readReceipt } from '../sending/receipt.ts'
import type { SessionClient } from '../session.ts'
import { maxDeliveryMs } from './reply-state.ts'
import type { SessionRun } from './session-run.ts'

interface PostResult {
  is: 'accepted' | 'refused' | 'unknown'
  receiptEvents: readonly SessionEvent[]
  /** `undefined` if the service accepted the events and parley could read the receipt. */
  failure?: CliError
}

interface PostOptions {
  record(event: 'sent' | PostResult['is'], reason?: string): void
  /** Number of posted events. If the receipt has fewer events, but at least one, the result is `unknown`. */
  count?: number
  /** True by default: makes only one attempt, because most callers retry by their own rules. */
  isSingle?: boolean
  acceptedText?: string
  rerunHint?: string | undefined
}

/**
 * Posts events once. Calls `record` with `sent` before the request, and with the result after the response.
 * Returns a failure of the request instead of throwing it. If `record` throws, throws that error or, after a
 * refusal by the service, the failure of the request.
 */
export async function postEventsOnce(
  { context, caller, parts }: SessionClient,
  body: Uint8Array,
  { record, count, isSingle = true, acceptedText, rerunHint }: PostOptions,
): Promise<PostResult> {
  record('sent')
  let posted: PostResult
  try {
    const receiptEvents = await caller.call(
      endpoints.sendEvents,
      { ...parts, body, isSingle, rerunHint },
      (response) => readReceipt(context, response, { acceptedText }),
    )
    const isWhole = receiptEvents.length === 0 || receiptEvents.length >= (count ?? 0)
    const failure = new CliError('unknown', 'the response lists only some of the sent events')
    posted = isWhole ? { is: 'accepted', receiptEvents } : { is: 'unknown', receiptEvents, failure }
  } catch (failure) {
    if (!(failure instanceof CliError)) throw failure
    // A failure before the first attempt or between two attempts has no delivery state. The service then has
    // not accepted the events.
    const { delivery = 'not-sent' } = failure.details
    // `done`: the service accepted the events, but parley could not read the whole receipt.
    const isAccepted = delivery === 'done'
    const is = isAccepted ? 'accepted' : isCertainlyUnaccepted(delivery) ? 'refused' : 'unknown'
    posted = { is, receiptEvents: [], failure }
  }
  try {
    record(posted.is, posted.is === 'accepted' ? undefined : posted.failure?.message)
  } catch (error) {
    throw posted.is === 'refused' ? posted.failure : error
  }
  return posted
}

const pausesMs = [100, 250, 500, 1_000, 2_000]

interface PollOptions<T> {
  read(list: AsyncIterable<readonly EventItem[]>): Promise<T | undefined>
  maxMs?: number
  whenWaiting?(): void
}

/**
 * Lists the events of the session to find out whether posted events arrived. Lists again until `read` returns
 * a value, and returns that value. Returns `undefined` after `maxMs` or at the deadline. Throws a `CliError`
 * if the list cannot be read and a retry cannot help.
 */
export async function pollEventList<T>(
  run: SessionRun,
  { read, maxMs = maxDeliveryMs, whenWaiting = () => {} }: PollOptions<T>,
): Promise<T | undefined> {
  const deadline = run.parts.deadline.narrow(maxMs, `no complete list of events within ${maxMs / 1000} s`)
  const parts = { ...run.parts, deadline }
  let reconnects: ReconnectPolicy | undefined
  for (let count = 0; !deadline.hasPassed; count++) {
    try {
      const found = await read(listEventsOldestFirst(run.caller, { ...parts, isSingle: true }))
      reconnects?.recordResponse()
      if (found !== undefined) return found
    } catch (error) {
      if (deadline.hasPassed) break
      if (!(error instanceof CliError)) throw error
      reconnects = new ReconnectPolicy({ ...run, parts }, run.follower.outageNotes)
      const end = reconnects.findFinalFailure(error)
      if (end) throw end
    }
    if (count === 0) whenWaiting()
    await deadline.wait(pausesMs[count] ?? 2_000)
  }
  return undefined
}
