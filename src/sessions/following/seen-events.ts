import { createHash } from 'node:crypto'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isStop, isWork, readText, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { SessionState } from '../session-state.ts'
import { FollowedTurn, isMessage, type KeyedEvent } from './followed-turn.ts'

/** After this many lists that show what was sent, but not under the ids of the receipt, it is known by its content. */
const mostDoubts = 4

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
  /** Events that came while the sent ones were not found: from lists, by key, and from this stream. */
  readonly #unplaced = new Map<string, KeyedItem>()
  #early: EventItem[] = []
  #taken = 0
  /** The keys of the two events that the last list ended with. */
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
    this.addConnection()
    this.turn.begin(events)
    if (events.some(isWork)) this.state.expectWork()
  }

  /** A stream was opened. Events that the last one brought before the sent ones are left to the list. */
  addConnection(): void {
    this.#early = []
    this.#taken = 0
  }

  /** Whether an event of a stream is new. One without an id that says what another has said may be new or not. */
  isNew(item: EventItem): boolean {
    return !this.#known.has(keyOf(item))
  }

  /** It is known what the last list ended with, and all of that list was taken in. */
  get knowsListEnd(): boolean {
    const isPlaced = this.#sent === undefined || this.#sent.isListed
    return isPlaced && !this.isUndone && this.#listEnd.length === 2
  }

  /**
   * Whether a list, the newest event first, has come to the two events that the last list ended with: what a service inserts
   * before them, or a list in another order, does not have them in this order. It also has to show each tool use that waits,
   * for its input counts anew.
   */
  reachesListEnd(newest: readonly EventItem[]): boolean {
    const keys = newest.map(keyOf)
    const [before, last] = this.#listEnd
    const place = keys.indexOf(last ?? '')
    const isEnd = place >= 0 && keys[place + 1] === before
    return isEnd && this.state.pending.every((id) => keys.includes(id)) && !keys.some(isOfWords)
  }

  /** Begins to take in a list. */
  beginList(): ListedEvents {
    return new ListedEvents((item) => {
      if (!this.#known.has(item.key)) return false
      this.addAgain(item)
      return true
    })
  }

  /** An event that is known, or only a piece of one, came again. Returns whether it contradicts the first. */
  addAgain({ event, text }: EventItem): boolean {
    this.#sent?.addProgress(event)
    return this.state.addAgain(event, text)
  }

  /** Adds an event of a stream that is new; returns what is to be shown of it: nothing, as long as it is held. */
  addStreamed(item: EventItem): EventItem[] {
    const { isLost } = this
    const sent = this.#sent
    const keyed = withKey(item)
    sent?.addProgress(item.event)
    if (sent?.find(keyed)) {
      sent.isStreamed = true
      const before = [
        ...this.#takeUnplaced(),
        ...(isLost ? this.#early.splice(0) : []).map((each) => withKey(each)),
      ]
      for (const each of this.#addNew(before)) this.turn.add(each)
      for (const each of this.#addNew([keyed])) this.turn.add(each, true)
    } else if (isLost) {
      this.#early.push(item)
    } else {
      if (sent) sent.firstAfter ??= keyed.key
      const fresh = this.#addNew([keyed])
      for (const each of fresh) this.turn.add(each)
      return fresh
    }
    return []
  }

  /** Adds a list; returns what is new, in its order. */
  addList({ items }: ListedEvents): EventItem[] {
    const { isAtRest } = this.state
    const news = this.#addListed(items)
    if (items.some(({ key }) => key === this.#unlistedStop)) this.#unlistedStop = undefined
    const last = items.findLast(({ event }) => isStop(event) || isWork(event))
    // What was added late had happened before the rest.
    if (isAtRest && last && isStop(last.event)) this.state.restAgain(last.event.id)
    if (!this.isLost) this.#listEnd = items.slice(-2).map(({ key }) => key)
    return news
  }

  #addListed(keyed: readonly KeyedItem[]): EventItem[] {
    const sent = this.#sent
    if (!sent || sent.isListed) return this.#addUnsent(keyed)
    // What was held of earlier lists is in this one too.
    if (sent.isLost && sent.trustContent(keyed, this.#hasAlike(sent, keyed))) this.#forgetUnplaced()
    const start = keyed.findIndex((item) => sent.isFirst(item, this.#isUnknown(item)))
    const hasLater = keyed.some(({ key }) => key === sent.firstAfter)
    if (start < 0 && !hasLater) {
      this.#hold(keyed, sent.isStreamed)
      if (sent.isLost) this.#placeEarly(sent)
      return []
    }
    sent.isListed = true
    // The list leaves out what was sent: nobody can say what came before it.
    if (start < 0) return this.#addUnsent([...this.#forgetUnplaced(), ...keyed])
    this.#addBefore([...this.#takeUnplaced(), ...keyed.slice(0, start)], sent.isStreamed)
    return this.#addUnsent(keyed)
  }

  /**
   * Ends the search for what was sent by its ids, and goes on by its content if something said that. Otherwise it ends
   * the search: what lists brought meanwhile is new when it is listed again.
   */
  giveUp(): void {
    const sent = this.#sent
    if (sent?.isLost && (sent.isDoubted || this.#hasAlike(sent, []))) sent.forgetIds()
    else this.#sent = undefined
    this.#forgetUnplaced()
  }

  /** An event that the stream brought before the sent events were found, and that is to be taken in now. */
  nextEarly(): EventItem | undefined {
    return this.isLost ? undefined : this.#early[this.#taken++]
  }

  /** Neither a list nor a stream has shown what was sent. */
  get isLost(): boolean {
    return this.#sent?.isLost ?? false
  }

  /** The same, or lists have shown new events, but not what was sent. */
  get isSearching(): boolean {
    return this.isLost || this.#unplaced.size > 0
  }

  /** An event says what was sent, but has not the id of the receipt: a list has to say which of the two is right. */
  isDoubtful({ event }: EventItem): boolean {
    return this.#sent?.isAlike(event) === true
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

  readonly #isUnknown = ({ key, isNoted }: KeyedItem) => !isNoted && !this.#known.has(key)

  /** Whether a list, or a stream before it, shows something new that says what was sent. */
  #hasAlike(sent: SentEvents, items: readonly KeyedItem[]): boolean {
    return [...items.filter(this.#isUnknown), ...this.#early].some(({ event }) => sent.isAlike(event))
  }

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
    for (const item of items.filter(this.#isUnknown)) {
      // The first one stays, so that a later one which says something else contradicts it.
      if (!this.#unplaced.has(item.key)) this.#unplaced.set(item.key, item)
      // As lists go it came before, and a stream that repeats it brings nothing new.
      if (isStreamed) this.#known.add(item.key)
    }
  }

  /** Looks for what was sent among the events that the stream has brought: it is now known by its content. */
  #placeEarly(sent: SentEvents): void {
    const early = this.#early.splice(0)
    for (const [index, item] of early.entries()) {
      this.addStreamed(item)
      if (sent.isLost) continue
      this.#early = early.slice(index + 1)
      return
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

type KeyedItem = EventItem & KeyedEvent & { isNoted?: true }

/**
 * A list, in its order. It may be long: of an event that was known no more is kept than its key, and whether the session
 * worked then. Stops are kept, and the last message before an event that is new.
 */
export class ListedEvents {
  readonly items: KeyedItem[] = []
  readonly #isKnown: (item: KeyedItem) => boolean
  readonly #counts = new Map<string, number>()
  /** The last message, if nothing new came after it. */
  #message: KeyedItem | undefined

  /** `isKnown` takes in that an event came again, if it did. */
  constructor(isKnown: (item: KeyedItem) => boolean) {
    this.#isKnown = isKnown
  }

  /** Adds the next page. */
  add(page: readonly EventItem[]): this {
    for (const item of withKeys(page, this.#counts)) {
      this.items.push(item)
      if (!this.#isKnown(item)) this.#message = undefined
      else if (isMessage(item.event)) {
        if (this.#message) forget(this.#message)
        this.#message = item
      } else if (!isStop(item.event)) forget(item)
    }
    return this
  }

  shows(item: EventItem): boolean {
    const key = keyOf(item)
    return this.items.some((each) => each.key === key)
  }
}

const [working, other] = [{ type: 'session.status_running' }, { type: '' }]

/** Keeps of an event that was known what a list is to say of it. */
const forget = (item: KeyedItem) =>
  Object.assign(item, { event: isWork(item.event) ? working : other, text: '', isNoted: true })

/** What an event is known by: its id or, if it has none, all that it says. */
const keyOf = ({ event }: EventItem): string => event.id ?? wordsOf(event)

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
 * ids of a receipt need not be those of the stored events (public clients, 1): if several lists show an event that says
 * what was sent, and none shows its id, they are found by what they say.
 */
class SentEvents {
  /** Whether a stream, or a list, has shown one of them. */
  isStreamed = false
  isListed = false
  /** The first event that a stream brought after them: a list may leave them out. */
  firstAfter: string | undefined
  /** The ids that are still to be found, what their events say, and how many say it. */
  readonly #ids = new Set<string | undefined>()
  readonly #contentsWithId = new Map<string, number>()
  /** What the events say that are to be found by that, and how many say it. */
  readonly #contents = new Map<string, number>()
  /** How many lists showed an event like one of them, and none of the ids. */
  #doubts = 0
  #first: string | undefined
  #missingWork: number
  /** The ids of those that were found, but that the service has not started to work on. */
  readonly #queued = new Set<string | undefined>()

  constructor(sent: readonly SessionEvent[]) {
    for (const event of sent) {
      count(event.id === undefined ? this.#contents : this.#contentsWithId, contentOf(event), 1)
      if (event.id !== undefined) this.#ids.add(event.id)
    }
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
    if (!this.#has(event)) return false
    if (!this.#ids.delete(event.id)) count(this.#contents, contentOf(event), -1)
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
    return key === this.#first || (isNew && this.#has(event))
  }

  /** Whether it says what one of them says whose id was not shown yet. */
  isAlike(event: SessionEvent): boolean {
    return this.#contentsWithId.has(contentOf(event))
  }

  /** A list was read, which or before which a stream showed an event like one of them: whether that counts from now on. */
  trustContent(items: readonly KeyedItem[], hasAlike: boolean): boolean {
    if (!hasAlike || items.some(({ event }) => this.#ids.has(event.id))) return false
    this.#doubts++
    if (this.#doubts < mostDoubts) return false
    this.forgetIds()
    return true
  }

  /** Whether a list showed an event like one of them, and none of the ids, since these count. */
  get isDoubted(): boolean {
    return this.#doubts > 0
  }

  /** From now on only what they say counts. */
  forgetIds(): void {
    for (const [content, many] of this.#contentsWithId) count(this.#contents, content, many)
    this.#contentsWithId.clear()
    this.#ids.clear()
    this.#doubts = 0
  }

  #has(event: SessionEvent): boolean {
    return this.#ids.has(event.id) || this.#contents.has(contentOf(event))
  }
}

function count(counts: Map<string, number>, key: string, by: number): void {
  const sum = (counts.get(key) ?? 0) + by
  if (sum > 0) counts.set(key, sum)
  else counts.delete(key)
}

/** What an event says: a service may add fields to it, but not change these. */
export const contentOf = (event: SessionEvent): string =>
  JSON.stringify([
    event.type,
    event.tool_use_id ?? event.custom_tool_use_id ?? event.session_thread_id ?? null,
    event.description ?? readText(event),
  ])
