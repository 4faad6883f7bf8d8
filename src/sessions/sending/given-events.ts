import type { Context } from '../../context.ts'
import { createUsageErrorFromProblems, usageError } from '../../errors.ts'
import { describeJsonError, formatPath, isObject, tryParseJson } from '../../wire/json/parse.ts'
import { listElements } from '../../wire/page.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { createEventsCheck, type EventProblem } from '../../wire/sessions/send-events.ts'
import { SessionEvent } from '../../wire/sessions/session-event.ts'

/** Events from the user with their source texts: one per line, or in one body. */
export type GivenEvents = {
  /** Name of the source, for messages. */
  name: string
  /** Returns the place of a field of `events[index]`, by its line if there is one event per line. */
  placeOf(index: number, field: string): string
} & ({ lines: string[] } | EventsOfBody)

/** A body `{"events": […]}` with its other fields. `isList`: its `events` are a list, as required. */
interface EventsOfBody {
  body: string
  isList: boolean
}

/**
 * Receives each event while it is read. Keeping all values would take several times the memory of their text.
 */
export type Visit = (event: unknown) => void

interface EventsReading {
  visit?: Visit | undefined
  /** Hint for a text that is not JSON. */
  hint?: string
}

/** Reads the events of a file, or of stdin for `-`. Throws a usage error if there are none. */
export async function readGiven(
  input: Context['input'],
  path: string,
  reading?: EventsReading,
): Promise<GivenEvents> {
  const name = path === '-' ? 'stdin' : path
  const text = await input.readText(path, 'the input of events')
  if (text.trim() === '') throw usageError(`no events: ${name} is empty`)
  return parseGiven(text, name, reading)
}

/**
 * Parses events in any accepted form: `{"events":[…]}`, a list, one event, or one event per line. Throws a
 * usage error that names the line of a text that is not JSON.
 */
export async function parseGiven(
  text: string,
  name: string,
  { visit, hint }: EventsReading = {},
): Promise<GivenEvents> {
  const whole = hasOneEachLine(text) ? undefined : tryParseJson(text)
  if (whole !== undefined) {
    const { body, events } = bodyOf(text, whole)
    const isList = Array.isArray(events)
    if (isList && visit) for (const event of events) visit(event)
    return { name, body, isList, placeOf: placeInList }
  }
  const lines: string[] = []
  /** Line numbers of the events, from 1. Blank lines are skipped. */
  const numbers: number[] = []
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue
    const value = tryParseJson(line)
    if (value === undefined) {
      if (lines.length === 0) break
      const place = describeJsonError(line).replace(/^line 1, /, '')
      throw usageError(`${name}: line ${index + 1}: not valid JSON: ${place}`)
    }
    visit?.(value)
    lines.push(line.trim())
    numbers.push(index + 1)
  }
  if (lines.length < 2) {
    const problem = `${name}: not valid JSON: ${describeJsonError(text)}`
    throw usageError(hint === undefined ? problem : `${problem}; ${hint}`)
  }
  // Events from flags follow the lines.
  const placeOf = (index: number, field: string) =>
    index < lines.length ? `line ${numbers[index]}${field ? `: ${field}` : ''}` : placeInList(index, field)
  return { name, lines, placeOf }
}

/** Returns the source text of each event, on one line. */
export const textsOf = (given: GivenEvents): string[] =>
  'lines' in given ? given.lines : listElements(given.body, 'events')

/**
 * Yields recorded events. A page of the service has no `type`; its events are one level deeper. Throws a
 * usage error that names a value that is not an event.
 */
export function* listRecordedEvents(given: GivenEvents): Generator<EventItem> {
  for (const [index, text] of textsOf(given).entries()) {
    const value: unknown = JSON.parse(text)
    const { type, data } = (value ?? {}) as { type?: unknown; data?: unknown }
    const isPage = type === undefined && Array.isArray(data)
    const texts = isPage ? listElements(text, 'data') : [text]
    for (const [place, each] of (isPage ? data : [value]).entries()) {
      const event = SessionEvent.safeParse(each)
      if (!event.success) throw usageError(`${given.name}: ${given.placeOf(index, '')}: is not an event`)
      yield { event: event.data, text: texts[place] as string }
    }
  }
}

/**
 * Returns whether the first line is a complete value and more lines follow. Then the text as a whole is not
 * JSON.
 */
function hasOneEachLine(text: string): boolean {
  const newline = text.indexOf('\n')
  return (
    newline > 0 &&
    /\S/.test(text.slice(newline, newline + 100)) &&
    tryParseJson(text.slice(0, newline)) !== undefined
  )
}

const placeInList = (index: number, field: string): string => `events[${index}]${field ? `.${field}` : ''}`

/** Returns the body of events in one JSON text, and its `events`. */
function bodyOf(text: string, value: unknown): { body: string; events: unknown } {
  if (Array.isArray(value)) return { body: `{"events":${text.trim()}}`, events: value }
  if (isObject(value) && Object.hasOwn(value, 'events')) return { body: text, events: value.events }
  return { body: `{"events":[${text.trim()}]}`, events: [value] }
}

/** Maximum number of values that warnings name one by one. */
const maxWarnings = 10

/** Checks events one by one, by every rule of the specification. */
export function createEventReview() {
  const check = createEventsCheck()
  return {
    add: check.add,
    /** Returns warnings about values that a service may refuse. Throws a usage error. */
    end(given?: GivenEvents): string[] {
      if (given && 'isList' in given && !given.isList)
        throw usageError(`${given.name}: events: must be a list`)
      const name = given?.name ?? 'the events'
      const placeOf = given?.placeOf ?? placeInList
      const describe = ({ path: [place, ...rest], message }: EventProblem) => {
        const where = typeof place === 'number' ? placeOf(place, formatPath(rest)) : 'events'
        return `${where}: ${message}`
      }
      const problems = check
        .end()
        .map((problem) => `${describe(problem)}${problem.isUnknownType ? '; --no-validate sends it' : ''}`)
      if (problems.length > 0) throw createUsageErrorFromProblems(name, problems)
      const { doubts } = check
      const warnings = doubts
        .slice(0, maxWarnings)
        .map((doubt) => `${name}: ${describe(doubt)}, or the service may refuse it`)
      return doubts.length > maxWarnings ? [...warnings, `${name}: more such values follow`] : warnings
    },
  }
}

/** Checks a complete list of events. Throws a usage error. */
export function checkEvents(events: Iterable<unknown>, given?: GivenEvents): void {
  const review = createEventReview()
  for (const event of events) review.add(event)
  review.end(given)
}
