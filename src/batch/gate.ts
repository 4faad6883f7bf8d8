import { formatTokenCount } from '../content/tokens.ts'
import { CliError } from '../errors.ts'
import { computeBackoffMs, getBatchConsequence, type RetryPolicy } from '../http/retry.ts'
import type { BatchLine, Tally } from './input.ts'

export interface BatchLimits {
  /** Maximum number of concurrent requests. */
  concurrency: number
  /** Rules for retries of one line, up to the deadline (monotonic clock, or Infinity). */
  retry: RetryPolicy
  /** Token count after which no request starts; Infinity for no limit. */
  maxTokens: number
  /** Returns the number of failed lines after which no request starts; Infinity for no limit. */
  getMaxFailed(): number
}

/** Input for the decision about a batch's next step. */
export interface BatchState {
  gate: Gate
  /** Lines that wait for a retry. Without an outage, parley retries them before it requests new lines. */
  waiting: readonly BatchLine[]
  /** Next line of the input. */
  next: BatchLine | 'awaited' | 'none'
  /** `finishing`: no further request starts. `cancelled`: also, the deadline has passed. */
  course: 'running' | 'finishing' | 'cancelled'
  tally: Pick<Tally, 'tokens' | 'failed'>
  limits: BatchLimits
}

export type BatchStep =
  | { do: 'start'; line: BatchLine }
  /** Wait until this time (monotonic clock, or Infinity), or until a running operation ends. */
  | { do: 'wait'; until: number }
  /** Start no further request. If `because` is `undefined`, too many lines have failed. */
  | { do: 'finish'; because: CliError | undefined }
  /** The deadline has passed, so every running request fails. */
  | { do: 'cancel' }
  | { do: 'end' }

/** Decides the next step of a batch. */
export function decideNextStep(state: BatchState, now: number): BatchStep {
  const { gate, waiting, next, course, tally, limits } = state
  const isOver = course !== 'running' || (waiting.length === 0 && next === 'none')
  if (isOver && gate.inFlight === 0) return { do: 'end' }
  if (course !== 'cancelled' && now >= limits.retry.deadline) return { do: 'cancel' }
  if (!isOver && tally.failed > limits.getMaxFailed()) return { do: 'finish', because: undefined }
  const line = chooseLine(state)
  if (isOver || line === undefined) return { do: 'wait', until: Infinity }
  // A batch without a further line is complete even if it has reached a limit, so the limits are checked
  // after the next line.
  if (tally.tokens >= limits.maxTokens) return { do: 'finish', because: tokenLimitError(tally, limits) }
  if (canStart(gate, now)) return { do: 'start', line }
  const isFull = gate.inFlight >= gate.slots || gate.outage?.isTesting
  return { do: 'wait', until: isFull ? Infinity : gate.pause.until }
}

/**
 * Chooses the next line. In an outage a new line tests the service, because the failures may belong to the
 * waiting lines.
 */
function chooseLine({ gate, waiting, next }: BatchState): BatchLine | undefined {
  const fresh = typeof next === 'object' ? next : undefined
  return gate.outage ? (fresh ?? waiting[0]) : (waiting[0] ?? fresh)
}

export const tokenLimitError = ({ tokens }: BatchState['tally'], { maxTokens }: BatchLimits) =>
  new CliError(
    'stopped',
    `the answers took ${formatTokenCount(tokens)}, and --max-total-tokens is ${maxTokens}`,
  )

/**
 * Classifies the effect of a failure on the batch:
 * - `refused`: all requests pause, then the line is retried
 * - `outage`: the line fails or is retried; after several such failures in a row all requests pause
 * - `line`: the line fails
 * - `all`: the line fails, and every other line would fail too
 * - `not sent`: a setting is missing or wrong, so that no request can be sent
 */
export function classifyFailure(failure: CliError): 'refused' | 'outage' | 'line' | 'all' | 'not sent' {
  const { kind, details } = failure
  // An unknown error may be a bug that fails every answer, and each answer is paid for.
  if (kind === 'unexpected') return 'all'
  const consequence = getBatchConsequence(failure)
  if (consequence === 'wait') return 'refused'
  if ((details.sent ?? 'no') === 'no' && ['credentials', 'usage', 'file'].includes(kind)) return 'not sent'
  if (consequence === 'end') return 'all'
  // A service that answers 2xx is reachable, so an error in the body of a 2xx is not an outage.
  const isOutage = kind === 'unknown' || (kind === 'service' && (details.status ?? 0) >= 300)
  return isOutage ? 'outage' : 'line'
}

/**
 * State that decides when requests start and how many run at the same time. It is immutable: the functions
 * return a changed copy.
 */
export interface Gate {
  /** Maximum number of slots. Each running request uses one slot. */
  readonly concurrency: number
  readonly slots: number
  readonly inFlight: number
  /** Number of answers since the last pause, or since a slot was added. */
  readonly answers: number
  /** The current or last pause. Monotonic clock. */
  readonly pause: { readonly number: number; readonly from: number; readonly until: number }
  /** Number and duration, in milliseconds, of the pauses since the last success. */
  readonly failedPauses: { readonly pauses: number; readonly time: number }
  /** Numbers of the lines that failed one after the other, as in an outage. */
  readonly consecutiveFailures: readonly number[]
  readonly outage: Outage | undefined
}

/** State of an outage: requests fail for all lines, so parley sends one line at a time to test the service. */
interface Outage {
  /** Number of lines that tested the service. */
  readonly trials: number
  /** A line is testing the service. */
  readonly isTesting: boolean
}

/** A failed request. */
export interface FailedRequest {
  error: CliError
  /** Number of the line. */
  index: number
  /** Time of the failure. Monotonic clock. */
  now: number
  /** Monotonic clock; Infinity for none. */
  deadline: number
  /** Random number between 0 and 1. */
  random: number
}

const maxPauseMs = 3_600_000
const maxFailedPausesMs = 300_000
const maxCautionMs = 60_000
const minOutageFailures = 4
const trialBackoff = { first: 1000, longest: 30_000 }

export const createGate = (concurrency: number): Gate => ({
  concurrency,
  slots: concurrency,
  inFlight: 0,
  answers: 0,
  pause: { number: 0, from: 0, until: 0 },
  failedPauses: { pauses: 0, time: 0 },
  consecutiveFailures: [],
  outage: undefined,
})

export const canStart = ({ inFlight, slots, pause, outage }: Gate, now: number): boolean =>
  inFlight < slots && now >= pause.until && !outage?.isTesting

/** Counts a started request. */
export const startLine = (gate: Gate): Gate => ({
  ...gate,
  inFlight: gate.inFlight + 1,
  outage: gate.outage && { ...gate.outage, trials: gate.outage.trials + 1, isTesting: true },
})

/** Counts a finished request. */
export const freeSlot = (gate: Gate): Gate => ({ ...gate, inFlight: gate.inFlight - 1 })

/**
 * Records an answer, successful or not. `ticket` is the number of the last pause before the request. Adds a
 * slot after as many answers as there are slots.
 */
export function recordAnswer(
  gate: Gate,
  ticket: number,
  { isOk, now }: { isOk: boolean; now: number },
): Gate {
  const { slots, concurrency, failedPauses } = gate
  const pause = gate.outage ? { ...gate.pause, until: Math.min(gate.pause.until, now) } : gate.pause
  const next: Gate = {
    ...gate,
    pause,
    consecutiveFailures: [],
    outage: undefined,
    failedPauses: isOk ? { pauses: 0, time: 0 } : failedPauses,
  }
  if (ticket !== pause.number || slots === concurrency) return next
  const answers = gate.answers + 1
  // After a pause a rate limiter allows a burst. Answers within the burst do not show that more slots would
  // succeed.
  const isSteady = now - pause.until >= Math.min(pause.until - pause.from, maxCautionMs)
  if (answers < slots || !isSteady) return { ...next, answers }
  return { ...next, answers: 0, slots: slots + 1 }
}

/**
 * Records a refusal, which pauses all requests. The first refused request after a pause starts a new pause
 * and halves the slots; others only extend the pause. Throws a `CliError` if the wait would be too long.
 */
export function recordRefusal(gate: Gate, ticket: number, refusal: FailedRequest): Gate {
  const { now, random } = refusal
  const { pause, slots, failedPauses } = gate
  const waitMs = getRetryAfterMs(refusal)
  // A request that is refused during a pause was sent before the pause, or before its extension.
  const isNew = ticket === pause.number && now >= pause.until
  requireFiniteWait(refusal, waitMs, isNew ? failedPauses.time : 0)
  if (!isNew) {
    const until = Math.max(pause.until, now + waitMs)
    const time = failedPauses.time + until - Math.max(pause.until, now)
    return { ...gate, pause: { ...pause, until }, failedPauses: { ...failedPauses, time } }
  }
  const length = Math.max(
    waitMs,
    computeBackoffMs({ first: 500, longest: 8000 }, failedPauses.pauses, random),
  )
  return {
    ...gate,
    slots: Math.max(1, Math.floor(slots / 2)),
    answers: 0,
    consecutiveFailures: [],
    outage: undefined,
    ...newPause(gate, now, length, failedPauses.pauses + 1),
  }
}

const getRetryAfterMs = ({ error }: FailedRequest) => (error.details.retryAfter ?? 0) * 1000

const newPause = ({ pause, failedPauses }: Gate, now: number, length: number, pauses: number) => ({
  pause: { number: pause.number + 1, from: now, until: now + length },
  failedPauses: { pauses, time: failedPauses.time + length },
})

/**
 * Records a failure that may be part of an outage. If as many lines as there are slots fail in a row, an
 * outage starts: all requests pause, then one line tests the service. Each failed test makes the pause
 * longer. Throws a `CliError` if the wait would be too long.
 */
export function recordOutageFailure(gate: Gate, ticket: number, failed: FailedRequest): Gate {
  const { now, index } = failed
  const { consecutiveFailures: earlier } = gate
  const consecutiveFailures = earlier.includes(index) ? earlier : [...earlier, index]
  const { outage, pause, failedPauses } = gate
  const isDecisive = outage
    ? ticket === pause.number
    : consecutiveFailures.length >= Math.max(minOutageFailures, gate.slots)
  // During an outage, only the line that tests the service counts.
  if (!isDecisive) return outage ? gate : { ...gate, consecutiveFailures }
  const waitMs = getRetryAfterMs(failed)
  requireFiniteWait(failed, waitMs, failedPauses.time)
  const trials = outage?.trials ?? 0
  return {
    ...gate,
    consecutiveFailures: [],
    outage: { trials, isTesting: false },
    ...newPause(gate, now, Math.max(waitMs, computeBackoffMs(trialBackoff, trials)), failedPauses.pauses),
  }
}

function requireFiniteWait({ error, now, deadline }: FailedRequest, waitMs: number, failedMs: number): void {
  const isLate = now + waitMs > deadline
  const tooLong = waitMs > maxPauseMs ? 'more than an hour' : isLate && 'past the deadline'
  const because =
    failedMs >= maxFailedPausesMs
      ? 'no request succeeded in 5 minutes of pauses'
      : tooLong && `the service asks to wait ${Math.ceil(waitMs / 1000)} s, ${tooLong}`
  if (because) throw error.with({ deadline: isLate || undefined }, `${error.message}; ${because}`)
}
