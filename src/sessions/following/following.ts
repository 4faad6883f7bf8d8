import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isPiece, isStop, type SessionEvent } from '../../wire/sessions/session-event.ts'
import type { ListedEvents, SeenEvents } from './seen-events.ts'

/*
 * How a session is followed. A list shows everything, but late. A stream shows everything soon, but only from when it
 * was opened. So that nothing is lost and nothing is shown twice, a follower is in one of these states:
 *
 *   placing     something was sent, and neither a list nor the stream has shown it: what they bring is held, as nobody
 *               can say what of it comes after
 *   joining     a stream was opened: what happened before its first event only a list can show
 *   comparing   an event of the stream is held until the list shows it too, or was asked often enough
 *   behind      the list was too late for that: it is compared again when the session stops
 *   current     list and stream have met: what the stream brings is what happened next
 *
 * In any of them the session may have come to rest. A rest that the stream has just brought ends it at once. Any other
 * is believed when the stream has ended, or has been listened to for a moment and is silent. As long as the service has
 * something left to do of what was sent, a rest is doubted for a while.
 *
 * Some services send no event for the rest of a plain turn (public clients, 4). If the agent has spoken, and nothing came
 * for long after that, the service is asked before the list is read. That it is idle is a rest if the list has nothing new,
 * until something comes.
 *
 * `next` is the state when what was sent is placed, and the list is to be read at `lookAt`. `pauses` is how long the
 * stream is listened to before each look at the list, and `waits` how long nothing is done before each.
 */
export type FollowState = { tracking: Tracking } & (
  | { is: 'placing'; next: 'joining' | 'current'; lookAt: number }
  | { is: 'joining'; pauses: readonly number[] }
  | { is: 'comparing'; item: EventItem; waits: readonly number[] }
  | { is: 'behind' }
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
  /** How many times the list was read in search of something; the pauses grow with it. */
  readonly looks: number
  readonly stoppedSince?: number
  readonly searchingSince?: number
}

/** The outcome of an effect. */
export type FollowInput =
  /** The list was read to its end; `isIdle` if the service had said that the session is. */
  | { is: 'list'; list: ListedEvents; isIdle?: boolean }
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
  | { is: 'shown'; of: 'event' | 'list' }

/** What the follower does next. Times are in milliseconds. */
export type Effect =
  /** Show these events, or none. */
  | { do: 'show'; items: EventItem[]; of: 'event' | 'list' }
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

/** How long the follower looks for events that were sent. After that, all that comes counts as later than they are. */
const longestSearch = 10_000

/** How long after a stop the service may still begin to work on an event that was sent. */
const longestTurn = 5_000

/** The pauses between two readings of the list, while the follower looks for something in it. */
const polls = [100, 250, 500, 1_000]

/** How long the list may lag behind the stream: the wait before each reading. */
const lookWaits = [0, 250, 500, 1_000]

/** The same after a cut, for events that no stream has brought: until `quiet`. */
const cutPauses = [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000]

const readList = { do: 'list', after: 0 } as const

/** The beginning, when a first stream is open. `sent` was sent since, so that this stream brings all that follows it. */
export function begin(seen: SeenEvents, stays: boolean, sent?: readonly SessionEvent[]): Advance {
  const tracking: Tracking = { seen, stays, looks: 0 }
  if (!sent) return { state: { tracking, is: 'joining', pauses: [] }, effect: readList }
  seen.addSent(sent)
  return { state: { tracking, is: 'placing', next: 'current', lookAt: Infinity }, effect: show([], 'list') }
}

/** Returns the next state and effect. Changes nothing but `SeenEvents`, which take in what came. */
export function step(state: FollowState, input: FollowInput, now: number): Advance {
  switch (input.is) {
    case 'list':
      return takeList(state, input, now)
    case 'event':
      return takeEvents(state, input.item, now)
    case 'shown':
      return input.of === 'event' ? endOr(state, now, goOn) : goOn(state, now)
    case 'silence':
      return endOr(state, now, () => ({ state: pauseLess(state), effect: lookAfter(state, input.of) }))
    case 'ended':
      return endOr(state, now, () => ({ state, effect: { do: 'connect', because: 'ended' } }))
    case 'opened':
      return open(state)
    case 'failed':
      // The stream is still there.
      if (state.is === 'comparing') return goOn({ ...state, waits: [] }, now)
      return { state, effect: { do: 'connect', because: 'failed' } }
  }
}

const show = (items: EventItem[], of: 'event' | 'list'): Effect => ({ do: 'show', items, of })

/** After a cut something may have happened that no stream brings. */
function open({ tracking }: FollowState): Advance {
  const { seen } = tracking
  seen.addConnection()
  const fresh = { ...tracking, settlesAt: undefined, looks: 0 }
  const state: FollowState = seen.isLost
    ? { tracking: fresh, is: 'placing', next: 'joining', lookAt: Infinity }
    : { tracking: fresh, is: 'joining', pauses: cutPauses }
  return { state, effect: readList }
}

function lookAfter({ tracking: { seen, stays } }: FollowState, silence: number): Effect {
  if (silence < quiet) return readList
  return { ...readList, asks: !stays && seen.mayRest }
}

function takeList(
  state: FollowState,
  { list, isIdle }: Extract<FollowInput, { is: 'list' }>,
  now: number,
): Advance {
  const { seen } = state.tracking
  const news = seen.addList(list)
  if (isIdle && news.length === 0 && seen.mayRest) seen.state.addTold()
  if (state.is === 'placing')
    return { state: seen.isLost ? lookLater(state, now) : placed(state), effect: show(news, 'list') }
  if (state.is === 'comparing' && list.shows(state.item))
    return { state: { tracking: state.tracking, is: 'current' }, effect: show(news, 'event') }
  return { state, effect: show(news, 'list') }
}

/** Takes in an event, and then those that the stream brought too early; then there is nothing to do but to listen. */
function takeEvents(before: FollowState, first: EventItem | undefined, now: number): Advance {
  let state = before
  let item = first
  for (;;) {
    const { seen } = state.tracking
    if (!item) {
      state = search(state, now)
      if (isOverdue(state, now)) return giveUp(state)
      item = seen.nextEarly()
    }
    if (!item) return listen(state, now)
    const taken = takeEvent(state, item, now)
    if (taken.effect) return { state: taken.state, effect: taken.effect }
    state = taken.state
    item = undefined
  }
}

/** There is no effect if nothing comes of the event. */
function takeEvent(
  state: FollowState,
  item: EventItem,
  now: number,
): { state: FollowState; effect?: Effect } {
  const { tracking } = state
  const { seen } = tracking
  if (isPiece(item.event) || !seen.isNew(item)) {
    // Whoever asks about a tool use has to know at once that it was shown with another input.
    if (seen.addAgain(item)) return { state, effect: show([], 'event') }
    // Without an id it may be another one that says the same: the list shows how many there are.
    const isUnclear = item.event.id === undefined && !isPiece(item.event)
    const isSettled = state.is === 'current' || state.is === 'behind'
    return { state: isUnclear && isSettled ? { tracking, is: 'joining', pauses: cutPauses } : state }
  }
  if (state.is === 'placing') {
    const lookAt = seen.isDoubtful(item) ? Math.min(state.lookAt, now) : state.lookAt
    seen.addStreamed(item)
    return seen.isLost ? { state: { ...state, lookAt } } : { state: placed(state), effect: show([], 'event') }
  }
  if (state.is === 'joining' || (state.is === 'behind' && isStop(item.event))) {
    const [, ...waits] = lookWaits
    return { state: { tracking, is: 'comparing', item, waits }, effect: readList }
  }
  return { state, effect: show(seen.addStreamed(item), 'event') }
}

/** Nothing came, or all of it was shown. */
function goOn(state: FollowState, now: number): Advance {
  if (state.is !== 'comparing') return takeEvents(state, undefined, now)
  const { tracking, item } = state
  const [after, ...waits] = state.waits
  if (after !== undefined) return { state: { ...state, waits }, effect: { do: 'list', after } }
  return { state: { tracking, is: 'behind' }, effect: show(tracking.seen.addStreamed(item), 'event') }
}

function listen(state: FollowState, now: number): Advance {
  const watched = watch(state, now)
  const { tracking } = watched
  const { settlesAt = now + settling, stoppedSince, searchingSince, looks } = tracking
  const settled: FollowState = { ...watched, tracking: { ...tracking, settlesAt } }
  if (isOver(settled, now))
    return { state: settled, effect: { do: 'listen', atMost: Math.max(0, settlesAt - now) } }
  if (settled.is === 'placing') {
    const placing = settled.lookAt === Infinity ? lookLater(settled, now) : settled
    const atMost = placing.lookAt - now
    return { state: placing, effect: atMost > 0 ? { do: 'listen', atMost } : readList }
  }
  const pause = (settled.is === 'joining' && settled.pauses[0]) || quiet
  const isLooking = searchingSince !== undefined || stoppedSince !== undefined
  if (!isLooking) return { state: settled, effect: { do: 'listen', atMost: pause } }
  return {
    state: { ...settled, tracking: { ...settled.tracking, looks: looks + 1 } },
    effect: { do: 'listen', atMost: Math.min(pauseOf(looks), pause) },
  }
}

const pauseOf = (looks: number) => polls[looks % polls.length] ?? quiet

const pauseLess = (state: FollowState): FollowState =>
  state.is === 'joining' ? { ...state, pauses: state.pauses.slice(1) } : state

type Placing = FollowState & { is: 'placing' }

const lookLater = (state: Placing, now: number): Placing => ({
  ...state,
  tracking: { ...state.tracking, looks: state.tracking.looks + 1 },
  lookAt: now + pauseOf(state.tracking.looks),
})

const whenPlaced = { joining: { is: 'joining', pauses: cutPauses }, current: { is: 'current' } } as const

const placed = ({ tracking, next }: Placing): FollowState => ({ tracking, ...whenPlaced[next] })

/** Ends the search for what was sent, or the search by its ids. */
function giveUp(before: FollowState): Advance {
  const { seen } = before.tracking
  seen.giveUp()
  const state = { ...before, tracking: { ...before.tracking, searchingSince: undefined } }
  return { state: state.is === 'placing' && !seen.isLost ? placed(state) : state, effect: readList }
}

function search(state: FollowState, now: number): FollowState {
  const { seen, searchingSince = now } = state.tracking
  return {
    ...state,
    tracking: { ...state.tracking, searchingSince: seen.isSearching ? searchingSince : undefined },
  }
}

const isOverdue = ({ tracking: { searchingSince = Infinity } }: FollowState, now: number) =>
  now - searchingSince > longestSearch

/** Ends if the session has stopped. */
function endOr(
  before: FollowState,
  now: number,
  otherwise: (state: FollowState, now: number) => Advance,
): Advance {
  const state = watch(before, now)
  return isOver(state, now) ? { state, effect: { do: 'end' } } : otherwise(state, now)
}

function watch(state: FollowState, now: number): FollowState {
  const { seen, stays, stoppedSince = now } = state.tracking
  const isStopped = !stays && seen.state.stop !== undefined
  return { ...state, tracking: { ...state.tracking, stoppedSince: isStopped ? stoppedSince : undefined } }
}

function isOver({ tracking: { seen, stoppedSince = Infinity } }: FollowState, now: number): boolean {
  if (seen.state.stop?.kind === 'ended') return true
  return now - stoppedSince >= (seen.isUndone ? longestTurn : 0)
}
