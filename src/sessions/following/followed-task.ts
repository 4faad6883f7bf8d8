import {
  isMainThreadEvent,
  isTaskEvent,
  isUserEvent,
  readStopReason,
  type SessionEvent,
  stopsSession,
} from '../../wire/sessions/session-event.ts'

/** An event of a `SessionLog`. To save memory, `event` may have only its type and ids. */
export interface LoggedEvent {
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
 * One object for all finished tool uses. The object has no id, so parley reads the id of such a tool use from
 * the `identity` of its entry.
 */
export const sharedToolUse: SessionEvent = { type: 'agent.tool_use' }

/**
 * Finds in the log the task that parley follows, and the events after it in order. A task is a `user.message`
 * or a `user.define_outcome`. If this run of parley or an earlier run sent a task, parley follows that task.
 * Otherwise, it follows the session's last task.
 */
export class FollowedTask {
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

export const isMainThreadAgentMessage = (event: SessionEvent): boolean =>
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
