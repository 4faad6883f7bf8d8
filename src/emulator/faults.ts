import { usageError } from '../errors.ts'
import { type EmulatedResponse, errorResponse } from './response.ts'

export const faultKinds = ['reset', 'cut', 'stall', 'html'] as const

/**
 * Without `endpoint`, the fault applies to every endpoint. `left`: number of requests that will still fail.
 */
export interface Fault {
  endpoint?: string
  kind: (typeof faultKinds)[number] | number
  left: number
}

const faultPattern = new RegExp(`^(?:([a-z]+):)?(${faultKinds.join('|')}|[45]\\d\\d)(?:x(0*[1-9]\\d*))?$`)

export type Faults = ReturnType<typeof parseFaults>

/**
 * Parses all `--fault` values. `rate` is the limit in requests per second, or Infinity. Throws a usage error.
 */
export function parseFaults(specs: readonly string[], endpoints: readonly string[]) {
  const isRate = (spec: string) => /^rate:\d*[1-9]\d*$/.test(spec)
  const faults = specs.filter((spec) => !isRate(spec)).map((spec) => parseFault(spec, endpoints))
  const rates = specs.filter(isRate).map((spec) => Number(spec.slice('rate:'.length)))
  return { faults, rate: Math.min(...rates) }
}

/** Parses a fault. Without a count, the fault applies to every request. Throws a usage error. */
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
    left: times === undefined ? Infinity : Number(times),
  }
}

export function takeFault(faults: Fault[], endpoint: string): Fault['kind'] | undefined {
  const fault = faults.find(
    ({ left, endpoint: only }) => left > 0 && (only === undefined || only === endpoint),
  )
  if (!fault) return undefined
  fault.left--
  return fault.kind
}

/** A 429 has a Retry-After of one second, because the emulator's rate limits are per second. */
export const faultResponse = (status: number, why = `--fault requested a ${status}`): EmulatedResponse =>
  errorResponse(status, why, status === 429 ? { 'retry-after': '1' } : undefined)

/** Response of a captive portal, which is the login page of a public network. */
export const webPageResponse: EmulatedResponse = {
  status: 200,
  contentType: 'text/html',
  pieces: ['<!doctype html><html><head><title>Please log in</title></head><body>A web page.</body></html>'],
}

/**
 * Creates a token bucket with `rate` tokens, which refills within a second. Each call of the returned
 * function takes one token. The function returns false if the bucket is empty. `now` is a monotonic clock in
 * milliseconds.
 */
export function createRateLimiter(rate: number, now: () => number): () => boolean {
  let left = rate
  let last = now()

  return () => {
    const time = now()
    left = Math.min(rate, left + ((time - last) * rate) / 1000)
    last = time
    // Because of rounding, the client may wait slightly too little, so 0.99 tokens are enough.
    if (left < 0.99) return false
    left--
    return true
  }
}
