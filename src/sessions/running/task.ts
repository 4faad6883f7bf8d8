import { createHash } from 'node:crypto'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import {
  isClientEvent,
  isTaskEvent,
  isUserEvent,
  type SessionEvent,
} from '../../wire/sessions/session-event.ts'
import * as z from '../../wire/zod.ts'
import { getComparableEventText } from '../following/seen-events.ts'

/**
 * A task that an earlier run sent and did not finish, according to the audit file. Each arrow names the
 * `event` of a line in the audit file:
 *
 *     (none)    -- sent -----> posting      the request may have left
 *     posting   -- accepted -> accepted     the service accepted the task
 *     posting   -- unknown --> posting      the service may have accepted the task
 *     posting   -- refused --> (none)       the service certainly did not accept the task
 *     accepted  -- done -----> (none)       the run has written the answer and all other output
 *
 * A run with the same task does not send it again. The audit file does not prove that the task arrived, so
 * the run looks for it in the event list. If the list contains the task, the run continues the session;
 * otherwise the run fails. Some services omit all events of clients from the list. Then a new event in the
 * list proves that an accepted task arrived. A run with another task sends that task, which replaces this one
 * in the audit file. The earlier task is then not resumed, but `findRepetition` finds it.
 */
export interface AuditedTask {
  hash: string
  is: 'posting' | 'accepted'
  /**
   * Facts about the event list before the task was sent. A later run needs these facts to find the task in the
   * list. `marks` are the fingerprints of the task's events. `alike` is the number of events that already had
   * these fingerprints, and `last` is the id of the last event.
   */
  known: z.infer<ReturnType<typeof ListFacts>>
}

const ListFacts = z.buildOnFirstUse(() =>
  z.object({ alike: z.number(), last: z.optional(z.string()), marks: z.array(z.string()) }),
)

/**
 * Applies a line of the audit file to the task, and returns the result. `known` may be invalid if another
 * program has changed the line. Its default has no fingerprints, so no listed event counts as the task.
 */
export function applyTaskAuditLine(
  task: AuditedTask | undefined,
  { event, hash, known }: { event: unknown; hash: string; known: unknown },
): AuditedTask | undefined {
  if (event === 'sent')
    return { hash, is: 'posting', known: ListFacts().safeParse(known).data ?? { alike: 0, marks: [] } }
  if (task?.hash !== hash) return task
  if (event === 'accepted') return { ...task, is: 'accepted' }
  return event === 'refused' || event === 'done' ? undefined : task
}

/**
 * Returns why a run may repeat its task, or `undefined` if the task is new or finished. `lastEvent` is the last
 * event about this task in the audit file. `endsWithTask`: the last task in the event list has the same content.
 */
export function findRepetition(lastEvent: unknown, endsWithTask: boolean): string | undefined {
  if (lastEvent === 'done') return undefined
  if (lastEvent !== undefined && lastEvent !== 'refused')
    return 'the audit file shows that an earlier run sent this task and did not finish it'
  return endsWithTask ? "the session's last user.message is the same task" : undefined
}

export const computeShortSha256 = (body: Uint8Array): string =>
  createHash('sha256').update(body).digest('hex').slice(0, 32)

const getFingerprint = (event: SessionEvent): string =>
  `${event.type} ${computeShortSha256(Buffer.from(getComparableEventText(event)))}`

export const createListFacts = (task: readonly SessionEvent[]): AuditedTask['known'] => ({
  alike: 0,
  marks: [...new Set(task.map(getFingerprint))],
})

/** Adds a listed event to `known`. Returns whether the event has the fingerprint of an event of the task. */
export function addListedEvent(known: AuditedTask['known'], event: SessionEvent): boolean {
  const isAlike = isClientEvent(event) && known.marks.includes(getFingerprint(event))
  if (isAlike) known.alike++
  known.last = event.id
  return isAlike
}

export interface FoundTask {
  ids: ReadonlySet<string>
  /** False if `--after` names another event, for example the last event before a run without a task. */
  isTask: boolean
}

/**
 * Finds an earlier run's task in a list by its fingerprints or, with `after`, by the id of its last event.
 * Returns `undefined` if the list does not prove that the task arrived.
 */
export async function findTaskInList(
  list: AsyncIterable<readonly EventItem[]>,
  { is, known }: AuditedTask,
  after?: string,
): Promise<FoundTask | undefined> {
  const listed = { ...known, alike: 0 }
  let isAfterLast = known.last === undefined
  let hasLaterEvent = false
  let showsClientEvents = false
  let isFound = false
  let isTask = after === undefined
  const ids = new Set<string>()
  for await (const items of list)
    for (const { event } of items) {
      const isAlike = addListedEvent(listed, event) && listed.alike > known.alike
      if (isAlike || (after !== undefined && event.id === after)) {
        if (event.id !== undefined) ids.add(event.id)
        isFound = true
        isTask ||= isTaskEvent(event)
      }
      showsClientEvents ||= isUserEvent(event)
      hasLaterEvent ||= isAfterLast
      isAfterLast ||= event.id === known.last
    }
  const isHidden = is === 'accepted' && hasLaterEvent && !showsClientEvents
  return isFound || isHidden ? { ids, isTask } : undefined
}
