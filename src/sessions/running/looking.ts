import { CliError } from '../../errors.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { listOldestFirst } from '../listing/event-list.ts'
import { isCutByDeadline, Patience } from '../patience.ts'
import type { SessionAccess } from '../session.ts'
import { longestDoubt } from './replying.ts'

/** The waits between two lists; the last one stays. Milliseconds. */
const waits = [100, 250, 500, 1_000, 2_000]

/**
 * Reads the list again and again until `read` finds something in it. Returns nothing if the longest doubt or the deadline ends
 * before. `whenWaiting` is called before the first wait. Throws a `CliError`.
 */
export async function lookUntil<T>(
  access: SessionAccess,
  read: (list: AsyncIterable<readonly EventItem[]>) => Promise<T | undefined>,
  whenWaiting = () => {},
): Promise<T | undefined> {
  const { context, caller, parts } = access
  const { timers } = context
  const end = Math.min(timers.now() + longestDoubt, caller.deadline)
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
