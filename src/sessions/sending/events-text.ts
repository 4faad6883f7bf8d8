import { usage } from '../../errors.ts'
import { describeJsonError, tryParseJson } from '../../wire/json/parse.ts'

/** Events as they were given, each spelled as it was. */
export interface EventsText {
  /** What it was read from, for messages. */
  name: string
  /** A body `{"events": […]}`, with all its other fields. */
  body: string
  /** Where they came one a line: each for itself. */
  lines?: string[]
  /** The place of a field of `events[index]`: by its line, where events came one a line. */
  placeOf(index: number, field: string): string
}

/**
 * Reads events in any form in which they are given: `{"events":[…]}`, a list, one event, or one event a line. Throws
 * a usage error that names the line of a text that is no JSON.
 */
export async function readEventsText(text: string, name: string): Promise<EventsText> {
  const whole = tryParseJson(text)
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

interface Lines {
  texts: string[]
  /** Each text's line, from 1; blank ones are left out. */
  numbers: number[]
  /** The first line that is no JSON, at which reading ends. */
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

export const placeInList = (index: number, field: string): string =>
  `events[${index}]${field ? `.${field}` : ''}`

function wrap(text: string, value: unknown): string {
  if (Array.isArray(value)) return `{"events":${text.trim()}}`
  const isBody = typeof value === 'object' && value !== null && Object.hasOwn(value, 'events')
  return isBody ? text : `{"events":[${text.trim()}]}`
}
