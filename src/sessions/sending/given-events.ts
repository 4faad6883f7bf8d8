import type { Context } from '../../context.ts'
import { usage, usageProblems } from '../../errors.ts'
import { describeJsonError, formatPath, tryParseJson } from '../../wire/json/parse.ts'
import { warnAbout } from '../../wire/sessions/event-warnings.ts'
import { createEventsCheck } from '../../wire/sessions/send-events.ts'

/** Events as they were given, each spelled as it was. */
export interface GivenEvents {
  /** What it was read from, for messages. */
  name: string
  /** A body `{"events": […]}`, with all its other fields. */
  body: string
  /** Each for itself, if they came one a line. */
  lines?: string[]
  /** The place of a field of `events[index]`: by its line, if they came one a line. */
  placeOf(index: number, field: string): string
}

/** Reads the events of a file, or for `-` of stdin. Throws a usage error if there are none. */
export async function readGiven(input: Context['input'], path: string): Promise<GivenEvents> {
  const name = path === '-' ? 'stdin' : path
  const text = await input.text(path, 'the input of events')
  if (text.trim() === '') throw usage(`no events: ${name} is empty`)
  return parseGiven(text, name)
}

/**
 * Reads events in any form in which they are given: `{"events":[…]}`, a list, one event, or one event a line. Throws
 * a usage error that names the line of a text that is not JSON.
 */
export async function parseGiven(text: string, name: string): Promise<GivenEvents> {
  const whole = hasOneEachLine(text) ? undefined : tryParseJson(text)
  if (whole !== undefined) return { name, body: wrap(text, whole), placeOf: placeInList }
  const { texts, numbers, wrong } = readLines(text)
  if (wrong !== undefined && texts.length > 0) {
    const place = (await describeJsonError(wrong.line)).replace(/^line 1, /, '')
    throw usage(`${name}: line ${wrong.number}: not valid JSON: ${place}`)
  }
  if (texts.length < 2) {
    const hint = "to send text, give it as words, or '-' for stdin"
    throw usage(`${name}: not valid JSON: ${await describeJsonError(text)}; ${hint}`)
  }
  return {
    name,
    get body() {
      return `{"events":[${texts.join(',\n')}]}`
    },
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

function readLines(text: string): Lines {
  const lines: Lines = { texts: [], numbers: [] }
  for (let start = 0, number = 1; start < text.length; number++) {
    const newline = text.indexOf('\n', start)
    const end = newline < 0 ? text.length : newline
    const line = text.slice(start, end)
    start = end + 1
    const event = line.trim()
    if (event === '') continue
    if (tryParseJson(line) === undefined) return { ...lines, wrong: { line, number } }
    lines.texts.push(event)
    lines.numbers.push(number)
  }
  return lines
}

const placeInList = (index: number, field: string): string => `events[${index}]${field ? `.${field}` : ''}`

function wrap(text: string, value: unknown): string {
  if (Array.isArray(value)) return `{"events":${text.trim()}}`
  const isBody = typeof value === 'object' && value !== null && Object.hasOwn(value, 'events')
  return isBody ? text : `{"events":[${text.trim()}]}`
}

/**
 * Checks events by every rule of the specification; notes what is only unusual. Throws a usage error. They come
 * one by one: all together they would take several times the memory of their text.
 */
export function checkEvents(
  { note }: Context,
  events: Iterable<unknown>,
  given: GivenEvents | undefined,
): void {
  const placeOf = given?.placeOf ?? placeInList
  const check = createEventsCheck()
  const warnings: string[] = []
  let index = 0
  for (const event of events) {
    check.add(event)
    for (const warning of warnAbout(event)) warnings.push(`${placeOf(index, '')}: ${warning}`)
    index++
  }
  const problems = check.end().map(({ path: [place, ...rest], message }) => {
    const where = typeof place === 'number' ? placeOf(place, formatPath(rest)) : 'events'
    return `${where}: ${message}`
  })
  if (problems.length > 0) throw usageProblems(given?.name ?? 'the events', problems)
  for (const warning of warnings) note(warning)
}
