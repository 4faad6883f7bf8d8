import { usageError } from '../errors.ts'
import type { EndpointName } from '../wire/endpoints.ts'
import { type EmulatedResponse, toErrorResponse } from './response.ts'

export const faultKinds = ['reset', 'cut', 'stall', 'html'] as const

const faultPattern = new RegExp(`^(?:([a-z]+):)?(${faultKinds.join('|')}|[45]\\d\\d)(?:x(0*[1-9]\\d*))?$`)

const faultEndpointNames: Record<EndpointName, string> = {
  chat: 'chat',
  streamChat: 'chat',
  readModel: 'chat',
  image: 'image',
  createSession: 'session',
  readSession: 'session',
  updateSession: 'session',
  listSessions: 'session',
  sendEvents: 'events',
  listEvents: 'list',
  followEvents: 'follow',
}

const allEndpointNames = [...new Set(Object.values(faultEndpointNames))]

/**
 * Parses the values of `--fault`. Throws a usage error for an invalid value. The returned function returns
 * the fault of the next request, if any: an error response, or the way in which the connection fails. `now`
 * returns monotonic milliseconds.
 */
export function createFaultSource(specs: readonly string[], now: () => number) {
  const isRate = (spec: string) => /^rate:\d*[1-9]\d*$/.test(spec)
  const faults = specs.filter((spec) => !isRate(spec)).map(parseFault)
  const rates = specs.filter(isRate).map((spec) => Number(spec.slice('rate:'.length)))
  const takeToken = rates.length === 0 ? () => true : createRateLimiter(Math.min(...rates), now)

  return (name: EndpointName): EmulatedResponse | 'reset' | 'cut' | 'stall' | undefined => {
    if (!takeToken()) return toFaultResponse(429, 'too many requests a second')
    const fault = faults.find(
      ({ remainingRequests, endpoint }) =>
        remainingRequests > 0 && (endpoint === undefined || endpoint === faultEndpointNames[name]),
    )
    if (!fault) return undefined
    fault.remainingRequests--
    if (fault.kind === 'html') return loginPageResponse
    return typeof fault.kind === 'number' ? toFaultResponse(fault.kind) : fault.kind
  }
}

/** `endpoint` is `undefined` for a fault of every endpoint. `kind` may be the HTTP status of the response. */
function parseFault(spec: string) {
  const found = faultPattern.exec(spec.toLowerCase())
  const [, endpoint, kind, times] = found ?? []
  if (!found || (endpoint !== undefined && !allEndpointNames.includes(endpoint))) {
    throw usageError(
      `--fault ${spec}: must be [ENDPOINT:]KIND[xTIMES] or rate:N; KIND: ${faultKinds.join(', ')}, or a status from 400 to 599; ENDPOINT: ${allEndpointNames.join(', ')}; TIMES: 1 or more`,
    )
  }
  return {
    endpoint,
    kind: faultKinds.find((each) => each === kind) ?? Number(kind),
    remainingRequests: times === undefined ? Infinity : Number(times),
  }
}

/** A 429 has a Retry-After of one second, because `--fault rate:N` counts requests per second. */
const toFaultResponse = (status: number, why = `--fault requested a ${status}`): EmulatedResponse =>
  toErrorResponse(status, why, status === 429 ? { 'retry-after': '1' } : undefined)

/** Response of a captive portal: a public network answers every request with its login page. */
const loginPageResponse: EmulatedResponse = {
  contentType: 'text/html',
  pieces: ['<!doctype html><html><head><title>Please log in</title></head><body>A web page.</body></html>'],
}

/**
 * Creates a token bucket of `rate` tokens, which refills within a second. The returned function takes a
 * token, or returns false if the bucket is empty.
 */
function createRateLimiter(rate: number, now: () => number): () => boolean {
  let left = rate
  let last = now()

  return () => {
    const time = now()
    left = Math.min(rate, left + ((time - last) * rate) / 1000)
    last = time
    // A client that rounds its wait may send slightly too early, so 0.99 tokens are enough.
    if (left < 0.99) return false
    left--
    return true
  }
}
