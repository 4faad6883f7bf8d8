import type { EventItem } from '../../wire/sessions/events-page.ts'
import {
  getAnsweredToolUseId,
  isClientEvent,
  isReplyEventType,
  isTaskEvent,
  isToolUseEvent,
  type SessionEvent,
  stopsSession,
} from '../../wire/sessions/session-event.ts'
import { SessionState } from '../session-state.ts'
import { FollowedTask, isMainThreadAgentMessage, type LoggedEvent, sharedToolUse } from './followed-task.ts'

export interface IdentifiedEvent extends EventItem {
  /**
   * The event's id. An event without an id has a digest instead, with a number if several events are equal.
   */
  identity: string
}

/**
 * Stores the events of a session in order, and computes the session's state and the answer from them.
 *
 * The list determines the order, but it may lag behind the stream. An unlisted event stays before the next
 * listed event, or at the end of the log. If the list contains a new event before known events, the log
 * computes the state again from all entries. To save memory, most entries have only the fields that this
 * computation reads.
 */
export class SessionLog {
  readonly state = new SessionState()
  readonly task = new FollowedTask(() => this.#entries)
  #entries: LoggedEvent[] = []
  /** The value is `undefined` if the log has dropped the event. */
  readonly #byIdentity = new Map<string, LoggedEvent | undefined>()
  /** Number of the newest list. The events from before the follower count as the first list. */
  #listCount = 1
  /** Messages that may be the answer, with their content, and the tasks between these messages. */
  #messages: LoggedEvent[] = []

  has(identity: string): boolean {
    return this.#byIdentity.has(identity)
  }

  get #lastStop(): LoggedEvent | undefined {
    return this.#entries.findLast(({ event }) => stopsSession(event))
  }

  get isStopListed(): boolean {
    return this.#lastStop?.listedBy !== 0
  }

  acceptUnlistedStop(): void {
    if (this.#lastStop) this.#lastStop.listedBy ||= this.#listCount
  }

  append(item: IdentifiedEvent, { isFromThisProcess = false, isListed = false } = {}): void {
    this.#append(item, createEntry(item, isFromThisProcess, isListed ? this.#listCount : 0))
  }

  addAccepted(event: SessionEvent): void {
    const entry = createEntry({ identity: '', event }, true, 0, true)
    this.#entries.push(entry)
    this.state.addReduced(entry.event, true)
  }

  /**
   * Adds a list or its newest part, and calls `isFromThisProcess` for each new event. Returns the new events
   * that are not from this process, in order.
   */
  addList(
    list: readonly IdentifiedEvent[],
    isFromThisProcess: (item: IdentifiedEvent) => boolean,
  ): IdentifiedEvent[] {
    this.#listCount++
    const added: { item: IdentifiedEvent; entry: LoggedEvent }[] = []
    const listed: LoggedEvent[] = []
    /** True if the list has the known events in the log's order, and no new event before a known event. */
    let isInOrder = true
    let last = -1
    for (const item of list) {
      let entry = this.#byIdentity.get(item.identity)
      const isKnown = this.has(item.identity)
      this.state.addRepeated(item.event, item.text)
      // A service sets `processed_at` of a queued task once the agent takes up the task, so the log stores
      // the newest fields.
      if (entry && isTaskEvent(item.event)) entry.event = pickFields(item.event)
      // Skips an event that the log has dropped, or that this list contains twice.
      if (isKnown && (!entry || entry.listedBy === this.#listCount)) continue
      if (entry) {
        isInOrder &&= entry.index > last && added.length === 0
        last = entry.index
        entry.listedBy = this.#listCount
      } else {
        entry = createEntry(item, isFromThisProcess(item), this.#listCount)
        this.#byIdentity.set(item.identity, entry)
        added.push({ item, entry })
      }
      listed.push(entry)
    }
    const others = added.flatMap(({ item, entry }) => (entry.isFromThisProcess ? [] : item))
    if (isInOrder && (added.length === 0 || last === this.#entries.length - 1)) {
      for (const { item, entry } of added) this.#append(item, entry)
      return others
    }
    for (const { item } of added) this.state.addToolUse(item.event, item.text)
    // In the new order, the answer may be a message whose content was dropped. The list restores the content.
    for (const { event, identity } of list) {
      const entry = this.#byIdentity.get(identity)
      if (entry && isMainThreadAgentMessage(event)) entry.event = event
    }
    this.#sortByList(listed)
    this.#computeAgain()
    return others
  }

  moveBefore(later: string, identities: ReadonlySet<string>): void {
    const moved = this.#entries.filter(({ identity }) => identities.has(identity))
    const others = this.#entries.filter(({ identity }) => !identities.has(identity))
    const at = others.findIndex(({ identity }) => identity === later)
    this.#setEntries([...others.slice(0, at), ...moved, ...others.slice(at)])
    this.#computeAgain()
  }

  #append(item: IdentifiedEvent, entry: LoggedEvent): void {
    this.#dropRepeatedWork(entry)
    entry.index = this.#entries.push(entry) - 1
    this.#byIdentity.set(entry.identity, entry)
    const isResult = entry.listedBy > 0 && isOfAgent(item.event)
    const use = isResult ? this.#byIdentity.get(getAnsweredToolUseId(item.event) ?? '') : undefined
    const isFinished = this.state.add(item.event, item.text, use !== undefined && use.listedBy > 0)
    if (isFinished && use) {
      use.event = sharedToolUse
      entry.event = sharedWork
    }
    this.#applyEntry(entry)
  }

  #applyEntry(entry: LoggedEvent): void {
    const { event } = entry
    entry.isHalted = this.state.isHalted
    if (this.task.isFollowed(entry)) for (const each of this.#messages.splice(0)) dropContent(each)
    else if (isTaskEvent(event)) this.#messages.push(entry)
    else if (isMainThreadAgentMessage(event)) this.#addMessage(entry)
  }

  /** To save memory, drops the last entry if it and the next entry only show that the agent works. */
  #dropRepeatedWork(next: LoggedEvent): void {
    const last = this.#entries.at(-1)
    if (last?.event !== sharedWork || !last.listedBy || !next.listedBy || !isOfAgent(next.event)) return
    this.#entries.pop()
    this.#byIdentity.set(last.identity, undefined)
  }

  /**
   * Between two tasks, only two messages keep their content: the last message and the last listed message.
   * Either may be the answer, because a later list may contain a task between them.
   */
  #addMessage(entry: LoggedEvent): void {
    const [before, last] = [this.#messages.at(-2), this.#messages.at(-1)]
    if (last && isMainThreadAgentMessage(last.event)) {
      const old = last.listedBy === 0 || entry.listedBy > 0 ? last : before
      if (old) {
        dropContent(old)
        this.#messages.splice(this.#messages.lastIndexOf(old), 1)
      }
    }
    this.#messages.push(entry)
  }

  /**
   * Puts listed events in the list's order. An unlisted event stays before the listed event that follows it.
   * An unlisted event of this process stays after the preceding listed event, because newly listed events may
   * react to it.
   */
  #sortByList(listed: readonly LoggedEvent[]): void {
    const known = listed.filter(({ index }) => index >= 0)
    const start = known.reduce((first, { index }) => Math.min(first, index), Infinity)
    const ordered = start === Infinity ? [] : this.#entries.slice(0, start)
    const unlisted = new Map<LoggedEvent, { before: LoggedEvent[]; after: LoggedEvent[] }>()
    let before: LoggedEvent[] = []
    let after = ordered
    for (const entry of this.#entries.slice(ordered.length)) {
      if (entry.listedBy === this.#listCount) {
        after = []
        unlisted.set(entry, { before, after })
        before = []
      } else if (entry.isFromThisProcess && before.length === 0) after.push(entry)
      else before.push(entry)
    }
    const sorted = listed.flatMap((entry) => {
      const around = unlisted.get(entry)
      return around ? [...around.before, entry, ...around.after] : entry
    })
    this.#setEntries([...ordered, ...sorted, ...before])
  }

  #setEntries(entries: LoggedEvent[]): void {
    this.#entries = entries
    for (const [index, entry] of entries.entries()) entry.index = index
  }

  #computeAgain(): void {
    this.state.restart()
    this.#messages = []
    for (const entry of this.#entries) {
      this.state.addReduced(entry.event, entry.isUnseen)
      this.#applyEntry(entry)
    }
  }
}

const createEntry = (
  { identity, event }: Omit<IdentifiedEvent, 'text'>,
  isFromThisProcess: boolean,
  listedBy: number,
  isUnseen = false,
): LoggedEvent => ({
  identity,
  event: pickFields(event),
  isFromThisProcess,
  isUnseen,
  isHalted: false,
  listedBy,
  index: -1,
})

/** Events whose fields the log does not read share one of these two objects, to save memory. */
const sharedWork: SessionEvent = { type: 'agent.thinking' }
const sharedOther: SessionEvent = { type: '' }

const isOfAgent = ({ type }: SessionEvent) => type.startsWith('agent.')

function pickFields(event: SessionEvent): SessionEvent {
  const { id, type, session_thread_id } = event
  if (isToolUseEvent(event))
    return { id, type, session_thread_id, evaluated_permission: event.evaluated_permission }
  if (isReplyEventType(type)) {
    const { tool_use_id, custom_tool_use_id, mcp_tool_use_id, result } = event
    return { id, type, session_thread_id, tool_use_id, custom_tool_use_id, mcp_tool_use_id, result }
  }
  if (
    isMainThreadAgentMessage(event) ||
    stopsSession(event) ||
    /^(session\.error|span\.outcome_evaluation_end)$/.test(type)
  )
    return event
  if (/^(session\.thread_|workflow_run\.)/.test(type)) {
    const { workflow_run_id, name, stop_reason } = event
    return { id, type, session_thread_id, workflow_run_id, name, stop_reason }
  }
  if (isClientEvent(event) || type === 'session.status_running')
    return { id, type, session_thread_id, processed_at: event.processed_at }
  return /^(agent\.|session\.status_)/.test(type) ? sharedWork : sharedOther
}

function dropContent(entry: LoggedEvent): void {
  if (isMainThreadAgentMessage(entry.event)) entry.event = { id: entry.event.id, type: entry.event.type }
}
