import { describeIssues } from '../json/parse.ts'
import { type Cursor, onOneLine, readPage } from '../page.ts'
import { notUnderstood } from '../problem/not-understood.ts'
import { isErrorEnvelope, readProblem } from '../problem/problem.ts'
import { parseReceived } from '../received-json.ts'
import * as z from '../zod.ts'
import { SessionEvent } from './session-event.ts'

/** An event of a session with its exact JSON, on one line. */
export interface EventItem {
  event: SessionEvent
  text: string
}

interface EventsPage {
  items: EventItem[]
  next?: Cursor
}

const ListedEvents = z.array(SessionEvent)

/** Reads one page of a list, or a list without pages. Throws a `CliError`. */
export function readEventsPage(text: string): EventsPage {
  const { data, texts, next } = readPage(text, 'the list of events')
  const events = ListedEvents.safeParse(data)
  if (!events.success) throw notUnderstood(`the list of events: ${describeIssues(events.error).join('; ')}`)
  const items = events.data.map((event, index) => ({ event, text: texts[index] ?? JSON.stringify(event) }))
  return { items, next }
}

/** Reads the data of one event of a stream. Throws a `CliError`. */
export function readEventItem(data: string): EventItem {
  const value = parseReceived(data, 'an event of the stream')
  if (isErrorEnvelope(value)) {
    const { message } = readProblem(value)
    throw notUnderstood(`the stream of events ended with an error${message ? `: ${message}` : ''}`)
  }
  const parsed = SessionEvent.safeParse(value)
  if (!parsed.success)
    throw notUnderstood(`an event of the stream: ${describeIssues(parsed.error).join('; ')}`)
  return { event: parsed.data, text: onOneLine(data) }
}
