import { createHash } from 'node:crypto'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isPiece, isStop, isWork, readText, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { SessionState } from '../session-state.ts'
import { FollowedTurn, type KeyedEvent } from './followed-turn.ts'

/**
 * What is known of a session, and which of what lists and streams bring is new. A stream may repeat old events, so an
 * event is known by its id or, if it has none, by all that it says. A list may lag, but as far as it goes it is in
 * order: what it shows before an event that was sent, or without it, came before that.
 */
export class SeenEvents {
  readonly state = new SessionState()
  readonly turn = new FollowedTurn()
  readonly #known = new Set<string>()
  readonly #pastCounts = new Map<string, number>()
  #sent: SentEvents | undefined
  /** Events that came while the sent ones were not found: from lists, by key, and from the stream that was open before. */
  readonly #unplaced = new Map<string, KeyedItem>()
  #early: EventItem[] | undefined
  /** The keys of the two events that the last list ended with; of the last before what was sent, until that has had its turn. */
  #listEnd: string[] = []
  /** The key of the last stop, as long as no list has shown it. */
  #unlistedStop: string | undefined

  /** Adds what was there before anything was done, page by page. */
  addPast(items: readonly EventItem[]): void {
    for (const item of this.#addNew(withKeys(items, this.#pastCounts))) this.turn.add(item)
    this.#listEnd = [...this.#listEnd, ...items.slice(-2).map(keyOf)].slice(-2)
    this.#unlistedStop = undefined
  }

  /** From now on only what comes after these events is new; they have ids if the service gave them. */
  addSent(events: readonly SessionEvent[]): void {
    this.#sent = new SentEvents(events)
    this.#unplaced.clear()
    this.#early = []
    this.turn.begin(events)
    if (events.some(isWork)) this.state.expectWork()
  }

  /** A stream was opened. What comes before the sent events are found is left to the list: this stream may lack some of it. */
  addConnection(): void {
    this.#early = undefined
  }

  /** Whether an event of a stream is new. One without an id that says what another has said may be new or not. */
  isNew(item: EventItem): boolean {
    return !this.#known.has(keyOf(item))
  }

  get knowsListEnd(): boolean {
    return this.#listEnd.length === 2
  }

  /**
   * Whether a list, the newest event first, has come to the two events that the last list ended with: what a service inserts
   * before them, or a list in another order, does not have them in this order. It also has to show each tool use that waits,
   * for its input counts anew.
   */
  reachesListEnd(newest: readonly EventItem[]): boolean {
    const keys = newest.map(keyOf)
    const [before, last = ''] = this.#listEnd
    const place = keys.indexOf(last)
    const isEnd = place >= 0 && keys[place + 1] === before
    return isEnd && this.state.pending.every((id) => keys.includes(id)) && !keys.some(isOfWords)
  }

  /** An event that is known, or only a piece of one, came again. Returns whether it contradicts the first. */
  addAgain({ event, text }: EventItem): boolean {
    this.#sent?.addProgress(event)
    return this.state.addAgain(event, text)
  }

  /** Takes in an event of a stream; returns what is to be shown of it: nothing, as long as it is held. */
  addStreamed(item: EventItem): EventItem[] {
    const sent = this.#sent
    const keyed = withKey(item)
    if (isPiece(item.event) || !this.isNew(item)) {
      this.addAgain(item)
      return []
    }
    sent?.addProgress(item.event)
    if (sent?.find(keyed)) {
      sent.isStreamed = true
      const early = this.#early?.splice(0) ?? []
      const before = [...this.#takeUnplaced(), ...early.map((each) => withKey(each))]
      for (const each of this.#addNew(before)) this.turn.add(each)
      for (const each of this.#addNew([keyed])) this.turn.add(each, true)
    } else if (this.isLost) {
      this.#early?.push(item)
    } else {
      if (sent) sent.firstAfter ??= keyed.key
      const fresh = this.#addNew([keyed])
      for (const each of fresh) this.turn.add(each)
      return fresh
    }
    return []
  }

  /** Adds a list; returns what is new: in its order, and then what the stream had brought too early. */
  addList(items: readonly EventItem[]): EventItem[] {
    const { isAtRest } = this.state
    const keyed = withKeys(items)
    const news = this.#addListed(keyed)
    if (keyed.some(({ key }) => key === this.#unlistedStop)) this.#unlistedStop = undefined
    const last = items.findLast(({ event }) => isStop(event) || isWork(event))
    // What was added late had happened before the rest.
    if (isAtRest && last && isStop(last.event)) this.state.restAgain(last.event.id)
    const isPlaced = this.#sent === undefined || this.#sent.isListed
    if (isPlaced && !this.isUndone) this.#listEnd = keyed.slice(-2).map(({ key }) => key)
    const early = this.#early?.splice(0) ?? []
    return [...news, ...early.flatMap((item) => this.addStreamed(item))]
  }

  #addListed(keyed: readonly KeyedItem[]): EventItem[] {
    const sent = this.#sent
    if (!sent || sent.isListed) return this.#addUnsent(keyed)
    const start = keyed.findIndex((item) => sent.isFirst(item, this.#isUnknown(item)))
    const hasLater = keyed.some(({ key }) => key === sent.firstAfter)
    if (start < 0 && !hasLater) {
      this.#hold(keyed, sent.isStreamed)
      return []
    }
    sent.isListed = true
    // The list leaves out what was sent: nobody can say what came before it.
    if (start < 0) return this.#addUnsent([...this.#forgetUnplaced(), ...keyed])
    this.#addBefore([...this.#takeUnplaced(), ...keyed.slice(0, start)], sent.isStreamed)
    return this.#addUnsent(keyed)
  }

  /**
   * Ends the search for what was sent by its ids, and goes on by its content. If that counts already, it ends the search: what
   * came meanwhile is new when a list is read again.
   */
  giveUp(): void {
    if (!this.#sent?.forgetIds()) this.#sent = undefined
    this.#forgetUnplaced()
  }

  /** Neither a list nor a stream has shown what was sent. */
  get isLost(): boolean {
    return this.#sent?.isLost ?? false
  }

  /** The same, or lists have shown new events, but not what was sent. */
  get isSearching(): boolean {
    return this.isLost || this.#unplaced.size > 0
  }

  /** What was sent is searched for by the ids of its receipt, and not by what it says. */
  get seeksIds(): boolean {
    return this.#sent?.seeksIds ?? false
  }

  /** The service has not shown all that was sent, or has not begun to work on it: a stop may be that of the turn before. */
  get isUndone(): boolean {
    return this.#sent?.isUndone ?? false
  }

  /** A list has shown the last stop, and so all that came before it. */
  get isStopListed(): boolean {
    return this.#unlistedStop === undefined
  }

  /** The last stop counts, although no list has shown it. */
  trustStop(): void {
    this.#unlistedStop = undefined
  }

  /** The agent may be at rest, though this service's events do not say so. */
  get mayRest(): boolean {
    return !this.state.showsRests && !this.isSearching && this.turn.mayHaveEnded
  }

  readonly #isUnknown = ({ key }: KeyedItem) => !this.#known.has(key)

  /** Adds, in their order, those that are new to the state; returns them. */
  #addNew(items: readonly KeyedItem[]): KeyedItem[] {
    return items.filter((item) => {
      const { event, text, key } = item
      if (!this.#isUnknown(item)) {
        this.addAgain(item)
        return false
      }
      this.#known.add(key)
      this.state.add(event, text)
      if (isStop(event)) this.#unlistedStop = key
      return true
    })
  }

  /** The same for a whole list, which says where in the turn each has its place; what was sent is not new. */
  #addUnsent(list: readonly KeyedItem[]): EventItem[] {
    const fresh = this.#addNew(list)
    const own = new Set(fresh.filter((item) => this.#sent?.find(item)))
    this.turn.place(list, new Set(fresh), own)
    return fresh.filter((item) => !own.has(item))
  }

  /** What came before the sent events is old; once a stream has shown these, it says nothing about the state now. */
  #addBefore(items: readonly KeyedItem[], isStreamed: boolean): void {
    if (!isStreamed) this.turn.place(items, new Set(this.#addNew(items)), new Set())
    for (const { key } of items) this.#known.add(key)
  }

  /** Keeps the events of a list until a list shows what was sent. */
  #hold(items: readonly KeyedItem[], isStreamed: boolean): void {
    for (const item of items) {
      if (!this.#isUnknown(item)) {
        this.addAgain(item)
        continue
      }
      // The first one stays, so that a later one which says something else contradicts it.
      if (!this.#unplaced.has(item.key)) this.#unplaced.set(item.key, item)
      // As lists go it came before, and a stream that repeats it brings nothing new.
      if (isStreamed) this.#known.add(item.key)
    }
  }

  #takeUnplaced(): KeyedItem[] {
    const items = [...this.#unplaced.values()]
    this.#unplaced.clear()
    return items
  }

  /** The same, each new again. */
  #forgetUnplaced(): KeyedItem[] {
    const items = this.#takeUnplaced()
    for (const { key } of items) this.#known.delete(key)
    return items
  }
}

type KeyedItem = EventItem & KeyedEvent

/** What an event is known by: its id or, if it has none, all that it says. */
export const keyOf = ({ event }: EventItem): string => event.id ?? wordsOf(event)

/** Of an event without an id: how many say the same only the whole list shows. */
const isOfWords = (key: string): boolean => key.startsWith('\0')

const wordsOf = (event: SessionEvent) =>
  `\0${createHash('sha256').update(JSON.stringify(event)).digest('base64')}`

/** Not by spreading: of what is made so, each has a shape of its own in V8, which takes more memory than itself. */
const withKey = ({ event, text }: EventItem, key = keyOf({ event, text })): KeyedItem => ({
  event,
  text,
  key,
})

/** The same in a list, in which events without ids may say the same one after the other. */
function withKeys(items: readonly EventItem[], counts = new Map<string, number>()): KeyedItem[] {
  return items.map((item) => {
    const keyed = withKey(item)
    if (item.event.id !== undefined) return keyed
    const count = (counts.get(keyed.key) ?? 0) + 1
    counts.set(keyed.key, count)
    return count > 1 ? withKey(item, `${keyed.key}${count}`) : keyed
  })
}

/**
 * The events that were sent, to be found among those that a session shows, each once. They are found by their ids. The
 * ids of a receipt need not be those of the stored events (public clients, 1): if nothing shows them for a while, the events
 * are found by what they say.
 */
class SentEvents {
  /** Whether a stream, or a list, has shown one of them. */
  isStreamed = false
  isListed = false
  /** The first event that a stream brought after them: a list may leave them out. */
  firstAfter: string | undefined
  readonly #sent: readonly SessionEvent[]
  /** How many are still to be found by each id or, if that is not known, by what they say. */
  readonly #wanted = new Map<string, number>()
  #first: string | undefined
  #missingWork: number
  /** The ids of those that were found, but that the service has not started to work on. */
  readonly #queued = new Set<string | undefined>()

  constructor(sent: readonly SessionEvent[]) {
    this.#sent = sent
    for (const event of sent) this.#count(event.id ?? contentOf(event), 1)
    this.#missingWork = sent.filter(isWork).length
  }

  /** Nothing has shown any of them. */
  get isLost(): boolean {
    return !this.isStreamed && !this.isListed
  }

  /** Whether some of them, interrupts aside, are not found yet, or wait for their turn. */
  get isUndone(): boolean {
    return this.#missingWork > 0 || this.#queued.size > 0
  }

  /** Whether it is one of them. Each is found once. */
  find({ event, key }: KeyedItem): boolean {
    const name = this.#nameOf(event)
    if (name === undefined) return false
    this.#count(name, -1)
    this.#first ??= key
    if (!isWork(event)) return true
    this.#missingWork--
    if (event.id !== undefined && event.processed_at === null) this.#queued.add(event.id)
    return true
  }

  /** Takes from any event that is shown, also again, whether it still waits for its turn. */
  addProgress({ id, processed_at: processedAt }: SessionEvent): void {
    if (processedAt) this.#queued.delete(id)
  }

  /** Whether it is the first of them in a list, found already or not. */
  isFirst({ event, key }: KeyedItem, isNew: boolean): boolean {
    return key === this.#first || (isNew && this.#nameOf(event) !== undefined)
  }

  get seeksIds(): boolean {
    return this.isLost && this.#sent.some(({ id = '' }) => this.#wanted.has(id))
  }

  /** From now on what they say counts, if nothing has shown any of their ids. Returns whether that is so. */
  forgetIds(): boolean {
    if (!this.seeksIds) return false
    for (const event of this.#sent) if (this.#wanted.delete(event.id ?? '')) this.#count(contentOf(event), 1)
    return true
  }

  /** By which it is one of them. */
  #nameOf(event: SessionEvent): string | undefined {
    return [event.id ?? '', contentOf(event)].find((name) => this.#wanted.has(name))
  }

  #count(name: string, by: number): void {
    const sum = (this.#wanted.get(name) ?? 0) + by
    if (sum > 0) this.#wanted.set(name, sum)
    else this.#wanted.delete(name)
  }
}

/** What an event says: a service may add fields to it, but not change these. */
export const contentOf = (event: SessionEvent): string =>
  JSON.stringify([
    event.type,
    event.tool_use_id ?? event.custom_tool_use_id ?? event.session_thread_id ?? null,
    event.description ?? readText(event),
  ])
