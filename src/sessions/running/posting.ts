import { isCertainlyUnaccepted } from '../../delivery-state.ts'
import { CliError } from '../../errors.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { listOldestFirst } from '../listing/event-list.ts'
import { ReconnectPolicy } from '../reconnect-policy.ts'
import { readReceipt } from '../sending/receipt.ts'
import type { SessionAccess } from '../session.ts'
import { maxDeliveryMs } from './replying.ts'

/** Result of posting events, as the audit records it. */
interface PostResult {
  is: 'accepted' | 'refused' | 'unknown'
  /** The events that the receipt names. */
  named: readonly SessionEvent[]
  /** Failure of the request. Absent if the service accepted the events and parley read the receipt. */
  failure?: CliError
}

interface PostOptions {
  /** Writes a line of the audit to the disk. */
  record(event: 'sent' | PostResult['is'], reason?: string): void
  /**
   * Number of events that a complete receipt names; an empty receipt is complete, too. If omitted, every
   * receipt is complete.
   */
  count?: number
  /** One attempt only, because the caller has its own retry rules. */
  isSingle?: boolean
  /** Text that is printed if a signal ends the run after the acceptance. */
  accepted?: string
  /** Called as soon as acceptance is certain. */
  onAccepted?(): void
}

/**
 * Posts events once. Records one `sent` line before a byte leaves, and one line with the result afterwards.
 * Without `count`, records `accepted` before it reads the receipt: if the run is killed then, the next run
 * needs that line to resume. Throws a `CliError` if the audit cannot be written, or the failure of the
 * request if the events were certainly not accepted.
 */
export async function postOnce(
  { context, caller, parts }: SessionAccess,
  body: Uint8Array,
  { record, count, isSingle = true, accepted, onAccepted }: PostOptions,
): Promise<PostResult> {
  record('sent')
  let isRecorded = false
  const recordAcceptance = () => {
    onAccepted?.()
    if (count !== undefined) return
    record('accepted')
    isRecorded = true
  }
  let posted: PostResult
  try {
    const named = await caller.call(endpoints.sendEvents, { ...parts, body, isSingle }, (response) =>
      readReceipt(context, response, { accepted, onAccepted: recordAcceptance }),
    )
    const isWhole = named.length === 0 || named.length >= (count ?? 0)
    const failure = new CliError('unknown', 'the receipt names only some of the events')
    posted = isWhole ? { is: 'accepted', named } : { is: 'unknown', named, failure }
  } catch (failure) {
    if (!(failure instanceof CliError)) throw failure
    posted = { is: findResult(failure), named: [], failure }
  }
  try {
    if (!isRecorded) record(posted.is, posted.is === 'accepted' ? undefined : posted.failure?.message)
  } catch (error) {
    throw posted.is === 'refused' ? posted.failure : error
  }
  return posted
}

/**
 * Returns the result of a failed call. Without a delivery state, the call failed before its first attempt or
 * between two attempts, so nothing was sent.
 */
function findResult({ details: { delivery = 'not-sent' } }: CliError): PostResult['is'] {
  // The receipt may be cut after the service accepted the events.
  if (delivery === 'done') return 'accepted'
  return isCertainlyUnaccepted(delivery) ? 'refused' : 'unknown'
}

/** Pauses between two readings of the event list, in milliseconds. The last pause repeats. */
const pausesMs = [100, 250, 500, 1_000, 2_000]

interface DoubtOptions<T> {
  /** Returns what the list proves about the posted events, or `undefined` if it proves nothing yet. */
  read(list: AsyncIterable<readonly EventItem[]>): Promise<T | undefined>
  maxMs?: number
  /** Called before the first pause. */
  whenWaiting?(): void
}

/**
 * Determines whether an earlier post arrived: lists the events until `read` returns a result. Returns
 * `undefined` after `maxMs` or at the deadline. Throws a `CliError`.
 */
export async function resolveDoubt<T>(
  access: SessionAccess,
  { read, maxMs = maxDeliveryMs, whenWaiting = () => {} }: DoubtOptions<T>,
): Promise<T | undefined> {
  const deadline = access.parts.deadline.narrow(maxMs, `no complete list within ${maxMs / 1000} s`)
  const parts = { ...access.parts, deadline }
  for (let count = 0; ; count++) {
    try {
      const found = await read(listOldestFirst(access.caller, { ...parts, isSingle: true }))
      if (found !== undefined) return found
    } catch (error) {
      if (deadline.hasPassed) return undefined
      if (!(error instanceof CliError)) throw error
      const end = new ReconnectPolicy({ ...access, parts }).findEnd(error)
      if (end) throw end
    }
    if (deadline.hasPassed) return undefined
    if (count === 0) whenWaiting()
    await deadline.wait(pausesMs[count] ?? 2_000)
  }
}
