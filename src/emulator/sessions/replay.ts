import { formatFieldPath } from '../../wire/json/parse.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isClientEvent, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { type EmulatedResponse, toErrorResponse } from '../response.ts'
import { toolReplyTypes } from './agent.ts'
import { type ClientEvent, EmulatedSession } from './session.ts'

/**
 * Replays a recorded session. At first, the session has the events before the first client event of the
 * record. When a client sends that event, the session adds the events up to the next client event.
 */
export class ReplaySession extends EmulatedSession {
  /** When a client sends a recorded event, the event in the record gets the content that the client sent. */
  #record: readonly EventItem[]

  constructor(id: string, record: readonly EventItem[]) {
    super(id)
    this.#record = record
    this.#publishUntil(findNextClientEvent(record, 0))
  }

  override accept(parameters: readonly ClientEvent[]): EmulatedResponse | undefined {
    const record = [...this.#record]
    let end = this.events.length
    for (const [index, parameter] of parameters.entries()) {
      const next = findNextClientEvent(record, end)
      const found = findRecorded(record, parameter, next)
      if (found === undefined) {
        const problem = `${formatFieldPath(['events', index])}: ${describeExpected(record, next)}`
        return toErrorResponse(409, problem)
      }
      // The client may send adjacent client events in another order than in the record. So the sent event
      // moves to the position `next`.
      const [item] = record.splice(found, 1) as [EventItem]
      record.splice(next, 0, withContent(item, parameter))
      end = next + 1
    }
    this.#record = record
    this.#publishUntil(findNextClientEvent(record, end))
    return undefined
  }

  override describe() {
    const { id, events } = this
    const usage = events.findLast(({ event }) => event.type === 'session.usage')
    return {
      id,
      type: 'session',
      // A replay adds events only when a client sends an event.
      status: 'idle',
      created_at: getTime(this.#record[0]),
      updated_at: getTime(events.at(-1) ?? this.#record[0]),
      usage: usage?.event.usage,
    }
  }

  #publishUntil(end: number): void {
    for (const item of this.#record.slice(this.events.length, end)) this.publish(item)
  }
}

const getTime = (item: EventItem | undefined): string => item?.event.processed_at ?? ''

function findNextClientEvent(record: readonly EventItem[], from: number): number {
  const index = record.findIndex(({ event }, at) => at >= from && isClientEvent(event))
  return index < 0 ? record.length : index
}

function findRecorded(record: readonly EventItem[], parameter: ClientEvent, from: number) {
  for (const [index, { event }] of record.slice(from).entries()) {
    if (!isClientEvent(event)) return undefined
    if (matchesEvent(parameter, event)) return from + index
  }
  return undefined
}

/** Compares the types and, for replies, the tool use and the decision. A message may have any text. */
function matchesEvent(parameter: ClientEvent, recorded: SessionEvent): boolean {
  const field = toolReplyTypes.get(recorded.type)?.field
  if (parameter.type !== recorded.type || field === undefined) return parameter.type === recorded.type
  const sent = parameter as ClientEvent & Record<string, unknown>
  return sent[field] === recorded[field] && sent.result === recorded.result
}

function withContent({ event: recorded }: EventItem, sent: ClientEvent): EventItem {
  const { id, processed_at } = recorded
  const event = { ...recorded, ...sent, id, processed_at }
  return { event, text: JSON.stringify(event) }
}

function describeExpected(record: readonly EventItem[], at: number): string {
  const item = record[at]
  if (!item) return 'the recording has no further event'
  const { type, tool_use_id: id, custom_tool_use_id: custom, result } = item.event
  const words = [type, id ?? custom, result].filter((word) => typeof word === 'string')
  return `expected ${words.join(' ')}, event ${at + 1} of ${record.length} recorded events`
}
