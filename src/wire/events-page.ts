import { EventsPage, SessionEvent } from './events.ts'
import { describeIssues } from './json.ts'
import { notUnderstood, parse } from './json-body.ts'
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
  const texts = data?.length ? await elementsOf(text, 'data') : []
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

/** The elements of a list in a JSON text, as they are spelled there. */
export async function elementsOf(text: string, field: string): Promise<string[]> {
  const { findNodeAtLocation, parseTree } = await import('jsonc-parser')
  const tree = parseTree(text)
  const nodes = (tree && findNodeAtLocation(tree, [field])?.children) ?? []
  return nodes.map(({ offset, length }) => onOneLine(text.slice(offset, offset + length)))
}

/** In JSON a line break stands between tokens only: inside text it is an escape. */
const onOneLine = (text: string) => text.replace(/[\r\n]+/g, '')
