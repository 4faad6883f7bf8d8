import { usageError } from '../errors.ts'
import { type EmulatedResponse, toErrorResponse } from './response.ts'

export const faultKinds = ['reset', 'cut', 'stall', 'html'] as const

export interface Fault {
  /** If omitted, the fault applies to every endpoint. */
  endpoint?: string
  /** Name of the fault, or the HTTP status of the response. */
  kind: (typeof faultKinds)[number] | number
  remainingRequests: number
}

const faultPattern = new RegExp(`^(?:([a-z]+):)?(${faultKinds.join('|')}|[45]\\d\\d)(?:x(0*[1-9]\\d*))?$`)

export type FaultSettings = ReturnType<typeof parseFaults>

/** Parses the values of `--fault`. `rate`: requests per second, or Infinity. Throws a usage error. */
export function parseFaults(specs: readonly string[], endpoints: readonly string[]) {
  const isRate = (spec: string) => /^rate:\d*[1-9]\d*$/.test(spec)
  const faults = specs.filter((spec) => !isRate(spec)).map((spec) => parseFault(spec, endpoints))
  const rates = specs.filter(isRate).map((spec) => Number(spec.slice('rate:'.length)))
  return { faults, rate: Math.min(...rates) }
}

function parseFault(spec: string, endpoints: readonly string[]): Fault {
  const found = faultPattern.exec(spec.toLowerCase())
  const [, endpoint, kind, times] = found ?? []
  if (!found || (endpoint !== undefined && !endpoints.includes(endpoint))) {
    throw usageError(
      `--fault ${spec}: must be [ENDPOINT:]KIND[xTIMES] or rate:N; KIND: ${faultKinds.join(', ')}, or a status from 400 to 599; ENDPOINT: ${endpoints.join(', ')}; TIMES: 1 or more`,
    )
  }
  return {
    endpoint,
    kind: faultKinds.find((each) => each === kind) ?? Number(kind),
    remainingRequests: times === undefined ? Infinity : Number(times),
  }
}

export function consumeFault(faults: Fault[], endpoint: string): Fault['kind'] | undefined {
  const fault = faults.find(
    ({ remainingRequests, endpoint: only }) =>
      remainingRequests > 0 && (only === undefined || only === endpoint),
  )
  if (!fault) return undefined
  fault.remainingRequests--
  return fault.kind
}

/** A 429 has a Retry-After of one second, because `--fault rate:N` counts requests per second. */
export const toFaultResponse = (status: number, why = `--fault requested a ${status}`): EmulatedResponse =>
  toErrorResponse(status, why, status === 429 ? { 'retry-after': '1' } : undefined)

/** Response of a captive portal: a public network answers every request with its login page. */
export const loginPageResponse: EmulatedResponse = {
  status: 200,
  contentType: 'text/html',
  pieces: ['<!doctype html><html><head><title>Please log in</title></head><body>A web page.</body></html>'],
}

/**
 * Creates a token bucket of `rate` tokens, which refills within a second. The returned function takes a
 * token, or returns false if the bucket is empty. `now`: monotonic milliseconds.
 */
export function createRateLimiter(rate: number, now: () => number): () => boolean {
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
