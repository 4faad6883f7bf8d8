import type { Deadline } from '../deadline.ts'
import type { DeliveryOutcome, DeliveryState, RepeatRule, RetryAdvice } from '../delivery-state.ts'
import { CliError, type FailureDetails, type FailureKind } from '../errors.ts'

export interface RetryRules {
  /**
   * Returns the milliseconds until the next attempt, or the failure that ends the attempts. `attempts`
   * counts the attempts so far.
   */
  decide(failure: CliError, attempts: number): number | CliError
  /** Throws a `CliError` if no attempt may follow, for example because the deadline passed during the wait. */
  requireNext(failure: CliError): void
}

export async function retry<T>(
  deadline: Deadline,
  rules: RetryRules,
  attempt: (attempts: number) => Promise<T>,
): Promise<T> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await attempt(attempts)
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      const wait = rules.decide(error, attempts)
      if (wait instanceof CliError) throw wait
      await deadline.wait(wait)
      rules.requireNext(error)
    }
  }
}

interface StatusRow {
  /** If omitted, the row is the default for its kind of failure. */
  appliesTo?: StatusSet
  kind: FailureKind
  delivery: DeliveryState
  /**
   * A request is retried if its endpoint has this rule or a more permissive rule. If omitted, no request is
   * retried.
   */
  requiredRule?: RepeatRule
  /**
   * Effect on the other requests of a batch: `wait` pauses them, `end` ends the batch. If omitted, they
   * continue.
   */
  otherCalls?: 'wait' | 'end'
}

type StatusSet = readonly number[] | '429 and 503 with Retry-After' | '3xx and 4xx' | '5xx' | 'cut answer'

/** For each failure, parley uses the first row that matches. */
const retryTable: readonly StatusRow[] = [
  { kind: 'not-sent', delivery: 'not-sent', requiredRule: 'unaccepted', otherCalls: 'wait' },
  { kind: 'unknown', delivery: 'sent', requiredRule: 'always' },
  { kind: 'response', delivery: 'sent' },
  { appliesTo: 'cut answer', kind: 'response', delivery: 'sent', requiredRule: 'always' },
  { kind: 'credentials', delivery: 'not-sent', otherCalls: 'end' },
  { appliesTo: [401, 403, 407], kind: 'credentials', delivery: 'refused', otherCalls: 'end' },
  { appliesTo: [402], kind: 'payment', delivery: 'refused', otherCalls: 'end' },
  { appliesTo: [408, 425], kind: 'service', delivery: 'failed', requiredRule: 'failed' },
  {
    appliesTo: '429 and 503 with Retry-After',
    kind: 'rate-limited',
    delivery: 'refused',
    requiredRule: 'unaccepted',
    otherCalls: 'wait',
  },
  { appliesTo: '3xx and 4xx', kind: 'refused', delivery: 'refused' },
  { appliesTo: [500, 502, 503, 504, 529], kind: 'service', delivery: 'failed', requiredRule: 'failed' },
  { appliesTo: '5xx', kind: 'service', delivery: 'failed' },
  { kind: 'file', delivery: 'answered', otherCalls: 'end' },
]

function matches({ appliesTo }: StatusRow, { status = 0, isCutOff }: FailureDetails, hasRetryAfter = true) {
  if (appliesTo === 'cut answer') return isCutOff === true
  if (appliesTo === '429 and 503 with Retry-After') return status === 429 || (status === 503 && hasRetryAfter)
  if (appliesTo === '3xx and 4xx') return status >= 300 && status < 500
  return appliesTo === '5xx' ? status >= 500 : typeof appliesTo === 'object' && appliesTo.includes(status)
}

/** Excludes 407, because it comes from a proxy, which does not check the secret of the service. */
export const isRefusedSecret = ({ kind, details: { status, errorIn } }: CliError): boolean =>
  status === 401 || status === 403 || (kind === 'credentials' && errorIn === 'body')

export const findFailureKindOfStatus = (status: number, hasRetryAfter: boolean): FailureKind =>
  retryTable.find((row) => matches(row, { status }, hasRetryAfter))?.kind ?? 'response'

function findTableRow({ kind, details }: CliError): StatusRow {
  const ofKind = retryTable.filter((row) => row.kind === kind)
  // The table has no row for a failure without a request, such as a wrong flag. This default row permits no
  // retry.
  const other: StatusRow = ofKind[0] ?? { kind, delivery: 'answered' }
  return ofKind.find((row) => matches(row, details)) ?? other
}

/** Returns whether a later run may succeed, for example after a 5xx that parley does not retry. */
function maySucceedLater(failure: CliError): boolean {
  const { kind, requiredRule } = findTableRow(failure)
  return kind === 'service' || requiredRule !== undefined
}

function findRow(failure: CliError): StatusRow {
  const found = findTableRow(failure)
  const { status = 0, isCutOff } = failure.details
  if (status < 200 || status >= 300) return found
  // An error in a 2xx response does not prove that the service refused the request. A gateway may have sent
  // the error, or the service may have billed the request before the error.
  return {
    ...found,
    delivery: 'answered',
    requiredRule: isCutOff ? found.requiredRule : undefined,
    otherCalls: found.otherCalls === 'end' ? 'end' : undefined,
  }
}

export function getRetryAdvice(failure: CliError, { isRepeatable }: DeliveryOutcome): RetryAdvice {
  // A second run would fail in the same way, for example at an unknown host or an untrusted certificate.
  if (failure.kind === 'not-sent' && failure.details.isPermanent) return 'never'
  if (isRepeatable) return maySucceedLater(failure) ? 'later' : 'never'
  // If only a local file failed, the service has already answered, so a second request could be billed again.
  return failure.kind === 'file' ? 'never' : 'look-first'
}

export const getDeliveryState = (failure: CliError): DeliveryState => findRow(failure).delivery

export function getBatchConsequence(failure: CliError): 'continue' | 'wait' | 'end' {
  // With `x-should-retry: false`, the service will refuse the same request again, so a pause would not help.
  if (failure.kind === 'rate-limited' && failure.details.isPermanent) return 'continue'
  return findRow(failure).otherCalls ?? 'continue'
}

export interface RetryPolicy {
  repeat: RepeatRule
  retries: number
  /** True if a request that was sent but not answered is retried. */
  retryUnknown: boolean
}

export function canRetry(
  { repeat, retryUnknown }: Pick<RetryPolicy, 'repeat' | 'retryUnknown'>,
  error: CliError,
): boolean {
  const { requiredRule } = findRow(error)
  if (error.details.isPermanent || requiredRule === undefined) return false
  if (rulesFromStrictest.indexOf(repeat) >= rulesFromStrictest.indexOf(requiredRule)) return true
  // A cut answer may be billed, so `--retry-unknown` does not repeat its request.
  return retryUnknown && repeat === 'failed' && !error.details.isCutOff
}

const rulesFromStrictest: readonly RepeatRule[] = ['unaccepted', 'failed', 'always']

/**
 * Returns whether a command that follows a session reconnects after the failure. Returns true for an unknown
 * host, because the network may be down for a while.
 */
export function isTransientFailure(error: CliError): boolean {
  const { isPermanent } = error.details
  if (isPermanent && error.kind !== 'not-sent') return false
  return maySucceedLater(error)
}

export const retryWaitsMs = { first: 500, longest: 8000 }

export const computeBackoffMs = (
  { first, longest }: typeof retryWaitsMs,
  earlierWaits: number,
  random = 1,
): number => Math.min(first * 2 ** earlierWaits, longest) * (0.5 + random / 2)

const maxWaitMs = 60_000

export function findLongWaitFailure(error: CliError, waitMs: number): CliError | undefined {
  if (waitMs <= maxWaitMs) return undefined
  const why = `the service asks to wait ${Math.ceil(waitMs / 1000)} s; parley waits at most 60 s`
  return error.with({}, `${error.message} (${why})`)
}

/** `attempt` counts from 1, `random` is from 0 to 1, and `deadlineMs` may be Infinity. */
export function decideRetry(
  policy: RetryPolicy,
  error: CliError,
  { attempt, now, deadlineMs, random }: Record<'attempt' | 'now' | 'deadlineMs' | 'random', number>,
): number | CliError {
  if (attempt > policy.retries || !canRetry(policy, error)) return error
  const wait = Math.max(
    (error.details.retryAfterSeconds ?? 0) * 1000,
    computeBackoffMs(retryWaitsMs, attempt - 1, random),
  )
  const longWaitFailure = findLongWaitFailure(error, wait)
  if (longWaitFailure) return longWaitFailure
  if (now + wait >= deadlineMs) {
    const why = `the next attempt, in ${(wait / 1000).toFixed(1)} s, would be past the deadline`
    return error.with({ deadline: true }, `${error.message} (${why})`)
  }
  return wait
}
