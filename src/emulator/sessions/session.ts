import { EventEmitter } from 'node:events'
import type { SendEventsBody } from '../../wire/sessions/send-events.ts'
import type { EmulatedResponse } from '../response.ts'

export type ClientEvent = SendEventsBody['events'][number]

export interface EmulatedEvent {
  id: string | undefined
  type: string
  text: string
}

export abstract class EmulatedSession {
  readonly id: string
  readonly events: EmulatedEvent[] = []
  /** Emits `event` with an `EmulatedEvent`. */
  readonly newEvents = new EventEmitter().setMaxListeners(0)

  constructor(id: string) {
    this.id = id
  }

  /**
   * Accepts the events. If one event is invalid, accepts none and returns an error response. `fields` replace
   * fields of the session.
   */
  abstract accept(parameters: readonly ClientEvent[], fields?: object): EmulatedResponse | undefined
  abstract describe(): { id: string; created_at: string } & Record<string, unknown>

  protected publish(event: EmulatedEvent): void {
    this.events.push(event)
    this.newEvents.emit('event', event)
  }
}
