import type { Caller } from '../../calls/caller.ts'
import type { RequestParts } from '../../calls/drafter.ts'
import type { Context } from '../../context.ts'
import type { EventItem } from '../../wire/events/events-page.ts'
import { isStop, type SessionEvent } from '../../wire/events/session-event.ts'
import { listOldestFirst } from '../listing/selection.ts'
import { createEndurance } from './endurance.ts'
import { openEventStream } from './event-stream.ts'
import type { Feed } from './feed.ts'
import { createSieve } from './sieve.ts'
import { createWatch } from './watch.ts'

export interface FollowOptions {
  /** Also print what happened before. */
  hasHistory?: boolean | undefined
  /** Go on after a rest, until the session has ended. */
  stays?: boolean | undefined
}

export interface Follower {
  /**
   * Prints a session's events until it comes to rest: of events just sent, what comes
   * after them.
   */
  follow(sent?: readonly SessionEvent[]): Promise<void>
  close(): void
}

/** Between two streams: whether a list has shown by now what happened there. */
type Gap = 'unknown' | 'open' | 'closed'

/** How long a list may take to show what the stream has brought: the waits before each look. Milliseconds. */
const looks = [0, 250, 500, 1_000]

/**
 * Takes note of what there was, before anything else is done, and opens the stream. Following lists what came since,
 * goes on with the stream, and after a cut does the same again.
 */
export async function openFollower(
  context: Context,
  caller: Caller,
  parts: RequestParts,
  feed: Feed,
  { hasHistory = false, stays = false }: FollowOptions,
): Promise<Follower> {
  const { timers } = context
  const sieve = createSieve()
  const endurance = createEndurance(context, caller)
  const watch = createWatch(sieve, timers, stays)
  for await (const items of listOldestFirst(caller, parts)) {
    for (const item of items) {
      sieve.addOld(item)
      if (hasHistory) await feed.print(item)
    }
  }
  let stream = await openEventStream(caller, parts, timers)

  async function print(items: readonly EventItem[]): Promise<void> {
    if (items.length > 0) endurance.progressed()
    for (const item of items) await feed.print(item)
    if (stays) await feed.pause(sieve.state)
  }

  /** Returns whether the list shows an event. */
  async function readList(id?: string): Promise<boolean> {
    const items: EventItem[] = []
    for await (const page of listOldestFirst(caller, parts)) for (const item of page) items.push(item)
    endurance.answered()
    await print(sieve.addList(items))
    return items.some(({ event }) => event.id === id)
  }

  /**
   * Before the first news of a stream, lists until the list shows it, and so what happened between this stream and the
   * one before. A list that is too late for that may at the end, when the session stops, show what the stream did not.
   */
  async function closeGap(gap: Gap, event: SessionEvent): Promise<Gap> {
    if (gap === 'closed' || (gap === 'open' && !isStop(event))) return gap
    for (const wait of looks) {
      if (wait > 0) await timers.wait(wait)
      try {
        if (await readList(event.id)) return 'closed'
      } catch (error) {
        // The stream is there still, and the list may be later.
        endurance.endure(error)
        return 'open'
      }
    }
    return 'open'
  }

  /** Reads on until the session rests; returns whether it does, rather than the stream having ended. */
  async function readStream(hasGap: boolean): Promise<boolean> {
    watch.begin()
    let gap: Gap = hasGap ? 'unknown' : 'closed'
    for (;;) {
      if (watch.isOverdue()) await print(sieve.giveUp())
      const next =
        sieve.nextHeld() ?? (await stream.next(Math.max(0, Math.min(watch.patience(), endurance.left()))))
      if (next === 'end') return watch.isOver()
      if (next === 'silence') {
        if (watch.isOver()) return true
        if (endurance.left() <= 0) throw endurance.stopped()
        await readList()
      } else {
        const isNews = sieve.isUnknown(next.event)
        if (isNews && next.event.id !== undefined && !sieve.isLost) gap = await closeGap(gap, next.event)
        await print(sieve.addLive(next))
        if (isNews && watch.isOver()) return true
      }
    }
  }

  async function readOnce(isFirst: boolean, hasSent: boolean): Promise<boolean> {
    if (!isFirst) stream = await openEventStream(caller, parts, timers)
    sieve.connect()
    // What was sent came after the first stream was opened, which so brings all that follows it.
    const hasGap = !(isFirst && hasSent)
    if (hasGap) await readList()
    endurance.answered()
    if (isFirst) feed.begin(sieve.state)
    const isAtRest = await readStream(hasGap)
    endurance.answered()
    if (!isAtRest) context.note('the stream of events broke off; connecting again')
    return isAtRest
  }

  async function follow(sent?: readonly SessionEvent[]): Promise<void> {
    if (sent) sieve.expect(sent)
    for (let isFirst = true; ; isFirst = false) {
      try {
        if (await readOnce(isFirst, sent !== undefined)) break
      } catch (error) {
        endurance.endure(error)
      }
      stream.close()
      await endurance.wait()
    }
    if (sieve.isUndone)
      context.warn('the service does not show that it has taken up what was sent: its answer may come later')
    await feed.end(sieve.state)
  }

  return { follow, close: () => stream.close() }
}
