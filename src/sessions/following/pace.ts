import type { News } from './news.ts'

/** How long a session that has stopped is listened to: a list may lag. Milliseconds. */
const settling = 200

/** A stream that brings no event for so long may have lost one: the list is read. Milliseconds. */
const quiet = 30_000

/** How long events that were sent are looked for, before anything that comes counts as after them. Milliseconds. */
const longestSearch = 10_000

/** How long after a stop an event that was sent, and waits for its turn, may start one. Milliseconds. */
const longestTurn = 5_000

/** How long the stream is listened to between two looks at the list, while something is looked for. Milliseconds. */
const polls = [100, 250, 500, 1_000]

/** When a followed session is over, and how long it is listened to until then. `now` is in milliseconds. */
export class Pace {
  readonly #news: News
  readonly #stays: boolean
  #settledAt: number | undefined
  #poll = 0
  #stoppedSince: number | undefined
  #searchingSince: number | undefined
  #hasGivenUp = false

  /** With `stays` only the end of the session counts. */
  constructor(news: News, stays: boolean) {
    this.#news = news
    this.#stays = stays
  }

  /** A stream was opened. */
  addConnection(): void {
    this.#settledAt = undefined
    this.#poll = 0
  }

  /** Whether the session has stopped, so that there is nothing more to follow. */
  isOver(now: number): boolean {
    const { state, isUndone } = this.#news
    const hasEnded = state.stop?.kind === 'ended'
    if (this.#stays || hasEnded) return hasEnded
    this.#stoppedSince = state.stop ? (this.#stoppedSince ?? now) : undefined
    return this.#stoppedSince !== undefined && now - this.#stoppedSince >= (isUndone ? longestTurn : 0)
  }

  /** Whether what was sent has been looked for long enough; the list is then read once more, soon. */
  isOverdue(now: number): boolean {
    this.#searchingSince = this.#news.isSearching ? (this.#searchingSince ?? now) : undefined
    const isOverdue = this.#searchingSince !== undefined && now - this.#searchingSince > longestSearch
    this.#hasGivenUp ||= isOverdue
    return isOverdue
  }

  /** How long the next event is waited for before the list is read. Milliseconds. */
  patience(now: number): number {
    this.#settledAt ??= now + settling
    if (this.isOver(now)) return Math.max(0, this.#settledAt - now)
    const isLooking =
      this.#hasGivenUp || this.#searchingSince !== undefined || this.#stoppedSince !== undefined
    this.#hasGivenUp = false
    return (isLooking ? polls[this.#poll++ % polls.length] : undefined) ?? quiet
  }
}
