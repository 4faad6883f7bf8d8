import { createHash } from 'node:crypto'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import * as z from '../../wire/zod.ts'
import { contentOf } from '../following/seen-events.ts'

/**
 * A task that the journal (the audit file) shows as sent, and not done. Each arrow is a line of the journal:
 *
 *     (none)    -- sent -----> posting      the request may have left
 *     posting   -- accepted -> accepted
 *     posting   -- unknown --> posting
 *     posting   -- refused --> (none)       it was certainly not taken
 *     accepted  -- done -----> (none)       the run came to a good end
 *
 * A run that is given this very task takes the session up in place of sending it. The session's own list has to show it
 * first: in `posting` the task itself, for that no list shows it proves nothing, and in `accepted` anything that it did not
 * show before, else what came before the task would count as its answer. Until then the run ends. Any other task is sent,
 * and takes its place.
 */
export interface JournalTask {
  /** Of the request's body. */
  hash: string
  is: 'posting' | 'accepted'
  known: Known
}

/**
 * What a run without the task's words knows it by: `marks` of its events, as far as the journal has them. And what the list
 * showed before it was sent: how many events said what it says, and the id of the last event.
 */
export const Known = z.lazily(() =>
  z.object({ alike: z.number(), last: z.optional(z.string()), marks: z.optional(z.array(z.string())) }),
)
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

/** What the events of a task say, each by its type and a digest. */
export const marksOf = (task: readonly SessionEvent[]): string[] => [...new Set(task.map(markOf))]

const markOf = (event: SessionEvent): string => `${event.type} ${hashOf(Buffer.from(contentOf(event)))}`

/** Reads a list for what it shows of a task: how many events say what one of the task's says, and the id of the last one. */
export function createCounter(marks: readonly string[]) {
  const all = new Set(marks)
  const types = new Set(marks.map((mark) => mark.slice(0, mark.lastIndexOf(' '))))
  let alike = 0
  let last: string | undefined
  /** Returns whether the event says what one of the task's says. */
  const add = ({ event }: EventItem): boolean => {
    const isAlike = types.has(event.type) && all.has(markOf(event))
    if (isAlike) alike++
    last = event.id
    return isAlike
  }
  return {
    add,
    async addAll(items: readonly EventItem[]) {
      for (const item of items) add(item)
    },
    get known(): Known {
      return { alike, last, marks: [...all] }
    },
  }
}

/**
 * Reads a list for a task that an earlier run has sent, or, if that was accepted, for anything that came since. The result is
 * the ids of the task's events. `events` are the task's, if they are given again.
 */
export function createSearch({ is, known }: JournalTask, events: readonly SessionEvent[] | undefined) {
  const counter = createCounter(events ? marksOf(events) : (known.marks ?? []))
  let isLater = known.last === undefined
  let isPast = false
  const ids = new Set<string>()
  return {
    add(item: EventItem) {
      const isOwn = counter.add(item) && counter.known.alike > known.alike
      if (isOwn && item.event.id !== undefined) ids.add(item.event.id)
      isPast ||= isLater
      isLater ||= item.event.id === known.last
    },
    result: () => (counter.known.alike > known.alike || (is === 'accepted' && isPast) ? ids : undefined),
  }
}
