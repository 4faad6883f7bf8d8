import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isPiece, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { isWork, SessionState } from '../session-state.ts'
import { SentEvents } from './sent-events.ts'

/**
 * Says what is new in a session. A stream may repeat old events, so an event is known by its id alone. A list may lag,
 * but as far as it goes it is in order: what it shows before an event that was sent, or without it, came before that.
 */
export class News {
  readonly state = new SessionState()
  readonly #known = new Set<string>()
  #sent: SentEvents | undefined
  /** Whether a stream, or a list, has shown what was sent. */
  #isStreamed = false
  #isListed = false
  /** The first event that a stream brought after those that were sent: a list may leave these out. */
  #firstAfter: string | undefined
  /** What came while the sent events were not found: from a list, by id, and from this stream. */
  readonly #unplaced = new Map<string, EventItem>()
  #early: EventItem[] = []
  #taken = 0

  /** Adds what was there before anything was done. */
  addPast(item: EventItem): void {
    this.#addNew([item])
  }

  /** From now on only what comes after these events is new; they have ids where the service gave them. */
  addSent(events: readonly SessionEvent[]): void {
    this.#sent = new SentEvents(events)
    if (events.some(isWork)) this.state.expectWork()
  }

  /** A stream was opened: what came too early from the one before is left to the list. */
  addConnection(): void {
    this.#early = []
    this.#taken = 0
  }

  /** Adds an event of a stream; returns what is new. */
  addStreamed(item: EventItem): EventItem[] {
    this.#sent?.addProgress(item.event)
    if (isPiece(item.event)) return []
    if (!this.isNew(item.event)) return this.#addNew([item])
    const { isLost } = this
    if (this.#sent?.find(item.event)) {
      this.#isStreamed = true
      this.#addNew([...this.#takeUnplaced(), ...(isLost ? this.#early.splice(0) : []), item])
    } else if (isLost) {
      this.#early.push(item)
    } else {
      this.#firstAfter ??= item.event.id
      return this.#addNew([item])
    }
    return []
  }

  /** Adds a list, or its end; returns what is new. */
  addList(items: readonly EventItem[]): EventItem[] {
    for (const { event } of items) this.#sent?.addProgress(event)
    // Nobody can say whether an event without an id is new.
    const named = items.filter(({ event }) => event.id !== undefined)
    const sent = this.#sent
    if (!sent || this.#isListed) return this.#addUnsent(named)
    const start = named.findIndex(({ event }) => sent.isFirst(event, this.isNew(event)))
    const hasLater = named.some(({ event }) => event.id === this.#firstAfter)
    if (start < 0 && !hasLater) return this.#hold(named)
    this.#isListed = true
    // The list leaves out what was sent: nobody can say what came before it.
    if (start < 0) return this.#addUnsent([...this.#forgetUnplaced(), ...named])
    this.#addBefore([...this.#takeUnplaced(), ...named.slice(0, start)])
    return this.#addUnsent(named.slice(start))
  }

  /** Ends the search for what was sent: what lists brought meanwhile is new, and is returned. */
  giveUp(): EventItem[] {
    this.#sent = undefined
    return this.#addNew(this.#forgetUnplaced())
  }

  /** An event that a stream brought before the sent events were found, and that is to be added again now. */
  nextEarly(): EventItem | undefined {
    return this.isLost ? undefined : this.#early[this.#taken++]
  }

  isNew({ id }: SessionEvent): boolean {
    return id === undefined || !this.#known.has(id)
  }

  /** Something was sent, and neither a list nor a stream has shown it yet. */
  get isLost(): boolean {
    return this.#sent !== undefined && !this.#isStreamed && !this.#isListed
  }

  /** The same, or lists show new events, but what was sent is not among them. */
  get isSearching(): boolean {
    return this.isLost || (this.#sent !== undefined && !this.#isListed && this.#unplaced.size > 0)
  }

  /** Some of what was sent was not shown yet, or waits for its turn: the session may have stopped in the turn before. */
  get isUndone(): boolean {
    return this.#sent?.isUndone ?? false
  }

  /** Adds, in their order, those that are new to the state; returns them. */
  #addNew(items: readonly EventItem[]): EventItem[] {
    return items.filter(({ event, text }) => {
      if (!this.isNew(event)) {
        this.state.addAgain(event, text)
        return false
      }
      if (event.id !== undefined) this.#known.add(event.id)
      this.state.add(event, text)
      return true
    })
  }

  /** The same, but what was sent is no news. */
  #addUnsent(items: readonly EventItem[]): EventItem[] {
    return this.#addNew(items).filter(({ event }) => !this.#sent?.find(event))
  }

  /** What came before the sent events is old; once a stream has shown these, it says nothing about the state now. */
  #addBefore(items: readonly EventItem[]): void {
    if (!this.#isStreamed) this.#addNew(items)
    for (const { event } of items) this.#known.add(event.id as string)
  }

  /** Keeps events of a list that does not show what was sent, until one does. */
  #hold(items: readonly EventItem[]): EventItem[] {
    for (const item of items) {
      const id = item.event.id as string
      if (this.#known.has(id)) continue
      if (!this.#unplaced.has(id)) this.#unplaced.set(id, item)
      // As lists go it came before, and a stream that repeats it brings nothing new.
      if (this.#isStreamed) this.#known.add(id)
    }
    return []
  }

  #takeUnplaced(): EventItem[] {
    const items = [...this.#unplaced.values()]
    this.#unplaced.clear()
    return items
  }

  /** The same, each new again. */
  #forgetUnplaced(): EventItem[] {
    const items = this.#takeUnplaced()
    for (const { event } of items) this.#known.delete(event.id as string)
    return items
  }
}
