import { EventEmitter } from 'node:events'
import type { SendEvents } from '../../wire/sessions/send-events.ts'
import type { EmulatedResponse } from '../response.ts'

export type Parameters = SendEvents['events'][number]

/** An event with its exact JSON. */
export interface ListedEvent {
  id: string | undefined
  type: string
  text: string
}

/** Whether a client sent it, and not the service. */
export const isFromClient = ({ type }: { type: string }): boolean => /^(user|system)\./.test(type)

/** What any session has. */
export abstract class Session {
  readonly id: string
  readonly events: ListedEvent[] = []
  /** Its events from now on, each as an `event`. */
  readonly newEvents = new EventEmitter().setMaxListeners(0)

  constructor(id: string) {
    this.id = id
  }

  /**
   * Takes all events, in their order, or returns a refusal and takes none. `fields` are what a client who makes the session
   * says about it.
   */
  abstract accept(parameters: readonly Parameters[], fields?: object): EmulatedResponse | undefined
  /** As the service describes it (public clients, 9). */
  abstract describe(): { id: string; created_at: string } & Record<string, unknown>

  protected show(event: ListedEvent): void {
    this.events.push(event)
    this.newEvents.emit('event', event)
  }
}
