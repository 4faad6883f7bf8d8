import { createHash } from 'node:crypto'
import { CliError } from '../../errors.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import * as z from '../../wire/zod.ts'
import { contentOf } from '../following/seen-events.ts'
import { type ListedSession, lookUntil } from './looking.ts'
import { longestDoubt, longestLag } from './replying.ts'

/**
 * A task that the journal (the audit file) shows as sent, and not done. Each arrow is a line of the journal:
 *
 *     (none)    -- sent -----> posting      the request may have left
 *     posting   -- accepted -> accepted
 *     posting   -- unknown --> posting
 *     posting   -- refused --> (none)       it was certainly not taken
 *     accepted  -- done -----> (none)       the run came to a good end
 *
 * A run that is given this very task takes the session up in place of sending it. In `posting` the session's own list has to
 * show it first; until then the run ends, for that no list shows it proves nothing. Any other task is sent, and takes
 * its place.
 */
export interface JournalTask {
  /** Of the request's body. */
  hash: string
  is: 'posting' | 'accepted'
  known: Known
}

/** How many events of the list said what the task says, before it was sent. */
export const Known = z.lazily(() => z.object({ alike: z.number() }))
export type Known = z.infer<ReturnType<typeof Known>>

/** A line of the journal. */
export type TaskLine =
  | { event: 'sent'; hash: string; known: Known }
  | { event: 'accepted' | 'refused' | 'unknown' | 'done'; hash: string }

/** What the journal's task becomes by a line. */
export function stepTask(task: JournalTask | undefined, line: TaskLine | undefined): JournalTask | undefined {
  if (!line) return task
  const { event, hash } = line
  if (event === 'sent') return { hash, is: 'posting', known: line.known }
  if (task?.hash !== hash || event === 'unknown') return task
  return event === 'accepted' ? { ...task, is: 'accepted' } : undefined
}

export const hashOf = (body: Uint8Array): string =>
  createHash('sha256').update(body).digest('hex').slice(0, 32)

/** Counts the events of a list that say what one of a task's events says. */
export function createCounter(task: readonly SessionEvent[]) {
  const contents = new Set(task.map(contentOf))
  let alike = 0
  const add = ({ event }: EventItem) => {
    if (contents.has(contentOf(event))) alike++
  }
  return {
    add,
    async addAll(items: readonly EventItem[]) {
      for (const item of items) add(item)
    },
    get alike() {
      return alike
    },
  }
}

/**
 * Whether an earlier run has sent this very task, so that the session is to be taken up in place of sending it. Throws a
 * `CliError` of kind `unknown` if that cannot be known.
 */
export async function isUnderWay(
  session: ListedSession,
  earlier: JournalTask | undefined,
  { hash, events }: { hash: string; events: readonly SessionEvent[] },
): Promise<boolean> {
  if (earlier?.hash !== hash) return false
  const { is, known } = earlier
  const since = session.context.timers.now()
  // An accepted one is waited for, too: until the list shows it, the session seems to rest.
  const until = since + (is === 'accepted' ? longestLag : longestDoubt)
  const isThere = await lookUntil(session, until, () => {
    const counter = createCounter(events)
    return { add: counter.add, result: () => counter.alike > known.alike || undefined }
  })
  if (is === 'accepted' || isThere) return true
  throw new CliError(
    'unknown',
    'it is not known whether the task arrived that an earlier run began to send',
    {
      sent: 'unknown',
      retry: 'look-first',
      consequence: "look with 'parley events list': with another audit file it is sent again",
    },
  )
}
