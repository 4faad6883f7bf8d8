import { CliError } from '../../errors.ts'
import { isObject, tryParseJson } from '../json/parse.ts'
import { field, isGood, messageOf, namesOf } from './error-json.ts'
import { readEventData, readMarkup } from './error-text.ts'
import { kindOf } from './kind.ts'

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
  return { type, message: messageOf(body), retryAfter: readDelay(field(value, 'error')), requestId }
}

function readText(text: string): Problem {
  for (const data of readEventData(text)) {
    const value = tryParseJson(data)
    if (messageOf(value) !== undefined) return readProblem(value)
  }
  const { isError: _, ...problem } = readMarkup(text)
  return problem
}

const requestIdIn = (value: unknown): string | undefined => {
  const id = field(value, 'request_id', 'requestId', 'RequestId')
  return typeof id === 'string' ? id.slice(0, 200) : undefined
}

/** The wait that an error's details ask for, such as `30s`, in seconds. */
function readDelay(error: unknown): number | undefined {
  const details = field(error, 'details')
  const delays = Array.isArray(details) ? details.map((entry) => field(entry, 'retryDelay')) : []
  const delay = delays.find((entry) => typeof entry === 'string')
  return typeof delay === 'string' && /^\d{1,9}(\.\d{1,9})?s$/.test(delay)
    ? Number.parseFloat(delay)
    : undefined
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
const answers = [
  'content',
  'candidates',
  'promptFeedback',
  'data',
  'choices',
  'predictions',
  'response',
  'events',
]

function looksLikeError(value: Record<string, unknown>): boolean {
  if (
    field(value, 'success') === false ||
    hasError(field(value, 'error')) ||
    hasError(field(value, 'fault'))
  ) {
    return true
  }
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
    sent: 'yes',
    isInBody: true,
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
  if (typeof body !== 'string' && isErrorEnvelope(body)) return failureInBody(body)
  if (typeof body === 'string') {
    const event = readEventData(body).map(tryParseJson).find(isErrorEnvelope)
    if (event !== undefined) return failureInBody(event).with({ body })
  }
  const markup = typeof body === 'string' ? readMarkup(body) : undefined
  const { message, requestId } = readProblem(body)
  const kind = markup?.isError && markup.type !== undefined ? kindOf([markup.type]) : 'response'
  return new CliError(kind, otherwise, {
    sent: 'yes',
    body,
    serviceMessage: message,
    requestId,
  })
}
