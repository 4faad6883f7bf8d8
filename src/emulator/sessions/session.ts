import { EventEmitter } from 'node:events'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import type { SendEventsBody } from '../../wire/sessions/send-events.ts'
import type { EmulatedResponse } from '../response.ts'

export type ClientEvent = SendEventsBody['events'][number]

export abstract class EmulatedSession {
  readonly id: string
  readonly events: EventItem[] = []
  readonly newEvents = new EventEmitter<{ event: [EventItem] }>().setMaxListeners(0)

  constructor(id: string) {
    this.id = id
  }

  /**
   * Accepts the events. If one event is invalid, accepts none and returns an error response. `fields` replace
   * fields of the session.
   */
  abstract accept(parameters: readonly ClientEvent[], fields?: object): EmulatedResponse | undefined
  abstract describe(): { id: string; created_at: string } & Record<string, unknown>

  protected publish(item: EventItem): void {
    this.events.push(item)
    this.newEvents.emit('event', item)
  }
}
