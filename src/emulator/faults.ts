import { usageError } from '../errors.ts'
import { type EmulatedResponse, errorResponse } from './response.ts'

/** What may go wrong beside a status. */
export const faultKinds = ['reset', 'cut', 'stall', 'html'] as const

/** A failure on request: at which endpoint (any, if absent), of what kind, and how many times more. */
export interface Fault {
  endpoint?: string
  kind: (typeof faultKinds)[number] | number
  left: number
}

const form = new RegExp(`^(?:([a-z]+):)?(${faultKinds.join('|')}|[45]\\d\\d)(?:x(0*[1-9]\\d*))?$`)

export type Faults = ReturnType<typeof parseFaults>

/** Reads every `--fault`. `rate` is the requests a second that `rate:10` allows, or Infinity. Throws a usage error. */
export function parseFaults(specs: readonly string[], endpoints: readonly string[]) {
  const isRate = (spec: string) => /^rate:\d*[1-9]\d*$/.test(spec)
  const faults = specs.filter((spec) => !isRate(spec)).map((spec) => parseFault(spec, endpoints))
  const rates = specs.filter(isRate).map((spec) => Number(spec.slice('rate:'.length)))
  return { faults, rate: Math.min(...rates) }
}

/** Reads a fault: `429x2`, `chat:500`, `cut`; without a count it happens every time. Throws a usage error. */
function parseFault(spec: string, endpoints: readonly string[]): Fault {
  const found = form.exec(spec.toLowerCase())
  const [, endpoint, kind, times] = found ?? []
  if (!found || (endpoint !== undefined && !endpoints.includes(endpoint))) {
    throw usageError(
      `--fault ${spec}: must be [ENDPOINT:]KIND[xTIMES], with ${faultKinds.join(', ')} or a status for KIND, one of ${endpoints.join(', ')} for ENDPOINT, and TIMES from 1; or rate:N`,
    )
  }
  return {
    endpoint,
    kind: faultKinds.find((each) => each === kind) ?? Number(kind),
    left: times === undefined ? Infinity : Number(times),
  }
}

/** The fault that happens to this call, which uses it up. */
export function takeFault(faults: Fault[], endpoint: string): Fault['kind'] | undefined {
  const fault = faults.find(
    ({ left, endpoint: only }) => left > 0 && (only === undefined || only === endpoint),
  )
  if (!fault) return undefined
  fault.left--
  return fault.kind
}

/** An error that the emulator was asked for. After a second there is room for a request, whatever the limit is. */
export const faultResponse = (status: number, why = `asked to fail with ${status}`): EmulatedResponse =>
  errorResponse(status, why, status === 429 ? { 'retry-after': '1' } : undefined)

/** What a captive portal answers. */
export const webPageResponse: EmulatedResponse = {
  status: 200,
  contentType: 'text/html',
  pieces: ['<!doctype html><html><head><title>Please log in</title></head><body>A web page.</body></html>'],
}

/**
 * Makes a bucket that holds `rate` requests, and refills in a second: a call takes one out of it, or returns false if it
 * is empty. `now` returns milliseconds that only go forward.
 */
export function createLimiter(rate: number, now: () => number): () => boolean {
  let left = rate
  let last = now()

  return () => {
    const time = now()
    left = Math.min(rate, left + ((time - last) * rate) / 1000)
    last = time
    // A caller that waits for exactly as long as told may be early by rounding.
    if (left < 0.99) return false
    left--
    return true
  }
}
