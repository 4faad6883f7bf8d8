import { createHash } from 'node:crypto'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import {
  isEventPiece,
  readEventText,
  type SessionEvent,
  startsWork,
} from '../../wire/sessions/session-event.ts'
import { type LogItem, SessionLog } from './session-log.ts'

/**
 * Collects the received events of a session and determines which of them are new. A stream may repeat old
 * events. An event is known if an earlier event has the same id. Events without an id are compared as a
 * whole.
 *
 * Also searches the list and the stream for the events that this process sent, because only later events are
 * emitted. The list may lag behind, but its order is right: events before a sent event are older. Until the
 * list contains a sent event, all events of the list count as older.
 */
export class SeenEvents {
  readonly #log = new SessionLog()
  readonly state = this.#log.state
  readonly task = this.#log.task
  /** Number of events per digest, for events without an id in the first list. */
  readonly #earlierCounts = new Map<string, number>()
  /** The last sent events. `undefined` if there are none, or if the search did not find them. */
  #sent: SentEvents | undefined
  /** New events of lists that did not contain the sent events yet, by identity. */
  readonly #listedBefore = new Map<string, LogItem>()
  /**
   * New events of the stream until it delivers the sent events. `undefined` if the stream was opened after
   * the events were sent.
   */
  #streamedBefore: EventItem[] | undefined
  /**
   * New events of the stream that are not emitted yet, by identity. The list may contain other events before
   * them.
   */
  readonly #heldBack = new Map<string, EventItem>()
  /** Digests of all client events in the first list, from the fields that identify sent events. */
  readonly #earlierClientDigests = new Set<string>()
  /**
   * Identities of the two newest events of the previous reading of the list. Lists that may be older than the
   * sent events are ignored.
   */
  #listEnd: string[] = []

  addEarlier(items: readonly EventItem[]): void {
    for (const item of withIdentities(items, this.#earlierCounts)) {
      if (isUserOrSystem(item.event)) this.#earlierClientDigests.add(hashText(item.event))
      if (this.#log.has(item.identity)) this.addRepeated(item)
      else this.#log.append(item, { isListed: true })
    }
    this.#listEnd = [...this.#listEnd, ...items.slice(-2).map(getEventIdentity)].slice(-2)
  }

  /**
   * Adds the events that parley sent. They have ids if the service returned ids. From now on, only later
   * events are emitted.
   */
  addSent(events: readonly SessionEvent[]): void {
    const { isIdle, isEmpty } = this.state
    const hasEqual = events.some((event) => this.#earlierClientDigests.has(hashText(event)))
    this.#sent = new SentEvents(events, { wasBusy: !isIdle && !isEmpty, hasEqual })
    this.#listedBefore.clear()
    this.#streamedBefore = []
    this.task.addSent(events)
    for (const event of events) this.#log.addAccepted(event)
  }

  /**
   * Adds an event that no list or stream contained: the service accepted it, or the session resource implies
   * it.
   */
  addAccepted(event: SessionEvent): void {
    this.#log.addAccepted(event)
  }

  /**
   * Records that the stream was opened again. The new stream may omit the sent events. From now on, only the
   * list shows which events came before the sent events.
   */
  addConnection(): void {
    this.#streamedBefore = undefined
  }

  /** Returns whether an event is new. An event without an id is new only if no equal event was received. */
  isNew(item: EventItem): boolean {
    const identity = getEventIdentity(item)
    return !this.#log.has(identity) && !(this.#sent?.isInStream && this.#listedBefore.has(identity))
  }

  /** False if the previous reading had fewer than two events. `overlapsLastList` requires two. */
  get hasListEnd(): boolean {
    return this.#listEnd.length === 2
  }

  /**
   * Returns whether `newest` overlaps the previous reading of the list: it contains the two newest events of
   * that reading, next to each other. If they are apart, the service inserted an event or changed the order,
   * so the whole list must be read. `newest` must also contain each waiting tool use, because parley compares
   * its input again.
   */
  overlapsLastList(newest: readonly EventItem[]): boolean {
    const identities = newest.map(getEventIdentity)
    const [before, last = ''] = this.#listEnd
    const index = identities.indexOf(last)
    const isEnd = index >= 0 && identities[index + 1] === before
    return isEnd && this.state.pending.every((id) => identities.includes(id)) && !identities.some(isDigest)
  }

  /**
   * Adds a repeated event or a preview. Returns whether its tool use differs from the first event with its
   * id.
   */
  addRepeated({ event, text }: EventItem): boolean {
    this.#sent?.addProgress(event)
    return this.state.addRepeated(event, text)
  }

  /** Returns the events to emit: none while events are held back. */
  addStreamed(item: EventItem): EventItem[] {
    const newItems = this.#addStreamed(item)
    if (this.#heldBack.size === 0) return newItems
    for (const each of newItems) this.#heldBack.set(getEventIdentity(each), each)
    return []
  }

  /** Holds back an event of the stream until `addList` or `release` returns it. */
  hold(item: EventItem): void {
    for (const each of this.#addStreamed(item)) this.#heldBack.set(getEventIdentity(each), each)
  }

  release(): EventItem[] {
    const items = [...this.#heldBack.values()]
    this.#heldBack.clear()
    return items
  }

  #addStreamed(item: EventItem): EventItem[] {
    const sent = this.#sent
    const logItem = withIdentity(item)
    if (isEventPiece(item.event) || !this.isNew(item)) {
      this.addRepeated(item)
      return []
    }
    sent?.addProgress(item.event)
    if (sent?.matchOnce(logItem)) {
      sent.isInStream = true
      for (const each of [
        ...this.#drainListedBefore(),
        ...(this.#streamedBefore?.splice(0) ?? []).map((item) => withIdentity(item)),
      ])
        this.#append(each)
      this.#append(logItem, true)
    } else if (this.isMissingSentEvents) {
      this.#streamedBefore?.push(item)
    } else {
      if (sent) sent.firstLaterEvent ??= logItem.identity
      this.#append(logItem)
      return [logItem]
    }
    return []
  }

  /**
   * Returns the events to emit: the new events of the list in order, then the held-back events of the stream.
   */
  addList(items: readonly EventItem[]): EventItem[] {
    const list = withIdentities(items)
    const newItems = this.#addHeldBack(list, this.#addListed(list))
    const isComplete = !this.#sent || this.#sent.isInList || this.#sent.mayAppearLater
    if (isComplete && !this.isWorkPending) this.#listEnd = list.slice(-2).map(({ identity }) => identity)
    const streamed = this.#streamedBefore?.splice(0) ?? []
    // The stream delivered these events in the right order, so they are added as events of the stream.
    for (const item of streamed) this.#listedBefore.delete(getEventIdentity(item))
    return [...newItems, ...streamed.flatMap((item) => this.addStreamed(item))]
  }

  #addListed(list: readonly LogItem[]): LogItem[] {
    const sent = this.#sent
    for (const { event } of list) sent?.addProgress(event)
    if (!sent || sent.isInList || sent.mayAppearLater) return this.#addInListOrder(list)
    const start = list.findIndex((item) => sent.isFirstSent(item, !this.#log.has(item.identity)))
    const hasLater = list.some(({ identity }) => identity === sent.firstLaterEvent)
    if (start < 0 && !hasLater) {
      this.#addListedBefore(list)
      return []
    }
    sent.isInList = true
    const earlier = this.#addInListOrder(this.#drainListedBefore())
    const newItems = this.#addInListOrder(list)
    // The list omits the sent events but contains a later event, so each new event may be later than the sent
    // events.
    if (start < 0) return [...earlier, ...newItems]
    const old = new Set(list.slice(0, start).map(({ identity }) => identity))
    return newItems.filter(({ identity }) => !old.has(identity))
  }

  /**
   * Returns the new events. If the list contains a held-back event, also returns all held-back events, in the
   * list's order.
   */
  #addHeldBack(list: readonly LogItem[], newItems: LogItem[]): EventItem[] {
    if (!list.some(({ identity }) => this.#heldBack.has(identity))) return newItems
    const newIdentities = new Set(newItems.map(({ identity }) => identity))
    const listed = new Set(list.map(({ identity }) => identity))
    return [
      ...newItems.filter(({ identity }) => !listed.has(identity)),
      ...list.filter(({ identity }) => this.#heldBack.delete(identity) || newIdentities.has(identity)),
      ...this.release(),
    ]
  }

  /**
   * Continues a search by ids as a search by content, or ends a search by content. The new events that were
   * held back during the search count as new again when the next list contains them. If the session first
   * works on another client's task, the sent task may still appear after the search.
   */
  endSearchPhase(): void {
    const sent = this.#sent
    if (sent && !sent.stopSeekingIds()) {
      if (sent.wasBusy && this.task.showsClientEvents) sent.mayAppearLater = true
      else this.#sent = undefined
    }
    this.#listedBefore.clear()
  }

  get isMissingSentEvents(): boolean {
    return this.#sent?.isNoneFound ?? false
  }

  /** The sent events are not found yet, or a list had new events but not the sent events. */
  get isSearching(): boolean {
    return this.isMissingSentEvents || this.#listedBefore.size > 0
  }

  get seeksIds(): boolean {
    return this.#sent?.seeksIds ?? false
  }

  /**
   * The search has not found all sent events, or the service has not started to work on them. A stop of the
   * session may then be older than the sent events.
   */
  get isWorkPending(): boolean {
    return this.#sent?.isWorkPending ?? false
  }

  /**
   * An older event has the same content as a sent event. Only an id then identifies the sent event, so the
   * search by ids takes longer.
   */
  get isAmbiguous(): boolean {
    return this.#sent?.hasEqual ?? false
  }

  /**
   * The sent task waits until the session has finished another client's task: the session was working when
   * the service received the sent task, and no event shows work on it.
   */
  get isQueued(): boolean {
    const sent = this.#sent
    if (!sent?.isWorkPending || this.state.stop?.kind !== 'done') return false
    if (sent.isMissing) return sent.wasBusy && this.task.showsClientEvents && !sent.hasSimilar
    return this.task.isQueued
  }

  get isStopListed(): boolean {
    return this.#log.isStopListed
  }

  acceptUnlistedStop(): void {
    this.#log.acceptUnlistedStop()
  }

  /** The session may be idle without an idle event, because some services send no idle events. */
  get mayBeIdle(): boolean {
    const { sendsIdleEvents, isWaitingForRuns, openRuns, hasFinalError } = this.state
    const mayEnd = sendsIdleEvents ? isWaitingForRuns && openRuns.length === 0 : this.task.mayBeDone
    return (mayEnd || hasFinalError) && !this.isSearching
  }

  #append(item: LogItem, isOurs = false): void {
    if (this.#log.has(item.identity)) this.addRepeated(item)
    else this.#log.append(item, { isOurs })
  }

  /** Returns the new events that this process did not send. */
  #addInListOrder(list: readonly LogItem[]): LogItem[] {
    const ours = new Set<LogItem>()
    const newItems = this.#log.addList(list, (item) => {
      const isOurs = this.#sent?.matchOnce(item) ?? false
      if (isOurs) ours.add(item)
      return isOurs
    })
    return newItems.filter((item) => !ours.has(item))
  }

  #addListedBefore(items: readonly LogItem[]): void {
    for (const item of items) {
      if (this.#log.has(item.identity)) this.addRepeated(item)
      // Keeps the first event with this identity, so that a later event with a different input is detected.
      else if (!this.#listedBefore.has(item.identity)) this.#listedBefore.set(item.identity, item)
    }
  }

  #drainListedBefore(): LogItem[] {
    const items = [...this.#listedBefore.values()]
    this.#listedBefore.clear()
    return items
  }
}

export const getEventIdentity = ({ event }: EventItem): string => event.id ?? digestEvent(event)

/**
 * Returns whether an identity is a digest, because the event has no id. A part of the list is then not
 * enough, because it does not show how many equal events the whole list has.
 */
const isDigest = (identity: string): boolean => identity.startsWith('\0')

/**
 * Puts `type` and `processed_at` first, because the list and the stream may have them in different positions.
 */
const digestEvent = ({ id: _, type, processed_at, ...others }: SessionEvent) =>
  `\0${createHash('sha256')
    .update(JSON.stringify({ type, processed_at, ...others }))
    .digest('base64')}`

/**
 * Avoids spread syntax, which would give each object its own hidden class in V8. Such a class takes more
 * memory than the object.
 */
const withIdentity = ({ event, text }: EventItem, identity = getEventIdentity({ event, text })): LogItem => ({
  event,
  text,
  identity,
})

/** Numbers the identities of equal events without ids, because each of them is a separate event. */
function withIdentities(items: readonly EventItem[], counts = new Map<string, number>()): LogItem[] {
  return items.map((item) => {
    const logItem = withIdentity(item)
    if (item.event.id !== undefined) return logItem
    const count = (counts.get(logItem.identity) ?? 0) + 1
    counts.set(logItem.identity, count)
    return count > 1 ? withIdentity(item, `${logItem.identity}${count}`) : logItem
  })
}

/**
 * Searches for the sent events among the session's events. First compares the ids that the service returned
 * when it accepted the events. The session may show other ids, so the search later compares the content.
 */
class SentEvents {
  /** A stream contained one of the sent events. */
  isInStream = false
  /** A list contained one of the sent events, or a later event. */
  isInList = false
  /**
   * Identity of the first event that the stream delivered after the sent events. If a list contains this
   * event, the list is newer than the sent events, even if it omits them.
   */
  firstLaterEvent: string | undefined
  /** The search has ended, but a list or the stream may still show the sent events. */
  mayAppearLater = false
  /** A new event has the same type as a sent event. It may be the sent event, changed by the service. */
  hasSimilar = false
  readonly wasBusy: boolean
  readonly hasEqual: boolean
  readonly #sent: readonly SessionEvent[]
  /** Number of sent events that the search has not found yet, by their id or content. */
  readonly #wanted = new Map<string, number>()
  #firstFound: string | undefined
  /** Number of sent events that start work and were not found yet. */
  #missingCount: number
  /** Ids of the found events that the service has not processed yet. */
  readonly #queued = new Set<string | undefined>()

  constructor(sent: readonly SessionEvent[], { wasBusy, hasEqual }: { wasBusy: boolean; hasEqual: boolean }) {
    this.#sent = sent
    this.wasBusy = wasBusy
    this.hasEqual = hasEqual
    for (const event of sent) this.#add(event.id ?? getComparableText(event), 1)
    this.#missingCount = sent.filter(startsWork).length
  }

  get isNoneFound(): boolean {
    return !this.isInStream && !this.isInList && !this.mayAppearLater
  }

  get isMissing(): boolean {
    return this.#missingCount > 0
  }

  get isWorkPending(): boolean {
    return this.#missingCount > 0 || this.#queued.size > 0
  }

  /** Returns whether an event is one of the sent events. Each sent event matches only once. */
  matchOnce({ event, identity }: LogItem): boolean {
    const name = this.#findWanted(event)
    if (name === undefined) {
      this.hasSimilar ||= startsWork(event) && this.#sent.some(({ type }) => type === event.type)
      return false
    }
    this.#add(name, -1)
    this.#firstFound ??= identity
    if (!startsWork(event)) return true
    this.#missingCount--
    if (event.id !== undefined && event.processed_at === null) this.#queued.add(event.id)
    return true
  }

  addProgress({ id, processed_at: processedAt }: SessionEvent): void {
    if (processedAt) this.#queued.delete(id)
  }

  isFirstSent({ event, identity }: LogItem, isNew: boolean): boolean {
    return identity === this.#firstFound || (isNew && this.#findWanted(event) !== undefined)
  }

  get seeksIds(): boolean {
    return this.isNoneFound && this.#sent.some(({ id = '' }) => this.#wanted.has(id))
  }

  /** Continues the search by content. Returns false if the search already compares content. */
  stopSeekingIds(): boolean {
    if (!this.seeksIds) return false
    for (const event of this.#sent)
      if (this.#wanted.delete(event.id ?? '')) this.#add(getComparableText(event), 1)
    return true
  }

  #findWanted(event: SessionEvent): string | undefined {
    return [event.id ?? '', getComparableText(event)].find((name) => this.#wanted.has(name))
  }

  #add(name: string, by: number): void {
    const sum = (this.#wanted.get(name) ?? 0) + by
    if (sum > 0) this.#wanted.set(name, sum)
    else this.#wanted.delete(name)
  }
}

const isUserOrSystem = ({ type }: SessionEvent) => /^(user|system)\./.test(type)

const hashText = (event: SessionEvent) =>
  createHash('sha256').update(getComparableText(event)).digest('base64')

/**
 * Returns the text by which parley recognizes a sent event without an id. It consists of the fields that a
 * service does not change.
 */
export const getComparableText = (event: SessionEvent): string =>
  JSON.stringify([
    event.type,
    event.tool_use_id ?? event.custom_tool_use_id ?? event.session_thread_id ?? null,
    event.description ?? readEventText(event),
  ])
