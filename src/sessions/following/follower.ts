import type { Deadline } from '../../deadline.ts'
import { asStoppedFailure, CliError } from '../../errors.ts'
import type { RequestParts } from '../../http/request.ts'
import { formatAgo, printProgressLines } from '../../io/progress-lines.ts'
import { quoteWords } from '../../io/shell-quote.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isToolUse, type SessionEvent, stopsSession } from '../../wire/sessions/session-event.ts'
import { lagWaitsMs, listEvents, listOldestFirst } from '../listing/event-list.ts'
import { readSession } from '../read-session.ts'
import { ReconnectPolicy, requireTime } from '../reconnect-policy.ts'
import type { SessionAccess } from '../session.ts'
import { createResumeCommand } from '../session-command.ts'
import type { SessionState } from '../session-state.ts'
import { type EventStream, openEventStream } from './event-stream.ts'
import { type Effect, type FollowInput, startFollowing, stepFollowState } from './following.ts'
import { SeenEvents } from './seen-events.ts'

export interface FollowOptions {
  /** Receives the earlier events page by page. */
  showPast?: ((items: readonly EventItem[], state: SessionState) => Promise<void>) | undefined
  /** Continues after the session stops, until it is terminated or deleted. */
  followsForever?: boolean
  /** Throws a usage error for a session without events. */
  needsPast?: boolean
  /** Event ids of a task that an earlier run sent. Other clients' tasks then begin no turn. */
  ownTaskIds?: ReadonlySet<string> | undefined
}

/** Maximum age of the last read list when a reply is sent. An older list is read again first. */
const maxListAgeMs = 1_000

/** Maximum time for one reading of the list after an idle event. */
const maxIdleListWaitMs = 10_000

/** Maximum time for all readings of the list after an idle event. */
const maxEndMs = 30_000

/** After this number of new events, reading backwards stops, and the whole list is read. */
const maxNewEvents = 10_000

/**
 * Reads the earlier events and opens a stream. The caller can then send events and miss none of their
 * consequences. Throws a `CliError`, of kind `stopped` if the deadline passed.
 */
export async function openFollower(access: SessionAccess, options: FollowOptions = {}): Promise<Follower> {
  const follower = new Follower(access, options.followsForever)
  try {
    await follower.open(options)
    return follower
  } catch (error) {
    follower.close()
    throw asStoppedFailure(error, ({ details }) => access.parts.deadline.hasPassed || !!details.deadline)
  }
}

/** Numbers and times for the progress line. */
interface FollowProgress {
  events: number
  toolUses: number
  /** The last emitted event and its monotonic time. */
  last: { type: string; at: number } | undefined
}

/** Emits the events of a session while they happen. */
export class Follower {
  readonly progress: FollowProgress = { events: 0, toolUses: 0, last: undefined }
  readonly #access: SessionAccess
  readonly #followsForever: boolean
  readonly #endProgressLines: () => void
  readonly #seen = new SeenEvents()
  /** State of the session after all received events. */
  readonly state = this.#seen.state
  /** The turn of the sent task, otherwise the last turn of the session. */
  readonly turn = this.#seen.turn
  /**
   * Failure of the last reading of the list. The stream alone may have omitted events, such as the answer.
   */
  unreadEnd: CliError | undefined
  #policy: ReconnectPolicy
  /** Time limit for reading the list after an idle event. */
  #endLimit: Deadline
  #stream: EventStream | undefined
  #isWoken = false
  /**
   * Time of the last list by two clocks: the wall clock may be set back, and the monotonic clock stops while
   * the computer sleeps.
   */
  #listedAt = { now: -Infinity, date: -Infinity }
  /** False if the service ignores the requested order of a list. */
  #hasOrder = true
  /** Events that were added to the state but not emitted yet. */
  readonly #unshown: EventItem[] = []

  constructor(access: SessionAccess, followsForever = false) {
    const { context } = access
    this.#access = access
    this.#followsForever = followsForever
    this.#policy = new ReconnectPolicy(access)
    this.#endLimit = access.parts.deadline
    this.#endProgressLines = followsForever
      ? () => {}
      : printProgressLines(context, (time) =>
          this.state.isEmpty
            ? `still waiting for the first event ${time}`
            : `still at work ${time}: ${describeProgress(this.progress, context.host.timers.now())}`,
        )
  }

  /** The service has not shown that it worked on all sent events. */
  get isUndone(): boolean {
    return this.#seen.isUndone
  }

  async open({ showPast, needsPast = false, ownTaskIds }: FollowOptions): Promise<void> {
    const { caller, parts, context } = this.#access
    if (ownTaskIds) this.turn.recognize(ownTaskIds)
    for (const wait of lagWaitsMs) {
      await parts.deadline.wait(wait)
      requireTime(parts.deadline)
      for await (const items of listOldestFirst(caller, parts)) {
        // The second page begins a long list.
        if (!this.state.isEmpty && items.length > 0) context.host.limitYoungGeneration?.(context.cleanups)
        this.#seen.addPast(items)
        await showPast?.(items, this.state)
      }
      if (!needsPast || !this.state.isEmpty) break
    }
    if (needsPast && this.state.isEmpty) throw createNoEventError(this.#access)
    this.#stream = await this.#openStream(false)
  }

  /**
   * Emits new events in batches until the session stops; with `sent`, only events after the sent ones. A
   * batch may be empty. Between two batches the caller may send events and add them to the state. After a
   * stop, the caller may send events and call `news` again. Throws a `CliError`.
   */
  async *news(sent?: readonly SessionEvent[]): AsyncGenerator<readonly EventItem[]> {
    const { timers } = this.#access.context.host
    this.#policy.addResponse()
    let { state, effect } = startFollowing(this.#seen, this.#followsForever, sent)
    /** Number of times that the list was read for this idle event. */
    let polls = 0
    for (;;) {
      if (effect.do !== 'show' && (this.#isWoken || this.#unshown.length > 0)) {
        this.#isWoken = false
        effect = { do: 'show', items: this.#unshown.splice(0) }
      }
      let input: FollowInput
      if (effect.do === 'end') {
        if (this.#seen.isStopListed || polls === lagWaitsMs.length) return
        await this.#listAfterIdle(polls++)
        input = { is: 'shown' }
      } else if (effect.do === 'show') {
        if (effect.items.some(({ event }) => stopsSession(event))) polls = 0
        if (effect.items.length > 0) this.#policy = new ReconnectPolicy(this.#access)
        this.#count(effect.items)
        yield effect.items
        // The caller's time for the events does not count as silence of the service.
        this.#policy.addResponse()
        input = { is: 'shown' }
      } else {
        try {
          input = await this.#execute(effect)
        } catch (error) {
          if (!(error instanceof CliError)) throw error
          const end = this.#policy.findEnd(error)
          if (end) throw end
          input = { is: 'failed', isConnecting: effect.do === 'connect' }
        }
      }
      ;({ state, effect } = stepFollowState(state, input, timers.now()))
    }
  }

  /**
   * Adds to the state all events that the stream has delivered. Also adds all events of the list, if the last
   * list is older than a second or `isForced` is set. `news` emits these events later. May be called at any
   * time. Throws a `CliError` if the list cannot be read.
   */
  async refresh(isForced = false): Promise<void> {
    requireTime(this.#access.parts.deadline)
    // Lets Node read the socket first, so that the stream has every event that has arrived.
    await this.#access.context.host.timers.wait(0)
    this.#takeStreamed()
    if (isForced || this.#isListOld()) await this.#takeList()
  }

  /** Adds a reply or an interrupt that the service accepted. */
  addAccepted(event: SessionEvent): void {
    this.#seen.addAccepted(event)
  }

  /**
   * Checks a finished turn against the session resource. If the resource is still running, the list lags
   * behind, and the session counts as working.
   */
  async verifyStop(): Promise<void> {
    if (this.state.stop?.kind !== 'done') return
    const session = await readSession(this.#access)
    if (session?.status === 'running' || session?.status === 'rescheduling')
      this.#seen.addAccepted({ type: 'session.status_running' })
  }

  /** Adds a list that the caller has read. `news` emits the new events later. */
  addList(list: readonly EventItem[]): void {
    // Spreading a list of over 100,000 events exceeds the maximum number of call arguments.
    for (const item of this.#seen.addList(list)) this.#unshown.push(item)
  }

  /** Makes `news` emit a batch soon, even an empty one, because the caller changed the state. */
  wake(): void {
    this.#isWoken = true
    this.#stream?.wake()
  }

  close(): void {
    this.#endProgressLines()
    this.#stream?.close()
  }

  #openStream(isSingle: boolean): Promise<EventStream> {
    const { caller, parts, context } = this.#access
    return openEventStream(caller, { ...parts, isSingle }, context.host.timers)
  }

  #count(items: readonly EventItem[]): void {
    for (const { event } of items) {
      this.progress.events++
      if (isToolUse(event)) this.progress.toolUses++
      this.progress.last = { type: event.type, at: this.#access.context.host.timers.now() }
    }
  }

  async #readList(deadline = this.#access.parts.deadline): Promise<EventItem[]> {
    const { timers } = this.#access.context.host
    const parts = { ...this.#access.parts, deadline, isSingle: true }
    const requestedAt = { now: timers.now(), date: timers.wallTime() }
    const list = (await this.#readNewest(parts)) ?? (await this.#readAll(parts))
    this.#policy.addResponse()
    this.#listedAt = requestedAt
    return list
  }

  async #readAll(parts: RequestParts): Promise<EventItem[]> {
    const list: EventItem[] = []
    for await (const page of listOldestFirst(this.#access.caller, parts))
      for (const item of page) list.push(item)
    return list
  }

  /**
   * Reads the list backwards as far as the end of the last list. Returns `undefined` if the service does not
   * list in the requested order.
   */
  async #readNewest(parts: RequestParts): Promise<EventItem[] | undefined> {
    if (!this.#hasOrder || !this.#seen.knowsListEnd) return undefined
    const newest: EventItem[] = []
    for await (const page of listEvents(this.#access.caller, parts, { order: 'desc' })) {
      for (const item of page) newest.push(item)
      if (this.#seen.reachesListEnd(newest)) return newest.reverse()
      if (newest.length > maxNewEvents) return undefined
    }
    this.#hasOrder = false
    return undefined
  }

  #takeStreamed(): void {
    for (const item of this.#stream?.takeAll() ?? []) this.#unshown.push(...this.#seen.addStreamed(item))
  }

  async #takeList(deadline?: Deadline): Promise<void> {
    this.addList(await this.#readList(deadline))
    this.#takeStreamed()
  }

  #isListOld(): boolean {
    const { timers } = this.#access.context.host
    return (
      timers.now() - this.#listedAt.now > maxListAgeMs ||
      timers.wallTime() - this.#listedAt.date > maxListAgeMs
    )
  }

  /**
   * Reads the list after an idle event, because the stream may have omitted events before it. The caller
   * repeats this until the list contains the idle event.
   */
  async #listAfterIdle(attempt: number): Promise<void> {
    const { messages } = this.#access.context
    const { deadline } = this.#access.parts
    this.unreadEnd = undefined
    if (attempt === 0) this.#endLimit = deadline.narrow(maxEndMs, 'no complete list within 30 s')
    await deadline.wait(lagWaitsMs[attempt] ?? 0)
    try {
      await this.#takeList(this.#endLimit.narrow(maxIdleListWaitMs, 'no complete list within 10 s'))
    } catch (error) {
      const isEnded = this.state.stop?.kind === 'ended'
      if (!(error instanceof CliError) || (error.details.status === 404 && !isEnded)) throw error
      if (isEnded) return this.#seen.trustStop()
      const waitMs = (error.details.retryAfter ?? 0) * 1000
      if (attempt < lagWaitsMs.length - 1 && waitMs < this.#endLimit.leftMs)
        return this.#endLimit.wait(waitMs)
      messages.warn(
        `the list could not be read at the end: ${error.message}; the stream may have left out events`,
      )
      this.unreadEnd = error
      this.#seen.trustStop()
    }
  }

  /** Executes an effect and returns its result. Throws a `CliError`. */
  async #execute(effect: Exclude<Effect, { do: 'show' | 'end' }>): Promise<FollowInput> {
    const { context, parts } = this.#access
    const { deadline } = parts
    if (effect.do === 'list') {
      await deadline.wait(effect.after)
      requireTime(deadline)
      const session = effect.queriesSession ? await readSession(this.#access) : undefined
      const list = await this.#readList()
      return {
        is: 'list',
        list,
        isQuiet: effect.isQuiet === true,
        status: session && (typeof session.status === 'string' ? session.status : 'unknown'),
      }
    }
    if (effect.do === 'listen') {
      const atMost = Math.min(effect.atMost, deadline.leftMs)
      const next = await (this.#stream as EventStream).next(atMost)
      if (next === 'silence') return { is: 'silence', of: atMost }
      this.#policy.addResponse()
      return next === 'end' ? { is: 'ended' } : { is: 'event', item: next }
    }
    requireTime(deadline)
    if (effect.because === 'ended') context.messages.note('the stream of events broke off; connecting again')
    this.#stream?.close()
    await deadline.wait(this.#policy.nextWaitMs())
    requireTime(deadline)
    this.#stream = await this.#openStream(true)
    return { is: 'opened' }
  }
}

function createNoEventError({ context, parts }: SessionAccess): CliError {
  const command = quoteWords([
    'parley',
    ...createResumeCommand(context, parts.params.session, { words: ['TASK'] }),
  ])
  const message = 'nothing has happened in this session yet'
  return new CliError('usage', message, { consequence: `give a task: ${command}` })
}

function describeProgress({ events, toolUses, last }: FollowProgress, now: number): string {
  if (!last) return 'no event yet'
  const count = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`
  const when = formatAgo(last.at, now)
  return `${count(events, 'event')}, ${count(toolUses, 'tool use')}; the last was ${last.type}, ${when}`
}
