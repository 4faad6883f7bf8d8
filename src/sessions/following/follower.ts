import { asStoppedFailure, CliError, usageError } from '../../errors.ts'
import { formatAgo, printProgressLines } from '../../io/progress-lines.ts'
import { schedule } from '../../timers.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isStop, isToolUse, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { lagWaits, listEvents, listOldestFirst } from '../listing/event-list.ts'
import { isCutByDeadline, Patience, requireTime, timeLeft } from '../patience.ts'
import { readSession } from '../read-session.ts'
import type { SessionAccess } from '../session.ts'
import type { SessionState } from '../session-state.ts'
import { type EventStream, openEventStream } from './event-stream.ts'
import { begin, type Effect, type FollowInput, step } from './following.ts'
import { SeenEvents } from './seen-events.ts'

export interface FollowOptions {
  /** Is given what happened before, page by page. */
  showPast?: ((items: readonly EventItem[], state: SessionState) => Promise<void>) | undefined
  /** Follow on when the session stops, until it is terminated or deleted. */
  stays?: boolean
  /** A session in which nothing has happened is a usage error. */
  needsPast?: boolean
  /** The ids of a task that an earlier run has sent: no other task begins the turn. */
  own?: ReadonlySet<string> | undefined
}

/** An older list, in milliseconds, may not be acted on. */
const freshness = 1_000

/** How long a list may take to come that is to show a rest. Milliseconds. */
const longestLook = 10_000

/** So many new events are looked through at most, from the newest backwards, for what an earlier list has shown. */
const mostNew = 10_000

/**
 * Reads what there is, before anything is sent, and opens a stream. Throws a `CliError`: of kind `stopped` if the deadline
 * cut a request.
 */
export async function openFollower(access: SessionAccess, options: FollowOptions = {}): Promise<Follower> {
  const follower = new Follower(access, options.stays)
  try {
    await follower.open(options)
    return follower
  } catch (error) {
    follower.close()
    throw asStoppedFailure(error, isCutByDeadline)
  }
}

/** What was brought of a session so far. */
interface FollowProgress {
  events: number
  toolUses: number
  /** When the last event was brought, by the forward clock. */
  last: { type: string; at: number } | undefined
}

/** Brings the events of a session as they happen. */
export class Follower {
  readonly progress: FollowProgress = { events: 0, toolUses: 0, last: undefined }
  readonly #access: SessionAccess
  readonly #stays: boolean
  readonly #endLifeSigns: () => void
  readonly #seen = new SeenEvents()
  /** What the events that were brought so far say about the session. */
  readonly state = this.#seen.state
  /** The turn of what was sent last; if nothing was sent, the session's last one. */
  readonly turn = this.#seen.turn
  /** Why the list could not be read at the end. Then the stream may have omitted events, such as the answer. */
  unreadEnd: CliError | undefined
  #patience: Patience
  #stream: EventStream | undefined
  #isWoken = false
  /** When the list was last asked for, by both clocks: one of them may be set back, the other stands still in a sleep. */
  #listedAt = { now: -Infinity, date: -Infinity }
  /** The service lists events in the order that it is asked for, as far as is known. */
  #hasOrder = true
  /** What was taken in beside the events that are brought in turn. */
  readonly #unshown: EventItem[] = []

  constructor(access: SessionAccess, stays = false) {
    const { context } = access
    this.#access = access
    this.#stays = stays
    this.#patience = new Patience(access, 'always')
    this.#endLifeSigns = stays
      ? () => {}
      : printProgressLines(context, () => describeProgress(this.progress, context.timers.now()))
  }

  /** Whether the service never showed that it worked on all that was sent. */
  get isUndone(): boolean {
    return this.#seen.isUndone
  }

  async open({ showPast, needsPast = false, own }: FollowOptions): Promise<void> {
    const { caller, parts } = this.#access
    if (own) this.turn.recognize(own)
    for (const wait of lagWaits) {
      await this.#wait(wait)
      requireTime(this.#access)
      for await (const items of listOldestFirst(caller, parts)) {
        this.#seen.addPast(items)
        await showPast?.(items, this.state)
      }
      if (!needsPast || !this.state.isEmpty) break
    }
    if (needsPast && this.state.isEmpty) throw usageError('nothing has happened in this session yet')
    this.#stream = await this.#openStream()
  }

  /**
   * What is new, part by part, until the session stops; of events just sent, what comes after them. A part may be
   * empty; the first comes before anything is decided. Between two parts more may be sent and be added to the state:
   * following goes on with what comes of it. Once the session has stopped, it may be sent more, and be followed again.
   * Throws a `CliError`.
   */
  async *news(sent?: readonly SessionEvent[]): AsyncGenerator<readonly EventItem[]> {
    const { timers } = this.#access.context
    this.#patience.addResponse()
    let { state, effect } = begin(this.#seen, this.#stays, sent)
    /** How often the list was looked at in this rest. */
    let looks = 0
    for (;;) {
      if (effect.do !== 'show' && (this.#isWoken || this.#unshown.length > 0)) {
        this.#isWoken = false
        effect = { do: 'show', items: this.#unshown.splice(0) }
      }
      let input: FollowInput
      if (effect.do === 'end') {
        if (this.#seen.isStopListed || looks === lagWaits.length) return
        await this.#lookAtRest(looks++)
        input = { is: 'shown' }
      } else if (effect.do === 'show') {
        if (effect.items.some(({ event }) => isStop(event))) looks = 0
        if (effect.items.length > 0) this.#patience = new Patience(this.#access, 'always')
        this.#count(effect.items)
        yield effect.items
        // Time spent on the events does not count as silence from the service.
        this.#patience.addResponse()
        input = { is: 'shown' }
      } else {
        try {
          input = await this.#carryOut(effect)
        } catch (error) {
          this.#patience.endure(error)
          input = { is: 'failed' }
        }
      }
      ;({ state, effect } = step(state, input, timers.now()))
    }
  }

  /**
   * Takes into the state all that the stream has brought by now and, if the last list is older than a second, first of
   * all what the list shows; with `isForced` in any case. `news` brings it later. May be called at any time. Throws a
   * `CliError` if the list cannot be read.
   */
  async fresh(isForced = false): Promise<void> {
    requireTime(this.#access)
    // What lies in the socket is read meanwhile.
    await this.#access.context.timers.wait(0)
    this.#takeStreamed()
    if (isForced || this.#isListOld()) await this.#takeList()
  }

  /** Adds a reply or an interrupt that the service accepted. */
  addAccepted(event: SessionEvent): void {
    this.#seen.addAccepted(event)
  }

  /** Queries the session resource. If it works, a list that shows a stop lags, and the stop does not count. */
  async doubtStop(): Promise<void> {
    if (this.state.stop?.kind !== 'done') return
    const session = await readSession(this.#access)
    if (session?.status === 'running' || session?.status === 'rescheduling')
      this.#seen.addAccepted({ type: 'session.status_running' })
  }

  /** Adds a whole list that somebody else has read. `news` emits its new events later. */
  addList(list: readonly EventItem[]): void {
    // Spreading a list of over 100,000 events exceeds the maximum number of call arguments.
    for (const item of this.#seen.addList(list)) this.#unshown.push(item)
  }

  /** Has `news` bring an empty part soon, for the state was changed from outside. */
  wake(): void {
    this.#isWoken = true
    this.#stream?.wake()
  }

  close(): void {
    this.#endLifeSigns()
    this.#stream?.close()
  }

  #wait(wait: number): Promise<void> | undefined {
    if (wait === 0) return undefined
    return this.#access.context.timers.wait(Math.min(wait, Math.max(timeLeft(this.#access), 0)))
  }

  #openStream(lastId?: string): Promise<EventStream> {
    const { caller, parts, context } = this.#access
    return openEventStream(caller, parts, context.timers, lastId)
  }

  #count(items: readonly EventItem[]): void {
    for (const { event } of items) {
      this.progress.events++
      if (isToolUse(event)) this.progress.toolUses++
      this.progress.last = { type: event.type, at: this.#access.context.timers.now() }
    }
  }

  async #readList(once?: AbortSignal): Promise<EventItem[]> {
    const { timers } = this.#access.context
    const askedAt = { now: timers.now(), date: timers.wallTime() }
    const list = (await this.#readNewest(once)) ?? (await this.#readAll(once))
    this.#patience.addResponse()
    this.#listedAt = askedAt
    return list
  }

  async #readAll(once?: AbortSignal): Promise<EventItem[]> {
    const { caller, parts } = this.#access
    const list: EventItem[] = []
    for await (const page of listOldestFirst(caller, { ...parts, once }))
      for (const item of page) list.push(item)
    return list
  }

  /** Only what the list has shown since it was last read, if the service's order tells what that is. */
  async #readNewest(once?: AbortSignal): Promise<EventItem[] | undefined> {
    if (!this.#hasOrder || !this.#seen.knowsListEnd) return undefined
    const { caller, parts } = this.#access
    const newest: EventItem[] = []
    for await (const page of listEvents(caller, { ...parts, once }, { order: 'desc' })) {
      for (const item of page) newest.push(item)
      if (this.#seen.reachesListEnd(newest)) return newest.reverse()
      if (newest.length > mostNew) return undefined
    }
    this.#hasOrder = false
    return undefined
  }

  #takeStreamed(): void {
    for (const item of this.#stream?.takeAll() ?? []) this.#unshown.push(...this.#seen.addStreamed(item))
  }

  async #takeList(once?: AbortSignal): Promise<void> {
    this.addList(await this.#readList(once))
    this.#takeStreamed()
  }

  #isListOld(): boolean {
    const { timers } = this.#access.context
    return (
      timers.now() - this.#listedAt.now > freshness || timers.wallTime() - this.#listedAt.date > freshness
    )
  }

  /**
   * Takes in what the stream has left out before a rest: the list shows it. Looks again only if the list does not show
   * that rest yet.
   */
  async #lookAtRest(look: number): Promise<void> {
    const { timers, warn } = this.#access.context
    const late = new AbortController()
    this.unreadEnd = undefined
    await this.#wait(lagWaits[look] ?? 0)
    const cancel = schedule(timers, longestLook, () => late.abort())
    try {
      await this.#takeList(late.signal)
    } catch (error) {
      const isEnded = this.state.stop?.kind === 'ended'
      if (!(error instanceof CliError) || (error.details.status === 404 && !isEnded)) throw error
      if (isEnded) return this.#seen.trustStop()
      if (look < lagWaits.length - 1 && timeLeft(this.#access) > 0) return
      warn(`the list could not be read at the end: ${error.message}; the stream may have left out events`)
      this.unreadEnd = error
      this.#seen.trustStop()
    } finally {
      cancel()
    }
  }

  /** What comes of what is to be done. Throws a `CliError`. */
  async #carryOut(effect: Exclude<Effect, { do: 'show' | 'end' }>): Promise<FollowInput> {
    const { context } = this.#access
    if (effect.do === 'list') {
      if (effect.after > 0) await context.timers.wait(effect.after)
      requireTime(this.#access)
      const session = effect.asks ? await readSession(this.#access) : undefined
      const list = await this.#readList()
      return { is: 'list', list, isIdle: session?.status === 'idle' }
    }
    if (effect.do === 'listen') {
      const atMost = Math.max(0, Math.min(effect.atMost, timeLeft(this.#access)))
      const next = await (this.#stream as EventStream).next(atMost)
      if (next === 'silence') return { is: 'silence', of: atMost }
      this.#patience.addResponse()
      return next === 'end' ? { is: 'ended' } : { is: 'event', item: next }
    }
    requireTime(this.#access)
    if (effect.because === 'ended') context.note('the stream of events broke off; connecting again')
    this.#stream?.close()
    await this.#patience.wait()
    this.#stream = await this.#openStream(this.#stream?.lastId)
    return { is: 'opened' }
  }
}

function describeProgress({ events, toolUses, last }: FollowProgress, now: number): string {
  if (!last) return 'no event yet'
  const count = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`
  const when = formatAgo(last.at, now)
  return `${count(events, 'event')}, ${count(toolUses, 'tool use')}; the last was ${last.type}, ${when}`
}
