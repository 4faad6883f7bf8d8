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
  const lines = text
    .split('\n')
    .flatMap((line, index) => (line.trim() === '' ? [] : [{ line, number: index + 1 }]))
  if (lines.length < 2 || !tryParse(lines[0]?.line ?? '')) {
    throw usage(`${name}: not valid JSON: ${await describeJsonError(text)}`)
  }
  const events: unknown[] = []
  for (const { line, number } of lines) {
    const event = tryParse(line)
    if (event) {
      events.push(event.value)
      continue
    }
    const place = (await describeJsonError(line)).replace(/^line 1, /, '')
    throw usage(`${name}: line ${number}: not valid JSON: ${place}`)
  }
  return {
    name,
    body: `{"events":[${lines.map(({ line }) => line.trim()).join(',\n')}]}`,
    value: { events },
    placeOf: (index, field) => {
      const line = lines[index]
      if (!line) return placeInList(index, field)
      return field ? `line ${line.number}: ${field}` : `line ${line.number}`
    },
  }
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
