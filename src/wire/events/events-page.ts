import { describeIssues } from '../json/parse.ts'
import { childrenOf, findChild, skipBlanks } from '../json/scanner.ts'
import { notUnderstood } from '../problem/not-understood.ts'
import { failureInBody, failureInstead, isErrorEnvelope, readProblem } from '../problem/problem.ts'
import { parseReceived } from '../received-json.ts'
import * as z from '../zod.ts'
import { SessionEvent } from './session-event.ts'

/** An event of a session with its exact JSON, on one line. */
export interface EventItem {
  event: SessionEvent
  text: string
}

/** The query parameter that asks for the next page. */
export interface Cursor {
  name: 'page' | 'after_id'
  value: string
}

export interface Page {
  items: EventItem[]
  next?: Cursor | undefined
}

const ListedEvents = z.array(SessionEvent)

/** How a page says that there is more: by the next page's token, or by the last event's id. */
const Continuation = z.looseObject({
  next_page: z.catch(z.nullish(z.string()), undefined),
  has_more: z.catch(z.nullish(z.boolean()), undefined),
  last_id: z.catch(z.nullish(z.string()), undefined),
})

/** Reads one page of a list, or a list without pages. Throws a `CliError`. */
export function readEventsPage(text: string): Page {
  const page = parseReceived(text, 'the list of events')
  if (isErrorEnvelope(page)) throw failureInBody(page)
  const data = Array.isArray(page) ? page : (page as { data?: unknown } | null)?.data
  if (data === undefined || data === null) throw failureInstead(page, 'the list of events has no data')
  const events = ListedEvents.safeParse(data)
  if (!events.success) throw notUnderstood(`the list of events: ${describeIssues(events.error).join('; ')}`)
  const texts = elementsOf(Array.isArray(page) ? `{"data":${text}}` : text, 'data')
  const items = events.data.map((event, index) => ({ event, text: texts[index] ?? JSON.stringify(event) }))
  return { items, next: Array.isArray(page) ? undefined : nextOf(page, items) }
}

function nextOf(page: unknown, items: readonly EventItem[]): Cursor | undefined {
  const { next_page: token, has_more: hasMore, last_id: lastId } = Continuation.safeParse(page).data ?? {}
  if (token) return { name: 'page', value: token }
  if (!hasMore) return undefined
  const value = lastId ?? items.at(-1)?.event.id
  if (!value) throw notUnderstood('the list of events has more, but does not say how to ask for it')
  return { name: 'after_id', value }
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

/**
 * The elements of a list in the text of a JSON object, exactly as they are written but each on one line; none where
 * the field is not a list. `JSON.parse` must have accepted the text.
 */
export function elementsOf(text: string, field: string): string[] {
  const list = findChild(text, skipBlanks(text, 0), field)
  if (!list || text[list.start] !== '[') return []
  const elements: string[] = []
  for (const { start, end } of childrenOf(text, list.start)) elements.push(onOneLine(text.slice(start, end)))
  return elements
}

/** In JSON, line breaks are only between tokens: in a string they are escapes. */
const onOneLine = (text: string) => text.replace(/[\r\n]+/g, '')
