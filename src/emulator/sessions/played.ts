import { usageError } from '../../errors.ts'
import { formatPath, tryParseJson } from '../../wire/json/parse.ts'
import { SessionEvent } from '../../wire/sessions/session-event.ts'
import { type EmulatedResponse, errorResponse, newId } from '../response.ts'
import { replies } from './agent.ts'
import { isFromClient, type ListedEvent, type Parameters, Session } from './session.ts'

/** Reads what `events list --raw` printed: an event a line. Throws a usage error. */
export function readRecord(text: string, name: string): ListedEvent[] {
  const known = new Set<string>()
  const events: ListedEvent[] = []
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue
    const event = SessionEvent.safeParse(tryParseJson(line))
    if (!event.success)
      throw usageError(`${name}: line ${index + 1} is not an event, as 'events list --raw' prints it`)
    const { id, type } = event.data
    // A stream that was followed may have brought one again.
    if (id !== undefined && known.has(id)) continue
    if (id !== undefined) known.add(id)
    events.push({ id, type, text: line.trim() })
  }
  if (events.length === 0) throw usageError(`${name}: no event is in it`)
  return events
}

/** Plays a session that was recorded: what followed an event of a client's comes when a client sends such an event. */
export class PlayedSession extends Session {
  /** Events that were played have the content that was sent. */
  #record: readonly ListedEvent[]

  constructor(id: string, record: readonly ListedEvent[]) {
    super(id)
    this.#record = record
    this.#showTo(findNextSent(record, 0))
  }

  override accept(parameters: readonly Parameters[]): EmulatedResponse | undefined {
    const record = [...this.#record]
    let end = this.events.length
    for (const [index, parameter] of parameters.entries()) {
      const next = findNextSent(record, end)
      const found = findPlace(record, parameter, next)
      const thread = found === undefined ? findEndedThread(record.slice(0, end), parameter) : undefined
      if (thread !== undefined) {
        if (parameter.type !== 'user.tool_confirmation')
          return errorResponse(400, `${formatPath(['events', index])}: its thread ${thread} has ended`)
        // It is accepted, and has no effect (public clients, 10).
        const id = newId('sevt')
        const event = { id, processed_at: timeOf(record[end - 1]), ...parameter }
        record.splice(end++, 0, { id, type: parameter.type, text: JSON.stringify(event) })
        continue
      }
      if (found === undefined) {
        const problem = `${formatPath(['events', index])}: ${describeExpected(record, next)}`
        return errorResponse(409, problem)
      }
      // Those that were sent together may be sent in any order.
      const [event] = record.splice(found, 1) as [ListedEvent]
      record.splice(next, 0, withContent(event, parameter))
      end = next + 1
    }
    this.#record = record
    this.#showTo(findNextSent(record, end))
    return undefined
  }

  override describe() {
    const { id, events } = this
    const usage = events.findLast(({ type }) => type === 'session.usage')
    const last = events.findLast(({ type }) => activity.test(type))
    return {
      id,
      type: 'session',
      status: last ? (activity.exec(last.type)?.[1] ?? 'running') : 'idle',
      created_at: timeOf(this.#record[0]),
      updated_at: timeOf(events.at(-1) ?? this.#record[0]),
      usage: usage && JSON.parse(usage.text).usage,
    }
  }

  #showTo(end: number): void {
    for (const event of this.#record.slice(this.events.length, end)) this.show(event)
  }
}

/** What changes the status of a session: a client, or the service, which names the new one. */
const activity = /^(?:user|system)\.|^session\.status_(idle|running|terminated|rescheduling)/

const timeOf = (event: ListedEvent | undefined): string =>
  (event && JSON.parse(event.text).processed_at) ?? ''

/** The place of the next event that a client sent, or the end of the record. */
function findNextSent(record: readonly ListedEvent[], from: number): number {
  const place = record.findIndex((event, at) => at >= from && isFromClient(event))
  return place < 0 ? record.length : place
}

/** The place of the recorded event that a parameter is, among those that were sent one right after the other. */
function findPlace(record: readonly ListedEvent[], parameter: Parameters, from: number): number | undefined {
  for (const [index, event] of record.slice(from).entries()) {
    if (!isFromClient(event)) return undefined
    if (matchesEvent(parameter, event)) return from + index
  }
  return undefined
}

/** Of a reply the tool use counts as well, and what was decided about it. */
function matchesEvent(parameter: Parameters, { type, text }: ListedEvent): boolean {
  const field = replies.get(type)?.field
  if (parameter.type !== type || field === undefined) return parameter.type === type
  const recorded = JSON.parse(text)
  const sent = parameter as Parameters & Record<string, unknown>
  return sent[field] === recorded[field] && sent.result === recorded.result
}

/** The thread of the tool use that a reply names, if the events show its end. */
function findEndedThread(events: readonly ListedEvent[], parameter: Parameters): string | undefined {
  const field = replies.get(parameter.type)?.field
  const id = field && (parameter as Parameters & Record<string, unknown>)[field]
  const use = events.find((event) => event.id === id)
  const thread = use && JSON.parse(use.text).session_thread_id
  const isEnd = ({ type, text }: ListedEvent) =>
    type === 'session.thread_status_terminated' && JSON.parse(text).session_thread_id === thread
  return typeof thread === 'string' && events.some(isEnd) ? thread : undefined
}

/** The recorded event, in place of its own content with that which was sent. */
function withContent(event: ListedEvent, sent: Parameters): ListedEvent {
  const recorded = JSON.parse(event.text)
  const { id, processed_at } = recorded
  return { ...event, text: JSON.stringify({ ...recorded, ...sent, id, processed_at }) }
}

/** Where the record is, and the event that it waits for. */
function describeExpected(record: readonly ListedEvent[], at: number): string {
  const event = record[at]
  if (!event) return 'nothing more was recorded'
  const { type, tool_use_id: id, custom_tool_use_id: custom, result } = JSON.parse(event.text)
  const words = [type, id ?? custom, result].filter((word) => typeof word === 'string')
  return `expected ${words.join(' ')}, event ${at + 1} of the ${record.length} that were recorded`
}
