import { usageError } from '../../errors.ts'
import { formatFieldPath, tryParseJson } from '../../wire/json/parse.ts'
import { isClientEvent, SessionEvent } from '../../wire/sessions/session-event.ts'
import { type EmulatedResponse, toErrorResponse } from '../response.ts'
import { toolReplyTypes } from './agent.ts'
import { type ClientEvent, type EmulatedEvent, EmulatedSession } from './session.ts'

/** Parses the output of `events list --raw` or `events follow --raw`. Throws a usage error. */
export function parseRecordedEvents(text: string, name: string): EmulatedEvent[] {
  const known = new Set<string>()
  const events: EmulatedEvent[] = []
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue
    const event = SessionEvent.safeParse(tryParseJson(line))
    if (!event.success)
      throw usageError(
        `${name}: line ${index + 1} is not an event in the form that 'events list --raw' prints`,
      )
    const { id, type } = event.data
    // The output of `events follow --raw` may repeat an event, so the repetition is skipped.
    if (id !== undefined && known.has(id)) continue
    if (id !== undefined) known.add(id)
    events.push({ id, type, text: line.trim() })
  }
  if (events.length === 0)
    throw usageError(`${name}: contains no event; 'parley events list --raw' prints a session's events`)
  return events
}

/**
 * Replays a recorded session. At first, it has the events before the first client event of the record. When
 * a client sends that event, the session adds the events up to the next client event.
 */
export class ReplaySession extends EmulatedSession {
  /** When a client sends a recorded event, the event in the record gets the content that the client sent. */
  #record: readonly EmulatedEvent[]

  constructor(id: string, record: readonly EmulatedEvent[]) {
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
      // The client may send adjacent client events of the record in any order.
      const [event] = record.splice(found, 1) as [EmulatedEvent]
      record.splice(next, 0, withContent(event, parameter))
      end = next + 1
    }
    this.#record = record
    this.#publishUntil(findNextClientEvent(record, end))
    return undefined
  }

  override describe() {
    const { id, events } = this
    const usage = events.findLast(({ type }) => type === 'session.usage')
    const last = events.findLast(({ type }) => statusChange.test(type))
    return {
      id,
      type: 'session',
      status: last ? (statusChange.exec(last.type)?.[1] ?? 'running') : 'idle',
      created_at: getTime(this.#record[0]),
      updated_at: getTime(events.at(-1) ?? this.#record[0]),
      usage: usage && JSON.parse(usage.text).usage,
    }
  }

  #publishUntil(end: number): void {
    for (const event of this.#record.slice(this.events.length, end)) this.publish(event)
  }
}

const statusChange = /^(?:user|system)\.|^session\.status_(idle|running|terminated|rescheduling)/

const getTime = (event: EmulatedEvent | undefined): string =>
  (event && JSON.parse(event.text).processed_at) ?? ''

function findNextClientEvent(record: readonly EmulatedEvent[], from: number): number {
  const index = record.findIndex((event, at) => at >= from && isClientEvent(event))
  return index < 0 ? record.length : index
}

function findRecorded(
  record: readonly EmulatedEvent[],
  parameter: ClientEvent,
  from: number,
): number | undefined {
  for (const [index, event] of record.slice(from).entries()) {
    if (!isClientEvent(event)) return undefined
    if (matchesEvent(parameter, event)) return from + index
  }
  return undefined
}

/** Compares the types and, for replies, the tool use and the decision. A message may have any text. */
function matchesEvent(parameter: ClientEvent, { type, text }: EmulatedEvent): boolean {
  const field = toolReplyTypes.get(type)?.field
  if (parameter.type !== type || field === undefined) return parameter.type === type
  const recorded = JSON.parse(text)
  const sent = parameter as ClientEvent & Record<string, unknown>
  return sent[field] === recorded[field] && sent.result === recorded.result
}

function withContent(event: EmulatedEvent, sent: ClientEvent): EmulatedEvent {
  const recorded = JSON.parse(event.text)
  const { id, processed_at } = recorded
  return { ...event, text: JSON.stringify({ ...recorded, ...sent, id, processed_at }) }
}

function describeExpected(record: readonly EmulatedEvent[], at: number): string {
  const event = record[at]
  if (!event) return 'the recording has no further event'
  const { type, tool_use_id: id, custom_tool_use_id: custom, result } = JSON.parse(event.text)
  const words = [type, id ?? custom, result].filter((word) => typeof word === 'string')
  return `expected ${words.join(' ')}, event ${at + 1} of ${record.length} recorded events`
}
