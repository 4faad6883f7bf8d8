import type { SendEvents } from '../../wire/sessions/send-events.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'

export type Parameters = SendEvents['events'][number]

/** An event with its exact JSON. */
export interface ListedEvent {
  id: string | undefined
  type: string
  processedAt: string
  text: string
}

export const toListed = ({ id, type, processed_at: at }: SessionEvent, text: string): ListedEvent => ({
  id,
  type,
  processedAt: at ?? '',
  text,
})

/** Events as they were accepted, or why none was. */
export type Acceptance = { accepted: ListedEvent[] } | { status: 400 | 409; problem: string }

/** What any session has: its events so far, and those who follow them. */
export abstract class Session {
  readonly id: string
  readonly events: ListedEvent[] = []
  readonly #listeners = new Set<(event: ListedEvent) => void>()

  constructor(id: string) {
    this.id = id
  }

  /** Takes all events, in their order, or none. */
  abstract accept(parameters: readonly Parameters[]): Acceptance
  /** Keeps what a client says about it. */
  abstract update(fields: object): void
  /** As the service describes it (public clients, 9). */
  abstract describe(): { id: string; created_at: string } & Record<string, unknown>

  /** Calls `listener` for each event from now on; returns what ends that. */
  listen(listener: (event: ListedEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  protected show(event: ListedEvent): void {
    this.events.push(event)
    for (const listener of this.#listeners) listener(event)
  }
}
