import { createHash } from 'node:crypto'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import * as z from '../../wire/zod.ts'
import { getMatchText } from '../following/seen-events.ts'

/**
 * A task that is sent and not done according to the audit file. Each arrow is a line of the audit file:
 *
 *     (none)    -- sent -----> posting      the request may have left
 *     posting   -- accepted -> accepted
 *     posting   -- unknown --> posting
 *     posting   -- refused --> (none)       the service certainly did not accept it
 *     accepted  -- done -----> (none)       the run ended its turn, and all its output is written
 *
 * A run with the same task does not send it again. It first looks for the task in the session's list, because
 * the audit file does not prove that the task arrived. If the list contains the task, the run continues the
 * session. Some lists omit all events of clients. Then an accepted task counts as found if the list has an
 * event that it did not have before the task. Otherwise the run ends. A run with another task sends that
 * task, which replaces this one in the audit file.
 */
export interface AuditedTask {
  /** Hash of the request's body. */
  hash: string
  is: 'posting' | 'accepted'
  known: ListSnapshot
}

/**
 * Data for finding the task in a list. `marks` are fingerprints of the task's events, for a command that does
 * not contain the task. `alike` is the number of events with these fingerprints before the task was sent, and
 * `last` is the id of the last event before the task.
 */
export const ListSnapshot = z.lazily(() =>
  z.object({ alike: z.number(), last: z.optional(z.string()), marks: z.optional(z.array(z.string())) }),
)
export type ListSnapshot = z.infer<ReturnType<typeof ListSnapshot>>

/** Returns the task after a line of the audit file. Earlier versions did not write `known`. */
export function stepTask(
  task: AuditedTask | undefined,
  {
    event,
    hash,
    known = { alike: Infinity },
  }: { event: unknown; hash: string; known?: ListSnapshot | undefined },
): AuditedTask | undefined {
  if (event === 'sent') return { hash, is: 'posting', known }
  if (task?.hash !== hash) return task
  if (event === 'accepted') return { ...task, is: 'accepted' }
  return event === 'refused' || event === 'done' ? undefined : task
}

export const hashTask = (body: Uint8Array): string =>
  createHash('sha256').update(body).digest('hex').slice(0, 32)

/** Returns the fingerprints of a task's events: the type and a digest of the content. */
export const getFingerprints = (task: readonly SessionEvent[]): string[] => [
  ...new Set(task.map(getFingerprint)),
]

const getFingerprint = (event: SessionEvent): string =>
  `${event.type} ${hashTask(Buffer.from(getMatchText(event)))}`

/** Counts the events of a list that have fingerprints of a task. */
export class TaskCounter {
  readonly known: ListSnapshot
  readonly #fingerprints: ReadonlySet<string>
  readonly #types: ReadonlySet<string>
  /** The last message of a client has the fingerprint of one of the task's messages. */
  endsWithTask = false
  /** The list contains events of clients. */
  showsClients = false

  constructor(marks: string[] = []) {
    this.known = { alike: 0, last: undefined, marks }
    this.#fingerprints = new Set(marks)
    this.#types = new Set(marks.map((mark) => mark.slice(0, mark.lastIndexOf(' '))))
  }

  /** Returns whether the event has a fingerprint of the task. */
  add({ event }: EventItem): boolean {
    const { known } = this
    const isAlike = this.#types.has(event.type) && this.#fingerprints.has(getFingerprint(event))
    if (isAlike) known.alike++
    this.showsClients ||= event.type.startsWith('user.')
    if (event.type === 'user.message') this.endsWithTask = isAlike
    known.last = event.id
    return isAlike
  }
}

/**
 * Returns the ids of an earlier run's task in a list, or `undefined` if the list does not prove that the task
 * arrived. If the list omits client events, any later event proves the arrival of an accepted task. `events`
 * are the task's events if the command contains the task.
 */
export async function findTask(
  list: AsyncIterable<readonly EventItem[]>,
  { is, known }: AuditedTask,
  events: readonly SessionEvent[] | undefined,
): Promise<ReadonlySet<string> | undefined> {
  const counter = new TaskCounter(events ? getFingerprints(events) : known.marks)
  let isLater = known.last === undefined
  let isPast = false
  const ids = new Set<string>()
  for await (const items of list)
    for (const item of items) {
      const isOwn = counter.add(item) && counter.known.alike > known.alike
      if (isOwn && item.event.id !== undefined) ids.add(item.event.id)
      isPast ||= isLater
      isLater ||= item.event.id === known.last
    }
  // Earlier versions wrote no fingerprints. If the command does not contain the task either, no event can be
  // recognized as the task.
  const isHidden = !counter.showsClients || (!events && !known.marks)
  return counter.known.alike > known.alike || (is === 'accepted' && isPast && isHidden) ? ids : undefined
}
