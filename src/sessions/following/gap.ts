import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isStop, type SessionEvent } from '../../wire/sessions/session-event.ts'

/** How long a list may take to show what the stream has brought: the waits before each look. Milliseconds. */
const waits = [0, 250, 500, 1_000]

/**
 * What happened between two streams, which only a list can show. Before the first news of a stream the list is read
 * until it shows that too. A list that is too late for it is read again when the session stops.
 */
export class Gap {
  #state: 'unknown' | 'open' | 'closed' = 'unknown'
  /** The id of the event that the list has to show, and the waits before the looks that are left for it. */
  #wanted: string | undefined
  #waits: number[] = []

  get isLooking(): boolean {
    return this.#wanted !== undefined
  }

  /** Nothing can have happened there. */
  close(): void {
    this.#state = 'closed'
  }

  /** How long to wait until the next look at the list, where one has to come before this new event. Milliseconds. */
  nextLook(event: SessionEvent): number | undefined {
    const isDue = this.#state === 'unknown' || (this.#state === 'open' && isStop(event))
    if (!this.isLooking && isDue && event.id !== undefined) {
      this.#state = 'open'
      this.#wanted = event.id
      this.#waits = [...waits]
    }
    return this.#waits.shift()
  }

  addList(items: readonly EventItem[]): void {
    if (!this.isLooking || !items.some(({ event }) => event.id === this.#wanted)) return
    this.#state = 'closed'
    this.#waits = []
  }

  /** The list could not be read; it may be later. */
  addFailure(): void {
    this.#waits = []
  }

  /** The event that the list had to show was added. */
  endLook(): void {
    this.#wanted = undefined
  }
}
