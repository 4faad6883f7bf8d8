import { CliError } from '../../errors.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { listOldestFirst } from '../listing/event-list.ts'
import { isCutByDeadline, Patience } from '../patience.ts'
import type { SessionAccess } from '../session.ts'
import { maxDoubtMs } from './replying.ts'

/** Pauses between two lists, in milliseconds. The last one repeats. */
const waits = [100, 250, 500, 1_000, 2_000]

interface LookOptions {
  longestMs?: number
  /** Called before the first pause. */
  whenWaiting?(): void
}

/**
 * Lists the events repeatedly until `read` finds something. Returns `undefined` after `longestMs` or at the
 * deadline. Throws a `CliError`.
 */
export async function lookUntil<T>(
  access: SessionAccess,
  read: (list: AsyncIterable<readonly EventItem[]>) => Promise<T | undefined>,
  { longestMs = maxDoubtMs, whenWaiting = () => {} }: LookOptions = {},
): Promise<T | undefined> {
  const { context, caller, parts } = access
  const { timers } = context
  const end = Math.min(timers.now() + longestMs, caller.deadline)
  for (let count = 0; ; count++) {
    try {
      const found = await read(listOldestFirst(caller, parts))
      if (found !== undefined) return found
    } catch (error) {
      if (timers.now() >= end || (error instanceof CliError && isCutByDeadline(error))) return undefined
      new Patience(access, 'always').endure(error)
    }
    if (timers.now() >= end) return undefined
    if (count === 0) whenWaiting()
    await timers.wait(Math.min(waits[count] ?? 2_000, end - timers.now()))
  }
}
