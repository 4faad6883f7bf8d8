import {
  isOfMainThread,
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
  /** parley sent the event, but no list or stream has contained it yet. */
  readonly isUnseen: boolean
  /** `SessionState.isHalted` after this event. */
  isHalted: boolean
  /** Number of the last list that contained the event; 0 if no list did. */
  listedBy: number
  index: number
}

/**
 * Finds in the log the task that parley follows, and the events after it in order. A task is a `user.message`
 * or a `user.define_outcome`. If this run of parley or an earlier run sent a task, parley follows that task.
 * Otherwise, it follows the session's last task.
 */
export class FollowedTask {
  readonly #readLog: () => readonly LoggedEvent[]
  /** This run or an earlier run sent the followed task, so tasks of other clients do not replace it. */
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

  /** Returns whether the event is a task that replaces the followed task. */
  isReplacedBy({ event, isFromThisProcess, isUnseen }: LoggedEvent): boolean {
    const isFromParley = isFromThisProcess || this.#earlierTaskIds.has(event.id ?? '')
    return !isUnseen && isTaskEvent(event) && (isFromParley || !this.hasOwnTask)
  }

  /**
   * The followed task and the events after it, without unseen events. An unseen task ends the followed task
   * at once.
   */
  get #events(): readonly LoggedEvent[] {
    const log = this.#readLog()
    const start = log.findLastIndex((entry) =>
      entry.isUnseen ? isTaskEvent(entry.event) : this.isReplacedBy(entry),
    )
    return log.slice(Math.max(start, 0)).filter(({ isUnseen }) => !isUnseen)
  }

  get #task(): LoggedEvent | undefined {
    const [first] = this.#events
    return first && this.isReplacedBy(first) ? first : undefined
  }

  /**
   * A list or stream has contained a client event, such as a `user.message`. Some services never show client
   * events, so before that, a missing client event proves nothing.
   */
  get showsClientEvents(): boolean {
    return this.#readLog().some(({ event, isUnseen }) => !isUnseen && isUserEvent(event))
  }

  /** Yields the followed task and the events after it. To save memory, most have only their type and ids. */
  *readEvents(): Generator<SessionEvent> {
    for (const { event } of this.#events) yield event
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
    const own = this.#eventsBeforeOtherTask.slice(this.#workStart)
    if (this.otherTask && hasOpenRun(own)) return undefined
    return own.findLast(({ event }) => isMainThreadAgentMessage(event))?.event
  }

  /** The session does not work on the followed task yet, because it first finishes another client's task. */
  get isQueued(): boolean {
    return this.#workStart === this.#events.length
  }

  /**
   * The first task that another client sent after the followed task. `isInterrupted`: a client interrupted
   * the session between the two tasks.
   */
  get otherTask(): { task: SessionEvent; isInterrupted: boolean } | undefined {
    const own = this.#eventsBeforeOtherTask
    const next = this.#events[own.length]
    return next && { task: next.event, isInterrupted: own.at(-1)?.isHalted === true }
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
   * The session still worked on another client's task before the followed task. Services without
   * `processed_at` in client events do not queue tasks, so the value is then false.
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
  event.type === 'agent.message' && isOfMainThread(event)

const isRunningEvent = ({ type }: SessionEvent): boolean => type === 'session.status_running'

function endsWork(event: SessionEvent): boolean {
  return stopsSession(event) && readStopReason(event).type !== 'requires_action'
}

export const isTaskEvent = ({ type }: SessionEvent): boolean =>
  type === 'user.message' || type === 'user.define_outcome'
