import type { Timers } from '../../client/timer.ts'
import type { Sieve } from './sieve.ts'

/** How long a session at rest is listened to: a list may lag. Milliseconds. */
const settling = 200

/** A stream that brings no event for so long may have lost one: the list is asked. Milliseconds. */
const quiet = 30_000

/** How long events that were sent are looked for, before anything that comes counts as after them. Milliseconds. */
const longestSearch = 10_000

/** How long after a rest the turn of something that was sent may begin, which is shown to wait. Milliseconds. */
const longestTurn = 5_000

/** How long the stream is waited for between two looks at the list, while something is looked for. Milliseconds. */
const polls = [100, 250, 500, 1_000]

/** When a followed session is over, and how long to wait until the next look at it. */
export interface Watch {
  /** A stream was opened. */
  begin(): void
  /** The rest that ends the run has come. */
  isOver(): boolean
  /** What was sent has been looked for long enough. */
  isOverdue(): boolean
  /** How long the next event is waited for before the list is asked. Milliseconds. */
  patience(): number
}

/** With `stays` only the end of the session is one. */
export function createWatch(sieve: Sieve, timers: Timers, stays: boolean): Watch {
  let settled = 0
  let looks = 0
  let restingSince: number | undefined
  let searchingSince: number | undefined

  function isOver(): boolean {
    const { state, isUndone } = sieve
    if (stays || state.hasEnded) return state.hasEnded
    restingSince = state.rest ? (restingSince ?? timers.now()) : undefined
    return restingSince !== undefined && timers.now() - restingSince >= (isUndone ? longestTurn : 0)
  }

  return {
    begin() {
      settled = timers.now() + settling
      looks = 0
    },
    isOver,
    isOverdue() {
      const isSearching = sieve.isLost || sieve.isBehind
      searchingSince = isSearching ? (searchingSince ?? timers.now()) : undefined
      return searchingSince !== undefined && timers.now() - searchingSince > longestSearch
    },
    patience() {
      if (isOver()) return settled - timers.now()
      const isLooking = searchingSince !== undefined || restingSince !== undefined
      return (isLooking ? polls[looks++ % polls.length] : undefined) ?? quiet
    },
  }
}
