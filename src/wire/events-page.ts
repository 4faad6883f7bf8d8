import { EventsPage, SessionEvent } from './events.ts'
import { describeIssues } from './json.ts'
import { notUnderstood, parse } from './json-body.ts'
import { childrenOf, findChild, skipBlanks } from './json-scanner.ts'
import { failureInBody, isErrorEnvelope, readProblem } from './problem.ts'

/** An event of a session with its exact JSON, on one line. */
export interface EventItem {
  event: SessionEvent
  text: string
}

/** Reads one page of a list. Throws a `CliError` of kind `response`. */
export async function readEventsPage(
  text: string,
): Promise<{ items: EventItem[]; nextPage: string | undefined }> {
  const page = parse(text, 'the list of events')
  if (isErrorEnvelope(page)) throw failureInBody(page)
  const parsed = EventsPage.safeParse(page)
  if (!parsed.success) throw notUnderstood(`the list of events: ${describeIssues(parsed.error).join('; ')}`)
  const { data, next_page: nextPage } = parsed.data
  const texts = data?.length ? elementsOf(text, 'data') : []
  const items = (data ?? []).map((event, index) => ({ event, text: texts[index] ?? JSON.stringify(event) }))
  return { items, nextPage: nextPage || undefined }
}

/** Reads the data of one event of a stream. Throws a `CliError` of kind `response`. */
export function readEventItem(data: string): EventItem {
  const value = parse(data, 'an event of the stream')
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
 * The elements of a list in the text of a JSON object, as they are spelled there, each on one line; none where the
 * field is no list. `JSON.parse` must have accepted the text.
 */
export function elementsOf(text: string, field: string): string[] {
  const list = findChild(text, skipBlanks(text, 0), field)
  if (!list || text[list.start] !== '[') return []
  const elements: string[] = []
  for (const { start, end } of childrenOf(text, list.start)) elements.push(onOneLine(text.slice(start, end)))
  return elements
}

/** In JSON a line break stands between tokens only: inside text it is an escape. */
const onOneLine = (text: string) => text.replace(/[\r\n]+/g, '')
