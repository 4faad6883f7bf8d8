import { isObject, tryParseJson } from '../json/parse.ts'

/** How deep an error may be wrapped, and how many of several are told. */
const [deepest, most] = [5, 20]

/** The longest text that is taken, in characters: far more than is ever shown. */
const longest = 64 * 1024

/** A field of an object's own, never of its prototype. */
export const field = (value: unknown, ...names: string[]): unknown =>
  names
    .filter((name) => isObject(value) && Object.hasOwn(value, name))
    .map((name) => (value as Record<string, unknown>)[name])
    .find((found) => found !== undefined && found !== null)

const wordsOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value.slice(0, longest).trim() : undefined

/** What an error's JSON says to a person, whichever of the known shapes it has. */
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

/** `what: why`, or either. */
const joined = (what: string | undefined, why: string | undefined) =>
  what !== undefined && why !== undefined && what !== why ? `${what}: ${why}` : (what ?? why)

/** A problem with the place where it is. */
function placed(place: unknown, message: string | undefined): string | undefined {
  if (message === undefined || !Array.isArray(place)) return message
  const steps = place.filter((step) => typeof step === 'string' || typeof step === 'number')
  return `${steps.slice(0, most).join('.')}: ${message}`
}

/** Words, or what is said in the JSON that they are. */
function unwrap(text: string, depth: number): string | undefined {
  const words = wordsOf(text)
  if (words === undefined || !/^[[{]/.test(words)) return words
  return messageOf(tryParseJson(words), depth + 1) ?? words
}

/** The names and numbers that an error has for itself, the most telling first. */
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

/** Whether a code means that all is well: 0, 200, `ok`. */
export const isGood = (code: unknown): boolean =>
  /^(?:0|2\d\d|ok|success)$/i.test(typeof code === 'number' || typeof code === 'string' ? String(code) : '')
