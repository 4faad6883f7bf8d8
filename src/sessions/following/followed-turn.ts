import { isOfMainThread, type SessionEvent } from '../../wire/sessions/session-event.ts'

/** An event, and what it is known by. */
export interface KeyedEvent {
  event: SessionEvent
  key: string
}

/** An event's place in the turn. */
interface Moment extends KeyedEvent {
  isTask: boolean
}

/**
 * The turn that is followed: from the last task on, in the order in which it happened. A stream brings events in that
 * order. A list may be too old to show the last ones, but has no gaps, and may show what no stream has brought.
 */
export class FollowedTurn {
  #moments: Moment[] = []
  #hasOwnTask = false
  /** The session has shown what a client sent. Some services leave that out. */
  showsClients = false
  #ownIds: ReadonlySet<string> = new Set()

  /** Events were sent. If there is a task among them, only these are tasks, and what came before is not of its turn. */
  begin(sent: readonly SessionEvent[]): void {
    if (!sent.some(isTask)) return
    this.#moments = []
    this.#hasOwnTask = true
  }

  /** An earlier run has sent events with these ids. If there are any, only these are tasks. */
  recognize(ids: ReadonlySet<string>): void {
    this.#ownIds = ids
    this.#hasOwnTask = ids.size > 0
  }

  /** Adds what happened last. `isOwn` of what was sent. */
  add(item: KeyedEvent, isOwn = false): void {
    const moment = this.#momentOf(item, isOwn)
    if (moment.isTask) this.#moments = []
    if (isMessage(moment.event)) {
      const last = this.#moments.findLast((each) => isMessage(each.event) || this.#isForeign(each))
      if (last && !this.#isForeign(last)) last.event = other
    }
    this.#moments.push(moment)
  }

  /**
   * Adds, each in its place, those events of a list that are new. A known message that is the last before one of these has to
   * be whole in the list.
   */
  place(list: readonly KeyedEvent[], fresh: ReadonlySet<KeyedEvent>, own: ReadonlySet<KeyedEvent>): void {
    if (fresh.size === 0) return
    const places = new Map(this.#moments.map(({ key }, index) => [key, index]))
    const last = list.findLast(({ key }) => places.has(key))
    // What the list does not show came after all that it shows, but for a task that was sent: some lists leave that out.
    const first = this.#hasOwnTask && this.#moments[0]?.isTask ? 1 : 0
    let place = last ? (places.get(last.key) ?? 0) + 1 : first
    const added = this.#moments.map((): Moment[] => [])
    added.push([])
    for (const item of list.toReversed()) {
      place = places.get(item.key) ?? place
      const moment = this.#moments[place]
      if (fresh.has(item)) added[place]?.push(this.#momentOf(item, own.has(item)))
      else if (moment?.key === item.key && isMessage(item.event)) moment.event = item.event
    }
    const moments = [...this.#moments.map((moment) => [moment]), []]
    const placed = moments.flatMap((moment, index) => [...(added[index] ?? []).reverse(), ...moment])
    this.#moments = placed.slice(
      Math.max(
        placed.findLastIndex((moment) => moment.isTask),
        0,
      ),
    )
    this.#forgetMessages()
  }

  /** The last that the agent said in the main thread since the task: its answer, once the session rests. */
  get answer(): SessionEvent | undefined {
    return this.#own.findLast(({ event }) => isMessage(event))?.event
  }

  /** The task with which another client ended the turn of the one that was sent, and whether it was interrupted before. */
  get foreign(): { task: SessionEvent; isInterrupted: boolean } | undefined {
    const own = this.#own
    const next = this.#moments[own.length]
    return next && { task: next.event, isInterrupted: lastSays(own, interrupts) }
  }

  /** What belongs to the task. One that the session does not show as it was sent is ended by nothing. */
  get #own(): readonly Moment[] {
    const end = this.#moments.findIndex((moment) => this.#isForeign(moment))
    return this.#moments[0]?.isTask && end > 0 ? this.#moments.slice(0, end) : this.#moments
  }

  /** The last thing that any client did was to interrupt it. */
  get isInterrupted(): boolean {
    return lastSays(this.#moments, interrupts)
  }

  /** Nothing is left to do by what it shows: the last was a message of the agent, or an interrupt. */
  get mayHaveEnded(): boolean {
    return lastSays(this.#moments, mayEnd)
  }

  /** A task of another client ends the turn of the one that was sent. */
  #isForeign({ event, isTask: isOfTurn }: Moment): boolean {
    return this.#hasOwnTask && !isOfTurn && isTask(event)
  }

  #momentOf({ event, key }: KeyedEvent, isSent: boolean): Moment {
    this.showsClients ||= isOfClient(event)
    const isOwn = isSent || (event.id !== undefined && this.#ownIds.has(event.id))
    return { key, event: toKept(event), isTask: isTask(event) && (isOwn || !this.#hasOwnTask) }
  }

  /** Before a task of another client, and at the end, the last message may be the answer. */
  #forgetMessages(): void {
    let hasLater = false
    for (const moment of this.#moments.toReversed()) {
      if (this.#isForeign(moment)) hasLater = false
      else if (isMessage(moment.event)) {
        if (hasLater) moment.event = other
        hasLater = true
      }
    }
  }
}

/** Stand for events of which no more counts than that they were there. A turn may be long, and so may each of them. */
const [work, reply, other] = ['agent.thinking', 'user.tool_result', ''].map((type) => ({ type })) as [
  SessionEvent,
  SessionEvent,
  SessionEvent,
]

function toKept(event: SessionEvent): SessionEvent {
  if (isTask(event) || isMessage(event) || event.type === 'user.interrupt') return event
  if (isOfClient(event)) return reply
  return mayEnd(event) === undefined ? other : work
}

/** Whether `says` returns true of the last event of which it says anything. */
function lastSays(moments: readonly Moment[], says: (event: SessionEvent) => boolean | undefined): boolean {
  const last = moments.findLast(({ event }) => says(event) !== undefined)
  return last !== undefined && says(last.event) === true
}

const isMessage = (event: SessionEvent) => event.type === 'agent.message' && isOfMainThread(event)

/** Spans, usages and types that nobody knows may come after the end. */
function mayEnd(event: SessionEvent): boolean | undefined {
  if (isMessage(event) || interrupts(event)) return true
  return /^(agent|user|system|session\.(status_|error))/.test(event.type) ? false : undefined
}

function interrupts(event: SessionEvent): boolean | undefined {
  if (event.type !== 'user.interrupt') return isOfClient(event) ? false : undefined
  return isOfMainThread(event) ? true : undefined
}

const isOfClient = ({ type }: SessionEvent): boolean => type.startsWith('user.')

export const isTask = ({ type }: SessionEvent): boolean =>
  type === 'user.message' || type === 'user.define_outcome'
