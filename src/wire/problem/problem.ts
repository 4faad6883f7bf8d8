import { CliError } from '../../errors.ts'
import { isObject, tryParseJson } from '../json/parse.ts'
import { isMarkup } from '../markup.ts'
import { readSseEvents } from '../sse.ts'
import { findFailureKind } from './failure-kind.ts'

export const createResponseError = (message: string, serviceMessage?: string) =>
  new CliError('response', message, { serviceMessage })

/** Content of an error body in any known form (src/wire/README.md: public clients, 8; recorded, 4). */
export interface ErrorBody {
  type?: string
  message?: string
  retryAfterSeconds?: number
  requestId?: string
}

export function readErrorBody(body: unknown): ErrorBody {
  if (typeof body === 'string') return readText(body)
  const value = Array.isArray(body) ? body[0] : body
  const [type] = listNames(value)
  const requestId = findRequestId(value) ?? findRequestId(readField(value, 'error'))
  const error = readField(value, 'error')
  const retryAfterSeconds = readDelaySeconds(error)
  return { type, message: addCode(readMessage(body), error), retryAfterSeconds, requestId }
}

/**
 * Returns the message of an error together with its code, because the code names the cause more exactly
 * than the type (src/wire/README.md: public clients, 8).
 */
export const readErrorMessage = (error: unknown): string | undefined => addCode(readMessage(error), error)

function addCode(message: string | undefined, error: unknown): string | undefined {
  const codes = [readField(error, 'details')].flat().map((entry) => readField(entry, 'error_code'))
  const code = codes.find((each): each is string => typeof each === 'string' && /^\S{1,100}$/.test(each))
  if (code === undefined || message?.includes(code)) return message
  return message === undefined ? code : `${message} (${code})`
}

function readText(text: string): ErrorBody {
  const event = parseSseValues(text).find((each) => readMessage(each) !== undefined)
  if (event !== undefined) return readErrorBody(event)
  const start = text.trimStart().slice(0, maxReadLength)
  // A NUL shows that the body is binary, such as an image, so its bytes are not a message.
  if (!isMarkup(start)) return { message: start.includes('\0') ? undefined : start.trim() || undefined }
  const message = readElementText(start, 'message')
  if (message === undefined) return { message: readElementText(start, 'title') }
  return { type: readElementText(start, 'code'), message, requestId: readElementText(start, 'requestid') }
}

const findRequestId = (value: unknown): string | undefined => {
  const id = readField(value, 'request_id', 'requestId', 'RequestId')
  return typeof id === 'string' ? id.slice(0, 200) : undefined
}

function readDelaySeconds(error: unknown): number | undefined {
  const delays = [readField(error, 'details')].flat().map((entry) => readField(entry, 'retryDelay'))
  const delay = delays.find((each) => typeof each === 'string' && /^\d{1,9}(\.\d{1,9})?s$/.test(each))
  return delay === undefined ? undefined : Number.parseFloat(delay as string)
}

/** Returns whether the body of a 2xx response, or an event of a stream, is an error instead of a result. */
export function isErrorEnvelope(body: unknown): boolean {
  const value = Array.isArray(body) ? body[0] : body
  if (!isObject(value)) return false
  const type = readField(value, 'type')
  // In a value with a type, the field `error` alone does not prove an error body: `session.error` events also
  // have the field.
  if (typeof type !== 'string') return looksLikeError(value)
  const isProblem =
    type.endsWith('_error') || (type.includes(':') && typeof readField(value, 'title') === 'string')
  if (/^message(_|$)/.test(type)) return hasError(readField(value, 'error'))
  return type === 'error' || (isProblem && readMessage(value) !== undefined)
}

const answerFields = 'content candidates promptFeedback data choices predictions response events'.split(' ')

function looksLikeError(value: Record<string, unknown>): boolean {
  const errors = [readField(value, 'error'), readField(value, 'fault')]
  if (readField(value, 'success') === false || errors.some(hasError)) return true
  const found = answerFields.map((name) => readField(value, name)).filter((answer) => answer !== undefined)
  if (found.some(isFilled)) return false
  const code = readField(value, 'code', 'Code', 'statusCode')
  const hasMessage = readMessage(value) !== undefined
  if (code !== undefined) return hasMessage && !isSuccessCode(code)
  // Next to an empty answer field or a success code, a `message` is a note of the service and not an error.
  return hasMessage && found.length === 0 && !isSuccess(value)
}

const isSuccess = (value: Record<string, unknown>) =>
  [readField(value, 'success'), readField(value, 'ok')].includes(true) ||
  isSuccessCode(readField(value, 'status'))

const hasError = (error: unknown): boolean =>
  isObject(error)
    ? isFilled(error) && !isSuccessCode(readField(error, 'code'))
    : isFilled(error) && error !== 0 && error !== false

const isFilled = (value: unknown): boolean =>
  typeof value === 'object' && value !== null
    ? Object.keys(value).length > 0
    : value !== undefined && value !== ''

/**
 * Creates the failure for a 2xx response whose body is an error. The type of the error decides the kind of
 * the failure (src/wire/README.md: public clients, 8).
 */
export function createErrorBodyFailure(value: unknown): CliError {
  const { message, requestId } = readErrorBody(value)
  const kind = findFailureKind(listNames(Array.isArray(value) ? value[0] : value))
  const details = { errorIn: 'body', body: value, serviceMessage: message, requestId } as const
  return new CliError(kind, 'the service answered with an error in a successful response', details)
}

/**
 * Creates the failure for an unexpected body of a 2xx response. `body` is parsed JSON or text. If the body
 * is an error, the failure describes that error. Otherwise the message of the failure is `otherwise`.
 */
export function createUnexpectedBodyFailure(body: unknown, otherwise: string): CliError {
  const envelope = [body, ...(typeof body === 'string' ? parseSseValues(body) : [])].find(isErrorEnvelope)
  if (envelope !== undefined) return createErrorBodyFailure(envelope).with({ body })
  const { type, message, requestId } = readErrorBody(body)
  const kind = findFailureKind(typeof body === 'string' && type !== undefined ? [type] : [])
  return new CliError(kind, otherwise, { body, serviceMessage: message, requestId })
}

const [maxErrorDepth, maxListedErrors] = [5, 20]

const maxReadLength = 64 * 1024

/**
 * Returns the first of the named fields that is not null. Ignores inherited properties, because a service
 * chooses the fields of `value`.
 */
const readField = (value: unknown, ...names: string[]): unknown =>
  isObject(value)
    ? names.map((name) => (Object.hasOwn(value, name) ? value[name] : null)).find((found) => found !== null)
    : undefined

/** A message may be the JSON of another error, so this function calls itself. */
function readMessage(value: unknown, depth = 0): string | undefined {
  if (depth > maxErrorDepth) return undefined
  if (typeof value === 'string') {
    const words = value.slice(0, maxReadLength).trim()
    const inner = /^[[{]/.test(words) ? readMessage(tryParseJson(words), depth + 1) : undefined
    return (inner ?? words) || undefined
  }
  if (Array.isArray(value)) {
    const all = value.slice(0, maxListedErrors).map((one) => readMessage(one, depth + 1))
    return all.filter((one) => one !== undefined).join('; ') || undefined
  }
  if (!isObject(value)) return undefined
  const inner = (...names: string[]) => readMessage(readField(value, ...names), depth + 1)
  return (
    joinTexts(inner('error'), inner('error_description')) ??
    inner('issues', 'errors', 'fault', 'faultstring') ??
    addLocation(readField(value, 'loc'), inner('message', 'Message', 'msg')) ??
    joinTexts(inner('title'), inner('detail'))
  )
}

const joinTexts = (...words: (string | undefined)[]) =>
  [...new Set(words.filter((each) => each !== undefined))].join(': ') || undefined

function addLocation(place: unknown, message: string | undefined): string | undefined {
  if (message === undefined || !Array.isArray(place)) return message
  const steps = place.filter((step) => typeof step === 'string' || typeof step === 'number')
  return `${steps.slice(0, maxListedErrors).join('.')}: ${message}`
}

/** Lists the types, statuses and codes of an error, the most exact first. */
function listNames(value: unknown): string[] {
  const error = readField(value, 'error')
  const places = [error, readField(value, 'fault'), value]
  const names = places.flatMap((place) =>
    ['type', 'status', 'code', 'Code', 'statusCode'].map((name) => readField(place, name)),
  )
  return [...names, error]
    .filter((name) => typeof name === 'number' || (typeof name === 'string' && /^\S{1,100}$/.test(name)))
    .map(String)
}

const isSuccessCode = (code: unknown): boolean =>
  /^(?:0|2\d\d|ok|success)$/i.test(typeof code === 'number' || typeof code === 'string' ? String(code) : '')

/** The pattern limits every repetition, so a hostile page cannot make matching slow. */
function readElementText(markup: string, name: string): string | undefined {
  const pattern = `<(?:\\w{1,40}:)?${name}(?:\\s[^>]{0,500})?>(?:<!\\[CDATA\\[)?([^<\\]]{0,10000})`
  return new RegExp(pattern, 'i').exec(markup)?.[1]?.trim() || undefined
}

export function parseSseValues(text: string): unknown[] {
  const start = text.trimStart().slice(0, maxReadLength)
  const events = /^(?:data|event|id|retry|):/.test(start) ? readSseEvents(start) : []
  return events.map(({ data }) => tryParseJson(data))
}
