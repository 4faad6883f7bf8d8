import { usage } from '../errors.ts'
import { describeJsonError } from './json.ts'

/** Events as they were given, each spelled as it was. */
export interface EventsText {
  /** What it was read from, for messages. */
  name: string
  /** A body `{"events": […]}`, with whatever else it held. */
  body: string
  /** What the body says. */
  value: unknown
  /** The place of a field of `events[index]`: by its line, where events came one a line. */
  placeOf(index: number, field: string): string
}

/**
 * Reads events in any form that `cli.md` names: `{"events":[…]}`, a list, one event, or one event a line. Throws
 * a usage error that names the line of a text that is no JSON.
 */
export async function readEventsText(text: string, name: string): Promise<EventsText> {
  const whole = tryParse(text)
  if (whole) return { name, ...wrap(text, whole.value), placeOf: placeInList }
  const { texts, events, numbers, wrong } = readLines(text)
  if (wrong !== undefined && events.length > 0) {
    const place = (await describeJsonError(wrong.line)).replace(/^line 1, /, '')
    throw usage(`${name}: line ${wrong.number}: not valid JSON: ${place}`)
  }
  if (events.length < 2) throw usage(`${name}: not valid JSON: ${await describeJsonError(text)}`)
  return {
    name,
    body: `{"events":[${texts.join(',\n')}]}`,
    value: { events },
    placeOf: (index, field) => {
      const number = numbers[index]
      if (number === undefined) return placeInList(index, field)
      return field ? `line ${number}: ${field}` : `line ${number}`
    },
  }
}

interface Lines {
  texts: string[]
  /** What each text says. */
  events: unknown[]
  /** Each text's line, from 1; blank ones are left out. */
  numbers: number[]
  /** The first line that is no JSON, at which reading ends. */
  wrong?: { line: string; number: number }
}

function readLines(text: string): Lines {
  const lines: Lines = { texts: [], events: [], numbers: [] }
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue
    const event = tryParse(line)
    if (!event) return { ...lines, wrong: { line, number: index + 1 } }
    lines.texts.push(line.trim())
    lines.events.push(event.value)
    lines.numbers.push(index + 1)
  }
  return lines
}

export const placeInList = (index: number, field: string): string =>
  `events[${index}]${field ? `.${field}` : ''}`

function wrap(text: string, value: unknown): Pick<EventsText, 'body' | 'value'> {
  if (Array.isArray(value)) return { body: `{"events":${text.trim()}}`, value: { events: value } }
  const isBody = typeof value === 'object' && value !== null && 'events' in value
  return isBody ? { body: text, value } : { body: `{"events":[${text.trim()}]}`, value: { events: [value] } }
}

function tryParse(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}
