import { usage } from '../errors.ts'

/** A failure on request: at which endpoint (any, where absent), of what kind, and how many times more. */
export interface Fault {
  endpoint?: string
  kind: 'reset' | 'cut' | 'stall' | 'html' | number
  left: number
}

/** Reads `--fault`: `429x2`, `chat:500`, `cut`; without a count it happens every time. Throws a usage error. */
export function parseFault(spec: string, endpoints: readonly string[]): Fault {
  const found = /^(?:([a-z]+):)?(reset|cut|stall|html|[45]\d\d)(?:x(\d+))?$/i.exec(spec)
  const [, endpoint, kind = '', times] = found ?? []
  if (!found || (endpoint !== undefined && !endpoints.includes(endpoint))) {
    throw usage(
      `--fault ${spec}: must be [ENDPOINT:]KIND[xTIMES], with a status, reset, cut, stall or html for KIND and one of ${endpoints.join(', ')} for ENDPOINT`,
    )
  }
  return {
    ...(endpoint === undefined ? {} : { endpoint }),
    kind: /^\d/.test(kind) ? Number(kind) : (kind as 'reset'),
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
