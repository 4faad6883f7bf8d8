import type { Context } from '../../context.ts'
import { usage, usageProblems } from '../../errors.ts'
import { describeJsonError, formatPath, isObject, tryParseJson } from '../../wire/json/parse.ts'
import { createEventsCheck } from '../../wire/sessions/send-events.ts'

/** Events as they were given, each spelled as it was. */
export interface GivenEvents {
  /** What it was read from, for messages. */
  name: string
  /** A body `{"events": […]}`, with all its other fields. */
  body: string
  /** Whether the body's `events` are a list, as they have to be. */
  isList: boolean
  /** Each for itself, if they came one a line. */
  lines?: string[]
  /** The place of a field of `events[index]`: by its line, if they came one a line. */
  placeOf(index: number, field: string): string
}

/** Is given each event's value as it is read: to keep them all would take several times the memory of their text. */
export type Visit = (event: unknown) => void

interface EventsReading {
  visit?: Visit | undefined
  /** What is said of a text that is not JSON at all. */
  hint?: string
}

/** Reads the events of a file, or for `-` of stdin. Throws a usage error if there are none. */
export async function readGiven(
  input: Context['input'],
  path: string,
  reading?: EventsReading,
): Promise<GivenEvents> {
  const name = path === '-' ? 'stdin' : path
  const text = await input.text(path, 'the input of events')
  if (text.trim() === '') throw usage(`no events: ${name} is empty`)
  return parseGiven(text, name, reading)
}

/**
 * Reads events in any form in which they are given: `{"events":[…]}`, a list, one event, or one event a line. Throws
 * a usage error that names the line of a text that is not JSON.
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
  const { texts, numbers, wrong } = readLines(text, visit)
  if (wrong !== undefined && texts.length > 0) {
    const place = (await describeJsonError(wrong.line)).replace(/^line 1, /, '')
    throw usage(`${name}: line ${wrong.number}: not valid JSON: ${place}`)
  }
  if (texts.length < 2) {
    const problem = `${name}: not valid JSON: ${await describeJsonError(text)}`
    throw usage(hint === undefined ? problem : `${problem}; ${hint}`)
  }
  return {
    name,
    get body() {
      return `{"events":[${texts.join(',\n')}]}`
    },
    isList: true,
    lines: texts,
    placeOf: (index, field) => {
      const number = numbers[index]
      if (number === undefined) return placeInList(index, field)
      return field ? `line ${number}: ${field}` : `line ${number}`
    },
  }
}

/** Whether the first line is a value by itself, with more after it: then the text as a whole is not one. */
function hasOneEachLine(text: string): boolean {
  const newline = text.indexOf('\n')
  return (
    newline > 0 &&
    /\S/.test(text.slice(newline, newline + 100)) &&
    tryParseJson(text.slice(0, newline)) !== undefined
  )
}

interface Lines {
  texts: string[]
  /** Each text's line, from 1; blank ones are left out. */
  numbers: number[]
  /** The first line that is not JSON, at which reading ends. */
  wrong?: { line: string; number: number }
}

function readLines(text: string, visit?: Visit): Lines {
  const lines: Lines = { texts: [], numbers: [] }
  for (let start = 0, number = 1; start < text.length; number++) {
    const newline = text.indexOf('\n', start)
    const end = newline < 0 ? text.length : newline
    const line = text.slice(start, end)
    start = end + 1
    const event = line.trim()
    if (event === '') continue
    const value = tryParseJson(line)
    if (value === undefined) return { ...lines, wrong: { line, number } }
    visit?.(value)
    lines.texts.push(event)
    lines.numbers.push(number)
  }
  return lines
}

const placeInList = (index: number, field: string): string => `events[${index}]${field ? `.${field}` : ''}`

/** The body of events that are one JSON text, and its `events`. */
function bodyOf(text: string, value: unknown): { body: string; events: unknown } {
  if (Array.isArray(value)) return { body: `{"events":${text.trim()}}`, events: value }
  if (isObject(value) && Object.hasOwn(value, 'events')) return { body: text, events: value.events }
  return { body: `{"events":[${text.trim()}]}`, events: [value] }
}

/** Checks events one by one, by every rule of the specification. */
export function createReview() {
  const check = createEventsCheck()
  return {
    add: check.add,
    /** Throws a usage error. */
    end(given?: GivenEvents): void {
      if (given?.isList === false) throw usage(`${given.name}: events: must be a list`)
      const placeOf = given?.placeOf ?? placeInList
      const problems = check.end().map(({ path: [place, ...rest], message }) => {
        const where = typeof place === 'number' ? placeOf(place, formatPath(rest)) : 'events'
        return `${where}: ${message}`
      })
      if (problems.length > 0) throw usageProblems(given?.name ?? 'the events', problems)
    },
  }
}

/** The same for events that are all there. Throws a usage error. */
export function checkEvents(events: Iterable<unknown>, given?: GivenEvents): void {
  const review = createReview()
  for (const event of events) review.add(event)
  review.end(given)
}
