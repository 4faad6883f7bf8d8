import { readText, type SessionEvent } from '../../wire/events.ts'

/** Finds the events that were sent among those that a session shows. */
export interface Search {
  /** A stream has shown one of them. */
  isMet: boolean
  /** A list has, or something that came after. */
  isListed: boolean
  /** The first event that came after them on a stream: a list may leave out what was sent. */
  next?: string | undefined
  /** Whether it is one of them; each is found once. */
  finds(event: SessionEvent): boolean
  /** Whether a list is at them with this event, or past them. */
  isReachedBy(event: SessionEvent, isUnknown: boolean): boolean
}

/** By their ids, or, where the service gave none, by what they say. */
export function createSearch(sent: readonly SessionEvent[]): Search {
  const keyOf = sent.some(({ id }) => id !== undefined) ? ({ id }: SessionEvent) => id ?? '' : contentOf
  const wanted = new Map<string, number>()
  for (const event of sent) wanted.set(keyOf(event), (wanted.get(keyOf(event)) ?? 0) + 1)
  let firstId: string | undefined
  return {
    isMet: false,
    isListed: false,
    finds(event) {
      const count = wanted.get(keyOf(event)) ?? 0
      if (count === 0) return false
      wanted.set(keyOf(event), count - 1)
      firstId ??= event.id
      return true
    },
    isReachedBy(event, isUnknown) {
      const { id } = event
      if (id !== undefined && (id === firstId || id === this.next)) return true
      return isUnknown && (wanted.get(keyOf(event)) ?? 0) > 0
    },
  }
}

/** What an event says: a service may add fields to it, but not change these. */
const contentOf = (event: SessionEvent): string =>
  JSON.stringify([
    event.type,
    event.tool_use_id ?? event.custom_tool_use_id ?? event.session_thread_id ?? null,
    event.description ?? readText(event),
  ])
