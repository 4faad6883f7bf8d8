import { createHash } from 'node:crypto'
import { CliError } from '../../errors.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import * as z from '../../wire/zod.ts'
import { contentOf } from '../following/seen-events.ts'
import { SessionState } from '../session-state.ts'
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
 * A run that is given this very task takes the session up in place of sending it. In `posting` the session's own list is
 * asked first (`look`). Any other task is sent, and takes its place.
 */
export interface JournalTask {
  /** Of the request's body. */
  hash: string
  is: 'posting' | 'accepted'
  sent: TaskSending
}

export interface TaskSending {
  /** Milliseconds since the epoch, by this machine's clock; NaN if it is not known. */
  at: number
  /** What the list showed before. */
  known: Known
}

/**
 * How many events a list shows, how many of them have a type of the task's, and how many of these say what the task says.
 * Earlier versions did not count the types.
 */
export const Known = z.lazily(() =>
  z.object({ events: z.number(), ofTypes: z.optional(z.number()), alike: z.number() }),
)
export type Known = z.infer<ReturnType<typeof Known>>

/** A line of the journal. */
export type TaskLine =
  | { event: 'sent'; hash: string; sent: TaskSending }
  | { event: 'accepted' | 'refused' | 'unknown' | 'done'; hash: string }

/** What the journal's task becomes by a line. */
export function stepTask(task: JournalTask | undefined, line: TaskLine | undefined): JournalTask | undefined {
  if (!line) return task
  const { event, hash } = line
  if (event === 'sent') return { hash, is: 'posting', sent: line.sent }
  if (task?.hash !== hash || event === 'unknown') return task
  return event === 'accepted' ? { ...task, is: 'accepted' } : undefined
}

/** What a list says. */
export interface ShownTask extends Known {
  ofTypes: number
  /** It has events of clients, so that it does not leave them out. */
  hasClients: boolean
  /** The session has nothing to do: what it was sent does not wait for its turn. */
  isAtRest: boolean
}

/**
 * Whether a task arrived, by a list; undefined if that cannot be said. `since` is when this run began to look. That it is not
 * there is believed if the request is long over, the list had time to show it, and shows all else. A service may have changed
 * its words: then another event of its types may be the task.
 */
export function look(
  { at, known }: TaskSending,
  shown: ShownTask,
  { since, now }: { since: number; now: number },
): boolean | undefined {
  if (shown.alike > known.alike) return true
  const isOver = isLongOver(at, { since, now })
  const isAll = shown.events === known.events || (shown.events > known.events && shown.hasClients)
  const isLike = shown.ofTypes > (known.ofTypes ?? Infinity)
  return isOver && isAll && shown.isAtRest && !isLike ? false : undefined
}

/** Whether a request that was sent `at` cannot arrive any more, and a list that is read since `since` would show it. */
export const isLongOver = (at: number, { since, now }: { since: number; now: number }): boolean =>
  now >= Math.min(at || since, since) + longestDoubt && now >= since + longestLag

export const hashOf = (body: Uint8Array): string =>
  createHash('sha256').update(body).digest('hex').slice(0, 32)

/** Counts what a list shows, for a task of these events. */
export function createCounter(task: readonly SessionEvent[]) {
  const contents = new Set(task.map(contentOf))
  const types = new Set(task.map(({ type }) => type))
  const state = new SessionState()
  const counts = { events: 0, ofTypes: 0, alike: 0, hasClients: false }
  const add = ({ event }: EventItem) => {
    state.add(event)
    counts.events++
    counts.hasClients ||= event.type.startsWith('user.')
    if (!types.has(event.type)) return
    counts.ofTypes++
    if (contents.has(contentOf(event))) counts.alike++
  }
  return {
    add,
    async addAll(items: readonly EventItem[]) {
      for (const item of items) add(item)
    },
    get shown(): ShownTask {
      return { ...counts, isAtRest: state.isEmpty || state.stop !== undefined }
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
  const { is, sent } = earlier
  const since = session.context.timers.now()
  // An accepted one is waited for, too: until the list shows it, the session seems to rest.
  const until = since + (is === 'accepted' ? longestLag : longestDoubt + longestLag)
  const isThere = await lookUntil(session, until, () => {
    const counter = createCounter(events)
    return { add: counter.add, result: (now) => look(sent, counter.shown, { since, now }) }
  })
  if (is === 'accepted') return true
  if (isThere !== undefined) return isThere
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
