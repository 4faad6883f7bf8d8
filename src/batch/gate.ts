import { formatTokenCount } from '../content/tokens.ts'
import { CliError, type FailureKind } from '../errors.ts'
import { computeBackoffMs, getBatchConsequence, type RetryPolicy, retryWaitsMs } from '../http/retry.ts'
import type { BatchLine, BatchTally } from './input.ts'

export interface BatchLimits {
  concurrency: number
  retry: RetryPolicy
  deadlineMs: number
  maxTokens: number
  getMaxFailed(): number
}

export interface BatchState {
  gate: RequestGate
  waitingForRetry: readonly BatchLine[]
  /** The next line of the input. `awaited`: parley is reading it. `none`: the input has ended. */
  next: BatchLine | 'awaited' | 'none'
  /**
   * `finishing`: no further request starts. `cancelled`: the deadline has passed, so running requests count
   * as failed.
   */
  phase: 'running' | 'finishing' | 'cancelled'
  tally: Pick<BatchTally, 'tokens' | 'failed'>
  limits: BatchLimits
}

type BatchStep =
  | { do: 'start'; line: BatchLine }
  /** Waits until the monotonic time `until`, or until a running request, a read or a retry delay ends. */
  | { do: 'wait'; until: number }
  /**
   * No further request starts. `because` is the failure of the batch. If too many lines failed, `because` is
   * `undefined`, and the failures of the lines determine the exit code.
   */
  | { do: 'finish'; because: CliError | undefined }
  | { do: 'cancel' }
  | { do: 'end' }

export function decideBatchStep(state: BatchState, now: number): BatchStep {
  const { gate, waitingForRetry, next, phase, tally, limits } = state
  const isOver = phase !== 'running' || (waitingForRetry.length === 0 && next === 'none')
  if (isOver && gate.inFlight === 0) return { do: 'end' }
  if (phase !== 'cancelled' && now >= limits.deadlineMs) return { do: 'cancel' }
  if (!isOver && tally.failed > limits.getMaxFailed()) return { do: 'finish', because: undefined }
  const line = chooseLine(state)
  if (isOver || line === undefined) return { do: 'wait', until: Infinity }
  // The token limit stops the batch only if another line is left. Without further lines, the batch is
  // complete.
  if (tally.tokens >= limits.maxTokens) return { do: 'finish', because: createTokenLimitError(limits) }
  if (canStartRequest(gate, now)) return { do: 'start', line }
  const isFull = gate.inFlight >= gate.slots || gate.outage === 'testing'
  return { do: 'wait', until: isFull ? Infinity : gate.pause.until }
}

/**
 * Prefers lines that wait for a retry. In an outage, prefers a new line, because a failed line may fail again
 * even if the service works.
 */
function chooseLine({ gate, waitingForRetry, next }: BatchState): BatchLine | undefined {
  const fresh = typeof next === 'object' ? next : undefined
  return gate.outage ? (fresh ?? waitingForRetry[0]) : (waitingForRetry[0] ?? fresh)
}

export const createTokenLimitError = ({ maxTokens }: BatchLimits) => {
  const limit = formatTokenCount(maxTokens)
  return new CliError('stopped', `the answers reached the limit of ${limit} (--max-total-tokens)`)
}

/**
 * Classifies the effect of a failed request on the batch:
 * - `pause`: all requests pause, then parley retries the line.
 * - `pause-if-repeated`: the line fails, or parley retries it. After several such failures in a row, all
 *   requests pause.
 * - `continue`: the line fails, or parley retries it. The batch continues.
 * - `fail-and-stop`: the line fails, and the batch stops, because every other line would fail, too.
 * - `stop`: the batch stops, because a missing or wrong setting prevents every request.
 */
export function classifyLineFailure(
  failure: CliError,
): 'pause' | 'pause-if-repeated' | 'continue' | 'fail-and-stop' | 'stop' {
  const { kind, details } = failure
  // An unexpected error may be a bug that also loses the paid answers of other lines, so the batch stops.
  if (kind === 'unexpected') return 'fail-and-stop'
  const consequence = getBatchConsequence(failure)
  if (consequence === 'wait') return 'pause'
  if ((details.sent ?? 'no') === 'no' && ['credentials', 'usage', 'file'].includes(kind)) return 'stop'
  if (consequence === 'end') return 'fail-and-stop'
  // A 2xx shows that the service is reachable, so an error in the body is not part of an outage.
  const isOutage = kind === 'unknown' || (kind === 'service' && (details.status ?? 0) >= 300)
  return isOutage ? 'pause-if-repeated' : 'continue'
}

/**
 * State that determines when requests start, and how many run at the same time. Immutable: functions such as
 * `recordAnswer` return a changed copy.
 */
export interface RequestGate {
  readonly concurrency: number
  readonly slots: number
  readonly inFlight: number
  /**
   * Number of answers since the last pause or added slot. When the number reaches `slots`, one slot is added.
   */
  readonly answers: number
  /** The current or last pause of all requests, in monotonic time. */
  readonly pause: { readonly number: number; readonly until: number }
  readonly pausesSinceSuccess: { readonly count: number; readonly totalMs: number }
  /**
   * Numbers of the lines that failed since the last answer with the effect `pause-if-repeated` (see
   * `classifyLineFailure`).
   */
  readonly consecutiveFailures: readonly number[]
  /** In an outage, only one request at a time tests whether the service works again. */
  readonly outage: 'paused' | 'testing' | undefined
}

interface FailedRequest {
  error: CliError
  index: number
  now: number
  deadlineMs: number
  random: number
}

const maxRetryAfterMs = 3_600_000
const maxFailedPausesMs = 300_000
const minOutageFailures = 4
const testBackoff = { first: 1000, longest: 30_000 }

export const createRequestGate = (concurrency: number): RequestGate => ({
  concurrency,
  slots: concurrency,
  inFlight: 0,
  answers: 0,
  pause: { number: 0, until: 0 },
  pausesSinceSuccess: { count: 0, totalMs: 0 },
  consecutiveFailures: [],
  outage: undefined,
})

export const canStartRequest = ({ inFlight, slots, pause, outage }: RequestGate, now: number): boolean =>
  inFlight < slots && now >= pause.until && outage !== 'testing'

export const recordRequestStart = (gate: RequestGate): RequestGate => ({
  ...gate,
  inFlight: gate.inFlight + 1,
  outage: gate.outage && 'testing',
})

export const recordRequestEnd = (gate: RequestGate): RequestGate => ({ ...gate, inFlight: gate.inFlight - 1 })

/**
 * Records an answer, or a failure that is not part of an outage. Ends an outage. After as many answers as
 * there are slots, adds a slot. `pauseNumber` is the number of the last pause when the request started.
 */
export function recordAnswer(
  gate: RequestGate,
  pauseNumber: number,
  { isOk, now }: { isOk: boolean; now: number },
): RequestGate {
  const { slots, concurrency, pausesSinceSuccess } = gate
  const pause = gate.outage ? { ...gate.pause, until: Math.min(gate.pause.until, now) } : gate.pause
  const next: RequestGate = {
    ...gate,
    pause,
    consecutiveFailures: [],
    outage: undefined,
    pausesSinceSuccess: isOk ? { count: 0, totalMs: 0 } : pausesSinceSuccess,
  }
  if (pauseNumber !== pause.number || slots === concurrency) return next
  const answers = gate.answers + 1
  if (answers < slots) return { ...next, answers }
  return { ...next, answers: 0, slots: slots + 1 }
}

/**
 * Records a request that the service refused, for example with 429. The first refusal after a pause starts a
 * new pause and halves the slots. Refusals during the pause extend it. Throws a `CliError` if the pause would
 * be too long.
 */
export function recordRefusal(gate: RequestGate, pauseNumber: number, refusal: FailedRequest): RequestGate {
  const { now, random } = refusal
  const { pause, slots, pausesSinceSuccess } = gate
  const waitMs = getRetryAfterMs(refusal)
  // A refusal extends the last pause if its request started before that pause, or if that pause is not over.
  const isNewPause = pauseNumber === pause.number && now >= pause.until
  requireAllowedWait(refusal, waitMs, isNewPause ? pausesSinceSuccess.totalMs : 0)
  if (!isNewPause) {
    const until = Math.max(pause.until, now + waitMs)
    const totalMs = pausesSinceSuccess.totalMs + until - Math.max(pause.until, now)
    return { ...gate, pause: { ...pause, until }, pausesSinceSuccess: { ...pausesSinceSuccess, totalMs } }
  }
  const lengthMs = Math.max(waitMs, computeBackoffMs(retryWaitsMs, pausesSinceSuccess.count, random))
  return {
    ...gate,
    slots: Math.max(1, Math.floor(slots / 2)),
    answers: 0,
    consecutiveFailures: [],
    outage: undefined,
    ...newPause(gate, now, lengthMs),
  }
}

const getRetryAfterMs = ({ error }: FailedRequest) => (error.details.retryAfterSeconds ?? 0) * 1000

const newPause = ({ pause, pausesSinceSuccess: last }: RequestGate, now: number, lengthMs: number) => ({
  pause: { number: pause.number + 1, until: now + lengthMs },
  pausesSinceSuccess: { count: last.count + 1, totalMs: last.totalMs + lengthMs },
})

/**
 * Records a failure that may be part of an outage. An outage starts if lines fail in a row: at least 4, and
 * at least as many as there are slots. All requests then pause, and one line tests the service. After each
 * failed test the pause is longer. Throws a `CliError` if the pause would be too long.
 */
export function recordOutageFailure(
  gate: RequestGate,
  pauseNumber: number,
  failed: FailedRequest,
): RequestGate {
  const { now, index } = failed
  const { consecutiveFailures: earlier } = gate
  const consecutiveFailures = earlier.includes(index) ? earlier : [...earlier, index]
  const { outage, pause, pausesSinceSuccess } = gate
  const changesPause = outage
    ? pauseNumber === pause.number
    : consecutiveFailures.length >= Math.max(minOutageFailures, gate.slots)
  // In an outage, only a failure of the request that tests the service changes the pause.
  if (!changesPause) return outage ? gate : { ...gate, consecutiveFailures }
  const waitMs = getRetryAfterMs(failed)
  requireAllowedWait(failed, waitMs, pausesSinceSuccess.totalMs)
  const lengthMs = Math.max(waitMs, computeBackoffMs(testBackoff, pausesSinceSuccess.count))
  return { ...gate, outage: 'paused', ...newPause(gate, now, lengthMs) }
}

function requireAllowedWait(failed: FailedRequest, waitMs: number, failedMs: number): void {
  const { error, now, deadlineMs } = failed
  const fail = (kind: FailureKind, why: string, deadline?: true) => {
    throw new CliError(kind, `${error.message}; ${why}`, { ...error.details, deadline })
  }
  if (failedMs >= maxFailedPausesMs)
    fail(error.kind, 'no request succeeded since the pauses began, 5 minutes or more ago')
  const wait = `the service asks to wait ${Math.ceil(waitMs / 1000)} s`
  if (waitMs > maxRetryAfterMs) fail(error.kind, `${wait}, more than an hour`)
  if (now + waitMs > deadlineMs) fail('stopped', `${wait}, past the deadline`, true)
}
