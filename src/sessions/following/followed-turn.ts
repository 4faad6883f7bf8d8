import {
  isOfMainThread,
  readStopReason,
  type SessionEvent,
  stopsSession,
} from '../../wire/sessions/session-event.ts'

/** An event of the session's log. Its content may be dropped later. */
export interface LoggedEvent {
  event: SessionEvent
  /** This process sent the event. */
  readonly isOurs: boolean
  /** The service accepted the event, and has not shown it yet. */
  readonly isAssumed: boolean
  /** False for an answer that the session did not wait for. */
  hasEffect: boolean
}

/** An event of the turn. */
interface Moment {
  entry: LoggedEvent
  /** The turn began with this event. */
  isTask: boolean
}

/** The turn that is followed: the events since its task, in their order. */
export class FollowedTurn {
  #moments: Moment[] = []
  /** The follower, or an earlier run, has sent the task, so no other task begins a turn. */
  hasOwnTask = false
  /** The session has shown events of clients, which some services omit. */
  showsClients = false
  /** The session worked on another client's task when the followed task arrived. */
  isBehindAnother = false
  #ownIds: ReadonlySet<string> = new Set()

  /** Prepares for sent events. If a task is among the events, no other task begins a turn. */
  begin(sent: readonly SessionEvent[]): void {
    this.hasOwnTask ||= sent.some(isTask)
  }

  /** Sets the ids of a task that an earlier run sent. If there are ids, no other task begins a turn. */
  recognize(ids: ReadonlySet<string>): void {
    this.#ownIds = ids
    this.hasOwnTask = ids.size > 0
  }

  /** Adds the newest event. Returns whether a turn begins with the event. */
  add(entry: LoggedEvent): boolean {
    const { event, isAssumed } = entry
    if (isAssumed) {
      // The turn has no events yet, so its task will be among the first events.
      if (isTask(event)) this.#moments = []
      return false
    }
    this.showsClients ||= isOfClient(event)
    const isOurs = entry.isOurs || (event.id !== undefined && this.#ownIds.has(event.id))
    const beginsTurn = isTask(event) && (isOurs || !this.hasOwnTask)
    if (beginsTurn) this.#moments = []
    this.#moments.push({ entry, isTask: beginsTurn })
    return beginsTurn
  }

  /** Drops all events. The caller adds them again in another order. */
  restart(): void {
    this.#moments = []
    this.showsClients = false
  }

  /** Iterates over the events since the task. Most of these events have only a type and ids. */
  *events(): Generator<SessionEvent> {
    for (const { entry } of this.#moments) yield entry.event
  }

  /**
   * The id of the task that this process has sent, as the session shows the task. The receipt may have
   * another id.
   */
  get taskId(): string | undefined {
    const [first] = this.#moments
    return first?.isTask && first.entry.isOurs ? first.entry.event.id : undefined
  }

  /**
   * The last message of the agent in the main thread since the task. The message is the answer once the
   * session is idle. Before another client's task, the message is the answer only if all workflow runs had
   * ended, because the agent answers after the runs.
   */
  get answer(): SessionEvent | undefined {
    const own = this.#own.slice(this.#start)
    if (this.foreign && hasOpenRun(own)) return undefined
    return own.findLast(({ entry }) => isMessage(entry.event))?.entry.event
  }

  /** The task waits for the end of the turn of another client. */
  get isQueued(): boolean {
    return this.#start === this.#moments.length
  }

  /** The first task of another client after the sent task, and whether the session was interrupted before it. */
  get foreign(): { task: SessionEvent; isInterrupted: boolean } | undefined {
    const own = this.#own
    const next = this.#moments[own.length]
    return next && { task: next.entry.event, isInterrupted: endsInterrupted(own) }
  }

  /** The last event that had an effect and came from a client was an interrupt. */
  get isInterrupted(): boolean {
    return endsInterrupted(this.#moments)
  }

  /** The last event was a message of the agent or an interrupt, so the turn may have ended. */
  get mayHaveEnded(): boolean {
    return hasLast(this.#moments, mayEnd)
  }

  /**
   * Index of the first event of the turn itself. A queued task waits until the session stops and works again.
   */
  get #start(): number {
    if (!this.isBehindAnother) return 0
    const end = this.#moments.findIndex(({ entry }) => endsTurn(entry.event))
    const start = this.#moments.findIndex(({ entry }, i) => end >= 0 && i > end && isRunning(entry.event))
    return start < 0 ? this.#moments.length : start
  }

  /** The events up to a task of another client. If the session does not show the sent task, nothing ends its turn. */
  get #own(): readonly Moment[] {
    const end = this.#moments.findIndex((moment) => this.#isForeign(moment))
    return this.#moments[0]?.isTask && end > 0 ? this.#moments.slice(0, end) : this.#moments
  }

  /** A task of another client ends the turn of the sent task. */
  #isForeign({ entry, isTask: beginsTurn }: Moment): boolean {
    return this.hasOwnTask && !beginsTurn && isTask(entry.event)
  }
}

/** Returns whether `test` is true for the last event for which it is defined. */
function hasLast(moments: readonly Moment[], test: (event: SessionEvent) => boolean | undefined): boolean {
  const last = moments.findLast(({ entry }) => test(entry.event) !== undefined)
  return last !== undefined && test(last.entry.event) === true
}

function hasOpenRun(moments: readonly Moment[]): boolean {
  const open = new Set<unknown>()
  for (const { entry } of moments) {
    const { type, workflow_run_id: id } = entry.event
    if (type === 'workflow_run.created') open.add(id)
    if (type === 'workflow_run.status_ended') open.delete(id)
  }
  return open.size > 0
}

const endsInterrupted = (moments: readonly Moment[]): boolean =>
  hasLast(
    moments.filter(({ entry }) => entry.hasEffect),
    isInterrupt,
  )

export const isMessage = (event: SessionEvent): boolean =>
  event.type === 'agent.message' && isOfMainThread(event)

/**
 * Returns whether the turn may end with this event. Returns `undefined` for spans, usage and unknown types,
 * which may follow the end of a turn.
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
