import { createHash } from 'node:crypto'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isPreview, readText, type SessionEvent, startsWork } from '../../wire/sessions/session-event.ts'
import { type KeyedItem, SessionLog } from './session-log.ts'

/**
 * Collects the received events of a session and determines which are new. A stream may repeat old events, so
 * events are compared by their id or, without an id, by their whole content. Also searches lists and streams
 * for the events that this process sent. A list may lag behind, but its order is right: events before a sent
 * event are older. If a list contains no sent event, all its events are older.
 */
export class SeenEvents {
  readonly #log = new SessionLog()
  readonly state = this.#log.state
  readonly turn = this.#log.turn
  /** Number of earlier events without an id, by a digest of their content. */
  readonly #pastCounts = new Map<string, number>()
  #sent: SentEvents | undefined
  /** New events of lists that did not contain the sent events yet, by key. */
  readonly #listedBefore = new Map<string, KeyedItem>()
  /** Events of the stream before the sent events; `undefined` if the stream was opened after they were sent. */
  #streamedBefore: EventItem[] | undefined
  /**
   * New events of the stream that are held back, by key, because a list may contain other events before them.
   */
  readonly #held = new Map<string, EventItem>()
  /** Digests of the content of all earlier events of clients. */
  readonly #contents = new Set<string>()
  /**
   * Keys of the last two events of the last list. They stay unchanged until the service has worked on the
   * sent events.
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
   * Sets the events that this process sent, with ids if the service returned ids. From now on, only events
   * after them are new.
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

  /** Adds an event that the service accepted, or that follows from the session resource. */
  addAccepted(event: SessionEvent): void {
    this.#log.assume(event)
  }

  /**
   * Records that another stream was opened. The stream may lack earlier events, so only a list shows the
   * position of the sent events.
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
   * Returns whether a list that is read backwards has reached the last two events of the last list. If they
   * are not adjacent, the service inserted an event between them or lists in another order. The list must
   * also contain each waiting tool use, because its input is compared again.
   */
  reachesListEnd(newest: readonly EventItem[]): boolean {
    const keys = newest.map(getKey)
    const [before, last = ''] = this.#listEnd
    const index = keys.indexOf(last)
    const isEnd = index >= 0 && keys[index + 1] === before
    return isEnd && this.state.pending.every((id) => keys.includes(id)) && !keys.some(isContentKey)
  }

  /**
   * Adds a repeated event or a preview of an event. Returns whether it contradicts the first event of its id.
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

  /** Adds an event of a stream and holds it back until a list contains it, or `release` is called. */
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
    } else if (this.lacksSentEvents) {
      this.#streamedBefore?.push(item)
    } else {
      if (sent) sent.firstAfter ??= keyed.key
      this.#append(keyed)
      return [keyed]
    }
    return []
  }

  /**
   * Adds a list. Returns the events to emit: the new events of the list in order, then held events of the
   * stream.
   */
  addList(items: readonly EventItem[]): EventItem[] {
    const keyed = withKeys(items)
    const news = this.#withHeld(keyed, this.#addListed(keyed))
    const isPlaced = !this.#sent || this.#sent.isListed || this.#sent.isAwaited
    if (isPlaced && !this.isUndone) this.#listEnd = keyed.slice(-2).map(({ key }) => key)
    const streamed = this.#streamedBefore?.splice(0) ?? []
    // The stream's order counts for these events, so they are added as streamed events.
    for (const item of streamed) this.#listedBefore.delete(getKey(item))
    return [...news, ...streamed.flatMap((item) => this.addStreamed(item))]
  }

  #addListed(keyed: readonly KeyedItem[]): KeyedItem[] {
    const sent = this.#sent
    for (const { event } of keyed) sent?.addProgress(event)
    if (!sent || sent.isListed || sent.isAwaited) return this.#addInListOrder(keyed)
    const start = keyed.findIndex((item) => sent.isFirst(item, !this.#log.has(item.key)))
    const hasLater = keyed.some(({ key }) => key === sent.firstAfter)
    if (start < 0 && !hasLater) {
      this.#saveListedBefore(keyed)
      return []
    }
    sent.isListed = true
    const earlier = this.#addInListOrder(this.#takeListedBefore())
    const fresh = this.#addInListOrder(keyed)
    // The list omits the sent events, so each new event in it may be later than the sent events.
    if (start < 0) return [...earlier, ...fresh]
    const old = new Set(keyed.slice(0, start).map(({ key }) => key))
    return fresh.filter(({ key }) => !old.has(key))
  }

  /**
   * Returns the new events. If the list contains an event that was held back, also releases all events that
   * were held back, in the order of the list.
   */
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
   * Switches the search for the sent events from ids to content, or ends a search by content. The events
   * received during the search then count as new when the next list is read. A task that is queued behind
   * another turn may still appear later.
   */
  narrowSearch(): void {
    const sent = this.#sent
    if (sent && !sent.stopSeekingIds()) {
      if (sent.isBusy && this.turn.showsClients) sent.isAwaited = true
      else this.#sent = undefined
    }
    this.#listedBefore.clear()
  }

  /** The service has not listed or streamed the sent events yet. */
  get lacksSentEvents(): boolean {
    return this.#sent?.isUnfound ?? false
  }

  /** The sent events were not found yet, or lists contained new events without the sent events. */
  get isSearching(): boolean {
    return this.lacksSentEvents || this.#listedBefore.size > 0
  }

  /** The search for the sent events uses the ids of the receipt, not their content. */
  get seeksIds(): boolean {
    return this.#sent?.seeksIds ?? false
  }

  /**
   * Not all sent events were found, or the service has not started to work on them. A stop may then belong to
   * the previous turn.
   */
  get isUndone(): boolean {
    return this.#sent?.isUndone ?? false
  }

  /**
   * An older event has the same content, so only an id identifies the sent event, and the search by ids takes
   * longer.
   */
  get isAmbiguous(): boolean {
    return this.#sent?.isKnown ?? false
  }

  /**
   * The sent task waits for the end of another turn: the session worked when the task arrived, and no event
   * shows work on the task.
   */
  get isQueued(): boolean {
    const sent = this.#sent
    if (!sent?.isUndone || this.state.stop?.kind !== 'done') return false
    if (sent.isMissing) return sent.isBusy && this.turn.showsClients && !sent.hasSimilar
    return this.turn.isQueued
  }

  /** A list contains the last stop, and therefore all events before it. */
  get isStopListed(): boolean {
    return this.#log.isStopListed
  }

  /** Accepts the last stop although no list contains it. */
  trustStop(): void {
    this.#log.trustStop()
  }

  /** The session may be idle although no event shows it, because some services send no idle event. */
  get mayBeIdle(): boolean {
    const { showsIdleEvents, isBetweenRuns, openRuns, hasFinalError } = this.state
    const mayEnd = showsIdleEvents ? isBetweenRuns && openRuns.length === 0 : this.turn.mayHaveEnded
    return (mayEnd || hasFinalError) && !this.isSearching
  }

  /** Adds an event as the newest, unless the event is known. */
  #append(item: KeyedItem, isOurs = false): void {
    if (this.#log.has(item.key)) this.addAgain(item)
    else this.#log.append(item, { isOurs })
  }

  /** Adds the events of a list in order. Returns the new ones that this process did not send. */
  #addInListOrder(list: readonly KeyedItem[]): KeyedItem[] {
    const ours = new Set<KeyedItem>()
    const fresh = this.#log.addList(list, (item) => {
      const isOurs = this.#sent?.find(item) ?? false
      if (isOurs) ours.add(item)
      return isOurs
    })
    return fresh.filter((item) => !ours.has(item))
  }

  /** Saves the new events of a list that does not contain the sent events. */
  #saveListedBefore(items: readonly KeyedItem[]): void {
    for (const item of items) {
      if (this.#log.has(item.key)) this.addAgain(item)
      // Keeps the first event of this key, so that a later one with a different input is detected.
      else if (!this.#listedBefore.has(item.key)) this.#listedBefore.set(item.key, item)
    }
  }

  #takeListedBefore(): KeyedItem[] {
    const items = [...this.#listedBefore.values()]
    this.#listedBefore.clear()
    return items
  }
}

/** Returns the key of an event: its id or, without one, a digest of its content. */
export const getKey = ({ event }: EventItem): string => event.id ?? digestContent(event)

/**
 * Returns whether a key is a digest of the content. A part of a list does not show how many events have the
 * same content.
 */
const isContentKey = (key: string): boolean => key.startsWith('\0')

/** A list and a stream may send `type` and `processed_at` in different places, so the digest has them first. */
const digestContent = ({ id: _, type, processed_at, ...others }: SessionEvent) =>
  `\0${createHash('sha256')
    .update(JSON.stringify({ type, processed_at, ...others }))
    .digest('base64')}`

/**
 * Creates the object without a spread: each spread object gets its own hidden class in V8, which takes more
 * memory than the object.
 */
const withKey = ({ event, text }: EventItem, key = getKey({ event, text })): KeyedItem => ({
  event,
  text,
  key,
})

/** Adds keys to the events of a list. Equal events without ids get numbered keys. */
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
 * Finds each sent event once among the session's events: by the ids of the receipt, which may differ from the
 * ids of the events. If no event has one of these ids for a while, the search compares the content.
 */
class SentEvents {
  /** A stream contained one of the sent events. */
  isStreamed = false
  /** A list contained one of the sent events, or an event after them. */
  isListed = false
  /**
   * Key of the first event that the stream delivered after the sent events. If a list contains it, the list
   * is past the sent events, even if it omits them.
   */
  firstAfter: string | undefined
  /** The search has ended, but the sent events may still appear. */
  isAwaited = false
  /**
   * An event of the same type as a sent event has appeared. It may be the sent event, changed by the service.
   */
  hasSimilar = false
  /** The session was working when the events were sent. */
  readonly isBusy: boolean
  /** An older event has the same content. */
  readonly isKnown: boolean
  readonly #sent: readonly SessionEvent[]
  /** Number of sent events that were not found yet, by id or content. */
  readonly #wanted = new Map<string, number>()
  #first: string | undefined
  #missingWork: number
  /** Ids of the found events that the service has not processed yet. */
  readonly #queued = new Set<string | undefined>()

  constructor(sent: readonly SessionEvent[], { isBusy, isKnown }: { isBusy: boolean; isKnown: boolean }) {
    this.#sent = sent
    this.isBusy = isBusy
    this.isKnown = isKnown
    for (const event of sent) this.#count(event.id ?? getContent(event), 1)
    this.#missingWork = sent.filter(startsWork).length
  }

  /** The search has not found any of the sent events yet. */
  get isUnfound(): boolean {
    return !this.isStreamed && !this.isListed && !this.isAwaited
  }

  /** A sent event that starts work was not found yet. */
  get isMissing(): boolean {
    return this.#missingWork > 0
  }

  /** The service has not processed every sent event that starts work, or the event was not found yet. */
  get isUndone(): boolean {
    return this.#missingWork > 0 || this.#queued.size > 0
  }

  /** Returns whether an event is one of the sent events. Each sent event matches once. */
  find({ event, key }: KeyedItem): boolean {
    const name = this.#identify(event)
    if (name === undefined) {
      this.hasSimilar ||= startsWork(event) && this.#sent.some(({ type }) => type === event.type)
      return false
    }
    this.#count(name, -1)
    this.#first ??= key
    if (!startsWork(event)) return true
    this.#missingWork--
    if (event.id !== undefined && event.processed_at === null) this.#queued.add(event.id)
    return true
  }

  /** Removes an event from `#queued` once the service has processed it. */
  addProgress({ id, processed_at: processedAt }: SessionEvent): void {
    if (processedAt) this.#queued.delete(id)
  }

  /** Returns whether an event is the first sent event in a list. */
  isFirst({ event, key }: KeyedItem, isNew: boolean): boolean {
    return key === this.#first || (isNew && this.#identify(event) !== undefined)
  }

  get seeksIds(): boolean {
    return this.isUnfound && this.#sent.some(({ id = '' }) => this.#wanted.has(id))
  }

  /** Changes the search from ids to content. Returns false if the search does not use ids. */
  stopSeekingIds(): boolean {
    if (!this.seeksIds) return false
    for (const event of this.#sent) if (this.#wanted.delete(event.id ?? '')) this.#count(getContent(event), 1)
    return true
  }

  /** Returns the id or content by which an event matches a sent event. */
  #identify(event: SessionEvent): string | undefined {
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
