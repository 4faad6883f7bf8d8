import { EventEmitter } from 'node:events'
import type { SendEventsBody } from '../../wire/sessions/send-events.ts'
import type { EmulatedResponse } from '../response.ts'

export type ClientEvent = SendEventsBody['events'][number]

export interface ListedEvent {
  id: string | undefined
  type: string
  text: string
}

export const isFromClient = ({ type }: { type: string }): boolean => /^(user|system)\./.test(type)

export abstract class EmulatedSession {
  readonly id: string
  readonly events: ListedEvent[] = []
  /** Emits `event` for each new event of the session. */
  readonly newEvents = new EventEmitter().setMaxListeners(0)

  constructor(id: string) {
    this.id = id
  }

  /**
   * Accepts all events in order. If one of them is invalid, accepts none and returns an error response.
   * `fields`: fields of the session resource that the client sets.
   */
  abstract accept(parameters: readonly ClientEvent[], fields?: object): EmulatedResponse | undefined
  abstract describe(): { id: string; created_at: string } & Record<string, unknown>

  protected publish(event: ListedEvent): void {
    this.events.push(event)
    this.newEvents.emit('event', event)
  }
}
