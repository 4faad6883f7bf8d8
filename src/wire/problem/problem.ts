import { CliError } from '../../errors.ts'
import { isObject, tryParseJson } from '../json/parse.ts'
import { field, isGood, messageOf, namesOf } from './json.ts'
import { kindOf } from './kind.ts'
import { readEventData, readMarkup } from './text.ts'

/** What can be read out of an error body of any known shape (public clients, 8; recorded, 4). */
export interface Problem {
  /** The service's own name for the error: `rate_limit_error`, `RESOURCE_EXHAUSTED`. */
  type?: string | undefined
  message?: string | undefined
  /** Seconds. */
  retryAfter?: number | undefined
  requestId?: string | undefined
}

/** Reads an error body: parsed JSON, or the text where it was none. */
export function readProblem(body: unknown): Problem {
  if (typeof body === 'string') return readText(body)
  const value = Array.isArray(body) ? body[0] : body
  const [type] = namesOf(value)
  const requestId = idIn(value) ?? idIn(field(value, 'error'))
  return compact({ type, message: messageOf(body), retryAfter: readDelay(field(value, 'error')), requestId })
}

function readText(text: string): Problem {
  for (const data of readEventData(text)) {
    const value = tryParseJson(data)
    if (messageOf(value) !== undefined) return readProblem(value)
  }
  const { isError: _, ...problem } = readMarkup(text)
  return compact(problem)
}

const idIn = (value: unknown): string | undefined => {
  const id = field(value, 'request_id', 'requestId', 'RequestId')
  return typeof id === 'string' ? id.slice(0, 200) : undefined
}

/** The wait that the details of an error ask for: `30s`. */
function readDelay(error: unknown): number | undefined {
  const details = field(error, 'details')
  const delays = Array.isArray(details) ? details.map((entry) => field(entry, 'retryDelay')) : []
  const delay = delays.find((entry) => typeof entry === 'string')
  return typeof delay === 'string' && /^\d{1,9}(\.\d{1,9})?s$/.test(delay)
    ? Number.parseFloat(delay)
    : undefined
}

function compact<T extends object>(fields: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T
}

/** Whether a body that should have been an answer is one of the error envelopes instead. */
export function isErrorEnvelope(body: unknown): boolean {
  const value = Array.isArray(body) ? body[0] : body
  if (!isObject(value)) return false
  const type = field(value, 'type')
  // A `session.error` event has an `error` too.
  if (typeof type !== 'string') return tellsOfError(value)
  const isProblem =
    type.endsWith('_error') || (type.includes(':') && typeof field(value, 'title') === 'string')
  return type === 'error' || (isProblem && messageOf(value) !== undefined)
}

/** What only an answer has. */
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

function tellsOfError(value: Record<string, unknown>): boolean {
  if (
    field(value, 'success') === false ||
    isTelling(field(value, 'error')) ||
    isTelling(field(value, 'fault'))
  ) {
    return true
  }
  const found = answers.map((name) => field(value, name)).filter((answer) => answer !== undefined)
  if (found.some(isFull)) return false
  const code = field(value, 'code', 'Code', 'statusCode')
  const says = messageOf(value) !== undefined
  if (code !== undefined) return says && !isGood(code)
  // A message beside a list that is empty, or beside good news, is only a message.
  return says && found.length === 0 && !isGoodNews(value)
}

const isGoodNews = (value: Record<string, unknown>) =>
  [field(value, 'success'), field(value, 'ok')].includes(true) || isGood(field(value, 'status'))

/** Whether an `error` is one: not `{}`, not `{"code":0}`. */
const isTelling = (error: unknown): boolean =>
  isObject(error)
    ? isFull(error) && !isGood(field(error, 'code'))
    : isFull(error) && error !== 0 && error !== false

const isFull = (value: unknown): boolean =>
  typeof value === 'object' && value !== null
    ? Object.keys(value).length > 0
    : value !== undefined && value !== ''

/** The failure that an error envelope under a status of 2xx tells of, by its type (public clients, 8). */
export function failureInBody(value: unknown, status = 200): CliError {
  const { message, requestId } = readProblem(value)
  const names = namesOf(Array.isArray(value) ? value[0] : value)
  return new CliError(kindOf(names), `the service answered ${status} with an error`, {
    sent: 'yes',
    status,
    body: value,
    ...(message === undefined ? {} : { serviceMessage: message }),
    ...(requestId === undefined ? {} : { requestId }),
  })
}

/**
 * What is wrong with a body of status 2xx that is not what was asked for, parsed JSON or text: the failure that it
 * tells of, else one of kind `response` whose message is `otherwise`. Either has the body, and what it says.
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
    ...(message === undefined ? {} : { serviceMessage: message }),
    ...(requestId === undefined ? {} : { requestId }),
  })
}
