import type { Deadline } from '../../deadline.ts'
import { CliError, convertDeadlineFailure } from '../../errors.ts'
import type { RequestParts } from '../../http/request.ts'
import { formatTimeAgo, printProgressLines } from '../../io/progress-lines.ts'
import { quoteShellWords } from '../../io/shell-quote.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { stopsSession } from '../../wire/sessions/session-event.ts'
import {
  collectEvents,
  eventListPollDelaysMs,
  listEvents,
  listEventsOldestFirst,
} from '../listing/event-list.ts'
import { readSessionResource } from '../read-session.ts'
import {
  createFollowDeadlineError,
  OutageNotes,
  ReconnectPolicy,
  requireTimeLeft,
} from '../reconnect-policy.ts'
import type { SessionClient } from '../session.ts'
import { createResumeCommand } from '../session-command.ts'
import { type EventStream, openEventStream } from './event-stream.ts'
import { computeFirstFollowState, computeNextFollowState } from './following.ts'
import { SeenEvents } from './seen-events.ts'
import { describeWaitingToolUses } from './stop-text.ts'

interface FollowOptions {
  onEarlierEvents?: ((items: readonly EventItem[]) => Promise<void>) | undefined
  needsEvents?: boolean
  earlierTaskIds?: ReadonlySet<string> | undefined
}

/** Maximum age of the list of events when parley decides whether to reply. An older list is read again. */
const maxListAgeMs = 1_000

/** Time limits for reading the list after an idle event: for one attempt, and for all attempts. */
const maxOneListMs = 10_000
const maxFinalListsMs = 30_000

/** Maximum number of events that the follower reads backwards. If it needs more, it reads the whole list. */
const maxBackwardEvents = 10_000

/** Reads the list and the stream of a session, and emits each new event once. */
export class Follower {
  #lastNewEvent: { type: string; at: number } | undefined
  readonly #access: SessionClient
  readonly #followsForever: boolean
  readonly #stopProgressLines: () => void
  readonly seen = new SeenEvents()
  readonly state = this.seen.state
  readonly task = this.seen.task
  /**
   * Failure to read the list after the session stopped. Events that the stream omitted, such as the answer,
   * are then missing.
   */
  listFailure: CliError | undefined
  readonly outageNotes: OutageNotes
  #reconnectPolicy: ReconnectPolicy
  #finalListsDeadline: Deadline
  /** `undefined` after a request for a stream has failed. */
  #stream: EventStream | undefined
  #isWoken = false
  /**
   * Time of the last request for the list, by two clocks. The wall clock may be set back. The monotonic clock
   * stops while the computer sleeps.
   */
  #listedAt = { now: -Infinity, date: -Infinity }
  #listsInRequestedOrder = true
  /** New events that `state` already includes and that `readNewEvents` emits next. */
  readonly #notEmitted: EventItem[] = []

  /** With `followsForever`, continues after the session stops, until it is terminated or deleted. */
  constructor(access: SessionClient, followsForever = false) {
    const { context } = access
    this.#access = access
    this.#followsForever = followsForever
    this.outageNotes = new OutageNotes(context)
    this.#reconnectPolicy = new ReconnectPolicy(access, this.outageNotes)
    this.#finalListsDeadline = access.parts.deadline
    this.#stopProgressLines = followsForever
      ? () => {}
      : printProgressLines(context, (time) => {
          // During an outage, parley prints notes about the failures instead of progress lines.
          if (this.outageNotes.isOngoing) return undefined
          const { isEmpty, isReplying, stop } = this.state
          if (isEmpty) return `still waiting for the first event ${time}`
          const work = isReplying ? 'replying' : stop ? 'waiting' : 'at work'
          return `still ${work} ${time}: ${this.#describeLastEvent()}`
        })
  }

  /**
   * Reads the list and opens the stream. The stream delivers all later events, so parley opens the follower
   * before it sends events. Throws a `CliError`, of kind `stopped` after the deadline.
   */
  async open(options: FollowOptions = {}): Promise<void> {
    try {
      await this.#open(options)
    } catch (error) {
      this.close()
      if (!(error instanceof CliError) || error.kind === 'file') throw convertDeadlineFailure(error)
      requireTimeLeft(this.#access.parts.deadline)
      // parley made no further attempt because of the deadline, so the failure gets the kind `stopped`.
      throw error.details.deadline ? createFollowDeadlineError(error.message) : error
    }
  }

  async #open({ onEarlierEvents, needsEvents = false, earlierTaskIds }: FollowOptions): Promise<void> {
    const { caller, parts, context } = this.#access
    if (earlierTaskIds) this.task.setEarlierTaskIds(earlierTaskIds)
    for (const wait of eventListPollDelaysMs) {
      await parts.deadline.wait(wait)
      requireTimeLeft(parts.deadline)
      for await (const items of listEventsOldestFirst(caller, parts)) {
        // The list has a second page, so it is long. A smaller young generation of V8 then saves memory.
        if (!this.state.isEmpty && items.length > 0) context.host.limitYoungGeneration?.(context.cleanups)
        this.seen.addEarlier(items)
        await onEarlierEvents?.(items)
      }
      if (!needsEvents || !this.state.isEmpty) break
      if (wait === 0)
        context.messages.note(`looking for the first event of ${parts.params.session}, for up to 5 s`)
    }
    if (needsEvents && this.state.isEmpty) throw createEmptySessionError(this.#access)
    this.#stream = await this.#connect(false)
  }

  /**
   * Yields batches of new events until the session stops. A batch may be empty. Between two batches, the
   * caller may send events and add them to the log (`addAccepted`). After the session stops, the caller may
   * send events and call `readNewEvents` again.
   */
  async *readNewEvents(): AsyncGenerator<readonly EventItem[]> {
    const { timers } = this.#access.context.host
    let state = computeFirstFollowState(this.seen, this.#followsForever)
    let polls = 0
    /**
     * Final failure of a request for a stream. parley reads the list once more before it throws this failure,
     * because the list may show that the session has stopped.
     */
    let connectFailure: CliError | undefined
    for (;;) {
      let { effect } = state
      if (effect.do !== 'emit' && (this.#isWoken || this.#notEmitted.length > 0)) {
        this.#isWoken = false
        effect = { do: 'emit', items: this.#notEmitted.splice(0) }
      }
      if (effect.do === 'end') {
        const { [polls]: delayMs = Infinity } = eventListPollDelaysMs
        const isListFinal = delayMs >= this.#access.parts.deadline.leftMs || !this.seen.isAnswerMissing
        const hasFailed = polls > 0 && this.listFailure !== undefined
        if ((isListFinal && this.seen.log.isStopListed) || hasFailed || delayMs === Infinity) {
          if (!this.#followsForever || this.state.stop?.kind === 'ended') return
          this.seen.log.acceptUnlistedStop()
        } else await this.#readFinalList(polls++)
        state = computeNextFollowState(state, { is: 'emitted' }, timers.now())
      } else if (effect.do === 'emit') {
        if (effect.items.some(({ event }) => stopsSession(event))) polls = 0
        // While no stream can be opened, new events of the list do not end the backoff.
        if (effect.items.length > 0 && !this.#stream) this.#reconnectPolicy.recordProgress()
        else if (effect.items.length > 0) {
          this.#reconnectPolicy.recordResponse()
          this.#reconnectPolicy = new ReconnectPolicy(this.#access, this.outageNotes)
        }
        const [last] = effect.items.slice(-1)
        if (last) this.#lastNewEvent = { type: last.event.type, at: timers.now() }
        yield effect.items
        state = computeNextFollowState(state, { is: 'emitted' }, timers.now())
      } else {
        if (effect.do === 'connect' && connectFailure) throw connectFailure
        try {
          const result =
            effect.do === 'list'
              ? await this.#listAfter(effect.delayMs, effect.readsSession)
              : effect.do === 'listen'
                ? await this.#listen(effect.maxMs)
                : await this.#reconnect()
          state = computeNextFollowState(state, result, timers.now())
        } catch (error) {
          if (!(error instanceof CliError)) throw error
          const ended = { is: 'ended' } as const
          const isBroken = effect.do === 'listen' && error.kind === 'response' && !error.details.isPermanent
          // After the session has stopped, the follower only needs the list. So an error of the stream counts
          // as the end of the stream.
          const isEnd = isBroken && computeNextFollowState(state, ended, timers.now()).effect.do === 'end'
          const finalFailure = isEnd ? undefined : this.#reconnectPolicy.findFinalFailure(error)
          if (finalFailure && effect.do !== 'connect') throw finalFailure
          connectFailure ??= finalFailure
          state = computeNextFollowState(state, isEnd ? ended : { is: 'failed' }, timers.now())
        }
      }
    }
  }

  /**
   * Adds to the state all events that the stream has delivered. If the last list is older than a second, or
   * with `isForced`, also reads the list. `readNewEvents` emits these events later. May be called at any
   * time. Throws a `CliError` if the list cannot be read.
   */
  async refresh(isForced = false): Promise<void> {
    requireTimeLeft(this.#access.parts.deadline)
    const { timers } = this.#access.context.host
    // Lets Node read the socket first, so that the stream has all events that the service has sent.
    await timers.wait(0)
    this.#addStreamed()
    const { now, date } = this.#listedAt
    const ageMs = Math.max(timers.now() - now, timers.wallTime() - date)
    if (isForced || ageMs > maxListAgeMs) await this.#addNewList()
  }

  /**
   * Reads the session resource if the events show that the work is done. If the status of the resource shows
   * work in progress, the list lags behind, so the state becomes `working`.
   */
  async verifyStop(): Promise<void> {
    if (this.state.stop?.kind !== 'done') return
    const session = await readSessionResource(this.#access)
    if (session?.status === 'running' || session?.status === 'rescheduling')
      this.seen.log.addAccepted({ type: 'session.status_running' })
  }

  describeWaitingToolUses() {
    const { session } = this.#access.parts.params
    const { stop, answerable } = this.state
    const ids = stop?.kind === 'waiting' ? stop.ids : answerable
    if (ids.length === 0) return undefined
    const { pendingToolUseIds, consequence } = describeWaitingToolUses(this.#access, this.state, ids)
    const count = ids.length === 1 ? 'a tool use' : `${ids.length} tool uses`
    return { pendingToolUseIds, consequence: `${session} waits for an answer to ${count}\n${consequence}` }
  }

  addList(list: readonly EventItem[]): void {
    // Spreading a list of over 100,000 events exceeds the maximum number of call arguments.
    for (const item of this.seen.addList(list)) this.#notEmitted.push(item)
  }

  /** Makes `readNewEvents` yield a batch at once, even an empty one. */
  wake(): void {
    this.#isWoken = true
    this.#stream?.wake()
  }

  close(): void {
    this.#stopProgressLines()
    this.#stream?.close()
  }

  #connect(isSingle: boolean): Promise<EventStream> {
    const { caller, parts, context } = this.#access
    return openEventStream(caller, { ...parts, isSingle }, context.host.timers)
  }

  #describeLastEvent(): string {
    const last = this.#lastNewEvent
    if (!last) return 'no event yet'
    return `the last event was ${last.type}, ${formatTimeAgo(last.at, this.#access.context.host.timers.now())}`
  }

  async #readList(deadline = this.#access.parts.deadline): Promise<EventItem[]> {
    const { timers } = this.#access.context.host
    const parts = { ...this.#access.parts, deadline, isSingle: true }
    const requestedAt = { now: timers.now(), date: timers.wallTime() }
    const list =
      (await this.#readListBackwards(parts)) ??
      (await collectEvents(listEventsOldestFirst(this.#access.caller, parts)))
    if (this.#stream) this.#reconnectPolicy.recordResponse()
    else this.#reconnectPolicy.recordPartialResponse()
    this.#listedAt = requestedAt
    return list
  }

  /**
   * Reads the list from its newest event backwards until it overlaps the last list. Returns `undefined` if
   * the whole list is needed, for example because the service ignores the requested order.
   */
  async #readListBackwards(parts: RequestParts): Promise<EventItem[] | undefined> {
    if (!this.#listsInRequestedOrder || !this.seen.hasListEnd) return undefined
    const newest: EventItem[] = []
    for await (const page of listEvents(this.#access.caller, parts, { order: 'desc' })) {
      for (const item of page) newest.push(item)
      if (this.seen.overlapsLastList(newest)) return newest.reverse()
      if (newest.length > maxBackwardEvents) return undefined
    }
    this.#listsInRequestedOrder = false
    return undefined
  }

  #addStreamed(): void {
    for (const item of this.#stream?.drain() ?? []) this.#notEmitted.push(...this.seen.addStreamed(item))
  }

  async #addNewList(deadline?: Deadline): Promise<void> {
    this.addList(await this.#readList(deadline))
    this.#addStreamed()
  }

  /**
   * Reads the list after an idle event, because the stream may have omitted earlier events. The caller calls
   * this method again until the list contains the idle event and the answer to the sent task.
   */
  async #readFinalList(attempt: number): Promise<void> {
    const { messages } = this.#access.context
    const { deadline } = this.#access.parts
    this.listFailure = undefined
    if (attempt === 0)
      this.#finalListsDeadline = deadline.narrow(maxFinalListsMs, 'no complete list of events within 30 s')
    await deadline.wait(eventListPollDelaysMs[attempt] ?? 0)
    if (this.state.stop?.kind !== 'ended') requireTimeLeft(deadline)
    try {
      await this.#addNewList(
        this.#finalListsDeadline.narrow(maxOneListMs, 'no complete list of events within 10 s'),
      )
    } catch (error) {
      const isEnded = this.state.stop?.kind === 'ended'
      if (!(error instanceof CliError) || (error.details.status === 404 && !isEnded)) throw error
      if (isEnded) return this.seen.log.acceptUnlistedStop()
      requireTimeLeft(deadline)
      const waitMs = (error.details.retryAfterSeconds ?? 0) * 1000
      if (attempt < eventListPollDelaysMs.length - 1 && waitMs < this.#finalListsDeadline.leftMs)
        return this.#finalListsDeadline.wait(waitMs)
      messages.warn(
        `the list of events could not be read after the session stopped: ${error.message}; events may be missing`,
      )
      this.listFailure = error
      this.seen.log.acceptUnlistedStop()
    }
  }

  async #listAfter(delayMs: number, readsSession = false) {
    const { deadline } = this.#access.parts
    await deadline.wait(delayMs)
    requireTimeLeft(deadline)
    // Events of the stream may show that held-back events are old, so parley adds the stream's events before
    // it reads the list.
    if (this.seen.isHoldingBack) this.#addStreamed()
    const session = readsSession ? await readSessionResource(this.#access) : undefined
    const list = await this.#readList()
    const status = session && (typeof session.status === 'string' ? session.status : 'unknown')
    return { is: 'list', list, status } as const
  }

  async #listen(longestMs: number) {
    const maxMs = Math.min(longestMs, this.#access.parts.deadline.leftMs)
    const next = (await this.#stream?.next(maxMs)) ?? 'end'
    if (next === 'silence') return { is: 'silence', durationMs: maxMs } as const
    if (next === 'end') return { is: 'ended' } as const
    this.#reconnectPolicy.recordResponse()
    return { is: 'event', item: next } as const
  }

  async #reconnect() {
    const { deadline } = this.#access.parts
    requireTimeLeft(deadline)
    this.#stream?.close()
    this.#stream = undefined
    await deadline.wait(this.#reconnectPolicy.nextWaitMs())
    requireTimeLeft(deadline)
    this.#stream = await this.#connect(true)
    return { is: 'opened' } as const
  }
}

function createEmptySessionError({ context, parts }: SessionClient): CliError {
  const command = quoteShellWords([
    'parley',
    ...createResumeCommand(context, parts.params.session, { message: 'TASK' }),
  ])
  return new CliError('usage', `${parts.params.session} has no events yet`, {
    consequence: `to give it a task: ${command}`,
  })
}
