import { isObject, tryParseJson } from '../json/parse.ts'

/** How deep an error may be nested, and how many of several are shown. */
const [deepest, most] = [5, 20]

/** How much of a text is read, in characters: far more than is ever shown. */
const longest = 64 * 1024

/** The first field of these names that has a value: the object's own, never its prototype's. */
export const field = (value: unknown, ...names: string[]): unknown =>
  names
    .filter((name) => isObject(value) && Object.hasOwn(value, name))
    .map((name) => (value as Record<string, unknown>)[name])
    .find((found) => found !== undefined && found !== null)

const wordsOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value.slice(0, longest).trim() : undefined

/** The message in an error's JSON, in any of the known shapes. */
export function messageOf(value: unknown, depth = 0): string | undefined {
  if (depth > deepest) return undefined
  if (typeof value === 'string') return unwrap(value, depth)
  if (Array.isArray(value)) {
    const all = value.slice(0, most).map((one) => messageOf(one, depth + 1))
    return all.filter((one) => one !== undefined).join('; ') || undefined
  }
  if (!isObject(value)) return undefined
  const inner = (...names: string[]) => messageOf(field(value, ...names), depth + 1)
  return (
    joined(inner('error'), inner('error_description')) ??
    inner('issues') ??
    inner('errors') ??
    inner('fault') ??
    inner('faultstring') ??
    placed(field(value, 'loc'), inner('message', 'Message', 'msg')) ??
    joined(wordsOf(field(value, 'title')), inner('detail'))
  )
}

/** `what: why`, or the one that is there. */
const joined = (what: string | undefined, why: string | undefined) =>
  what !== undefined && why !== undefined && what !== why ? `${what}: ${why}` : (what ?? why)

/** A message with the place that it is about. */
function placed(place: unknown, message: string | undefined): string | undefined {
  if (message === undefined || !Array.isArray(place)) return message
  const steps = place.filter((step) => typeof step === 'string' || typeof step === 'number')
  return `${steps.slice(0, most).join('.')}: ${message}`
}

/** A text, or the message in it where it is JSON itself. */
function unwrap(text: string, depth: number): string | undefined {
  const words = wordsOf(text)
  if (words === undefined || !/^[[{]/.test(words)) return words
  return messageOf(tryParseJson(words), depth + 1) ?? words
}

/** The names and numbers by which an error calls itself, the most exact first. */
export function namesOf(value: unknown): string[] {
  const error = field(value, 'error')
  const places = [error, field(value, 'fault'), value]
  const names = places.flatMap((place) =>
    ['type', 'status', 'code', 'Code', 'statusCode'].map((name) => field(place, name)),
  )
  return [...names, error]
    .filter((name) => typeof name === 'number' || (typeof name === 'string' && /^\S{1,100}$/.test(name)))
    .map(String)
}

/** Whether a code means success: 0, 200, `ok`. */
export const isGood = (code: unknown): boolean =>
  /^(?:0|2\d\d|ok|success)$/i.test(typeof code === 'number' || typeof code === 'string' ? String(code) : '')
