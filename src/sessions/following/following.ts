import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isPreview, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { getKey, type SeenEvents } from './seen-events.ts'

/*
 * Follows a session through two sources. The list contains every event, but late. The stream delivers events
 * at once, but only events since the stream was opened. To emit each event once and in order, the follower has
 * three states:
 *
 * - joining: a stream was opened. Only a list contains the events before its first event.
 * - comparing: the stream's first event is held back until a list contains it, or until the list was read often
 *   enough.
 * - current: a list has contained an event of the stream. From now on, the stream's events are the next events.
 *
 * While the follower searches for the events that it sent, it holds back new events, because it cannot tell
 * which of them came later.
 *
 * The session counts as idle when the stream ended, or stayed silent for `settleMs` after an idle event. If
 * the service has not yet worked on the sent events, the follower waits up to `maxTurnDelayMs` for it to
 * start.
 *
 * Some services send no idle event after a turn without tool uses. If the agent has sent a message and the stream
 * stays silent, the follower queries the session resource before it reads the list. If the resource is idle and
 * the list has no new event, the session counts as idle until the next event. The same rule applies if the last
 * workflow run ended while the session was idle, and no idle event follows.
 *
 * After the same silence, a running session counts as waiting if tool uses of its child threads wait and no work is
 * known to be in progress.
 *
 * Between two readings of the list, the follower listens to the stream for a time of `pauses`, or waits for a time
 * of `waits` without listening. Both are in milliseconds.
 */
export type FollowState = Tracking &
  (
    | { is: 'joining'; pauses: readonly number[] }
    | { is: 'comparing'; item: EventItem; waits: readonly number[] }
    | { is: 'current' }
  )

/** Fields that all states of the follower have. */
interface Tracking {
  /** Changes with each received event. */
  readonly seen: SeenEvents
  /** Continues after the session stops, until it is terminated or deleted. */
  readonly followsForever: boolean
  /** Monotonic time until which the stream must stay silent before an idle event counts. */
  readonly settlesAt?: number
  /**
   * Monotonic time of the next reading of the list, while sent events are searched for or an idle event is
   * not certain. `polls` counts these readings, because the pauses between them grow.
   */
  readonly pollAt?: number
  readonly polls: number
  readonly stoppedSince?: number
  readonly searchingSince?: number
}

/** Result of an effect, which is the input of the next step. */
export type FollowInput =
  /**
   * A list was read. `list` contains all events, or only the events that are new since the last list.
   * `isQuiet`: the stream was silent for a long time before. `status`: status of the session resource, if
   * parley queried it before it read the list.
   */
  | {
      is: 'list'
      list: readonly EventItem[]
      isQuiet?: boolean
      status?: string | undefined
    }
  /** The stream delivered an event. */
  | { is: 'event'; item: EventItem }
  /** The stream was silent for `of` milliseconds. */
  | { is: 'silence'; of: number }
  | { is: 'ended' }
  | { is: 'opened' }
  /** A request failed. `isConnecting`: it was the request for another stream. */
  | { is: 'failed'; isConnecting?: boolean }
  /** The caller has received the emitted events. It may have sent events itself in the meantime. */
  | { is: 'shown' }

/** The action that the follower takes next. Times are in milliseconds. */
export type Effect =
  /** Emit `items` as one batch of events, which may be empty. */
  | { do: 'show'; items: EventItem[] }
  /**
   * Wait for `after`, then read the list. `isQuiet`: the stream has been silent for long. `queriesSession`:
   * query the session resource before reading the list.
   */
  | { do: 'list'; after: number; isQuiet?: boolean; queriesSession?: boolean }
  /** Wait for the next event of the stream. */
  | { do: 'listen'; atMost: number }
  /** Open another stream. */
  | { do: 'connect'; because: 'ended' | 'failed' }
  | { do: 'end' }

export interface FollowStep {
  state: FollowState
  effect: Effect
}

/** Silence of the stream after which an idle event counts. */
const settleMs = 200

/** A stream that is silent for longer may have lost an event, so the list is read. */
const maxSilenceMs = 30_000

/**
 * Time limits of the search for sent events. The search first uses the ids of the receipt: for `idSearchMs`,
 * or for `ambiguousIdSearchMs` if an older event has the same content. It ends after `maxSearchMs`; then
 * every new event counts as later than the sent ones.
 */
const [idSearchMs, ambiguousIdSearchMs, maxSearchMs] = [1_000, 3_000, 10_000]

/** After a stop, the service gets this time to start work on a sent event. */
const maxTurnDelayMs = 5_000

/** Pauses between readings of the list during a search for sent events. */
const pollPausesMs = [100, 250, 500, 1_000]

/** Pause between readings of the list while the sent task is queued behind another turn. */
const queuedPollPauseMs = 5_000

/** Pauses between readings of a list that does not yet contain the stream's first event. */
const listWaitsMs = [250, 500, 1_000]

/** Pauses between readings of the list after a reconnect, to find events that no stream delivered. */
const cutPausesMs = [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000]

const readList = { do: 'list', after: 0 } as const

const show = (items: EventItem[]): Effect => ({ do: 'show', items })

/**
 * Returns the first state and effect. The caller must open the first stream before it sends `sent`, so that
 * the stream delivers every event after that.
 */
export function startFollowing(
  seen: SeenEvents,
  followsForever: boolean,
  sent?: readonly SessionEvent[],
): FollowStep {
  const tracking = { seen, followsForever, polls: 0 }
  if (!sent) return { state: { ...tracking, is: 'joining', pauses: [] }, effect: readList }
  seen.addSent(sent)
  return { state: { ...tracking, is: 'current' }, effect: show([]) }
}

/** Returns the next state and effect. Changes only the `SeenEvents` of the state. */
export function stepFollowState(before: FollowState, input: FollowInput, now: number): FollowStep {
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
      // Neither stream delivers the events between the two connections, so a list is read.
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
): FollowStep {
  const { seen } = before
  const fresh = seen.addList(list)
  if (isQuiet && fresh.length === 0) {
    const isTerminated = status === 'terminated'
    const isIdle = status === undefined ? seen.state.isBetweenRuns : isTerminated || status === 'idle'
    if (seen.mayBeIdle && isIdle) seen.state.addIdleResource(isTerminated)
    seen.state.addSilence()
  }
  const state = { ...before, polls: before.polls + 1, pollAt: undefined }
  const hasMet = state.is === 'comparing' && list.some((item) => getKey(item) === getKey(state.item))
  return { state: hasMet ? { ...state, is: 'current' } : state, effect: show(fresh) }
}

function takeEvent(state: FollowState, item: EventItem, now: number): FollowStep {
  const { seen } = state
  if (isPreview(item.event) || !seen.isNew(item)) {
    // The event may give a known tool use a second, different input. An empty batch makes the caller show
    // this immediately to a person who decides about the tool use.
    if (seen.addAgain(item)) return { state, effect: show([]) }
    // Without an id, an equal event may be a repetition or a new event. The list has the right number of
    // equal events, so it is read.
    const isUnclear = item.event.id === undefined && !isPreview(item.event) && state.is === 'current'
    return listen(isUnclear ? { ...state, is: 'joining', pauses: cutPausesMs } : state, now)
  }
  if (state.is === 'joining' && !seen.lacksSentEvents) {
    seen.hold(item)
    return { state: { ...state, is: 'comparing', item, waits: listWaitsMs }, effect: readList }
  }
  const fresh = seen.addStreamed(item)
  return seen.lacksSentEvents ? listen(state, now) : { state, effect: show(fresh) }
}

/** Continues after all events were emitted. */
function continueFollowing(state: FollowState, now: number): FollowStep {
  if (state.is !== 'comparing') return listen(state, now)
  const [after, ...waits] = state.waits
  if (after !== undefined) return { state: { ...state, waits }, effect: { do: 'list', after } }
  return { state: { ...state, is: 'current' }, effect: show(state.seen.release()) }
}

/** Listens to the stream. During a search for sent events, also reads the list. */
function listen(before: FollowState, now: number): FollowStep {
  const { settlesAt = now + settleMs, polls, ...others } = updateTimes(before, now)
  const { seen, searchingSince = now, stoppedSince } = others
  const state = { ...others, settlesAt, polls }
  const searchLimitMs = getSearchLimitMs(seen)
  if (now - searchingSince > searchLimitMs) {
    seen.narrowSearch()
    return { state, effect: readList }
  }
  if (isOver(state, now)) return { state, effect: { do: 'listen', atMost: Math.max(0, settlesAt - now) } }
  const pause = (state.is === 'joining' && state.pauses[0]) || maxSilenceMs
  const isPolling = seen.isSearching || stoppedSince !== undefined
  if (!isPolling) return { state, effect: { do: 'listen', atMost: pause } }
  const wait = seen.isQueued ? queuedPollPauseMs : (pollPausesMs[polls % pollPausesMs.length] ?? maxSilenceMs)
  const pollAt = state.pollAt ?? now + wait
  if (pollAt <= now) return { state, effect: readList }
  const searchLeft = seen.isSearching ? searchLimitMs - (now - searchingSince) + 1 : Infinity
  return {
    state: { ...state, pollAt },
    effect: { do: 'listen', atMost: Math.min(pollAt - now, pause, searchLeft) },
  }
}

function getSearchLimitMs({ seeksIds, isAmbiguous }: SeenEvents): number {
  if (!seeksIds) return maxSearchMs
  return isAmbiguous ? ambiguousIdSearchMs : idSearchMs
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
