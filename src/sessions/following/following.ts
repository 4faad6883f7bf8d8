import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isPiece, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { keyOf, type SeenEvents } from './seen-events.ts'

/*
 * How a session is followed. A list shows everything, but late. A stream shows everything soon, but only from when it
 * was opened. So that nothing is shown twice, and all in its order, a follower is in one of these states:
 *
 *   joining     a stream was opened: what happened before its first event only a list can show
 *   comparing   that event is held until the list shows it too, or was asked often enough
 *   current     list and stream have met: what the stream brings is what happened next
 *
 * In any of them something that was sent may be searched for. As long as neither a list nor the stream has shown it, what
 * they bring is held: nobody can say what of it comes after.
 *
 * In any of them the session may have come to rest. A rest is believed when the stream has ended, or has been listened to for
 * a moment and is silent. As long as the service has something left to do of what was sent, a rest is doubted for a while.
 *
 * Some services send no event for the rest of a plain turn (public clients, 4). If the agent has spoken, and nothing came
 * for long after that, the service is asked before the list is read. That it is idle is a rest if the list has nothing new,
 * until something comes.
 *
 * `pauses` is how long the stream is listened to before each look at the list, and `waits` how long nothing is done before
 * each.
 */
export type FollowState = Tracking &
  (
    | { is: 'joining'; pauses: readonly number[] }
    | { is: 'comparing'; item: EventItem; waits: readonly number[] }
    | { is: 'current' }
  )

/** What a follower knows in any state. */
interface Tracking {
  /** Grows with what is seen. */
  readonly seen: SeenEvents
  /** The session is followed until it is terminated or deleted. */
  readonly stays: boolean
  /** Until when a stream is listened to at least before a rest is believed. */
  readonly settlesAt?: number
  /** When the list is read, if something is searched for, or a rest is doubted; and how often it was read, for pauses grow. */
  readonly lookAt?: number
  readonly looks: number
  readonly stoppedSince?: number
  readonly searchingSince?: number
}

/** The outcome of an effect. */
export type FollowInput =
  /** The list was read to its end; `isIdle` if the service had said that the session is. */
  | { is: 'list'; list: readonly EventItem[]; isIdle?: boolean }
  /** The stream brought an event. */
  | { is: 'event'; item: EventItem }
  /** The stream brought nothing for so many milliseconds. */
  | { is: 'silence'; of: number }
  /** The stream ended. */
  | { is: 'ended' }
  /** Another stream was opened. */
  | { is: 'opened' }
  /** The effect failed. */
  | { is: 'failed' }
  /** Events were shown; meanwhile something may have been sent to the session. */
  | { is: 'shown' }

/** What the follower does next. Times are in milliseconds. */
export type Effect =
  /** Show these events, or none. */
  | { do: 'show'; items: EventItem[] }
  /** Wait, then read the list; `asks` whether the session is idle before that. */
  | { do: 'list'; after: number; asks?: boolean }
  /** Wait for the next event of the stream, but no longer than that. */
  | { do: 'listen'; atMost: number }
  /** Open another stream, as the last one ended, or something went wrong. */
  | { do: 'connect'; because: 'ended' | 'failed' }
  /** The session has stopped. */
  | { do: 'end' }

export interface Advance {
  state: FollowState
  effect: Effect
}

/** How long a stream is listened to before a rest that it has not brought is believed: a list may lag. */
const settling = 200

/** A stream that brings no event for so long may have lost one: the list is read. */
const quiet = 30_000

/**
 * Time limits for finding the sent events: by the receipt's ids only, if no older event is equal and otherwise, and at all. After
 * the last limit, every new event counts as later.
 */
const [shortestSearchOfIds, longestSearchOfIds, longestSearch] = [1_000, 3_000, 10_000]

/** How long after a stop the service may still begin to work on an event that was sent. */
const longestTurn = 5_000

/** The pauses between two readings of the list, while the follower looks for something in it. */
const polls = [100, 250, 500, 1_000]

/** The same while the sent task waits for the end of another turn. */
const longestPoll = 5_000

/** How long the list may lag behind the stream: the wait before each further reading. */
const lookWaits = [250, 500, 1_000]

/** The same after a cut, for events that no stream has brought: until `quiet`. */
const cutPauses = [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000]

const readList = { do: 'list', after: 0 } as const

const show = (items: EventItem[]): Effect => ({ do: 'show', items })

/** The beginning, when a first stream is open. `sent` was sent since, so that this stream brings all that follows it. */
export function begin(seen: SeenEvents, stays: boolean, sent?: readonly SessionEvent[]): Advance {
  const tracking = { seen, stays, looks: 0 }
  if (!sent) return { state: { ...tracking, is: 'joining', pauses: [] }, effect: readList }
  seen.addSent(sent)
  return { state: { ...tracking, is: 'current' }, effect: show([]) }
}

/** Returns the next state and effect. Changes nothing but `SeenEvents`, which take in what came. */
export function step(before: FollowState, input: FollowInput, now: number): Advance {
  const state = watch(before, now)
  const { seen, stays } = state
  switch (input.is) {
    case 'list':
      return takeList(state, input)
    case 'event':
      return takeEvent(state, input.item, now)
    case 'shown':
      return goOn(state, now)
    case 'silence': {
      if (isOver(state, now)) return { state, effect: { do: 'end' } }
      const isLong = input.of >= quiet
      const effect = isLong ? { ...readList, asks: !stays && seen.mayRest } : readList
      return { state: state.is === 'joining' ? { ...state, pauses: state.pauses.slice(1) } : state, effect }
    }
    case 'ended':
      return { state, effect: isOver(state, now) ? { do: 'end' } : { do: 'connect', because: 'ended' } }
    case 'opened':
      // After a cut something may have happened that no stream brings.
      seen.addConnection()
      return {
        state: { ...state, is: 'joining', pauses: cutPauses, settlesAt: undefined, looks: 0 },
        effect: readList,
      }
    case 'failed':
      // The stream is still there.
      if (state.is === 'comparing') return goOn({ ...state, waits: [] }, now)
      return { state, effect: { do: 'connect', because: 'failed' } }
  }
}

function takeList(before: FollowState, { list, isIdle }: Extract<FollowInput, { is: 'list' }>): Advance {
  const { seen } = before
  const news = seen.addList(list)
  if (isIdle && news.length === 0 && seen.mayRest) seen.state.addIdleResource()
  const state = { ...before, looks: before.looks + 1, lookAt: undefined }
  const hasMet = state.is === 'comparing' && list.some((item) => keyOf(item) === keyOf(state.item))
  return { state: hasMet ? { ...state, is: 'current' } : state, effect: show(news) }
}

function takeEvent(state: FollowState, item: EventItem, now: number): Advance {
  const { seen } = state
  if (isPiece(item.event) || !seen.isNew(item)) {
    // Whoever asks about a tool use has to know at once that it was shown with another input.
    if (seen.addAgain(item)) return { state, effect: show([]) }
    // Without an id it may be another one that says the same: the list shows how many there are.
    const isUnclear = item.event.id === undefined && !isPiece(item.event) && state.is === 'current'
    return listen(isUnclear ? { ...state, is: 'joining', pauses: cutPauses } : state, now)
  }
  if (state.is === 'joining' && !seen.isLost) {
    seen.hold(item)
    return { state: { ...state, is: 'comparing', item, waits: lookWaits }, effect: readList }
  }
  const news = seen.addStreamed(item)
  return seen.isLost ? listen(state, now) : { state, effect: show(news) }
}

/** All that came was shown. */
function goOn(state: FollowState, now: number): Advance {
  if (state.is !== 'comparing') return listen(state, now)
  const [after, ...waits] = state.waits
  if (after !== undefined) return { state: { ...state, waits }, effect: { do: 'list', after } }
  return { state: { ...state, is: 'current' }, effect: show(state.seen.release()) }
}

/** Nothing is left to do but to listen, or to look for what does not come. */
function listen(before: FollowState, now: number): Advance {
  const { settlesAt = now + settling, looks, ...others } = watch(before, now)
  const { seen, searchingSince = now, stoppedSince } = others
  const state = { ...others, settlesAt, looks }
  const longest = readSearchLimit(seen)
  if (now - searchingSince > longest) {
    seen.giveUp()
    return { state, effect: readList }
  }
  if (isOver(state, now)) return { state, effect: { do: 'listen', atMost: Math.max(0, settlesAt - now) } }
  const pause = (state.is === 'joining' && state.pauses[0]) || quiet
  const isLooking = seen.isSearching || stoppedSince !== undefined
  if (!isLooking) return { state, effect: { do: 'listen', atMost: pause } }
  const wait = seen.isQueued ? longestPoll : (polls[looks % polls.length] ?? quiet)
  const lookAt = state.lookAt ?? now + wait
  if (lookAt <= now) return { state, effect: readList }
  const searchLeft = seen.isSearching ? longest - (now - searchingSince) + 1 : Infinity
  return {
    state: { ...state, lookAt },
    effect: { do: 'listen', atMost: Math.min(lookAt - now, pause, searchLeft) },
  }
}

function readSearchLimit({ seeksIds, isAmbiguous }: SeenEvents): number {
  if (!seeksIds) return longestSearch
  return isAmbiguous ? longestSearchOfIds : shortestSearchOfIds
}

/** Takes from what was seen since when the session has stopped, and since when something is searched for. */
function watch(state: FollowState, now: number): FollowState {
  const { seen, stays, stoppedSince = now, searchingSince = now } = state
  const isStopped = !stays && seen.state.stop !== undefined
  return {
    ...state,
    stoppedSince: isStopped ? stoppedSince : undefined,
    searchingSince: seen.isSearching ? searchingSince : undefined,
  }
}

function isOver({ seen, stoppedSince = Infinity }: FollowState, now: number): boolean {
  if (seen.state.stop?.kind === 'ended') return true
  if (seen.isQueued) return false
  return now - stoppedSince >= (seen.isUndone ? longestTurn : 0)
}
