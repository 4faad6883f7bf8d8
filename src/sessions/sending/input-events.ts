import type { Context } from '../../context.ts'
import { createUsageErrorFromProblems, usageError } from '../../errors.ts'
import { decodeUtf8 } from '../../io/file-content.ts'
import { splitLines } from '../../io/raw-lines.ts'
import { prependChunk, readBody } from '../../wire/exchange.ts'
import { createListAppendAssignment, editJson } from '../../wire/json/edit.ts'
import { describeJsonError, formatFieldPath, isObject, tryParseJson } from '../../wire/json/parse.ts'
import { createTextWithinLimit } from '../../wire/json/text-limit.ts'
import { listJsonElements } from '../../wire/page.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { createEventsCheck, type EventProblem } from '../../wire/sessions/send-events.ts'
import { SessionEvent } from '../../wire/sessions/session-event.ts'

interface InputEvents {
  name: string
  /** A body `{"events": […]}` with the source texts of the events. */
  body: string
  /**
   * Describes the position of a field of `events[index]` for messages. Uses the line number if there is one
   * event per line.
   */
  locate(index: number, field: string): string
}

interface ReadingOptions {
  /**
   * Called while the input is read, because all parsed events together would take several times the memory of
   * their text.
   */
  onEvent?: ((event: unknown) => void) | undefined
  hint?: string
}

export async function readInputEvents(
  input: Context['input'],
  path: string,
  reading?: ReadingOptions,
): Promise<InputEvents> {
  return parseInputEvents(await input.readText(path, inputReader), getInputName(path), reading)
}

const inputReader = 'the input of events'

const getInputName = (path: string): string => (path === '-' ? 'stdin' : path)

/**
 * Parses events in any accepted form: `{"events":[…]}`, a list, one event, or one event per line. Throws a
 * usage error that names the line of a text that is not JSON.
 */
export async function parseInputEvents(
  text: string,
  name: string,
  { onEvent, hint = "'parley events list --raw' prints a session's events" }: ReadingOptions = {},
): Promise<InputEvents> {
  if (text.trim() === '') throw usageError(`no events: ${name} is empty`)
  if (!isLineDelimited(text)) {
    const whole = tryParseJson(text)
    if (whole === undefined) throw usageError(`${name}: not valid JSON: ${describeJsonError(text)}; ${hint}`)
    const { body, events } = wrapInBody(text, whole)
    if (!Array.isArray(events)) throw usageError(`${name}: events: must be a list`)
    if (onEvent) for (const event of events) onEvent(event)
    return { name, body, locate: locateInList }
  }
  const lines: string[] = []
  const lineNumbers: number[] = []
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue
    const value = parseLine(line, `${name}: line ${index + 1}`)
    onEvent?.(value)
    lines.push(line.trim())
    lineNumbers.push(index + 1)
  }
  // In the request, the events of flags follow the events of the input's lines. The events of flags have no
  // line number.
  const locate = (index: number, field: string) =>
    index < lines.length
      ? `line ${lineNumbers[index]}${field ? `: ${field}` : ''}`
      : locateInList(index, field)
  const body = createTextWithinLimit(() => `{"events":[${lines.join(',')}]}`)
  return { name, body, locate }
}

function parseLine(line: string, where: string): unknown {
  const value = tryParseJson(line)
  if (value !== undefined) return value
  throw usageError(`${where}: not valid JSON: ${describeJsonError(line).replace(/^line 1, /, '')}`)
}

export function joinEventsInBody(given: InputEvents | undefined, added: readonly string[]): string {
  const body = given?.body ?? '{"events":[]}'
  return added.length === 0 ? body : editJson(body, [createListAppendAssignment(['events'], added.join())])
}

/**
 * Yields the events of a recorded session. A value without `type` and with a list `data` counts as a page of
 * events, as the service lists them. Throws a usage error for a value that is not an event.
 */
export function* listRecordedEvents(given: InputEvents, onPage?: OnPage): Generator<EventItem> {
  for (const [index, text] of listJsonElements(given.body, 'events').entries())
    yield* parseRecordedEvents(text, JSON.parse(text), `${given.name}: ${given.locate(index, '')}`, onPage)
}

/** `hasNext`: the list has another page after this one. */
type OnPage = (hasNext: boolean) => void

export const describeMissingPages = (path: string): string =>
  `${getInputName(path)}: later pages of the list are missing; 'parley events list --raw' prints all events`

function* parseRecordedEvents(
  text: string,
  value: unknown,
  where: string,
  onPage?: OnPage,
): Generator<EventItem> {
  const { type, data, next_page: next, has_more: hasMore } = (value ?? {}) as Record<string, unknown>
  const isPage = type === undefined && Array.isArray(data)
  if (isPage) onPage?.(Boolean(next) || hasMore === true)
  const texts = isPage ? listJsonElements(text, 'data') : [text]
  for (const [place, each] of (isPage ? data : [value]).entries()) {
    const event = SessionEvent.safeParse(each)
    if (!event.success) throw usageError(`${where}: is not an event`)
    yield { event: event.data, text: texts[place] as string }
  }
}

/**
 * Adds the recorded events of a file or of stdin to `recorded`. Parses one event per line while it reads, because
 * the text of a long session takes more memory than its tool uses.
 */
export async function readRecordedEvents(
  input: Context['input'],
  path: string,
  recorded: { add(item: EventItem): void; addPage(hasNext: boolean): void },
): Promise<void> {
  const add = (item: EventItem) => recorded.add(item)
  const onPage = (hasNext: boolean) => recorded.addPage(hasNext)
  const name = getInputName(path)
  const text = await input.readChunks(path, inputReader, async (chunks) => {
    const { value: first = new Uint8Array() } = await chunks.next()
    const all = prependChunk(first, chunks)
    if (!isLineDelimited(Buffer.from(first).toString())) return decodeUtf8(await readBody(all), name)
    for await (const lines of splitLines(all, Infinity)) {
      for (const { bytes, lineNumber } of lines) {
        const line = decodeUtf8(bytes as Uint8Array, name, undefined, lineNumber)
        if (line.trim() === '') continue
        const where = `${name}: line ${lineNumber}`
        const value = parseLine(line, where)
        for (const item of parseRecordedEvents(line.trim(), value, where, onPage)) add(item)
      }
    }
    return undefined
  })
  if (text === undefined) return
  for (const item of listRecordedEvents(await parseInputEvents(text, name), onPage)) add(item)
}

/** Returns whether the first line that is not blank is JSON, and another line that is not blank follows. */
function isLineDelimited(text: string): boolean {
  const start = text.trimStart()
  const end = start.indexOf('\n')
  return end > 0 && start.slice(end).trim() !== '' && tryParseJson(start.slice(0, end)) !== undefined
}

const locateInList = (index: number, field: string): string => `events[${index}]${field ? `.${field}` : ''}`

function wrapInBody(text: string, value: unknown): { body: string; events: unknown } {
  if (Array.isArray(value)) return { body: `{"events":${text.trim()}}`, events: value }
  if (isObject(value) && Object.hasOwn(value, 'events')) return { body: text, events: value.events }
  return { body: `{"events":[${text.trim()}]}`, events: [value] }
}

const maxWarnings = 10

/**
 * Creates a check of the user's events by the specification (src/wire/README.md: session events, 2.2 and
 * 4.1). `end` throws a usage error that lists all problems. Without problems, `end` returns the warnings.
 */
export function createInputEventsCheck() {
  const check = createEventsCheck()
  return {
    add: check.add,
    end(given?: InputEvents): string[] {
      const name = given?.name ?? 'the events'
      const locate = given?.locate ?? locateInList
      const describe = ({ path: [place, ...rest], message }: EventProblem) => {
        const where = typeof place === 'number' ? locate(place, formatFieldPath(rest)) : 'events'
        return `${where}: ${message}`
      }
      const problems = check
        .end()
        .map((problem) => `${describe(problem)}${problem.isUnknownType ? '; --no-validate sends it' : ''}`)
      if (problems.length > 0) throw createUsageErrorFromProblems(name, problems)
      const { rangeProblems } = check
      const warnings = rangeProblems
        .slice(0, maxWarnings)
        .map((problem) => `${name}: ${describe(problem)}; parley sends it, but the service may refuse it`)
      return rangeProblems.length > maxWarnings
        ? [...warnings, `${name}: the service may refuse further values of these events`]
        : warnings
    },
  }
}

export function requireValidEvents(events: Iterable<unknown>, given?: InputEvents): void {
  const review = createInputEventsCheck()
  for (const event of events) review.add(event)
  review.end(given)
}
