import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isEventPiece } from '../../wire/sessions/session-event.ts'
import type { SeenEvents } from './seen-events.ts'

/*
 * Decides the next step of the follower, which receives a session's events from two sources:
 *
 * - The list contains every event, but some events appear in it late.
 * - The stream delivers each event at once, but only events since the stream was opened.
 *
 * The follower must emit each event once and in the list's order. A follower is in one of three states:
 *
 * - joining: the stream is open. Events before its first event are only in the list.
 * - comparing: the follower holds back the first event of the stream until the list contains it. After the
 *   last delay of `listDelaysMs`, the follower emits the event anyway.
 * - current: the follower emits each new event of the stream at once.
 *
 * After sending events, the follower searches the list and the stream for them. Until it finds them, it holds
 * back all new events, because these may be earlier than the sent events. If only an earlier stream contained
 * the sent events, the comparison also waits until the list contains them.
 *
 * The follower ends after an idle event, if the stream has ended or stays silent for `silenceAfterIdleMs`. If
 * the service has not started to work on the sent events, or on a reply to one of several waiting tool uses,
 * the follower first waits up to `maxStartDelayMs`. A follower that follows forever then only reads the list,
 * and continues.
 *
 * Some services send no idle event after an answer without a tool use, or after the last workflow run. After
 * `maxSilenceMs` without an event, the follower then reads the session resource and the list. If the resource
 * is idle and the list has nothing new, the session counts as idle until the next event.
 *
 * A running session may need nothing but replies to tool uses of child threads. After `maxSilenceMs` without
 * an event, the session then counts as waiting.
 */
type FollowState = CommonFields &
  /**
   * `listenDurationsMs`: the follower listens to the stream for the first duration, reads the list, listens
   * for the second duration, and so on.
   */
  (
    | { is: 'joining'; listenDurationsMs: readonly number[] }
    /** `listDelaysMs`: waits before the next lists. Meanwhile, the follower does not read the stream. */
    | { is: 'comparing'; listDelaysMs: readonly number[] }
    | { is: 'current' }
  )

interface CommonFields {
  /** `computeNextFollowState` changes only this object; the other fields are immutable. */
  readonly seen: SeenEvents
  readonly followsForever: boolean
  readonly effect: FollowEffect
  /** Monotonic time at which the follower ends if the session is stopped and the stream is silent. */
  readonly endsWhenSilentAtMs?: number
  /** Monotonic time of the next list, while sent events are missing or the session is stopped. */
  readonly nextListAtMs?: number
  readonly stoppedSince?: number
  readonly searchingSince?: number
}

type FollowEffectResult =
  /**
   * `list`: all events, or the events since the last list. `status`: status of the session resource, if the
   * follower read the resource first.
   */
  | { is: 'list'; list: readonly EventItem[]; status?: string | undefined }
  | { is: 'event'; item: EventItem }
  | { is: 'silence'; durationMs: number }
  | { is: 'ended' }
  | { is: 'opened' }
  | { is: 'failed' }
  /** The caller has processed the emitted events, and may have sent events. */
  | { is: 'emitted' }

type FollowEffect =
  | { do: 'emit'; items: EventItem[] }
  /** `isQuiet`: the stream was silent for `maxSilenceMs`. */
  | { do: 'list'; delayMs: number; isQuiet?: boolean; readsSession?: boolean }
  | { do: 'listen'; maxMs: number }
  | { do: 'connect' }
  | { do: 'end' }

const silenceAfterIdleMs = 200

/** After this silence, the stream may have lost an event, so the follower reads the list. */
const maxSilenceMs = 30_000

/**
 * Time limits of the search for sent events. The follower first searches by the ids that the service
 * returned, and after `idSearchMs` by content. Content comes second, because it also matches an equal older
 * event that the list shows late. After `maxSearchMs`, the search ends, and every new event counts as later
 * than the sent events.
 */
const [idSearchMs, maxSearchMs] = [3_000, 10_000]

const maxStartDelayMs = 5_000

/** Pause between lists while sent events are missing or the session is stopped. */
const searchPauseMs = 250

/** Pause between lists while the session works on another client's task before it starts the sent task. */
const queuedPauseMs = 5_000

const comparingDelaysMs = [250, 500, 1_000]

const reconnectPausesMs = [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000]

const readList = { do: 'list', delayMs: 0 } as const

const emit = (items: EventItem[]): FollowEffect => ({ do: 'emit', items })

/**
 * Returns the first state, in which the follower reads the list. If the caller has sent events that neither
 * the list nor the stream has shown, the follower first reads the stream. So the caller opens the stream
 * before it sends events.
 */
export const computeFirstFollowState = (seen: SeenEvents, followsForever: boolean): FollowState =>
  seen.isMissingSentEvents
    ? { seen, followsForever, is: 'current', effect: emit([]) }
    : { seen, followsForever, is: 'joining', listenDurationsMs: [], effect: readList }

export function computeNextFollowState(
  before: FollowState,
  result: FollowEffectResult,
  now: number,
): FollowState {
  const state = updateTimes(before, now)
  const { seen, followsForever } = state
  switch (result.is) {
    case 'list':
      return addList(state, result)
    case 'event':
      return addStreamEvent(state, result.item, now)
    case 'emitted':
      return continueFollowing(state, now)
    case 'silence': {
      if (hasEnded(state, now)) return { ...state, effect: { do: 'end' } }
      const isQuiet = !followsForever && result.durationMs >= maxSilenceMs
      const effect = { ...readList, isQuiet, readsSession: isQuiet && seen.mayBeIdle }
      if (state.is !== 'joining') return { ...state, effect }
      return { ...state, listenDurationsMs: state.listenDurationsMs.slice(1), effect }
    }
    case 'ended':
      return { ...state, effect: { do: hasEnded(state, now) ? 'end' : 'connect' } }
    case 'opened':
      // Neither the old nor the new stream delivers the events that happened between them, so the follower
      // reads the list.
      seen.addConnection()
      return { ...joinStream(state), endsWhenSilentAtMs: undefined, effect: readList }
    case 'failed':
      // Without a stream, only the list shows whether the session has stopped.
      if (state.effect.do === 'connect') return { ...state, effect: readList }
      // Only the request for the list failed, so the follower keeps the open stream.
      if (state.is === 'comparing') return continueFollowing({ ...state, listDelaysMs: [] }, now)
      return { ...state, effect: { do: 'connect' } }
  }
}

function addList(
  before: FollowState,
  { list, status }: Extract<FollowEffectResult, { is: 'list' }>,
): FollowState {
  const { seen, effect } = before
  const fresh = seen.addList(list)
  if (effect.do === 'list' && effect.isQuiet && fresh.length === 0) {
    const isTerminated = status === 'terminated'
    const isIdle = status === undefined ? seen.state.isWaitingForRuns : isTerminated || status === 'idle'
    if (seen.mayBeIdle && isIdle) seen.state.addIdleResource(isTerminated)
    seen.state.addSilence()
  }
  const state = { ...before, nextListAtMs: undefined, effect: emit(fresh) }
  return state.is === 'comparing' && !seen.isHoldingBack ? { ...state, is: 'current' } : state
}

function addStreamEvent(state: FollowState, item: EventItem, now: number): FollowState {
  const { seen } = state
  if (isEventPiece(item.event) || !seen.isNew(item)) {
    // The event repeats a tool use with a different name or input. The follower emits an empty batch, so that
    // the caller withdraws the prompt about the tool use.
    if (seen.addReplayed(item)) return { ...state, effect: emit([]) }
    // An event without an id that equals an earlier event may be a repetition or a new event. The list
    // contains the right number of equal events, so the follower reads the list.
    const mayBeNew = item.event.id === undefined && !isEventPiece(item.event) && state.is === 'current'
    return listen(mayBeNew ? joinStream(state) : state, now)
  }
  if (state.is === 'joining' && !seen.isMissingSentEvents) {
    seen.addStreamed(item, true)
    const compared = { ...state, is: 'comparing', listDelaysMs: comparingDelaysMs, effect: readList } as const
    return seen.isHoldingBack ? compared : { ...state, effect: readList }
  }
  const fresh = seen.addStreamed(item)
  return seen.isMissingSentEvents ? listen(state, now) : { ...state, effect: emit(fresh) }
}

const joinStream = (state: FollowState): FollowState => ({
  ...state,
  is: 'joining',
  listenDurationsMs: reconnectPausesMs,
})

function continueFollowing(state: FollowState, now: number): FollowState {
  if (state.is !== 'comparing') return listen(state, now)
  const [delayMs, ...listDelaysMs] = state.listDelaysMs
  if (delayMs !== undefined) return { ...state, listDelaysMs, effect: { do: 'list', delayMs } }
  return { ...state, is: 'current', effect: emit(state.seen.release()) }
}

function listen(before: FollowState, now: number): FollowState {
  const { endsWhenSilentAtMs = now + silenceAfterIdleMs, ...others } = updateTimes(before, now)
  const { seen, searchingSince = now, stoppedSince } = others
  const state = { ...others, endsWhenSilentAtMs }
  const searchLimitMs = seen.seeksIds ? idSearchMs : maxSearchMs
  if (now - searchingSince > searchLimitMs) {
    seen.endSearchPhase()
    return { ...state, effect: readList }
  }
  const listenFor = (maxMs: number): FollowEffect => ({ do: 'listen', maxMs })
  if (hasEnded(state, now)) return { ...state, effect: listenFor(Math.max(0, endsWhenSilentAtMs - now)) }
  const pause = (state.is === 'joining' && state.listenDurationsMs[0]) || maxSilenceMs
  const isPolling = seen.isSearching || stoppedSince !== undefined
  if (!isPolling) return { ...state, effect: listenFor(pause) }
  const nextListAtMs = state.nextListAtMs ?? now + (seen.isQueued ? queuedPauseMs : searchPauseMs)
  if (nextListAtMs <= now) return { ...state, effect: readList }
  const searchLeft = seen.isSearching ? searchLimitMs - (now - searchingSince) + 1 : Infinity
  return { ...state, nextListAtMs, effect: listenFor(Math.min(nextListAtMs - now, pause, searchLeft)) }
}

function updateTimes(state: FollowState, now: number): FollowState {
  const { seen, followsForever, stoppedSince = now, searchingSince = now } = state
  const isStopped = seen.state.stop !== undefined && !(followsForever && seen.log.isStopListed)
  return {
    ...state,
    stoppedSince: isStopped ? stoppedSince : undefined,
    searchingSince: seen.isSearching ? searchingSince : undefined,
  }
}

function hasEnded({ seen, stoppedSince = Infinity }: FollowState, now: number): boolean {
  const { stop, hasReplySinceStop } = seen.state
  if (stop?.kind === 'ended') return true
  if (stop === undefined || seen.isQueued) return false
  const mayStart = seen.isWorkPending || seen.task.awaitsOwnTurn || hasReplySinceStop
  return now - stoppedSince >= (mayStart ? maxStartDelayMs : 0)
}
