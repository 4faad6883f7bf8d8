import { createHash } from 'node:crypto'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isPreview, readText, type SessionEvent, startsWork } from '../../wire/sessions/session-event.ts'
import { type KeyedItem, SessionLog } from './session-log.ts'

/**
 * The received events of a session. Determines which events are new. A stream may repeat old events, so
 * events are identified by their id or, without an id, by their whole content. The class searches lists and
 * streams for the events that the follower sent. A list may lag, but its order is right: events before a sent
 * event, and events of a list without the sent event, came before the sent event.
 */
export class SeenEvents {
  readonly #log = new SessionLog()
  readonly state = this.#log.state
  readonly turn = this.#log.turn
  readonly #pastCounts = new Map<string, number>()
  #sent: SentEvents | undefined
  /**
   * Events received before the sent events were found: from lists, by key, and from the stream that was open
   * before.
   */
  readonly #listedBefore = new Map<string, KeyedItem>()
  #streamedBefore: EventItem[] | undefined
  /**
   * New events of the stream that `addStreamed` has not returned, by key. A list may show other events before
   * them.
   */
  readonly #held = new Map<string, EventItem>()
  /** Digests of the contents of all events that clients sent. */
  readonly #contents = new Set<string>()
  /**
   * The keys of the last two events of the last list. While the service has not worked on the sent events, of
   * the list before.
   */
  #listEnd: string[] = []

  /** Adds a page of the first list. */
  addPast(items: readonly EventItem[]): void {
    for (const item of withKeys(items, this.#pastCounts)) {
      if (isUserOrSystem(item.event)) this.#contents.add(digestOf(item.event))
      if (this.#log.has(item.key)) this.addAgain(item)
      else this.#log.append(item, { isListed: true })
    }
    this.#listEnd = [...this.#listEnd, ...items.slice(-2).map(getKey)].slice(-2)
  }

  /**
   * Sets the sent events. From now on only events after the sent events are new. The sent events have ids if
   * the service returned ids.
   */
  addSent(events: readonly SessionEvent[]): void {
    const { isIdle, isEmpty } = this.state
    const isKnown = events.some((event) => this.#contents.has(digestOf(event)))
    this.#sent = new SentEvents(events, { isBusy: !isIdle && !isEmpty, isKnown })
    this.#listedBefore.clear()
    this.#streamedBefore = []
    this.turn.begin(events)
    for (const event of events) this.#log.assume(event)
  }

  /** Adds an event that the service accepted, or that only the session resource shows. */
  addAccepted(event: SessionEvent): void {
    this.#log.assume(event)
  }

  /**
   * Records that a stream was opened. The stream may lack events that happened before, so the list decides
   * where the sent events are.
   */
  addConnection(): void {
    this.#streamedBefore = undefined
  }

  /** Returns whether an event of a stream is new. Without an id, an equal event may be new or a repetition. */
  isNew(item: EventItem): boolean {
    const key = getKey(item)
    return !this.#log.has(key) && !(this.#sent?.isStreamed && this.#listedBefore.has(key))
  }

  get knowsListEnd(): boolean {
    return this.#listEnd.length === 2
  }

  /**
   * Returns whether a list, the newest event first, has reached the last two events of the last list. Both
   * events have to follow each other: otherwise the service inserted an event before them, or lists in
   * another order. The list also has to contain each waiting tool use, because its input is compared again.
   */
  reachesListEnd(newest: readonly EventItem[]): boolean {
    const keys = newest.map(getKey)
    const [before, last = ''] = this.#listEnd
    const place = keys.indexOf(last)
    const isEnd = place >= 0 && keys[place + 1] === before
    return isEnd && this.state.pending.every((id) => keys.includes(id)) && !keys.some(isContentKey)
  }

  /**
   * Adds a known event, or a part of an event, again. Returns whether the repetition contradicts the first
   * event.
   */
  addAgain({ event, text }: EventItem): boolean {
    this.#sent?.addProgress(event)
    return this.state.addAgain(event, text)
  }

  /** Adds an event of a stream. Returns the events to emit. */
  addStreamed(item: EventItem): EventItem[] {
    const fresh = this.#addStreamed(item)
    if (this.#held.size === 0) return fresh
    for (const each of fresh) this.#held.set(getKey(each), each)
    return []
  }

  /** Adds an event of a stream. Holds the event back until a list shows it, or `release` is called. */
  hold(item: EventItem): void {
    for (const each of this.#addStreamed(item)) this.#held.set(getKey(each), each)
  }

  /** Returns the events that were held back. */
  release(): EventItem[] {
    const items = [...this.#held.values()]
    this.#held.clear()
    return items
  }

  #addStreamed(item: EventItem): EventItem[] {
    const sent = this.#sent
    const keyed = withKey(item)
    if (isPreview(item.event) || !this.isNew(item)) {
      this.addAgain(item)
      return []
    }
    sent?.addProgress(item.event)
    if (sent?.find(keyed)) {
      sent.isStreamed = true
      for (const each of [
        ...this.#takeListedBefore(),
        ...(this.#streamedBefore?.splice(0) ?? []).map((item) => withKey(item)),
      ])
        this.#append(each)
      this.#append(keyed, true)
    } else if (this.isLost) {
      this.#streamedBefore?.push(item)
    } else {
      if (sent) sent.firstAfter ??= keyed.key
      this.#append(keyed)
      return [keyed]
    }
    return []
  }

  /**
   * Adds a list. Returns the events to emit: new listed events in their order, then held events of the
   * stream.
   */
  addList(items: readonly EventItem[]): EventItem[] {
    const keyed = withKeys(items)
    const news = this.#withHeld(keyed, this.#addListed(keyed))
    const isPlaced = !this.#sent || this.#sent.isListed || this.#sent.isAwaited
    if (isPlaced && !this.isUndone) this.#listEnd = keyed.slice(-2).map(({ key }) => key)
    const streamed = this.#streamedBefore?.splice(0) ?? []
    // The stream shows where these events are among the events after the sent events.
    for (const item of streamed) this.#listedBefore.delete(getKey(item))
    return [...news, ...streamed.flatMap((item) => this.addStreamed(item))]
  }

  #addListed(keyed: readonly KeyedItem[]): KeyedItem[] {
    const sent = this.#sent
    for (const { event } of keyed) sent?.addProgress(event)
    if (!sent || sent.isListed || sent.isAwaited) return this.#place(keyed)
    const start = keyed.findIndex((item) => sent.isFirst(item, !this.#log.has(item.key)))
    const hasLater = keyed.some(({ key }) => key === sent.firstAfter)
    if (start < 0 && !hasLater) {
      this.#keepListedBefore(keyed)
      return []
    }
    sent.isListed = true
    const earlier = this.#place(this.#takeListedBefore())
    const fresh = this.#place(keyed)
    // The list omits the sent events, so each new event may be later than the sent events.
    if (start < 0) return [...earlier, ...fresh]
    const old = new Set(keyed.slice(0, start).map(({ key }) => key))
    return fresh.filter(({ key }) => !old.has(key))
  }

  /** Emits the held events together with a list that shows one of the held events. */
  #withHeld(list: readonly KeyedItem[], news: KeyedItem[]): EventItem[] {
    if (!list.some(({ key }) => this.#held.has(key))) return news
    const isNews = new Set(news.map(({ key }) => key))
    const others = new Set(list.map(({ key }) => key))
    return [
      ...news.filter(({ key }) => !others.has(key)),
      ...list.filter(({ key }) => this.#held.delete(key) || isNews.has(key)),
      ...this.release(),
    ]
  }

  /**
   * Ends the search for the sent events by their ids, and continues by their content. A search by content
   * ends: all events received meanwhile are new when the next list is read. A task behind another turn may be
   * shown later.
   */
  narrowSearch(): void {
    const sent = this.#sent
    if (sent && !sent.forgetIds()) {
      if (sent.isBusy && this.turn.showsClients) sent.isAwaited = true
      else this.#sent = undefined
    }
    this.#listedBefore.clear()
  }

  /** Neither a list nor a stream has shown the sent events. */
  get isLost(): boolean {
    return this.#sent?.isLost ?? false
  }

  /** The sent events are lost, or lists have shown new events without them. */
  get isSearching(): boolean {
    return this.isLost || this.#listedBefore.size > 0
  }

  /** The search uses the ids of the receipt, not the content. */
  get seeksIds(): boolean {
    return this.#sent?.seeksIds ?? false
  }

  /**
   * The service has not shown all sent events, or has not started to work on them. So a stop may belong to
   * the turn before.
   */
  get isUndone(): boolean {
    return this.#sent?.isUndone ?? false
  }

  /**
   * The same content was sent before, so only an id identifies the sent event, and the search by ids takes
   * longer.
   */
  get isAmbiguous(): boolean {
    return this.#sent?.isKnown ?? false
  }

  /**
   * The sent task waits for the end of another turn. It arrived while the session worked, and no event shows
   * that the session has worked on the task.
   */
  get isQueued(): boolean {
    const sent = this.#sent
    if (!sent?.isUndone || this.state.stop?.kind !== 'done') return false
    if (sent.isMissing) return sent.isBusy && this.turn.showsClients && !sent.hasLike
    return this.turn.isQueued
  }

  /** A list has shown the last stop, and therefore all events before it. */
  get isStopListed(): boolean {
    return this.#log.isStopListed
  }

  /** Accepts the last stop although no list has shown the stop. */
  trustStop(): void {
    this.#log.trustStop()
  }

  /** The session may be idle although the events of this service don't show it. */
  get mayBeIdle(): boolean {
    const { showsIdleEvents, isBetweenRuns, openRuns, hasFinalError } = this.state
    const mayEnd = showsIdleEvents ? isBetweenRuns && openRuns.length === 0 : this.turn.mayHaveEnded
    return (mayEnd || hasFinalError) && !this.isSearching
  }

  /** Adds the newest event, unless the event is known. */
  #append(item: KeyedItem, isOurs = false): void {
    if (this.#log.has(item.key)) this.addAgain(item)
    else this.#log.append(item, { isOurs })
  }

  /** Adds listed events in their order. Returns the new events that this process did not send. */
  #place(list: readonly KeyedItem[]): KeyedItem[] {
    const ours = new Set<KeyedItem>()
    const fresh = this.#log.addList(list, (item) => {
      const isOurs = this.#sent?.find(item) ?? false
      if (isOurs) ours.add(item)
      return isOurs
    })
    return fresh.filter((item) => !ours.has(item))
  }

  /** Keeps the new events of a list until a list shows the sent events. */
  #keepListedBefore(items: readonly KeyedItem[]): void {
    for (const item of items) {
      if (this.#log.has(item.key)) this.addAgain(item)
      // The first event of this key stays, so that a later event with other content contradicts it.
      else if (!this.#listedBefore.has(item.key)) this.#listedBefore.set(item.key, item)
    }
  }

  #takeListedBefore(): KeyedItem[] {
    const items = [...this.#listedBefore.values()]
    this.#listedBefore.clear()
    return items
  }
}

/** Returns the identity of an event: its id or, without one, a digest of its content. */
export const getKey = ({ event }: EventItem): string => event.id ?? digestContent(event)

/**
 * Returns whether a key identifies an event by its content. Only the whole list shows how many events have
 * the same content.
 */
const isContentKey = (key: string): boolean => key.startsWith('\0')

const digestContent = (event: SessionEvent) =>
  `\0${createHash('sha256').update(JSON.stringify(event)).digest('base64')}`

/**
 * The object is not created by spreading: each spread object gets its own hidden class in V8, which takes
 * more memory than the object.
 */
const withKey = ({ event, text }: EventItem, key = getKey({ event, text })): KeyedItem => ({
  event,
  text,
  key,
})

/**
 * Adds keys to the events of a list. Events without ids may have the same content, so their keys are
 * numbered.
 */
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
 * The sent events. Each sent event is found once among the events of the session, by its id. The ids of a
 * receipt can differ from the ids of the stored events (public clients, 1). If no event has these ids for a
 * while, the sent events are found by their content.
 */
class SentEvents {
  /** A stream has shown one of the sent events. */
  isStreamed = false
  /** A list has shown one of the sent events, or an event after them. */
  isListed = false
  /** First event of a stream after the sent events, which a list may omit. */
  firstAfter: string | undefined
  /** The search has ended, but the session may still show the sent events. */
  isAwaited = false
  /**
   * Another client has sent an event of the same type since then. That event may be a changed form of the
   * sent event.
   */
  hasLike = false
  /** The session worked when the events were sent. */
  readonly isBusy: boolean
  /** An older event has the same content. */
  readonly isKnown: boolean
  readonly #sent: readonly SessionEvent[]
  /** Number of sent events that are missing, by id or content. */
  readonly #wanted = new Map<string, number>()
  #first: string | undefined
  #missingWork: number
  /** Ids of the found events on which the service has not started to work. */
  readonly #queued = new Set<string | undefined>()

  constructor(sent: readonly SessionEvent[], { isBusy, isKnown }: { isBusy: boolean; isKnown: boolean }) {
    this.#sent = sent
    this.isBusy = isBusy
    this.isKnown = isKnown
    for (const event of sent) this.#count(event.id ?? getContent(event), 1)
    this.#missingWork = sent.filter(startsWork).length
  }

  /** No sent event was found. */
  get isLost(): boolean {
    return !this.isStreamed && !this.isListed && !this.isAwaited
  }

  /** A sent event other than an interrupt was not found. */
  get isMissing(): boolean {
    return this.#missingWork > 0
  }

  /** A sent event other than an interrupt was not found, or waits for its turn. */
  get isUndone(): boolean {
    return this.#missingWork > 0 || this.#queued.size > 0
  }

  /** Returns whether an event is one of the sent events. Each sent event is found once. */
  find({ event, key }: KeyedItem): boolean {
    const name = this.#nameOf(event)
    if (name === undefined) {
      this.hasLike ||= startsWork(event) && this.#sent.some(({ type }) => type === event.type)
      return false
    }
    this.#count(name, -1)
    this.#first ??= key
    if (!startsWork(event)) return true
    this.#missingWork--
    if (event.id !== undefined && event.processed_at === null) this.#queued.add(event.id)
    return true
  }

  /** Removes an event from the queued events once the service has processed the event. */
  addProgress({ id, processed_at: processedAt }: SessionEvent): void {
    if (processedAt) this.#queued.delete(id)
  }

  /** Returns whether an event is the first of the sent events in a list. */
  isFirst({ event, key }: KeyedItem, isNew: boolean): boolean {
    return key === this.#first || (isNew && this.#nameOf(event) !== undefined)
  }

  get seeksIds(): boolean {
    return this.isLost && this.#sent.some(({ id = '' }) => this.#wanted.has(id))
  }

  /**
   * Switches the search to the content, if no event has one of the ids. Returns whether the search was
   * switched.
   */
  forgetIds(): boolean {
    if (!this.seeksIds) return false
    for (const event of this.#sent) if (this.#wanted.delete(event.id ?? '')) this.#count(getContent(event), 1)
    return true
  }

  /** Returns the id or content that identifies an event as a sent event. */
  #nameOf(event: SessionEvent): string | undefined {
    return [event.id ?? '', getContent(event)].find((name) => this.#wanted.has(name))
  }

  #count(name: string, by: number): void {
    const sum = (this.#wanted.get(name) ?? 0) + by
    if (sum > 0) this.#wanted.set(name, sum)
    else this.#wanted.delete(name)
  }
}

const isUserOrSystem = ({ type }: SessionEvent) => /^(user|system)\./.test(type)

const digestOf = (event: SessionEvent) => createHash('sha256').update(getContent(event)).digest('base64')

/** Returns the identifying content of an event. A service may add fields, but not change these fields. */
export const getContent = (event: SessionEvent): string =>
  JSON.stringify([
    event.type,
    event.tool_use_id ?? event.custom_tool_use_id ?? event.session_thread_id ?? null,
    event.description ?? readText(event),
  ])
