import { readText, type SessionEvent } from '../../wire/sessions/session-event.ts'

/** Where no schema says that a value is text it can be anything, also what cannot be made into text. */
export const readString = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The texts of an event's blocks. */
export const textsOf = ({ content }: SessionEvent): string[] =>
  Array.isArray(content) ? content.map((block) => readString(block?.text)) : []

export function describeDenial(use: SessionEvent, reason: string): string {
  return `The emulated agent does without ${use.name}, which was denied${reason && `: “${brief(reason)}”`}.`
}

export function describeResult(use: SessionEvent, result: SessionEvent): string {
  const said = `“${brief(readText(result))}”`
  return result.is_error === true
    ? `The emulated agent does without ${use.name}, which failed: ${said}.`
    : `The emulated agent read what ${use.name} gave: ${said}.`
}

function brief(text: string): string {
  const characters = [...text.slice(0, 200)]
  return characters.length > 80 ? `${characters.slice(0, 80).join('')}…` : characters.join('')
}
