import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isPreview, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { getKey, type SeenEvents } from './seen-events.ts'

/*
 * Follows a session through two sources. The list contains every event, but late. The stream delivers events
 * at once, but only events since the stream was opened. To emit each event once and in order, the follower has
 * three states:
 *
 * - joining: a stream was opened. Only a list can show the events before its first event.
 * - comparing: the stream's first event is held back until the list shows this event, or was read often
 *   enough.
 * - current: list and stream have met. Events of the stream are the next events.
 *
 * While the follower searches for the events that it sent, it holds back new events, because it cannot tell
 * which of them came later.
 *
 * The session counts as idle when the stream ended, or stayed silent for `settleMs` after an idle event. If
 * the service has not yet worked on the sent events, the follower waits up to `maxTurnDelayMs` for it to
 * start.
 *
 * Some services send no idle event after a plain turn (public clients, 4). If the agent has sent a message
 * and the stream stays silent, the follower queries the session resource before it reads the list. If the
 * resource is idle and the list has nothing new, the session counts as idle until the next event. The same
 * holds if the last workflow run ended while the session was idle, and no idle event follows.
 *
 * A running session in which only tool uses of child threads wait, and nothing is known to work, counts as
 * waiting after the same silence.
 *
 * `pauses` are the times to listen to the stream before each reading of the list, `waits` the pauses without
 * any action.
 */
export type FollowState = Tracking &
  (
    | { is: 'joining'; pauses: readonly number[] }
    | { is: 'comparing'; item: EventItem; waits: readonly number[] }
    | { is: 'current' }
  )

/** Data of every state. */
interface Tracking {
  /** Grows with each received event. */
  readonly seen: SeenEvents
  /** Follows the session until it is terminated or deleted. */
  readonly followsForever: boolean
  /** Monotonic time until which the stream must stay silent before an idle event counts. */
  readonly settlesAt?: number
  /**
   * Time of the next reading of the list during a search or a doubt about an idle event, and the number of
   * readings, because the pauses grow.
   */
  readonly pollAt?: number
  readonly polls: number
  readonly stoppedSince?: number
  readonly searchingSince?: number
}

/** Result of an effect. */
export type FollowInput =
  /**
   * The whole list. `isQuiet`: the list was read after a long silence. `status`: status of
   * the session resource before the reading, if known.
   */
  | {
      is: 'list'
      list: readonly EventItem[]
      isQuiet?: boolean
      status?: string | undefined
    }
  /** An event of the stream. */
  | { is: 'event'; item: EventItem }
  /** The stream was silent for `of` milliseconds. */
  | { is: 'silence'; of: number }
  | { is: 'ended' }
  | { is: 'opened' }
  /** `isConnecting`: another stream could not be opened. */
  | { is: 'failed'; isConnecting?: boolean }
  /** Events were emitted. Meanwhile the caller may have sent something to the session. */
  | { is: 'shown' }

/** The next effect. Times are in milliseconds. */
export type Effect =
  /** Emit these events, which may be none. */
  | { do: 'show'; items: EventItem[] }
  /**
   * Wait, then read the list. `isQuiet`: the silence was long. `queriesSession`: query the session resource before
   * reading the list.
   */
  | { do: 'list'; after: number; isQuiet?: boolean; queriesSession?: boolean }
  /** Wait for the next event of the stream, at most this time. */
  | { do: 'listen'; atMost: number }
  /** Open another stream, because the last one ended or a request failed. */
  | { do: 'connect'; because: 'ended' | 'failed' }
  | { do: 'end' }

export interface Advance {
  state: FollowState
  effect: Effect
}

/** Time of silence after which an idle event counts, because a list may lag. */
const settleMs = 200

/** A stream that is silent for this time may have lost an event, so the list is read. */
const maxSilenceMs = 30_000

/**
 * Time limits of the search for sent events: by the receipt's ids only, for events that differ from all older
 * events and for others, and in total. After the last limit, every new event counts as later.
 */
const [minIdSearchMs, maxIdSearchMs, maxSearchMs] = [1_000, 3_000, 10_000]

/** Maximum time after a stop in which the service may start to work on a sent event. */
const maxTurnDelayMs = 5_000

/** Pauses between readings of the list during a search. */
const pollPausesMs = [100, 250, 500, 1_000]

/** Pause during a search while the sent task waits for the end of another turn. */
const maxPollPauseMs = 5_000

/** Waits before each reading of a list that lags behind the stream. */
const listWaitsMs = [250, 500, 1_000]

/** Pauses after a cut, for events that no stream delivered. */
const cutPausesMs = [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000]

const readList = { do: 'list', after: 0 } as const

const show = (items: EventItem[]): Effect => ({ do: 'show', items })

/**
 * Starts to follow when the first stream is open. `sent` was sent after that, so the stream delivers
 * everything after it.
 */
export function startFollowing(
  seen: SeenEvents,
  followsForever: boolean,
  sent?: readonly SessionEvent[],
): Advance {
  const tracking = { seen, followsForever, polls: 0 }
  if (!sent) return { state: { ...tracking, is: 'joining', pauses: [] }, effect: readList }
  seen.addSent(sent)
  return { state: { ...tracking, is: 'current' }, effect: show([]) }
}

/** Returns the next state and effect. Only `SeenEvents` is changed. */
export function stepFollowState(before: FollowState, input: FollowInput, now: number): Advance {
  const state = updateTimes(before, now)
  const { seen, followsForever } = state
  switch (input.is) {
    case 'list':
      return takeList(state, input)
    case 'event':
      return takeEvent(state, input.item, now)
    case 'shown':
      return continueFollowing(state, now)
    case 'silence': {
      if (isOver(state, now)) return { state, effect: { do: 'end' } }
      const isQuiet = !followsForever && input.of >= maxSilenceMs
      const effect = { ...readList, isQuiet, queriesSession: isQuiet && seen.mayBeIdle }
      return { state: state.is === 'joining' ? { ...state, pauses: state.pauses.slice(1) } : state, effect }
    }
    case 'ended':
      return { state, effect: isOver(state, now) ? { do: 'end' } : { do: 'connect', because: 'ended' } }
    case 'opened':
      // Between two streams, events may have happened that neither stream delivers, so a list is read.
      seen.addConnection()
      return {
        state: { ...state, is: 'joining', pauses: cutPausesMs, settlesAt: undefined, polls: 0 },
        effect: readList,
      }
    case 'failed':
      // Without a stream, only the list shows the end of the turn.
      if (input.isConnecting) return { state, effect: readList }
      // Only the list failed, and the stream is still open.
      if (state.is === 'comparing') return continueFollowing({ ...state, waits: [] }, now)
      return { state, effect: { do: 'connect', because: 'failed' } }
  }
}

function takeList(
  before: FollowState,
  { list, isQuiet, status }: Extract<FollowInput, { is: 'list' }>,
): Advance {
  const { seen } = before
  const news = seen.addList(list)
  if (isQuiet && news.length === 0) {
    const isTerminated = status === 'terminated'
    const isIdle = status === undefined ? seen.state.isBetweenRuns : isTerminated || status === 'idle'
    if (seen.mayBeIdle && isIdle) seen.state.addIdleResource(isTerminated)
    seen.state.addSilence()
  }
  const state = { ...before, polls: before.polls + 1, pollAt: undefined }
  const hasMet = state.is === 'comparing' && list.some((item) => getKey(item) === getKey(state.item))
  return { state: hasMet ? { ...state, is: 'current' } : state, effect: show(news) }
}

function takeEvent(state: FollowState, item: EventItem, now: number): Advance {
  const { seen } = state
  if (isPreview(item.event) || !seen.isNew(item)) {
    // A person who decides about a tool use must see at once that the session showed it with another input.
    // So an empty batch is emitted.
    if (seen.addAgain(item)) return { state, effect: show([]) }
    // Without an id, an equal event may be a repetition or a new event. The list shows the number of equal
    // events, so it is read.
    const isUnclear = item.event.id === undefined && !isPreview(item.event) && state.is === 'current'
    return listen(isUnclear ? { ...state, is: 'joining', pauses: cutPausesMs } : state, now)
  }
  if (state.is === 'joining' && !seen.isLost) {
    seen.hold(item)
    return { state: { ...state, is: 'comparing', item, waits: listWaitsMs }, effect: readList }
  }
  const news = seen.addStreamed(item)
  return seen.isLost ? listen(state, now) : { state, effect: show(news) }
}

/** Continues after all events were emitted. */
function continueFollowing(state: FollowState, now: number): Advance {
  if (state.is !== 'comparing') return listen(state, now)
  const [after, ...waits] = state.waits
  if (after !== undefined) return { state: { ...state, waits }, effect: { do: 'list', after } }
  return { state: { ...state, is: 'current' }, effect: show(state.seen.release()) }
}

/** Listens to the stream, or reads the list during a search. */
function listen(before: FollowState, now: number): Advance {
  const { settlesAt = now + settleMs, polls, ...others } = updateTimes(before, now)
  const { seen, searchingSince = now, stoppedSince } = others
  const state = { ...others, settlesAt, polls }
  const searchLimitMs = readSearchLimit(seen)
  if (now - searchingSince > searchLimitMs) {
    seen.narrowSearch()
    return { state, effect: readList }
  }
  if (isOver(state, now)) return { state, effect: { do: 'listen', atMost: Math.max(0, settlesAt - now) } }
  const pause = (state.is === 'joining' && state.pauses[0]) || maxSilenceMs
  const isPolling = seen.isSearching || stoppedSince !== undefined
  if (!isPolling) return { state, effect: { do: 'listen', atMost: pause } }
  const wait = seen.isQueued ? maxPollPauseMs : (pollPausesMs[polls % pollPausesMs.length] ?? maxSilenceMs)
  const pollAt = state.pollAt ?? now + wait
  if (pollAt <= now) return { state, effect: readList }
  const searchLeft = seen.isSearching ? searchLimitMs - (now - searchingSince) + 1 : Infinity
  return {
    state: { ...state, pollAt },
    effect: { do: 'listen', atMost: Math.min(pollAt - now, pause, searchLeft) },
  }
}

function readSearchLimit({ seeksIds, isAmbiguous }: SeenEvents): number {
  if (!seeksIds) return maxSearchMs
  return isAmbiguous ? maxIdSearchMs : minIdSearchMs
}

/** Updates the two timestamps: when the session stopped, and when the search for the sent events began. */
function updateTimes(state: FollowState, now: number): FollowState {
  const { seen, followsForever, stoppedSince = now, searchingSince = now } = state
  const isStopped = !followsForever && seen.state.stop !== undefined
  return {
    ...state,
    stoppedSince: isStopped ? stoppedSince : undefined,
    searchingSince: seen.isSearching ? searchingSince : undefined,
  }
}

function isOver({ seen, stoppedSince = Infinity }: FollowState, now: number): boolean {
  if (seen.state.stop?.kind === 'ended') return true
  if (seen.isQueued) return false
  return now - stoppedSince >= (seen.isUndone ? maxTurnDelayMs : 0)
}
