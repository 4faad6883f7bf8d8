import { findAddressProblem } from '../wire/address.ts'
import { betaPattern } from '../wire/sessions/betas.ts'
import * as z from '../wire/zod.ts'
import { durationExamples, parseDurationMs } from './duration.ts'
import { type SettingName, settingDefinitions } from './table.ts'

/**
 * Converts text from flags and the environment. Values of other types, which a profile file may have, stay
 * unchanged.
 */
const convertText = (convert: (text: string) => unknown) =>
  z.transform((value: unknown) => (typeof value === 'string' ? convert(value.trim()) : value))

const toNumber = (text: string) =>
  /^\d+(\.\d+)?$/.test(text) ? Math.min(Number(text), Number.MAX_SAFE_INTEGER) : text
const toSeconds = (text: string) => {
  const milliseconds = parseDurationMs(text, 's')
  return milliseconds === undefined ? text : milliseconds / 1000
}
const yes: unknown[] = ['true', 'yes', 'on', '1', 1]
const no: unknown[] = ['false', 'no', 'off', '0', 0]

/** Converts words such as `on` and the numbers 1 and 0, which a profile file may have. */
function toBoolean(value: unknown) {
  const word = typeof value === 'string' ? value.trim().toLowerCase() : value
  return yes.includes(word) || (no.includes(word) ? false : value)
}

const toList = (text: string) => text.split(/\s*,\s*/).filter((item) => item !== '')

/** Printable ASCII and tabs, at a length that servers accept. */
export const headerValuePattern = /^[\t\x20-\x7e]{0,16384}$/

const text = () => z.string().check(z.trim(), z.minLength(1, 'must not be empty'))

/**
 * The values are functions, because a run needs few of these schemas, and building one takes longer than
 * parsing.
 */
const types = {
  text,
  address: () =>
    z.string().check(
      z.trim(),
      z.check((context) => {
        const message = findAddressProblem(context.value)
        if (message) context.issues.push({ code: 'custom', message, input: undefined })
      }),
    ),
  // A token that was copied together with its header begins with 'Bearer', so the message names this word.
  secret: () =>
    text().check(
      z.regex(/^[\x21-\x7e]*$/, "must be one word of ASCII: no blank, line break, header name or 'Bearer'"),
    ),
  word: () =>
    z
      .string('must be text')
      .check(z.regex(/^[A-Za-z][A-Za-z0-9-]*$/, 'must be a word of letters, digits and hyphens')),
  headerValue: () =>
    text().check(z.regex(headerValuePattern, 'must be at most 16 KiB of ASCII without control characters')),
  betaList: () =>
    z.pipe(
      convertText(toList),
      z.array(
        z.string().check(z.regex(betaPattern, 'must be a list of betas, and no beta may contain a blank')),
      ),
    ),
  model: () => text().check(z.regex(/^(?![a-z]+:\/\/)/i, 'must be the name of a model, not an address')),
  toggle: () =>
    z.pipe(z.transform(toBoolean), z.boolean('must be true or false (or yes, no, on, off, 1, 0)')),
  seconds: () =>
    z.pipe(
      convertText(toSeconds),
      z
        .number(`must be a duration ${durationExamples}; a bare number is seconds`)
        .check(z.gte(0, 'must not be negative')),
    ),
  count: () =>
    z.pipe(
      convertText(toNumber),
      z
        .int('must be a whole number')
        .check(z.gte(0, 'must be a whole number'), z.lte(100, 'must be at most 100')),
    ),
}

type OfType<T> = T extends keyof typeof types ? z.infer<ReturnType<(typeof types)[T]>> : never

type Value<K extends SettingName> = (typeof settingDefinitions)[K]['type'] extends readonly (infer Word)[]
  ? Word
  : OfType<(typeof settingDefinitions)[K]['type']>

/** `problem` is the end of a sentence, such as `must be text`. It never quotes the value, which may be a secret. */
export function parseSetting<K extends SettingName>(name: K, given: unknown) {
  const { type } = settingDefinitions[name]
  const schema = typeof type === 'string' ? types[type]() : z.enum(type)
  const { data, error } = schema.safeParse(given)
  return { value: data as Value<K> | undefined, problem: error?.issues[0]?.message }
}

type WithDefault = {
  [K in SettingName]: (typeof settingDefinitions)[K] extends { default: unknown } ? K : never
}[SettingName]

export type Settings = { [K in WithDefault]: Value<K> } & {
  [K in Exclude<SettingName, WithDefault>]?: Value<K>
}
