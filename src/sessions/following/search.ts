import { readText, type SessionEvent } from '../../wire/events/session-event.ts'

/** Finds the events that were sent among those that a session shows. */
export interface Search {
  /** A stream has shown one of them. */
  isMet: boolean
  /** A list has, or something that came after. */
  isListed: boolean
  /** The first event that came after them on a stream: a list may leave out what was sent. */
  next?: string | undefined
  /** Some of them are not found yet, and are more than interrupts. */
  readonly isAwaiting: boolean
  /** Some of them were found, but the service says that it has not taken them up yet. */
  readonly isQueued: boolean
  /** Whether it is one of them; each is found once. */
  finds(event: SessionEvent): boolean
  /** Takes note of what a list or a stream says of one that was found. */
  see(event: SessionEvent): void
  /** Whether it is the first of them in a list, found already or not. */
  isFirst(event: SessionEvent, isUnknown: boolean): boolean
}

/** By their ids, or, where the service gave none, by what they say. */
export function createSearch(sent: readonly SessionEvent[]): Search {
  const keyOf = sent.some(({ id }) => id !== undefined) ? ({ id }: SessionEvent) => id ?? '' : contentOf
  const wanted = new Map<string, number>()
  for (const event of sent) wanted.set(keyOf(event), (wanted.get(keyOf(event)) ?? 0) + 1)
  let firstId: string | undefined
  let awaited = sent.filter(isTask).length
  const queued = new Set<string>()

  return {
    isMet: false,
    isListed: false,
    get isAwaiting() {
      return awaited > 0
    },
    get isQueued() {
      return queued.size > 0
    },
    finds(event) {
      const count = wanted.get(keyOf(event)) ?? 0
      if (count === 0) return false
      wanted.set(keyOf(event), count - 1)
      firstId ??= event.id
      if (isTask(event)) awaited--
      if (isTask(event) && event.id !== undefined && event.processed_at === null) queued.add(event.id)
      return true
    },
    see({ id, processed_at: processedAt }) {
      if (id !== undefined && processedAt) queued.delete(id)
    },
    isFirst: (event, isUnknown) =>
      (firstId !== undefined && event.id === firstId) || (isUnknown && (wanted.get(keyOf(event)) ?? 0) > 0),
  }
}

/** Whether an agent that is sent it has something to do. */
export const isTask = ({ type }: SessionEvent): boolean => type !== 'user.interrupt'

/** What an event says: a service may add fields to it, but not change these. */
const contentOf = (event: SessionEvent): string =>
  JSON.stringify([
    event.type,
    event.tool_use_id ?? event.custom_tool_use_id ?? event.session_thread_id ?? null,
    event.description ?? readText(event),
  ])
