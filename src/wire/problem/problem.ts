import { CliError } from '../../errors.ts'
import { isObject, tryParseJson } from '../json/parse.ts'
import { readSseEvents } from '../sse.ts'
import { kindOf } from './kind.ts'

/** A failure of kind `response`; `serviceMessage` is what the service said instead, unescaped. */
export const notUnderstood = (message: string, serviceMessage?: string) =>
  new CliError('response', message, { serviceMessage })

/** What can be read out of an error body of any known shape (public clients, 8; recorded, 4). */
export interface Problem {
  /** The service's own name for the error: `rate_limit_error`, `RESOURCE_EXHAUSTED`. */
  type?: string
  message?: string
  /** Seconds. */
  retryAfter?: number
  requestId?: string
}

/** Reads an error body: parsed JSON, or text. */
export function readProblem(body: unknown): Problem {
  if (typeof body === 'string') return readText(body)
  const value = Array.isArray(body) ? body[0] : body
  const [type] = namesOf(value)
  const requestId = requestIdIn(value) ?? requestIdIn(field(value, 'error'))
  const error = field(value, 'error')
  return { type, message: withCode(messageOf(body), error), retryAfter: readDelay(error), requestId }
}

/** The message of an error, with the code that names its cause more exactly than its type does (public clients, 8). */
export const describeError = (error: unknown): string | undefined => withCode(messageOf(error), error)

function withCode(message: string | undefined, error: unknown): string | undefined {
  const codes = [field(error, 'details')].flat().map((entry) => field(entry, 'error_code'))
  const code = codes.find((each): each is string => typeof each === 'string' && /^\S{1,100}$/.test(each))
  if (code === undefined || message?.includes(code)) return message
  return message === undefined ? code : `${message} (${code})`
}

function readText(text: string): Problem {
  const value = eventsIn(text).find((each) => messageOf(each) !== undefined)
  return value === undefined ? readMarkup(text) : readProblem(value)
}

const requestIdIn = (value: unknown): string | undefined => {
  const id = field(value, 'request_id', 'requestId', 'RequestId')
  return typeof id === 'string' ? id.slice(0, 200) : undefined
}

/** The wait that an error's details ask for, such as `30s`, in seconds. */
function readDelay(error: unknown): number | undefined {
  const delays = [field(error, 'details')].flat().map((entry) => field(entry, 'retryDelay'))
  const delay = delays.find((each) => typeof each === 'string' && /^\d{1,9}(\.\d{1,9})?s$/.test(each))
  return delay === undefined ? undefined : Number.parseFloat(delay as string)
}

/** Whether a body that should have been an answer is one of the error envelopes instead. */
export function isErrorEnvelope(body: unknown): boolean {
  const value = Array.isArray(body) ? body[0] : body
  if (!isObject(value)) return false
  const type = field(value, 'type')
  // A `session.error` event has an `error` too.
  if (typeof type !== 'string') return looksLikeError(value)
  const isProblem =
    type.endsWith('_error') || (type.includes(':') && typeof field(value, 'title') === 'string')
  return type === 'error' || (isProblem && messageOf(value) !== undefined)
}

/** The fields that only an answer has. */
const answers = 'content candidates promptFeedback data choices predictions response events'.split(' ')

function looksLikeError(value: Record<string, unknown>): boolean {
  const errors = [field(value, 'error'), field(value, 'fault')]
  if (field(value, 'success') === false || errors.some(hasError)) return true
  const found = answers.map((name) => field(value, name)).filter((answer) => answer !== undefined)
  if (found.some(isFull)) return false
  const code = field(value, 'code', 'Code', 'statusCode')
  const says = messageOf(value) !== undefined
  if (code !== undefined) return says && !isGood(code)
  // Beside an empty list, or a word of success, a message is only a message.
  return says && found.length === 0 && !isSuccess(value)
}

const isSuccess = (value: Record<string, unknown>) =>
  [field(value, 'success'), field(value, 'ok')].includes(true) || isGood(field(value, 'status'))

/** Whether the field `error` has an error: not `{}`, not `{"code":0}`. */
const hasError = (error: unknown): boolean =>
  isObject(error)
    ? isFull(error) && !isGood(field(error, 'code'))
    : isFull(error) && error !== 0 && error !== false

const isFull = (value: unknown): boolean =>
  typeof value === 'object' && value !== null
    ? Object.keys(value).length > 0
    : value !== undefined && value !== ''

/** The failure that an error envelope under a status of 2xx tells of, by its type (public clients, 8). */
export function failureInBody(value: unknown): CliError {
  const { message, requestId } = readProblem(value)
  const names = namesOf(Array.isArray(value) ? value[0] : value)
  return new CliError(kindOf(names), 'the service answered with an error', {
    isErrorInSuccess: true,
    body: value,
    serviceMessage: message,
    requestId,
  })
}

/**
 * The failure for an answer of status 2xx whose body, parsed JSON or text, is not what was asked for: the error that
 * is in the body, or one of kind `response` with the message `otherwise`. Both have the body and its message.
 */
export function failureInstead(body: unknown, otherwise: string): CliError {
  const envelope = [body, ...(typeof body === 'string' ? eventsIn(body) : [])].find(isErrorEnvelope)
  if (envelope !== undefined) return failureInBody(envelope).with({ body })
  const { type, message, requestId } = readProblem(body)
  const kind = kindOf(typeof body === 'string' && type !== undefined ? [type] : [])
  return new CliError(kind, otherwise, { body, serviceMessage: message, requestId })
}

/** How deep an error may be nested, and how many of several are shown. */
const [deepest, most] = [5, 20]

/** How much of a text is read, in characters: far more than is ever shown. */
const longest = 64 * 1024

/** The first field of these names that has a value: the object's own, never its prototype's. */
const field = (value: unknown, ...names: string[]): unknown =>
  isObject(value)
    ? names.map((name) => (Object.hasOwn(value, name) ? value[name] : null)).find((found) => found !== null)
    : undefined

/** The message in an error's JSON, in any of the known shapes; a text may be such JSON itself. */
function messageOf(value: unknown, depth = 0): string | undefined {
  if (depth > deepest) return undefined
  if (typeof value === 'string') {
    const words = value.slice(0, longest).trim()
    const inner = /^[[{]/.test(words) ? messageOf(tryParseJson(words), depth + 1) : undefined
    return (inner ?? words) || undefined
  }
  if (Array.isArray(value)) {
    const all = value.slice(0, most).map((one) => messageOf(one, depth + 1))
    return all.filter((one) => one !== undefined).join('; ') || undefined
  }
  if (!isObject(value)) return undefined
  const inner = (...names: string[]) => messageOf(field(value, ...names), depth + 1)
  return (
    joined(inner('error'), inner('error_description')) ??
    inner('issues', 'errors', 'fault', 'faultstring') ??
    placed(field(value, 'loc'), inner('message', 'Message', 'msg')) ??
    joined(inner('title'), inner('detail'))
  )
}

/** `what: why`, or the one that is there. */
const joined = (...words: (string | undefined)[]) =>
  [...new Set(words.filter((each) => each !== undefined))].join(': ') || undefined

/** A message with the place that it is about. */
function placed(place: unknown, message: string | undefined): string | undefined {
  if (message === undefined || !Array.isArray(place)) return message
  const steps = place.filter((step) => typeof step === 'string' || typeof step === 'number')
  return `${steps.slice(0, most).join('.')}: ${message}`
}

/** The names and numbers by which an error calls itself, the most exact first. */
function namesOf(value: unknown): string[] {
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
const isGood = (code: unknown): boolean =>
  /^(?:0|2\d\d|ok|success)$/i.test(typeof code === 'number' || typeof code === 'string' ? String(code) : '')

/** Reads XML, an HTML page, or plain words; only an error in XML has a type. */
function readMarkup(text: string): Problem {
  const start = text.slice(0, longest)
  if (!/^\s*</.test(start)) return { message: start.trim() || undefined }
  const message = contentOf(start, 'message')
  if (message === undefined) return { message: contentOf(start, 'title') }
  return { type: contentOf(start, 'code'), message, requestId: contentOf(start, 'requestid') }
}

/** The text of an element, wherever it is. Every repetition has a limit, so that no page keeps the CPU busy. */
function contentOf(markup: string, name: string): string | undefined {
  const element = new RegExp(
    `<(?:\\w{1,40}:)?${name}(?:\\s[^>]{0,500})?>(?:<!\\[CDATA\\[)?([^<\\]]{0,10000})`,
    'i',
  )
  return element.exec(markup)?.[1]?.trim() || undefined
}

/** The JSON of the events of a text that is a stream of them. */
function eventsIn(text: string): unknown[] {
  const start = text.slice(0, longest).trimStart()
  const events = /^(?:data|event|id|retry|):/.test(start) ? readSseEvents(start) : []
  return events.map(({ data }) => tryParseJson(data))
}
