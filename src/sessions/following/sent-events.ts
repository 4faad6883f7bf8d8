import { readText, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { isWork } from '../session-state.ts'

/** The events that were sent, to be found among those that a session shows. */
export class SentEvents {
  /** What an event is found by, and how many are still to be found by it. */
  readonly #missing = new Map<string, number>()
  readonly #keyOf: (event: SessionEvent) => string
  #firstId: string | undefined
  #missingWork: number
  /** The ids of those that were found, but that the service has not started to work on. */
  readonly #queued = new Set<string>()

  /** They are found by their ids or, where the service gave none, by what they say. */
  constructor(sent: readonly SessionEvent[]) {
    this.#keyOf = sent.some(({ id }) => id !== undefined) ? ({ id }) => id ?? '' : contentOf
    for (const event of sent) this.#missing.set(this.#keyOf(event), this.#countOf(event) + 1)
    this.#missingWork = sent.filter(isWork).length
  }

  /** Whether some of them, interrupts aside, are not found yet, or wait for their turn. */
  get isUndone(): boolean {
    return this.#missingWork > 0 || this.#queued.size > 0
  }

  /** Whether it is one of them. Each is found once. */
  find(event: SessionEvent): boolean {
    const count = this.#countOf(event)
    if (count === 0) return false
    this.#missing.set(this.#keyOf(event), count - 1)
    this.#firstId ??= event.id
    if (!isWork(event)) return true
    this.#missingWork--
    if (event.id !== undefined && event.processed_at === null) this.#queued.add(event.id)
    return true
  }

  /** Takes from any event that is shown, also again, whether it still waits for its turn. */
  addProgress({ id, processed_at: processedAt }: SessionEvent): void {
    if (id !== undefined && processedAt) this.#queued.delete(id)
  }

  /** Whether it is the first of them in a list, found already or not. */
  isFirst(event: SessionEvent, isNew: boolean): boolean {
    return (this.#firstId !== undefined && event.id === this.#firstId) || (isNew && this.#countOf(event) > 0)
  }

  #countOf(event: SessionEvent): number {
    return this.#missing.get(this.#keyOf(event)) ?? 0
  }
}

/** What an event says: a service may add fields to it, but not change these. */
const contentOf = (event: SessionEvent): string =>
  JSON.stringify([
    event.type,
    event.tool_use_id ?? event.custom_tool_use_id ?? event.session_thread_id ?? null,
    event.description ?? readText(event),
  ])
