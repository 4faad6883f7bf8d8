/** The form of a version that is not known: what follows the four fields is its own. */
const anyParent = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-[\x21-\x7e]{0,450})?$/

const member =
  /^[a-z0-9][a-z0-9_*/@-]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/

const mostMembers = 32

const longestHeader = 16 * 1024

export interface TraceHeaders {
  headers: Record<string, string>
  /** Variables that are set and left out. */
  leftOut: string[]
}

/** The headers of a trace that goes on (W3C Trace Context), as the environment has them. */
export function readTrace(env: Record<string, string | undefined>): TraceHeaders {
  const { TRACEPARENT: parent = '', TRACESTATE: state = '' } = env
  const isParent = isTraceParent(parent)
  // Without its parent a state means nothing.
  const isState = isParent && isTraceState(state)
  return {
    headers: {
      ...(isParent ? { traceparent: parent } : {}),
      ...(isState ? { tracestate: state } : {}),
    },
    leftOut: [
      ...(parent === '' || isParent ? [] : ['TRACEPARENT']),
      ...(state === '' || isState ? [] : ['TRACESTATE']),
    ],
  }
}

function isTraceParent(text: string): boolean {
  const [, version = 'ff', trace = '', span = '', rest] = anyParent.exec(text) ?? []
  if (version === 'ff' || (version === '00' && rest !== undefined)) return false
  return /[^0]/.test(trace) && /[^0]/.test(span)
}

function isTraceState(text: string): boolean {
  if (text.length > longestHeader || /[^\t\x20-\x7e]/.test(text)) return false
  const members = text
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')
  const keys = new Set(members.map((each) => each.slice(0, each.indexOf('='))))
  return (
    members.length > 0 &&
    members.length <= mostMembers &&
    keys.size === members.length &&
    members.every((each) => member.test(each))
  )
}
