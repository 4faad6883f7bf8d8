import type { EventItem } from '../../wire/sessions/events-page.ts'
import {
  isEventPiece,
  readEventText,
  type SessionEvent,
  startsAgentWork,
} from '../../wire/sessions/session-event.ts'
import { computeDigest } from '../session-state.ts'
import { type IdentifiedEvent, SessionLog } from './session-log.ts'

/**
 * Collects the events of a session and determines which of them are new, because a stream may repeat old
 * events. Events are the same if they have the same id. Events without an id are compared as a whole.
 *
 * After `addSent`, only events after the sent events are new. The list is in order, but may lag behind. So
 * until a list contains a sent event, all events of a list count as older than the sent events.
 */
export class SeenEvents {
  readonly log = new SessionLog()
  readonly state = this.log.state
  readonly task = this.log.task
  /** Number of times that the first list contained each event without an id, by the digest of the event. */
  readonly #earlierCounts = new Map<string, number>()
  #search: SentEventSearch | undefined
  /** True if the last list had new events but no sent event, so the new events may be older. */
  #hasUnplacedEvents = false
  /**
   * New events that the stream delivered before the sent events. `undefined` if the stream was opened only
   * after the events were sent.
   */
  #streamedBefore: IdentifiedEvent[] | undefined
  /** Events of the stream that are not emitted yet, because the list may contain earlier new events. */
  readonly #heldBack = new Map<string, EventItem>()
  /**
   * Identities of the two newest events of the last list. A list without the sent events does not change
   * them.
   */
  #listEnd: string[] = []

  addEarlier(items: readonly EventItem[]): void {
    const list = withIdentities(items, this.#earlierCounts)
    for (const item of list) this.#append(item, { isListed: true })
    this.#listEnd = [...this.#listEnd, ...list.slice(-2).map(({ identity }) => identity)].slice(-2)
  }

  /**
   * Called before the follower reads new events. From then on, only events after the sent events count as
   * new.
   */
  addSent(events: readonly SessionEvent[]): void {
    const { isIdle, isEmpty } = this.state
    this.#search = new SentEventSearch(events, !isIdle && !isEmpty)
    this.#hasUnplacedEvents = false
    this.#streamedBefore = []
    this.task.addSent(events)
    for (const event of events) this.log.addAccepted(event)
  }

  /**
   * Records that a new stream was opened. It may omit the sent events, or start with events before them. So
   * only a list can show which events are older than the sent events.
   */
  addConnection(): void {
    this.#streamedBefore = undefined
    if (this.#search?.is === 'in stream') this.#search.is = 'in earlier stream'
  }

  isNew(item: EventItem): boolean {
    return !this.log.has(getEventIdentity(item))
  }

  get hasListEnd(): boolean {
    return this.#listEnd.length === 2
  }

  /**
   * Returns whether `newest` continues the last list without a gap: it must contain the two newest events of
   * the last list next to each other. If the service has inserted an event between them, the whole list must
   * be read. `newest` must also contain each waiting tool use, because parley checks that its input has not
   * changed.
   */
  overlapsLastList(newest: readonly EventItem[]): boolean {
    const identities = newest.map(getEventIdentity)
    const [before, last = ''] = this.#listEnd
    const index = identities.indexOf(last)
    const isEnd = index >= 0 && identities[index + 1] === before
    return isEnd && this.state.pending.every((id) => identities.includes(id)) && !identities.some(isDigest)
  }

  addRepeated({ event, text }: EventItem): boolean {
    this.#search?.addProgress(event)
    return this.state.addRepeated(event, text)
  }

  /**
   * Adds an event that the stream has delivered before. If a new stream delivers the sent event again, the
   * events held back before are older than the sent event. parley then does not emit them.
   */
  addReplayed(item: EventItem): boolean {
    const identity = getEventIdentity(item)
    if (this.isHoldingBack && this.#search?.isReplayOf(item.event, identity)) {
      this.log.moveBefore(identity, new Set(this.#heldBack.keys()))
      this.#heldBack.clear()
    }
    return this.addRepeated(item)
  }

  get isHoldingBack(): boolean {
    return this.#heldBack.size > 0
  }

  release(): EventItem[] {
    const items = [...this.#heldBack.values()]
    this.#heldBack.clear()
    return items
  }

  addStreamed(item: EventItem, isHeld = this.isHoldingBack): EventItem[] {
    const search = this.#search
    const logItem = withIdentity(item)
    if (isEventPiece(item.event) || !this.isNew(item)) {
      this.addReplayed(item)
      return []
    }
    search?.addProgress(item.event)
    if (search?.matchOnce(logItem)) {
      if (search.is === 'open') search.is = 'in stream'
      for (const each of this.#streamedBefore?.splice(0) ?? []) this.#append(each)
      this.#append(logItem, { isFromThisProcess: true })
      return []
    }
    if (this.isMissingSentEvents) {
      this.#streamedBefore?.push(logItem)
      return []
    }
    if (search && search.is !== 'in earlier stream') search.firstLaterEvent ??= logItem.identity
    this.#append(logItem)
    if (isHeld) this.#heldBack.set(logItem.identity, logItem)
    return isHeld ? [] : [logItem]
  }

  /** Returns the events to emit: new events of the list in order, then held-back events of the stream. */
  addList(items: readonly EventItem[]): EventItem[] {
    const list = withIdentities(items)
    const newItems = this.#addHeldBack(list, this.#addListed(list))
    if ((!this.#search || this.#search.is === 'over') && !this.isWorkPending)
      this.#listEnd = list.slice(-2).map(({ identity }) => identity)
    const streamed = this.#streamedBefore?.splice(0) ?? []
    return [...newItems, ...streamed.flatMap((item) => this.addStreamed(item))]
  }

  #addListed(list: readonly IdentifiedEvent[]): IdentifiedEvent[] {
    const search = this.#search
    for (const { event } of list) search?.addProgress(event)
    this.#hasUnplacedEvents = false
    if (!search || search.is === 'over') return this.#addInListOrder(list)
    const start = list.findIndex((item) => search.isFirstSent(item, !this.log.has(item.identity)))
    const hasLater = list.some(({ identity }) => identity === search.firstLaterEvent)
    if (start < 0 && !hasLater) {
      for (const item of list) {
        if (this.log.has(item.identity)) this.addRepeated(item)
        else {
          this.#hasUnplacedEvents = true
          // A later list may have another input of the tool use.
          this.state.addToolUse(item.event, item.text)
        }
      }
      return []
    }
    search.is = 'over'
    const newItems = this.#addInListOrder(list)
    // If the list omits the sent events but contains a later event, any new event may be later than the sent
    // events, so all new events are returned.
    const old = new Set(list.slice(0, Math.max(0, start)).map(({ identity }) => identity))
    for (const identity of old) this.#heldBack.delete(identity)
    return newItems.filter(({ identity }) => !old.has(identity))
  }

  /**
   * Returns the new events of a list together with the held-back events, in the list's order. If the list
   * contains one held-back event, the list is up to date, so all held-back events are returned. After a
   * reconnect, held-back events may be older than the sent events. parley then returns none of them until a
   * list contains the sent events.
   */
  #addHeldBack(list: readonly IdentifiedEvent[], newItems: IdentifiedEvent[]): EventItem[] {
    if (this.#search?.is === 'in earlier stream') return newItems
    if (!list.some(({ identity }) => this.#heldBack.has(identity))) return newItems
    const newIdentities = new Set(newItems.map(({ identity }) => identity))
    return [
      ...list.filter(({ identity }) => this.#heldBack.delete(identity) || newIdentities.has(identity)),
      ...this.release(),
    ]
  }

  /**
   * Changes a search by ids to a search by content, or ends a search by content. If the session was busy with
   * another client's task, the sent task may appear late, so parley still compares events with it.
   */
  endSearchPhase(): void {
    const search = this.#search
    if (search && !search.stopSeekingIds()) {
      if (search.wasBusy && this.task.showsClientEvents) search.is = 'over'
      else this.#search = undefined
    }
    this.#hasUnplacedEvents = false
  }

  get isMissingSentEvents(): boolean {
    return this.#search?.is === 'open'
  }

  get isSearching(): boolean {
    return this.isMissingSentEvents || this.#hasUnplacedEvents
  }

  get seeksIds(): boolean {
    return this.#search?.seeksIds ?? false
  }

  /** True if no event shows work on the sent events yet. An idle event may then belong to earlier work. */
  get isWorkPending(): boolean {
    return this.#search?.isWorkPending ?? false
  }

  get isQueued(): boolean {
    const search = this.#search
    if (!search?.isWorkPending || this.state.stop?.kind !== 'done') return false
    if (search.isMissing) return search.wasBusy && this.task.showsClientEvents
    return this.task.awaitsOwnTurn
  }

  /** True if the session is idle without an answer to the followed task. The list may show the answer late. */
  get isAnswerMissing(): boolean {
    const { task, state } = this
    const isDone = state.stop?.kind === 'done' && task.hasOwnTask && !task.isInterrupted
    return isDone && !task.otherTask && !task.answer
  }

  /**
   * True if the session may be idle although no idle event arrived, because some services omit that event.
   */
  get mayBeIdle(): boolean {
    const { sendsIdleEvents, isWaitingForRuns, openRuns, hasFinalError, mayBeDone } = this.state
    const mayEnd = sendsIdleEvents ? isWaitingForRuns && openRuns.length === 0 : mayBeDone
    return (mayEnd || hasFinalError) && !this.isSearching
  }

  #append(item: IdentifiedEvent, origin?: { isFromThisProcess?: boolean; isListed?: boolean }): void {
    if (this.log.has(item.identity)) this.addRepeated(item)
    else this.log.append(item, origin)
  }

  #addInListOrder(list: readonly IdentifiedEvent[]): IdentifiedEvent[] {
    return this.log.addList(list, (item) => this.#search?.matchOnce(item) ?? false)
  }
}

const getEventIdentity = ({ event }: EventItem): string => event.id ?? digestEvent(event)

/**
 * Returns whether an identity belongs to an event without an id. Such events may be equal, and only the whole
 * list shows their number.
 */
const isDigest = (identity: string): boolean => identity.startsWith('\0')

/**
 * The stream may have `type` and `processed_at` in other places than the list, so the digest puts them first.
 */
const digestEvent = ({ id: _, type, processed_at, ...others }: SessionEvent) =>
  `\0${computeDigest(JSON.stringify({ type, processed_at, ...others }))}`

/** Spread syntax would give each object a hidden class of its own in V8, which takes more memory. */
const withIdentity = (
  { event, text }: EventItem,
  identity = getEventIdentity({ event, text }),
): IdentifiedEvent => ({
  event,
  text,
  identity,
})

/** Numbers the identities of equal events without ids, because each of them is a separate event. */
function withIdentities(items: readonly EventItem[], counts = new Map<string, number>()): IdentifiedEvent[] {
  return items.map((item) => {
    const logItem = withIdentity(item)
    if (item.event.id !== undefined) return logItem
    const count = (counts.get(logItem.identity) ?? 0) + 1
    counts.set(logItem.identity, count)
    return count > 1 ? withIdentity(item, `${logItem.identity}${count}`) : logItem
  })
}

/**
 * Searches for the sent events among the session's events. First compares the ids that the service returned.
 * A list or stream may contain other ids, so the search later compares the content.
 */
class SentEventSearch {
  /**
   * - `open`: neither the stream nor a list has contained a sent event
   * - `in stream`: the stream has delivered a sent event, but the list may lag behind
   * - `in earlier stream`: the same, but parley has connected again, and the new stream may repeat older events
   * - `over`: a list has contained a sent event or a later event, so the list is up to date. Or the search
   *   took too long, and the sent events may appear later
   */
  is: 'open' | 'in stream' | 'in earlier stream' | 'over' = 'open'
  /**
   * Identity of the first event after the sent events. A list with this event no longer lags, so it also has
   * the sent events, unless the service does not list events of clients.
   */
  firstLaterEvent: string | undefined
  readonly wasBusy: boolean
  readonly #sent: readonly SessionEvent[]
  /** For each id or content, the number of sent events that are not found yet. */
  readonly #wanted = new Map<string, number>()
  #firstFound: string | undefined
  #firstProcessedAt: unknown
  #missingCount: number
  readonly #queued = new Set<string | undefined>()

  constructor(sent: readonly SessionEvent[], wasBusy: boolean) {
    this.#sent = sent
    this.wasBusy = wasBusy
    for (const event of sent) this.#add(event.id ?? getComparableEventText(event), 1)
    this.#missingCount = sent.filter(startsAgentWork).length
  }

  get isMissing(): boolean {
    return this.#missingCount > 0
  }

  get isWorkPending(): boolean {
    return this.#missingCount > 0 || this.#queued.size > 0
  }

  matchOnce({ event, identity }: IdentifiedEvent): boolean {
    const name = this.#findWanted(event)
    if (name === undefined) return false
    this.#add(name, -1)
    if (this.#firstFound === undefined) {
      this.#firstFound = identity
      this.#firstProcessedAt = event.processed_at
    }
    if (!startsAgentWork(event)) return true
    this.#missingCount--
    if (event.id !== undefined && event.processed_at === null) this.#queued.add(event.id)
    return true
  }

  addProgress({ id, processed_at: processedAt }: SessionEvent): void {
    if (processedAt) this.#queued.delete(id)
  }

  /**
   * Returns whether a new stream repeats the first sent event unchanged. A change of `processed_at` is an
   * update: a service sends a queued event again once it has processed the event.
   */
  isReplayOf({ processed_at: processedAt }: SessionEvent, identity: string): boolean {
    const isEarlierStream = this.is === 'in earlier stream'
    return isEarlierStream && identity === this.#firstFound && processedAt === this.#firstProcessedAt
  }

  isFirstSent({ event, identity }: IdentifiedEvent, isNew: boolean): boolean {
    return identity === this.#firstFound || (isNew && this.#findWanted(event) !== undefined)
  }

  get seeksIds(): boolean {
    return this.is === 'open' && this.#sent.some(({ id = '' }) => this.#wanted.has(id))
  }

  stopSeekingIds(): boolean {
    if (!this.seeksIds) return false
    for (const event of this.#sent)
      if (this.#wanted.delete(event.id ?? '')) this.#add(getComparableEventText(event), 1)
    return true
  }

  #findWanted(event: SessionEvent): string | undefined {
    return [event.id ?? '', getComparableEventText(event)].find((name) => this.#wanted.has(name))
  }

  #add(name: string, by: number): void {
    const sum = (this.#wanted.get(name) ?? 0) + by
    if (sum > 0) this.#wanted.set(name, sum)
    else this.#wanted.delete(name)
  }
}

/**
 * Returns the fields of an event that a service does not change. By these fields, parley finds a sent event
 * if it has no id.
 */
export const getComparableEventText = (event: SessionEvent): string =>
  JSON.stringify([
    event.type,
    event.tool_use_id ?? event.custom_tool_use_id ?? event.session_thread_id ?? null,
    event.description ?? readEventText(event),
  ])
