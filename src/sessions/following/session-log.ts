import type { EventItem } from '../../wire/sessions/events-page.ts'
import {
  getAnsweredToolUseId,
  isClientEvent,
  isMainThreadEvent,
  isReplyEventType,
  isTaskEvent,
  isToolUseEvent,
  isUserEvent,
  readStopReason,
  type SessionEvent,
  stopsSession,
} from '../../wire/sessions/session-event.ts'
import { SessionState } from '../session-state.ts'

export interface IdentifiedEvent extends EventItem {
  /**
   * The event's id. An event without an id has a digest instead, with a number if several events are equal.
   */
  identity: string
}

/** An event of a `SessionLog`. To save memory, `event` may have only its type and ids. */
interface LoggedEvent {
  readonly identity: string
  event: SessionEvent
  readonly isFromThisProcess: boolean
  /** True if parley sent the event, but no list or stream has contained it yet. */
  readonly isUnseen: boolean
  /** True if the session counts as interrupted after this event (`SessionState.isHalted`). */
  isHalted: boolean
  /** Sequence number of the last list that contained the event; 0 if no list did. */
  listedBy: number
  index: number
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
  #listCount = 0
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
    if (this.#lastStop) this.#lastStop.listedBy ||= this.#listCount || 1
  }

  append(item: IdentifiedEvent, { isFromThisProcess = false, isListed = false } = {}): void {
    if (isListed) this.#listCount ||= 1
    this.#append(item, createEntry(item, isFromThisProcess, isListed ? this.#listCount : 0))
  }

  addAccepted(event: SessionEvent): void {
    const entry = createEntry({ identity: '', event, text: '' }, true, 0, true)
    entry.index = this.#entries.push(entry) - 1
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
      if (isKnown) this.state.addRepeated(item.event, item.text)
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
    for (const { item } of added) if (isToolUseEvent(item.event)) this.state.addToolUse(item.event, item.text)
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
    const { event, isUnseen } = entry
    entry.isHalted = this.state.isHalted
    if (isUnseen) return
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
      if (last.listedBy === 0 || entry.listedBy > 0) dropContent(this.#messages.pop())
      else if (before && isMainThreadAgentMessage(before.event)) dropContent(this.#messages.splice(-2, 1)[0])
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
  { identity, event }: IdentifiedEvent,
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
/**
 * One object for all finished tool uses. The object has no id, so parley reads the id of such a tool use from
 * the `identity` of its entry.
 */
const sharedToolUse: SessionEvent = { type: 'agent.tool_use' }

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

function dropContent(entry: LoggedEvent | undefined): void {
  if (entry && isMainThreadAgentMessage(entry.event))
    entry.event = { id: entry.event.id, type: entry.event.type }
}

/**
 * Finds in the log the task that parley follows, and the events after it in order. A task is a `user.message`
 * or a `user.define_outcome`. If this run of parley or an earlier run sent a task, parley follows that task.
 * Otherwise, it follows the session's last task.
 */
class FollowedTask {
  readonly #readLog: () => readonly LoggedEvent[]
  /**
   * True if this run or an earlier run sent the followed task. Tasks of other clients then do not replace it.
   */
  hasOwnTask = false
  #earlierTaskIds: ReadonlySet<string> = new Set()
  #receiptId: string | undefined

  constructor(readLog: () => readonly LoggedEvent[]) {
    this.#readLog = readLog
  }

  addSent(sent: readonly SessionEvent[]): void {
    this.hasOwnTask ||= sent.some(isTaskEvent)
    this.#receiptId = sent.findLast(isTaskEvent)?.id
  }

  /**
   * Sets the event ids of the task that an earlier run sent. Without ids, for example because the service
   * does not list client events, parley follows the session's last task.
   */
  setEarlierTaskIds(ids: ReadonlySet<string>): void {
    this.#earlierTaskIds = ids
    this.hasOwnTask = ids.size > 0
  }

  /** Returns whether the event is a task that parley follows instead of an earlier task. */
  isFollowed({ event, isFromThisProcess, isUnseen }: LoggedEvent): boolean {
    const isFromParley = isFromThisProcess || this.#earlierTaskIds.has(event.id ?? '')
    return !isUnseen && isTaskEvent(event) && (isFromParley || !this.hasOwnTask)
  }

  /**
   * The followed task and the events after it. Omits sent events that no list or stream has contained yet
   * (`isUnseen`). If parley has sent a new task, contains only the events after that task, even before a list
   * or stream shows the task.
   */
  get #events(): readonly LoggedEvent[] {
    const log = this.#readLog()
    const start = log.findLastIndex((entry) =>
      entry.isUnseen ? isTaskEvent(entry.event) : this.isFollowed(entry),
    )
    const events = start > 0 ? log.slice(start) : log
    // A copy of a long log takes much memory, so the events are copied only if one must be removed.
    return events.some(({ isUnseen }) => isUnseen) ? events.filter(({ isUnseen }) => !isUnseen) : events
  }

  get #task(): LoggedEvent | undefined {
    const [first] = this.#events
    return first && this.isFollowed(first) ? first : undefined
  }

  /**
   * True if a list or stream has contained a client event, such as a `user.message`. Some services never show
   * client events, so before that, a missing client event proves nothing.
   */
  get showsClientEvents(): boolean {
    return this.#readLog().some(({ event, isUnseen }) => !isUnseen && isUserEvent(event))
  }

  /** Yields the followed task and the events after it. To save memory, most have only their type and ids. */
  *readEvents(): Generator<SessionEvent> {
    for (const { event, identity: id } of this.#events)
      yield event === sharedToolUse ? { ...event, id } : event
  }

  get isKnown(): boolean {
    return this.hasOwnTask || this.#task !== undefined
  }

  /**
   * Id of the task that this process sent. Until a list or stream contains the task, this is the id in the
   * response to the sent task. That id may differ from the id in the list.
   */
  get id(): string | undefined {
    const task = this.#task
    return (task?.isFromThisProcess ? task.event.id : undefined) ?? this.#receiptId
  }

  /**
   * The agent's last message in the main thread after the followed task. It is the final answer once the
   * session is idle. Messages after the next task of another client do not count. The agent answers only
   * after its workflow runs have ended. So there is no answer if a run was open when that next task arrived.
   */
  get answer(): SessionEvent | undefined {
    // If the service has processed the task and no later turn began, the answer is from the turn during which
    // the task arrived.
    const isTakenUp = this.#lacksOwnTurn && this.#task?.event.processed_at
    const taskEvents = this.#eventsBeforeOtherTask.slice(isTakenUp ? 0 : this.#workStart)
    if (this.otherTask && hasOpenRun(taskEvents)) return undefined
    return taskEvents.findLast(({ event }) => isMainThreadAgentMessage(event))?.event
  }

  /** True if the other client's turn has ended, and the followed task has had no turn of its own yet. */
  get awaitsOwnTurn(): boolean {
    return this.#lacksOwnTurn && this.#events.some(({ event }) => endsWork(event))
  }

  /** True if the followed task arrived during another client's turn, and no later turn has begun. */
  get #lacksOwnTurn(): boolean {
    return this.#isBehindOtherTask && this.#workStart === this.#events.length
  }

  /**
   * The first task that another client sent after the followed task. `isInterrupted`: a client interrupted
   * the session between the two tasks.
   */
  get otherTask(): { task: SessionEvent; isInterrupted: boolean } | undefined {
    const taskEvents = this.#eventsBeforeOtherTask
    const next = this.#events[taskEvents.length]
    return next && { task: next.event, isInterrupted: taskEvents.at(-1)?.isHalted === true }
  }

  get isInterrupted(): boolean {
    return this.#events.at(-1)?.isHalted === true
  }

  /**
   * Index of the event with which the session starts to work on the task. If the session first finishes
   * another client's task, this is the first `session.status_running` after the end of the other task.
   */
  get #workStart(): number {
    if (!this.#isBehindOtherTask) return 0
    const events = this.#events
    const end = events.findIndex(({ event }) => endsWork(event))
    const start = events.findIndex(({ event }, i) => end >= 0 && i > end && isRunningEvent(event))
    return start < 0 ? events.length : start
  }

  /**
   * True if the session still worked on another client's task when the followed task arrived. Always false
   * for services without `processed_at` in client events, because they do not queue tasks.
   */
  get #isBehindOtherTask(): boolean {
    const before = this.hasOwnTask ? this.#readLog().slice(0, this.#task?.index ?? 0) : []
    const last = before.findLast(({ event }) => stopsSession(event) || isRunningEvent(event))
    const isOthers = ({ event, isFromThisProcess }: LoggedEvent) =>
      !isFromThisProcess && isTaskEvent(event) && event.processed_at
    return last !== undefined && isRunningEvent(last.event) && before.some(isOthers)
  }

  /**
   * The events that belong to the followed task: all events before the next task of another client. Contains
   * all events if no run of parley sent a task, or if no event shows the sent task yet.
   */
  get #eventsBeforeOtherTask(): readonly LoggedEvent[] {
    const events = this.#events
    if (!this.#task || !this.hasOwnTask) return events
    const end = events.findIndex(({ event }, i) => i > 0 && isTaskEvent(event))
    return end < 0 ? events : events.slice(0, end)
  }
}

function hasOpenRun(events: readonly LoggedEvent[]): boolean {
  const open = new Set<unknown>()
  for (const { event } of events) {
    const { type, workflow_run_id: id } = event
    if (type === 'workflow_run.created') open.add(id)
    if (type === 'workflow_run.status_ended') open.delete(id)
  }
  return open.size > 0
}

const isMainThreadAgentMessage = (event: SessionEvent): boolean =>
  event.type === 'agent.message' && isMainThreadEvent(event)

const isRunningEvent = ({ type }: SessionEvent): boolean => type === 'session.status_running'

function endsWork(event: SessionEvent): boolean {
  return stopsSession(event) && readStopReason(event).type !== 'requires_action'
}

/**
 * Returns whether a run follows this task and not an earlier one. If an earlier run sent the task, `ownIds` has
 * the task's event ids, and tasks of other clients are ignored.
 */
export const isFollowedTask = (event: SessionEvent, ownIds: ReadonlySet<string> = new Set()): boolean =>
  isTaskEvent(event) && (ownIds.size === 0 || ownIds.has(event.id ?? ''))
