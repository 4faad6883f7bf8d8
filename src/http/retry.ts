import type { DeliveryOutcome, DeliveryState, Repeat, RetryAdvice } from '../delivery-state.ts'
import type { CliError, FailureDetails, FailureKind } from '../errors.ts'

/** What a status or a cause means: a row for each. */
interface StatusRow {
  /** None if no status came: the kind says what came in its place. */
  on?: On
  kind: FailureKind
  /** What the attempt came to. */
  fate: DeliveryState
  /** The same may go well later. */
  passes?: true
  /** Which requests may be sent again by themselves: `repeatable` are those for which a failure takes nothing away. */
  again?: 'all' | 'repeatable' | 'reading'
  /** What the other calls of a run do: by default they go on. */
  others?: 'wait' | 'end'
}

/** The statuses, or an answer that broke off. A 503 is limited if it has `Retry-After`. */
type On = readonly number[] | 'limited 503' | '3xx and 4xx' | '5xx' | 'broken off'

/** The first row that fits counts. */
const table: readonly StatusRow[] = [
  { kind: 'not-sent', fate: 'not-sent', passes: true, again: 'all', others: 'wait' },
  { kind: 'unknown', fate: 'sent', passes: true, again: 'reading' },
  { kind: 'response', fate: 'sent' },
  { on: 'broken off', kind: 'response', fate: 'sent', passes: true },
  { kind: 'credentials', fate: 'not-sent', others: 'end' },
  { on: [401, 403, 407], kind: 'credentials', fate: 'refused', others: 'end' },
  { on: [402], kind: 'payment', fate: 'refused', others: 'end' },
  { on: [408, 425], kind: 'service', fate: 'failed', passes: true, again: 'repeatable' },
  { on: [429], kind: 'rate-limited', fate: 'refused', passes: true, again: 'all', others: 'wait' },
  { on: 'limited 503', kind: 'rate-limited', fate: 'refused', passes: true, again: 'all', others: 'wait' },
  { on: '3xx and 4xx', kind: 'refused', fate: 'refused' },
  { on: [500, 502, 503, 504, 529], kind: 'service', fate: 'failed', passes: true, again: 'repeatable' },
  { on: '5xx', kind: 'service', fate: 'failed', passes: true },
  { kind: 'file', fate: 'answered', others: 'end' },
]

function isOn({ on }: StatusRow, { status = 0, isCutOff }: FailureDetails, hasRetryAfter = true): boolean {
  if (on === 'broken off') return isCutOff === true
  if (on === 'limited 503') return status === 503 && hasRetryAfter
  if (on === '3xx and 4xx') return status >= 300 && status < 500
  return on === '5xx' ? status >= 500 : typeof on === 'object' && on.includes(status)
}

/** Whether a service refused the secret itself; a 407 is a proxy's. */
export const refusesSecret = (status: number | undefined): boolean => status === 401 || status === 403

export const kindOfStatus = (status: number, hasRetryAfter: boolean): FailureKind =>
  table.find((row) => isOn(row, { status }, hasRetryAfter))?.kind ?? 'response'

function rowOf({ kind, details }: CliError): StatusRow {
  const ofKind = table.filter((row) => row.kind === kind)
  // A failure that no request is the cause of has no row.
  const other: StatusRow = ofKind[0] ?? { kind, fate: 'answered' }
  const found = ofKind.find((row) => isOn(row, details)) ?? other
  const { status = 0 } = details
  if (status < 200 || status >= 300) return found
  // An answer of status 2xx that calls itself a refusal proves none: something else may have answered for the service, or the
  // service acted first. And it was paid for, or will be again.
  return { ...found, fate: 'answered', again: undefined, others: found.others === 'end' ? 'end' : undefined }
}

/** Whether whoever asked may ask for the same again, after a call that came to this. */
export function retryOf(failure: CliError, { safeToRetry }: DeliveryOutcome): RetryAdvice {
  const { passes } = rowOf(failure)
  const { isPermanent, deadline } = failure.details
  // An unknown host or a bad certificate. A passed deadline ends all attempts too, but the next run has another one.
  if (failure.kind === 'not-sent' && isPermanent && !deadline) return 'never'
  if (safeToRetry) return passes ? 'later' : 'never'
  return passes || failure.kind === 'response' ? 'look-first' : 'never'
}

/** What a failed attempt has come to. */
export const fateOf = (failure: CliError): DeliveryState => rowOf(failure).fate

/** What a failure of one call means for the others of a run: to `wait` is to ask for this one again too. */
export function outlookOf(failure: CliError): 'go on' | 'wait' | 'end' {
  // The service itself said that it would refuse it again.
  if (failure.kind === 'rate-limited' && failure.details.isPermanent) return 'go on'
  return rowOf(failure).others ?? 'go on'
}

export interface RetryPolicy {
  repeat: Repeat
  /** How many attempts may follow the first. */
  retries: number
  /** Also try again after a request that was sent and got no response. */
  retryUnknown: boolean
  /** By the forward clock; Infinity for none. */
  deadline: number
}

/** Whether a request may be sent again by itself after a failure of this kind. */
export function mayRepeat(
  { repeat, retryUnknown }: Pick<RetryPolicy, 'repeat' | 'retryUnknown'>,
  error: CliError,
): boolean {
  const { again } = rowOf(error)
  if (error.details.isPermanent) return false
  if (again === 'all') return true
  if (again === 'repeatable') return repeat !== 'not-taken'
  return again === 'reading' && (repeat === 'always' || (retryUnknown && repeat === 'failed'))
}

/** Whether a failure may pass, so that whoever is patient asks again. A name that is not found may only mean that the network is away. */
export function mayPass(error: CliError, repeat: Repeat): boolean {
  const { isPermanent } = error.details
  if (isPermanent && error.kind !== 'not-sent') return false
  const { again, passes } = rowOf(error)
  return again === 'all' || (repeat === 'always' && passes === true)
}

const waits = { first: 500, longest: 8000 }

/**
 * How long to wait after so many waits before, which double from the first to the longest, in milliseconds. `random`,
 * between 0 and 1, takes up to a half away.
 */
export const backoff = ({ first, longest }: typeof waits, before: number, random = 1): number =>
  Math.min(first * 2 ** before, longest) * (0.5 + random / 2)

const longestWait = 60_000

/**
 * After how many milliseconds a call tries again, or the failure that it ends with. `attempt` counts from 1; `random` is
 * between 0 and 1.
 */
export function decideRetry(
  policy: RetryPolicy,
  error: CliError,
  { attempt, now, random }: { attempt: number; now: number; random: number },
): number | CliError {
  if (attempt > policy.retries || !mayRepeat(policy, error)) return error
  const wait = Math.max((error.details.retryAfter ?? 0) * 1000, backoff(waits, attempt - 1, random))
  if (wait > longestWait) {
    const why = `the service asks to wait ${Math.ceil(wait / 1000)} s, more than 60 s`
    return error.with({}, `${error.message} (${why})`)
  }
  if (now + wait >= policy.deadline) {
    const why = `the next attempt, in ${(wait / 1000).toFixed(1)} s, would be past the deadline`
    return error.with({ deadline: true }, `${error.message} (${why})`)
  }
  return wait
}
