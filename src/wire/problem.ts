import { CliError, type Kind } from '../errors.ts'
import * as z from './zod.ts'

/** What can be read out of an error body of any known shape (`spec/beyond.md`, Error bodies). */
export interface Problem {
  /** The service's own name for the error: `rate_limit_error`, `RESOURCE_EXHAUSTED`. */
  type?: string
  message?: string
  /** Seconds. */
  retryAfter?: number
  requestId?: string
}

const Envelope = z.lazily(() => {
  const text = z.catch(z.optional(z.string()), undefined)
  return z.looseObject({
    type: text,
    error: z.optional(
      z.union([
        z.string(),
        z.looseObject({
          type: text,
          status: text,
          code: z.catch(z.optional(z.union([z.string(), z.number()])), undefined),
          message: text,
          issues: z.catch(z.optional(z.array(z.looseObject({ message: text }))), undefined),
          details: z.catch(z.optional(z.array(z.looseObject({ retryDelay: text }))), undefined),
        }),
      ]),
    ),
    message: text,
    title: text,
    detail: text,
    request_id: text,
  })
})

/** Reads an error body: parsed JSON, or the text where it was none. */
export function readProblem(body: unknown): Problem {
  if (typeof body === 'string') return fromText(body)
  const parsed = Envelope().safeParse(Array.isArray(body) ? body[0] : body)
  if (!parsed.success) return {}
  const { error, message, title, detail, request_id: requestId } = parsed.data
  const inner = typeof error === 'object' ? error : undefined
  const issues = inner?.issues?.map((issue) => issue.message).filter((line) => line !== undefined)
  const delay = inner?.details?.find((entry) => entry.retryDelay !== undefined)?.retryDelay
  return compact({
    type: inner?.type ?? inner?.status ?? (inner?.code === undefined ? undefined : String(inner.code)),
    message:
      (typeof error === 'string' ? error : inner?.message) ??
      (issues?.length ? issues.join('; ') : undefined) ??
      message ??
      ([title, detail].filter((line) => line !== undefined).join(': ') || undefined),
    retryAfter: delay && /^\d+(\.\d+)?s$/.test(delay) ? Number.parseFloat(delay) : undefined,
    requestId,
  })
}

function fromText(body: string): Problem {
  const title = /<title[^>]*>([^<]*)/i.exec(body)?.[1]?.trim()
  const isMarkup = /^\s*</.test(body)
  return compact({ message: isMarkup ? title : body.trim() || undefined })
}

function compact<T extends object>(fields: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T
}

/** Whether a body that should have been an answer is one of the error envelopes instead. */
export function isErrorEnvelope(body: unknown): boolean {
  const value = Array.isArray(body) ? body[0] : body
  if (typeof value !== 'object' || value === null) return false
  // A `session.error` event has an `error` too.
  if (typeof value.type === 'string') return value.type === 'error'
  return value.success === false || Boolean(value.error)
}

/** The kind of failure that an error's own name tells of. */
function kindOfType(type: string | undefined): Kind {
  return (type !== undefined && kinds[type.replace(/_error$/, '').toLowerCase()]) || 'response'
}

const kinds: Record<string, Kind> = {
  authentication: 'credentials',
  unauthenticated: 'credentials',
  permission: 'credentials',
  permission_denied: 'credentials',
  401: 'credentials',
  403: 'credentials',
  invalid_request: 'refused',
  invalid_argument: 'refused',
  failed_precondition: 'refused',
  not_found: 'refused',
  400: 'refused',
  404: 'refused',
  billing: 'payment',
  402: 'payment',
  rate_limit: 'rate-limited',
  resource_exhausted: 'rate-limited',
  429: 'rate-limited',
  overloaded: 'service',
  unavailable: 'service',
  api: 'service',
  internal: 'service',
  500: 'service',
  503: 'service',
  529: 'service',
  timeout: 'service',
  deadline_exceeded: 'service',
}

/** The failure that an error envelope under a status of 200 tells of, by its type (`cli.md`, Failure). */
export function failureInBody(value: unknown): CliError {
  const problem = readProblem(value)
  return new CliError(kindOfType(problem.type), `the service answered 200 with an error`, {
    sent: 'yes',
    status: 200,
    body: value,
    ...(problem.message === undefined ? {} : { serviceMessage: problem.message }),
    ...(problem.requestId === undefined ? {} : { requestId: problem.requestId }),
  })
}
