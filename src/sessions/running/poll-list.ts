import { CliError } from '../../errors.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { listOldestFirst } from '../listing/event-list.ts'
import { ReconnectPolicy } from '../reconnect-policy.ts'
import type { SessionAccess } from '../session.ts'
import { maxDoubtMs } from './replying.ts'

/** Pauses between two lists. The last pause repeats. */
const pausesMs = [100, 250, 500, 1_000, 2_000]

interface PollOptions {
  maxMs?: number
  /** Called before the first pause. */
  whenWaiting?(): void
}

/**
 * Lists the events repeatedly until `read` finds something. Returns `undefined` after `maxMs` or at the
 * deadline. Throws a `CliError`.
 */
export async function pollList<T>(
  access: SessionAccess,
  read: (list: AsyncIterable<readonly EventItem[]>) => Promise<T | undefined>,
  { maxMs = maxDoubtMs, whenWaiting = () => {} }: PollOptions = {},
): Promise<T | undefined> {
  const deadline = access.parts.deadline.narrow(maxMs, `no whole list within ${maxMs / 1000} s`)
  const parts = { ...access.parts, deadline }
  for (let count = 0; ; count++) {
    try {
      const found = await read(listOldestFirst(access.caller, { ...parts, isSingle: true }))
      if (found !== undefined) return found
    } catch (error) {
      if (deadline.hasPassed) return undefined
      if (!(error instanceof CliError)) throw error
      const end = new ReconnectPolicy({ ...access, parts }, 'always').findEnd(error)
      if (end) throw end
    }
    if (deadline.hasPassed) return undefined
    if (count === 0) whenWaiting()
    await deadline.wait(pausesMs[count] ?? 2_000)
  }
}
