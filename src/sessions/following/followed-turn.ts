import {
  isOfMainThread,
  readStopReason,
  type SessionEvent,
  stopsSession,
} from '../../wire/sessions/session-event.ts'

/** An event in the log of the session. Its content may be dropped later. */
export interface LoggedEvent {
  event: SessionEvent
  /** This process sent the event. */
  readonly isOurs: boolean
  /** The service accepted the event, but has not listed or streamed it yet. */
  readonly isAssumed: boolean
  /** False for a reply to a tool use for which the session did not wait. */
  hasEffect: boolean
}

/** The turn that parley follows: a task and the events after it, in order. */
export class FollowedTurn {
  #events: LoggedEvent[] = []
  /** The first event is the task that began the turn. */
  #hasTask = false
  /** This run or an earlier run sent the task. Tasks of other clients then begin no turn. */
  hasOwnTask = false
  /** The service lists or streams the events of clients. Some services omit them. */
  showsClients = false
  /** The session was working on another client's task when the followed task arrived. */
  isBehindAnother = false
  #earlierTaskIds: ReadonlySet<string> = new Set()

  /**
   * Records the events that this run sends. If one of them is a task, other clients' tasks no longer begin a
   * turn.
   */
  begin(sent: readonly SessionEvent[]): void {
    this.hasOwnTask ||= sent.some(isTask)
  }

  /**
   * Sets the event ids of a task that an earlier run sent. If there are any, other clients' tasks no longer
   * begin a turn.
   */
  recognize(ids: ReadonlySet<string>): void {
    this.#earlierTaskIds = ids
    this.hasOwnTask = ids.size > 0
  }

  /** Adds the newest event. Returns whether the event begins a turn. */
  add(entry: LoggedEvent): boolean {
    const { event, isAssumed } = entry
    if (isAssumed) {
      // The task is added again, as the first event of its turn, when the service lists or streams it.
      if (isTask(event)) this.#drop()
      return false
    }
    this.showsClients ||= isOfClient(event)
    const isOurs = entry.isOurs || (event.id !== undefined && this.#earlierTaskIds.has(event.id))
    const beginsTurn = isTask(event) && (isOurs || !this.hasOwnTask)
    if (beginsTurn) {
      this.#drop()
      this.#hasTask = true
    }
    this.#events.push(entry)
    return beginsTurn
  }

  /** Drops all events. The caller adds them again in another order. */
  restart(): void {
    this.#drop()
    this.showsClients = false
  }

  #drop(): void {
    this.#events = []
    this.#hasTask = false
  }

  /** Iterates over the events since the task. Most of these events have only a type and ids. */
  *readEvents(): Generator<SessionEvent> {
    for (const { event } of this.#events) yield event
  }

  /** Id of the task that this process sent, as the session lists it. The receipt may have another id. */
  get taskId(): string | undefined {
    const [first] = this.#events
    return this.#hasTask && first?.isOurs ? first.event.id : undefined
  }

  /**
   * The agent's last message in the main thread since the task. It is the answer when the session is idle. The
   * agent answers after its workflow runs have ended. So if another client sent a task, the message counts
   * only if all workflow runs had ended before that task.
   */
  get answer(): SessionEvent | undefined {
    const own = this.#ownEvents.slice(this.#start)
    if (this.otherTask && hasOpenRun(own)) return undefined
    return own.findLast(({ event }) => isMessage(event))?.event
  }

  /** The task waits until another client's turn has ended. */
  get isQueued(): boolean {
    return this.#start === this.#events.length
  }

  /**
   * The first task that another client sent after the followed task. `isInterrupted`: the session was
   * interrupted before that task.
   */
  get otherTask(): { task: SessionEvent; isInterrupted: boolean } | undefined {
    const own = this.#ownEvents
    const next = this.#events[own.length]
    return next && { task: next.event, isInterrupted: endsInterrupted(own) }
  }

  /** The last client event that had an effect was an interrupt. */
  get isInterrupted(): boolean {
    return endsInterrupted(this.#events)
  }

  /** The last event is a message of the agent or an interrupt, so the turn may have ended. */
  get mayHaveEnded(): boolean {
    return hasLast(this.#events, mayEnd)
  }

  /**
   * Index of the first event after the session began to work on the task. A queued task begins when the
   * session has stopped and works again.
   */
  get #start(): number {
    if (!this.isBehindAnother) return 0
    const end = this.#events.findIndex(({ event }) => endsTurn(event))
    const start = this.#events.findIndex(({ event }, i) => end >= 0 && i > end && isRunning(event))
    return start < 0 ? this.#events.length : start
  }

  /**
   * The events before another client's task. Returns all events if the session's events do not contain the
   * sent task.
   */
  get #ownEvents(): readonly LoggedEvent[] {
    if (!this.#hasTask || !this.hasOwnTask) return this.#events
    const end = this.#events.findIndex(({ event }, i) => i > 0 && isTask(event))
    return end < 0 ? this.#events : this.#events.slice(0, end)
  }
}

/** Returns the last result of `test` that is not `undefined`, or false if there is none. */
function hasLast(
  events: readonly LoggedEvent[],
  test: (event: SessionEvent) => boolean | undefined,
): boolean {
  const last = events.findLast(({ event }) => test(event) !== undefined)
  return last !== undefined && test(last.event) === true
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

const endsInterrupted = (events: readonly LoggedEvent[]): boolean =>
  hasLast(
    events.filter(({ hasEffect }) => hasEffect),
    isInterrupt,
  )

export const isMessage = (event: SessionEvent): boolean =>
  event.type === 'agent.message' && isOfMainThread(event)

/**
 * Returns whether the turn may end with this event. Returns `undefined` for spans, usage and unknown types,
 * which may also follow the end of a turn.
 */
function mayEnd(event: SessionEvent): boolean | undefined {
  if (isMessage(event) || isInterrupt(event)) return true
  return /^(agent|user|system|session\.(status_|error))/.test(event.type) ? false : undefined
}

function isInterrupt(event: SessionEvent): boolean | undefined {
  if (event.type !== 'user.interrupt') return isOfClient(event) ? false : undefined
  return isOfMainThread(event) ? true : undefined
}

export const isRunning = ({ type }: SessionEvent): boolean => type === 'session.status_running'

function endsTurn(event: SessionEvent): boolean {
  return stopsSession(event) && readStopReason(event).type !== 'requires_action'
}

const isOfClient = ({ type }: SessionEvent): boolean => type.startsWith('user.')

export const isTask = ({ type }: SessionEvent): boolean =>
  type === 'user.message' || type === 'user.define_outcome'
