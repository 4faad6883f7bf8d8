import { usage } from '../../errors.ts'
import { formatPath, isObject, tryParseJson } from '../../wire/json/parse.ts'
import { SessionEvent } from '../../wire/sessions/session-event.ts'
import { errorResponse } from '../response.ts'
import { readString, replies } from './agent.ts'
import { type Acceptance, type ListedEvent, type Parameters, Session } from './session.ts'

/** Reads what `events list --raw` printed: an event a line. Throws a usage error. */
export function readRecord(text: string, name: string): ListedEvent[] {
  const known = new Set<string>()
  const events: ListedEvent[] = []
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue
    const event = SessionEvent.safeParse(tryParseJson(line))
    if (!event.success)
      throw usage(`${name}: line ${index + 1} is not an event, as 'events list --raw' prints it`)
    const { id, type } = event.data
    // A stream that was followed may have brought one again.
    if (id !== undefined && known.has(id)) continue
    if (id !== undefined) known.add(id)
    events.push({ id, type, text: line.trim() })
  }
  if (events.length === 0) throw usage(`${name}: no event is in it`)
  return events
}

/** What came of a client, and not of the service. */
const isSent = ({ type }: { type: string }): boolean => /^(user|system)\./.test(type)

/** Plays a session that was recorded: what followed an event of a client's comes when a client sends such an event. */
export class PlayedSession extends Session {
  readonly #record: ListedEvent[]
  #usage: unknown
  #status = 'idle'

  constructor(id: string, record: readonly ListedEvent[]) {
    super(id)
    this.#record = [...record]
    this.#showUpToSent()
  }

  override accept(parameters: readonly Parameters[]): Acceptance {
    const places: number[] = []
    for (const [index, parameter] of parameters.entries()) {
      const next = this.#nextSent((places.at(-1) ?? this.events.length - 1) + 1)
      const found = this.#find(parameter, next)
      if (found === undefined) {
        const problem = `${formatPath(['events', index])}: ${this.#expected(next)}`
        return { accepted: [], refusal: errorResponse(409, problem) }
      }
      // Those that were sent together may be sent in any order.
      this.#record.splice(next, 0, ...this.#record.splice(found, 1))
      places.push(next)
    }
    const accepted: ListedEvent[] = []
    for (const [index, parameter] of parameters.entries()) {
      while (this.events.length < (places[index] ?? 0)) this.#showNext()
      accepted.push(this.#showNext(parameter))
    }
    this.#showUpToSent()
    return { accepted }
  }

  override describe() {
    const { id, events } = this
    const [first] = this.#record as [ListedEvent]
    return {
      id,
      type: 'session',
      status: this.#status,
      created_at: timeOf(first),
      updated_at: timeOf(events.at(-1) ?? first),
      usage: this.#usage,
    }
  }

  #nextSent(from: number): number {
    let at = from
    while (at < this.#record.length && !isSent(this.#record[at] as ListedEvent)) at++
    return at
  }

  /** The recorded event that a parameter is, among those that were sent one right after the other. */
  #find(parameter: Parameters, from: number): number | undefined {
    for (let at = from; at < this.#record.length && isSent(this.#record[at] as ListedEvent); at++)
      if (isSame(parameter, this.#record[at] as ListedEvent)) return at
    return undefined
  }

  /** Where the record is, and the event that it waits for. */
  #expected(at: number): string {
    const event = this.#record[at]
    if (!event) return 'nothing more was recorded'
    const { type, tool_use_id: id, custom_tool_use_id: custom, result } = JSON.parse(event.text)
    const words = [type, id ?? custom, result].filter((word) => typeof word === 'string')
    return `expected ${words.join(' ')}, event ${at + 1} of the ${this.#record.length} that were recorded`
  }

  #showUpToSent(): void {
    const end = this.#nextSent(this.events.length)
    while (this.events.length < end) this.#showNext()
  }

  /** Shows the next recorded event, in place of its own content with that which was sent. */
  #showNext(sent?: Parameters): ListedEvent {
    let event = this.#record[this.events.length] as ListedEvent
    if (sent) {
      const recorded = JSON.parse(event.text)
      const { id, processed_at } = recorded
      event = { ...event, text: JSON.stringify({ ...recorded, ...sent, id, processed_at }) }
    }
    if (event.type === 'session.usage') this.#usage = JSON.parse(event.text).usage
    if (isSent(event)) this.#status = 'running'
    this.#status =
      /^session\.status_(idle|running|terminated|rescheduling)/.exec(event.type)?.[1] ?? this.#status
    this.show(event)
    return event
  }
}

const timeOf = ({ text }: ListedEvent): string => JSON.parse(text).processed_at ?? ''

/** Of a reply the tool use counts as well, and what was decided about it. */
function isSame(parameter: Parameters, { type, text }: ListedEvent): boolean {
  if (parameter.type !== type) return false
  const field = replies.get(type)?.field
  const recorded: unknown = field === undefined ? undefined : JSON.parse(text)
  if (field === undefined || !isObject(recorded)) return true
  const sent = parameter as Parameters & Record<string, unknown>
  return readString(sent[field]) === recorded[field] && sent.result === recorded.result
}
