import type { EventItem } from '../../wire/events/events-page.ts'
import { isPiece, type SessionEvent } from '../../wire/events/session-event.ts'
import { createSessionState, type SessionState } from '../session-state.ts'
import { createSearch, isTask, type Search } from './search.ts'

/**
 * Separates what is new in a session from what is not. Streams may repeat what was, so that an event is known by its
 * id alone. Lists may lag, but as far as they go they are in order: what one shows before an event that was sent,
 * or without it, came before it.
 */
export interface Sieve {
  readonly state: SessionState
  /** Takes in what was there before anything was done. */
  addOld(item: EventItem): void
  /** From now on only what comes after these events is new; they have ids where the service gave them. */
  expect(sent: readonly SessionEvent[]): void
  /** Something was sent, and neither a list nor a stream has shown it yet. */
  readonly isLost: boolean
  /** Lists show events whose place is not known: what was sent is not among them. */
  readonly isBehind: boolean
  /** Some of what was sent is not shown yet, or waits for its turn: a rest may be of the turn before. */
  readonly isUndone: boolean
  /** What was sent is never shown: what lists brought is new, and is returned. */
  giveUp(): EventItem[]
  /** An event that a stream brought too early to know its place, and that has to be taken in now. */
  nextHeld(): EventItem | undefined
  /** A stream was opened: what was held back from the one before it is left to the list. */
  connect(): void
  isUnknown(event: SessionEvent): boolean
  /** Takes in an event of a stream; returns what is new. */
  addLive(item: EventItem): EventItem[]
  /** Takes in a list, or the end of one; returns what is new. */
  addList(items: readonly EventItem[]): EventItem[]
}

export function createSieve(): Sieve {
  const state = createSessionState()
  const known = new Set<string>()
  let search: Search | undefined
  /** What came while the sent event was not found yet: in a list, and on this stream. */
  const held = { listed: new Map<unknown, EventItem>(), live: new Map<unknown, EventItem>() }

  const isUnknown = ({ id }: SessionEvent) => id === undefined || !known.has(id)
  const isLost = () => search !== undefined && !search.isMet && !search.isListed

  /** Makes events known, in their order; returns those that were not. */
  function settle(items: readonly EventItem[]): EventItem[] {
    return items.filter(({ event }) => {
      if (!isUnknown(event)) return false
      if (event.id !== undefined) known.add(event.id)
      state.add(event)
      return true
    })
  }

  function hold(place: keyof typeof held, item: EventItem): void {
    const key = item.event.id ?? item
    if (!held[place].has(key)) held[place].set(key, item)
  }

  function take(place: keyof typeof held): EventItem[] {
    const items = [...held[place].values()]
    held[place].clear()
    return items
  }

  /** What was held back, one by one, and how far that has come. */
  let released: EventItem[] = []
  let place = 0

  function takeNext(): EventItem | undefined {
    if (held.live.size > 0) {
      released = [...released.slice(place), ...take('live')]
      place = 0
    }
    return released[place++]
  }

  return {
    state,
    addOld: (item) => void settle([item]),
    expect(sent) {
      search = createSearch(sent)
      if (sent.some(isTask)) state.expectWork()
    },
    get isLost() {
      return isLost()
    },
    get isBehind() {
      return search !== undefined && !search.isListed && held.listed.size > 0
    },
    get isUndone() {
      return search !== undefined && (search.isAwaiting || search.isQueued)
    },
    giveUp() {
      search = undefined
      const items = take('listed')
      for (const { event } of items) known.delete(event.id as string)
      return settle(items)
    },
    nextHeld: () => (isLost() ? undefined : takeNext()),
    connect() {
      take('live')
      released = []
      place = 0
    },
    isUnknown,
    addLive(item) {
      search?.see(item.event)
      if (isPiece(item.event) || !isUnknown(item.event)) return []
      if (search?.finds(item.event)) {
        search.isMet = true
        settle([...take('listed'), ...take('live'), item])
        return []
      }
      if (isLost()) {
        hold('live', item)
        return []
      }
      if (search) search.next ??= item.event.id
      return settle([item])
    },
    addList(items) {
      // What has no id cannot be told from what was there before.
      for (const { event } of items) search?.see(event)
      let listed = items.filter(({ event: { id } }) => id !== undefined)
      if (search && !search.isListed) {
        const start = listed.findIndex(({ event }) => search?.isFirst(event, isUnknown(event)))
        // A list may leave out what was sent, and show what came after.
        const isPast = start < 0 && listed.some(({ event: { id } }) => id === search?.next)
        if (start < 0 && !isPast) {
          for (const item of listed.filter(({ event }) => isUnknown(event))) {
            hold('listed', item)
            // As lists go it came before, and a stream that repeats it brings nothing new.
            if (search.isMet) known.add(item.event.id as string)
          }
          return []
        }
        search.isListed = true
        const before = [...take('listed'), ...listed.slice(0, Math.max(start, 0))]
        // Where the stream has shown it already, what came before says nothing of where the session stands.
        if (isPast) {
          for (const { event } of before) known.delete(event.id as string)
          listed = [...before, ...listed]
        } else if (search.isMet) for (const { event } of before) known.add(event.id as string)
        else settle(before)
        listed = listed.slice(Math.max(start, 0))
      }
      return settle(listed).filter(({ event }) => !search?.finds(event))
    },
  }
}
