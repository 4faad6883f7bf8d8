import type { EventItem } from '../../wire/sessions/events-page.ts'
import {
  isAnswerType,
  isToolUse,
  type SessionEvent,
  stopsSession,
} from '../../wire/sessions/session-event.ts'
import { SessionState } from '../session-state.ts'
import { FollowedTurn, isMessage, isRunning, isTask, type LoggedEvent } from './followed-turn.ts'

/** An event with the key that identifies it. */
export interface KeyedItem extends EventItem {
  /** The id of the event or, without one, a digest of its content and a count. */
  key: string
}

interface Entry extends LoggedEvent {
  readonly key: string
  /** Number of the last list that contained the event; 0 for none. */
  listedBy: number
  /** Position in the log. */
  index: number
}

/**
 * Stores the events of a session in order, and computes the state and the turn from them.
 *
 * Lists define the order. A list may lag behind the stream, so the log keeps an event that no list contains
 * yet before the next listed event. If no listed event follows, the event stays at the end. If a list inserts
 * an event before known events, state and turn are computed again from the whole log. The log has an entry
 * for each event, but most entries contain only the key, to save memory.
 */
export class SessionLog {
  readonly state = new SessionState()
  readonly turn = new FollowedTurn()
  #entries: Entry[] = []
  readonly #byKey = new Map<string, Entry>()
  #lists = 0
  /**
   * Messages that may be the turn's answer, and the tasks between them. Other messages lose their content.
   */
  #messages: Entry[] = []
  #lastStop: Entry | undefined

  has(key: string): boolean {
    return this.#byKey.has(key)
  }

  /** A list contains the last stop, and therefore all events before it. Also true without a stop. */
  get isStopListed(): boolean {
    return this.#lastStop === undefined || this.#lastStop.listedBy > 0
  }

  /** Treats the last stop as if a list contained it. */
  trustStop(): void {
    if (this.#lastStop) this.#lastStop.listedBy ||= this.#lists || 1
  }

  /** Adds an event as the newest. `isListed` is true for an event of a list. */
  append(item: KeyedItem, { isOurs = false, isListed = false } = {}): void {
    if (isListed) this.#lists ||= 1
    this.#append(item, createEntry(item, isOurs, isListed ? this.#lists : 0))
  }

  /**
   * Adds an event that the service accepted but has not listed or streamed yet. Later events come after it. A
   * task begins a turn.
   */
  assume(event: SessionEvent): void {
    const entry = createEntry({ key: '', event, text: '' }, true, 0, true)
    entry.index = this.#entries.push(entry) - 1
    this.state.addReduced(entry.event, true)
    this.turn.add(entry)
  }

  /**
   * Adds a list, or its newest part. Returns the new events in the list's order. `isOurs` is called for each
   * new event, in that order.
   */
  addList(list: readonly KeyedItem[], isOurs: (item: KeyedItem) => boolean = () => false): KeyedItem[] {
    this.#lists++
    const fresh: KeyedItem[] = []
    const shown: Entry[] = []
    /**
     * The log has the listed events in the list's order, and all new events come after the end of the log.
     */
    let isInOrder = true
    let last = -1
    for (const item of list) {
      let entry = this.#byKey.get(item.key)
      if (entry) this.state.addAgain(item.event, item.text)
      // A list may contain an event twice.
      if (entry?.listedBy === this.#lists) continue
      if (entry) {
        isInOrder &&= entry.index > last && fresh.length === 0
        last = entry.index
        entry.listedBy = this.#lists
      } else {
        entry = createEntry(item, isOurs(item), this.#lists)
        this.#byKey.set(item.key, entry)
        fresh.push(item)
      }
      shown.push(entry)
    }
    if (isInOrder && fresh.length === 0) return fresh
    if (isInOrder && last === this.#entries.length - 1) {
      const entries = shown.slice(-fresh.length)
      for (const [i, item] of fresh.entries()) this.#append(item, entries[i] as Entry)
      return fresh
    }
    for (const { event, text } of fresh) if (isToolUse(event)) this.state.addToolUse(event, text)
    // In the new order, a message that lost its content may be the answer, so the content is restored.
    for (const item of list) if (isMessage(item.event)) restoreContent(this.#byKey.get(item.key), item.event)
    this.#order(shown)
    this.#recompute()
    return fresh
  }

  #append(item: KeyedItem, entry: Entry): void {
    entry.index = this.#entries.push(entry) - 1
    this.#byKey.set(entry.key, entry)
    entry.hasEffect = this.state.add(item.event, item.text)
    const beginsTurn = this.#addToTurn(entry)
    if (stopsSession(entry.event)) this.#lastStop = entry
    if (beginsTurn) for (const each of this.#messages.splice(0)) dropContent(each)
    else if (isTask(entry.event)) this.#messages.push(entry)
    else if (isMessage(entry.event)) this.#addMessage(entry)
  }

  /** Returns whether the event begins a turn. */
  #addToTurn(entry: Entry): boolean {
    const beginsTurn = this.turn.add(entry)
    if (beginsTurn) this.turn.isBehindAnother = this.turn.hasOwnTask && this.#isBusyBefore(entry.index)
    return beginsTurn
  }

  /**
   * Returns whether the session was working on another client's task. Only a service that reports
   * `processed_at` for client events queues tasks.
   */
  #isBusyBefore(index: number): boolean {
    const before = this.#entries.slice(0, index)
    const last = before.findLast(({ event }) => stopsSession(event) || isRunning(event))
    const isOthers = ({ event, isOurs }: Entry) => !isOurs && isTask(event) && event.processed_at
    return last !== undefined && isRunning(last.event) && before.some(isOthers)
  }

  /**
   * Between two tasks, keeps the content of the last message and of the last message that a list contained: a
   * list may later insert a task between the two.
   */
  #addMessage(entry: Entry): void {
    const [before, last] = [this.#messages.at(-2), this.#messages.at(-1)]
    if (last && isMessage(last.event)) {
      if (last.listedBy === 0 || entry.listedBy > 0) dropContent(this.#messages.pop())
      else if (before && isMessage(before.event)) dropContent(this.#messages.splice(-2, 1)[0])
    }
    this.#messages.push(entry)
  }

  /**
   * Sorts the log: listed events get the list's order, and every other event stays before the next listed
   * event. Sent events that the list omits stay after the listed event before them, because the new events
   * may be their consequence.
   */
  #order(shown: readonly Entry[]): void {
    const known = shown.filter(({ index }) => index >= 0)
    const start = known.reduce((first, { index }) => Math.min(first, index), Infinity)
    const isShown = ({ listedBy }: Entry) => listedBy === this.#lists
    const ordered = this.#entries.slice(0, start === Infinity ? 0 : start)
    const before = new Map<Entry, Entry[]>()
    const after = new Map<Entry, Entry[]>()
    let others: Entry[] = []
    let previous: Entry | undefined
    for (const entry of this.#entries.slice(ordered.length)) {
      if (isShown(entry)) {
        if (others.length > 0) before.set(entry, others)
        others = []
        previous = entry
      } else if (entry.isOurs && others.length === 0) {
        const followers = previous && after.get(previous)
        if (followers) followers.push(entry)
        else if (previous) after.set(previous, [entry])
        else ordered.push(entry)
      } else others.push(entry)
    }
    const add = (entries: readonly Entry[] = []) => {
      for (const entry of entries) entry.index = ordered.push(entry) - 1
    }
    for (const entry of shown) {
      add(before.get(entry))
      add([entry])
      add(after.get(entry))
    }
    add(others)
    this.#entries = ordered
  }

  #recompute(): void {
    this.state.restart()
    this.turn.restart()
    this.#lastStop = undefined
    let turnStart = 0
    for (const entry of this.#entries) {
      entry.hasEffect = this.state.addReduced(entry.event, entry.isAssumed)
      if (this.#addToTurn(entry)) turnStart = entry.index
      if (!entry.isAssumed && stopsSession(entry.event)) this.#lastStop = entry
    }
    this.#dropOldMessages(turnStart)
  }

  #dropOldMessages(turnStart: number): void {
    this.#messages = []
    let hasLast = false
    let hasListed = false
    for (const entry of this.#entries.toReversed()) {
      const isBefore = entry.index <= turnStart
      const { event, isAssumed } = entry
      if (!isBefore && !isAssumed && isTask(event)) {
        hasLast = hasListed = false
        this.#messages.push(entry)
      }
      if (!isMessage(event)) continue
      const isListed = entry.listedBy > 0
      if (isBefore || (hasLast && (hasListed || !isListed))) dropContent(entry)
      else this.#messages.push(entry)
      hasLast = true
      hasListed ||= isListed
    }
    this.#messages.reverse()
  }
}

const createEntry = (
  { key, event }: KeyedItem,
  isOurs: boolean,
  listedBy: number,
  isAssumed = false,
): Entry => ({ key, event: reduce(event), isOurs, isAssumed, hasEffect: true, listedBy, index: -1 })

/** Shared reduced forms of events whose content does not matter. Sharing saves memory. */
const reducedWork: SessionEvent = { type: 'agent.thinking' }
const reducedOther: SessionEvent = { type: '' }

/** Returns only the fields that the state and the turn read, because a session may have many long events. */
function reduce(event: SessionEvent): SessionEvent {
  const { id, type, session_thread_id } = event
  if (isMessage(event) || stopsSession(event) || /^(session\.error|span\.outcome_evaluation_end)$/.test(type))
    return event
  if (/^(session\.thread_|workflow_run\.)/.test(type)) {
    const { workflow_run_id, name, stop_reason } = event
    return { id, type, session_thread_id, workflow_run_id, name, stop_reason }
  }
  if (type === 'session.usage') return { type, budget: event.budget, usage: event.usage }
  if (isToolUse(event))
    return { id, type, session_thread_id, evaluated_permission: event.evaluated_permission }
  if (isAnswerType(type)) {
    const { tool_use_id, custom_tool_use_id, mcp_tool_use_id, result } = event
    return { id, type, session_thread_id, tool_use_id, custom_tool_use_id, mcp_tool_use_id, result }
  }
  if (/^(user|system)\.|^session\.status_running$/.test(type))
    return { id, type, session_thread_id, processed_at: event.processed_at }
  return /^(agent\.|session\.status_)/.test(type) ? reducedWork : reducedOther
}

function restoreContent(entry: Entry | undefined, message: SessionEvent): void {
  if (entry) entry.event = message
}

/** Drops the content of a message to save memory. */
function dropContent(entry: Entry | undefined): void {
  if (entry && isMessage(entry.event)) entry.event = { id: entry.event.id, type: entry.event.type }
}
