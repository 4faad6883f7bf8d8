import { CliError } from '../../errors.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { listOldestFirst } from '../listing/event-list.ts'
import { endure, freshPatience, isCutByDeadline } from '../patience.ts'
import type { SessionAccess } from '../session.ts'

/** Takes in one list. */
export interface ListReading<T> {
  add(item: EventItem): void
  /** Absent if the list has to be read again. */
  result(now: number): T | undefined
}

/** The waits between two lists; the last one stays. Milliseconds. */
const waits = [100, 250, 500, 1_000, 2_000]

/**
 * Reads the list again and again until a reading has a result. Returns nothing if the time is over before. `begin` is called
 * for each list, and `whenWaiting` before the first wait. Throws a `CliError`.
 */
export async function lookUntil<T>(
  { context, caller, parts }: SessionAccess,
  until: number,
  begin: () => ListReading<T>,
  whenWaiting = () => {},
): Promise<T | undefined> {
  const { timers } = context
  const end = Math.min(until, caller.deadline)
  for (let count = 0; ; count++) {
    try {
      const reading = begin()
      for await (const items of listOldestFirst(caller, parts)) for (const item of items) reading.add(item)
      const result = reading.result(timers.now())
      if (result !== undefined) return result
    } catch (error) {
      if (timers.now() >= end || (error instanceof CliError && isCutByDeadline(error))) return undefined
      endure({ context, caller, repeat: 'always' }, freshPatience(timers.now()), error)
    }
    if (timers.now() >= end) return undefined
    if (count === 0) whenWaiting()
    await timers.wait(Math.min(waits[count] ?? 2_000, end - timers.now()))
  }
}
