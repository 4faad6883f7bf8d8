import { describeIssues } from '../json/parse.ts'
import { type Cursor, onOneLine, readPage } from '../page.ts'
import { notUnderstood } from '../problem/not-understood.ts'
import { isErrorEnvelope, readProblem } from '../problem/problem.ts'
import { parseReceived } from '../received-json.ts'
import { SessionEvent } from './session-event.ts'

/** An event of a session with its exact JSON, on one line. */
export interface EventItem {
  event: SessionEvent
  text: string
}

interface EventsPage {
  items: EventItem[]
  /** How to go on after these. Throws a `CliError` if that is not said, or if another element is no event. */
  next(): Cursor | undefined
}

/** Reads one page of a list, or a list without pages, up to the first element that is no event. Throws a `CliError`. */
export function readEventsPage(text: string): EventsPage {
  const { data, texts, next } = readPage(text, 'the list of events')
  const items: EventItem[] = []
  for (const [index, value] of data.entries()) {
    const event = SessionEvent.safeParse(value)
    if (!event.success) {
      const failure = notUnderstood(
        `the list of events: [${index}]: ${describeIssues(event.error).join('; ')}`,
      )
      return { items, next: () => fail(failure) }
    }
    items.push({ event: event.data, text: texts[index] ?? JSON.stringify(value) })
  }
  return { items, next }
}

function fail(failure: Error): never {
  throw failure
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
