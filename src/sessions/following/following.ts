import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isEventPiece } from '../../wire/sessions/session-event.ts'
import { getEventIdentity, type SeenEvents } from './seen-events.ts'

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
 * the service has not started to work on the sent events, the follower first waits up to `maxStartDelayMs`.
 *
 * Some services send no idle event after an answer without a tool use, or after the last workflow run. After
 * `maxSilenceMs` without an event, the follower then reads the session resource and the list. If the resource
 * is idle and the list has no new event, the session counts as idle until the next event.
 *
 * A running session may need nothing but replies to tool uses of child threads. After `maxSilenceMs` without
 * an event, the session then counts as waiting.
 */
export type FollowState = CommonFields &
  /** `listenMs`: durations for which the follower listens to the stream before each next list. */
  (
    | { is: 'joining'; listenMs: readonly number[] }
    /** `listDelaysMs`: waits before the next lists, without listening to the stream. */
    | { is: 'comparing'; item: EventItem; listDelaysMs: readonly number[] }
    | { is: 'current' }
  )

interface CommonFields {
  /** `computeNextFollowStep` changes only this object; the other fields are immutable. */
  readonly seen: SeenEvents
  readonly followsForever: boolean
  /** If the stream of a stopped session is silent until this monotonic time, the follower ends. */
  readonly idleCountsAt?: number
  /** Monotonic time of the next list, while sent events are missing or the session is stopped. */
  readonly pollAt?: number
  readonly stoppedSince?: number
  readonly searchingSince?: number
}

export type FollowEffectResult =
  /**
   * `list`: all events, or the events since the last list. `isQuiet`: the stream was silent for
   * `maxSilenceMs`. `status`: status of the session resource, if the follower read the resource first.
   */
  | {
      is: 'list'
      list: readonly EventItem[]
      isQuiet?: boolean
      status?: string | undefined
    }
  | { is: 'event'; item: EventItem }
  | { is: 'silence'; durationMs: number }
  | { is: 'ended' }
  | { is: 'opened' }
  /** `isConnecting`: the request for another stream failed. */
  | { is: 'failed'; isConnecting?: boolean }
  /** The caller has processed the emitted events, and may have sent events. */
  | { is: 'shown' }

export type FollowEffect =
  /** Emit a batch of events, which may be empty. */
  | { do: 'show'; items: EventItem[] }
  | { do: 'list'; delayMs: number; isQuiet?: boolean; readsSession?: boolean }
  | { do: 'listen'; maxMs: number }
  | { do: 'connect' }
  | { do: 'end' }

export interface FollowStep {
  state: FollowState
  effect: FollowEffect
}

const silenceAfterIdleMs = 200

/** After this silence, the stream may have lost an event, so the follower reads the list. */
const maxSilenceMs = 30_000

/**
 * Time limits of the search for sent events. The follower first searches by the ids that the service returned
 * for them. After `idSearchMs`, it searches by content. The ids come first, because an older event that a
 * list shows late may have the same content. After `maxSearchMs`, every new event counts as later than the
 * sent events.
 */
const [idSearchMs, maxSearchMs] = [3_000, 10_000]

const maxStartDelayMs = 5_000

/** Pause between lists while sent events are missing or the session is stopped. */
const searchPauseMs = 250

/** Pause between lists while the session works on another client's task first. */
const queuedPauseMs = 5_000

const comparingDelaysMs = [250, 500, 1_000]

const reconnectPausesMs = [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000]

const readList = { do: 'list', delayMs: 0 } as const

const show = (items: EventItem[]): FollowEffect => ({ do: 'show', items })

/**
 * If events that the caller sent are missing, the follower starts with the stream alone, so the caller must
 * open the stream before it sends them. Otherwise the follower starts with the list.
 */
export function computeFirstFollowStep(seen: SeenEvents, followsForever: boolean): FollowStep {
  const tracking = { seen, followsForever }
  return seen.isMissingSentEvents
    ? { state: { ...tracking, is: 'current' }, effect: show([]) }
    : { state: { ...tracking, is: 'joining', listenMs: [] }, effect: readList }
}

export function computeNextFollowStep(
  before: FollowState,
  result: FollowEffectResult,
  now: number,
): FollowStep {
  const state = updateTimes(before, now)
  const { seen, followsForever } = state
  switch (result.is) {
    case 'list':
      return addList(state, result)
    case 'event':
      return addStreamEvent(state, result.item, now)
    case 'shown':
      return continueFollowing(state, now)
    case 'silence': {
      if (hasEnded(state, now)) return { state, effect: { do: 'end' } }
      const isQuiet = !followsForever && result.durationMs >= maxSilenceMs
      const effect = { ...readList, isQuiet, readsSession: isQuiet && seen.mayBeIdle }
      const next = state.is === 'joining' ? { ...state, listenMs: state.listenMs.slice(1) } : state
      return { state: next, effect }
    }
    case 'ended':
      return { state, effect: hasEnded(state, now) ? { do: 'end' } : { do: 'connect' } }
    case 'opened':
      // Neither the old nor the new stream delivers the events between them, so the follower reads the list.
      seen.addConnection()
      return {
        state: { ...state, is: 'joining', listenMs: reconnectPausesMs, idleCountsAt: undefined },
        effect: readList,
      }
    case 'failed':
      // Without a stream, only the list shows whether the session has stopped.
      if (result.isConnecting) return { state, effect: readList }
      // Only the request for the list failed, so the follower keeps the open stream.
      if (state.is === 'comparing') return continueFollowing({ ...state, listDelaysMs: [] }, now)
      return { state, effect: { do: 'connect' } }
  }
}

function addList(
  before: FollowState,
  { list, isQuiet, status }: Extract<FollowEffectResult, { is: 'list' }>,
): FollowStep {
  const { seen } = before
  const fresh = seen.addList(list)
  if (isQuiet && fresh.length === 0) {
    const isTerminated = status === 'terminated'
    const isIdle = status === undefined ? seen.state.isWaitingForRuns : isTerminated || status === 'idle'
    if (seen.mayBeIdle && isIdle) seen.state.addIdleResource(isTerminated)
    seen.state.addSilence()
  }
  const state = { ...before, pollAt: undefined }
  const found =
    state.is === 'comparing' &&
    !seen.isHoldingBack &&
    list.some((item) => getEventIdentity(item) === getEventIdentity(state.item))
  return { state: found ? { ...state, is: 'current' } : state, effect: show(fresh) }
}

function addStreamEvent(state: FollowState, item: EventItem, now: number): FollowStep {
  const { seen } = state
  if (isEventPiece(item.event) || !seen.isNew(item)) {
    // A repeated event may have another input than the first event with its id. The empty batch lets the
    // caller report this at once to a person who decides about the tool use.
    if (seen.addRepeated(item)) return { state, effect: show([]) }
    // An event without an id that equals an earlier event may be a repetition or a new event. The list
    // contains the right number of equal events, so the follower reads the list.
    const mayBeNew = item.event.id === undefined && !isEventPiece(item.event) && state.is === 'current'
    return listen(mayBeNew ? { ...state, is: 'joining', listenMs: reconnectPausesMs } : state, now)
  }
  if (state.is === 'joining' && !seen.isMissingSentEvents) {
    seen.addStreamed(item, true)
    return { state: { ...state, is: 'comparing', item, listDelaysMs: comparingDelaysMs }, effect: readList }
  }
  const fresh = seen.addStreamed(item)
  return seen.isMissingSentEvents ? listen(state, now) : { state, effect: show(fresh) }
}

function continueFollowing(state: FollowState, now: number): FollowStep {
  if (state.is !== 'comparing') return listen(state, now)
  const [delayMs, ...listDelaysMs] = state.listDelaysMs
  if (delayMs !== undefined) return { state: { ...state, listDelaysMs }, effect: { do: 'list', delayMs } }
  return { state: { ...state, is: 'current' }, effect: show(state.seen.release()) }
}

function listen(before: FollowState, now: number): FollowStep {
  const { idleCountsAt = now + silenceAfterIdleMs, ...others } = updateTimes(before, now)
  const { seen, searchingSince = now, stoppedSince } = others
  const state = { ...others, idleCountsAt }
  const searchLimitMs = seen.seeksIds ? idSearchMs : maxSearchMs
  if (now - searchingSince > searchLimitMs) {
    seen.endSearchPhase()
    return { state, effect: readList }
  }
  if (hasEnded(state, now)) return { state, effect: { do: 'listen', maxMs: Math.max(0, idleCountsAt - now) } }
  const pause = (state.is === 'joining' && state.listenMs[0]) || maxSilenceMs
  const isPolling = seen.isSearching || stoppedSince !== undefined
  if (!isPolling) return { state, effect: { do: 'listen', maxMs: pause } }
  const pollAt = state.pollAt ?? now + (seen.isQueued ? queuedPauseMs : searchPauseMs)
  if (pollAt <= now) return { state, effect: readList }
  const searchLeft = seen.isSearching ? searchLimitMs - (now - searchingSince) + 1 : Infinity
  return {
    state: { ...state, pollAt },
    effect: { do: 'listen', maxMs: Math.min(pollAt - now, pause, searchLeft) },
  }
}

function updateTimes(state: FollowState, now: number): FollowState {
  const { seen, followsForever, stoppedSince = now, searchingSince = now } = state
  const isStopped = !followsForever && seen.state.stop !== undefined
  return {
    ...state,
    stoppedSince: isStopped ? stoppedSince : undefined,
    searchingSince: seen.isSearching ? searchingSince : undefined,
  }
}

function hasEnded({ seen, stoppedSince = Infinity }: FollowState, now: number): boolean {
  if (seen.state.stop?.kind === 'ended') return true
  if (seen.isQueued) return false
  return now - stoppedSince >= (seen.isWorkPending ? maxStartDelayMs : 0)
}
