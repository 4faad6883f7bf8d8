import { formatTokenCount } from '../content/tokens.ts'
import { CliError } from '../errors.ts'
import { computeBackoffMs, getBatchConsequence, type RetryPolicy } from '../http/retry.ts'
import type { BatchLine, Tally } from './input.ts'

export interface BatchLimits {
  /** The most requests at a time. */
  concurrency: number
  /** When a single line is tried again, until the deadline (by the forward clock, or Infinity). */
  retry: RetryPolicy
  /** Stop starting requests after this many tokens; Infinity for no limit. */
  maxTokens: number
  /** Stop starting requests once more lines have failed; Infinity for no limit. */
  getMaxFailed(): number
}

/** All that the next step of a batch depends on. */
export interface BatchState {
  gate: Gate
  /** Lines that wait to be asked again; they go before all others. */
  waiting: readonly BatchLine[]
  /** The next line of the input. */
  next: BatchLine | 'awaited' | 'none'
  /** `finishing`: nothing more is begun. */
  course: 'going on' | 'finishing'
  tally: Pick<Tally, 'tokens' | 'failed'>
  limits: BatchLimits
  /** By the forward clock; Infinity for none, and once it has passed. */
  deadline: number
}

export type BatchStep =
  | { do: 'ask'; line: BatchLine }
  /** Until this time (by the forward clock, or Infinity), or until anything under way has ended. */
  | { do: 'wait'; until: number }
  /** Begin nothing more. Without a reason it is the lines that failed. */
  | { do: 'finish'; because: CliError | undefined }
  /** The deadline has passed: every request that is under way has failed. */
  | { do: 'cut' }
  | { do: 'end' }

/** Decides the next step of a batch. */
export function decideNextStep(state: BatchState, now: number): BatchStep {
  const { gate, waiting, next, course, tally, limits, deadline } = state
  const isOver = course === 'finishing' || (waiting.length === 0 && next === 'none')
  if (isOver && gate.inFlight === 0) return { do: 'end' }
  if (now >= deadline) return { do: 'cut' }
  if (!isOver && tally.failed > limits.getMaxFailed()) return { do: 'finish', because: undefined }
  const line = chooseLine(state)
  if (isOver || line === undefined) return { do: 'wait', until: Infinity }
  // With nothing left to ask, a limit that is reached is not a reason to stop: so this comes late.
  if (tally.tokens >= limits.maxTokens) return { do: 'finish', because: tokenLimitError(tally, limits) }
  if (canStart(gate, now)) return { do: 'ask', line }
  const isFull = gate.inFlight >= gate.slots || gate.outage?.isTried
  return { do: 'wait', until: isFull ? Infinity : gate.pause.until }
}

/** In an outage each line tries once before any tries twice: the failure may be that of one line alone. */
function chooseLine({ gate, waiting, next }: BatchState): BatchLine | undefined {
  const [first] = waiting
  const fresh = typeof next === 'object' ? next : undefined
  const hasTried = gate.outage !== undefined && first?.trialOutage === gate.outage.number
  return hasTried ? (fresh ?? first) : (first ?? fresh)
}

export const tokenLimitError = ({ tokens }: BatchState['tally'], { maxTokens }: BatchLimits) =>
  new CliError(
    'stopped',
    `the answers took ${formatTokenCount(tokens)}, and --max-total-tokens is ${maxTokens}`,
  )

/**
 * What a failure does to a batch:
 * - `refused`: the line is asked again, after a pause of all;
 * - `outage`: the line has failed or is asked again; if several fail so in a row, all pause;
 * - `line`: the line has failed;
 * - `all`: the line has failed, and every other one would;
 * - `not asked`: a setting is missing or wrong, so that neither this line nor any other can be asked.
 */
export function classifyFailure(failure: CliError): 'refused' | 'outage' | 'line' | 'all' | 'not asked' {
  const { kind, details } = failure
  // A bug may fail every answer, and each of them is paid for.
  if (kind === 'unexpected') return 'all'
  const outlook = getBatchConsequence(failure)
  if (outlook === 'wait') return 'refused'
  if ((details.sent ?? 'no') === 'no' && ['credentials', 'usage', 'file'].includes(kind)) return 'not asked'
  if (outlook === 'end') return 'all'
  // An error in an answer with a status of success is the service's own.
  const isOutage = kind === 'unknown' || (kind === 'service' && (details.status ?? 0) >= 300)
  return isOutage ? 'outage' : 'line'
}

/** How many requests may be under way, and when: a value that each event makes a new one of. */
export interface Gate {
  /** The most places there can be. */
  readonly concurrency: number
  readonly slots: number
  readonly inFlight: number
  /** Those to requests of this pause since the number of places last changed. */
  readonly answers: number
  /** The pause that is, or the last one that was. By the forward clock. */
  readonly pause: { readonly number: number; readonly from: number; readonly until: number }
  /** The pauses since the last success. Milliseconds. */
  readonly failedPauses: { readonly pauses: number; readonly time: number }
  /** The lines that failed as in an outage, one after the other, by their numbers. */
  readonly consecutiveFailures: readonly number[]
  readonly outage: Outage | undefined
}

/** The service fails for every line. One line at a time tries again. */
interface Outage {
  /** That of the pause that it began with. */
  readonly number: number
  /** How many lines have tried. */
  readonly trials: number
  /** A line tries now. */
  readonly isTried: boolean
}

/** A request that is over, and failed. */
export interface FailedRequest {
  error: CliError
  /** The number of its line. */
  index: number
  /** When it failed. By the forward clock. */
  now: number
  /** By the forward clock; Infinity for none. */
  deadline: number
  /** Between 0 and 1. */
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
  inFlight < slots && now >= pause.until && !outage?.isTried

/** A request is begun. */
export const startLine = (gate: Gate): Gate => ({
  ...gate,
  inFlight: gate.inFlight + 1,
  outage: gate.outage && { ...gate.outage, trials: gate.outage.trials + 1, isTried: true },
})

/** A place is free again. */
export const freeSlot = (gate: Gate): Gate => ({ ...gate, inFlight: gate.inFlight - 1 })

/**
 * A request that is over was answered, well or not; its ticket is the pause after which it was begun. Places grow by one after
 * as many answers as there are places.
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
  // A limiter lets a burst through after a pause. It does not mean that more places will do.
  const isSteady = now - pause.until >= Math.min(pause.until - pause.from, maxCautionMs)
  if (answers < slots || !isSteady) return { ...next, answers }
  return { ...next, answers: 0, slots: slots + 1 }
}

/**
 * A request that is over was refused for now: everybody pauses. The first one that was begun after the last pause
 * makes a new pause and halves the places; others can only make it longer. Throws a `CliError` if waiting has no
 * end.
 */
export function recordRefusal(gate: Gate, ticket: number, refusal: FailedRequest): Gate {
  const { now, random } = refusal
  const { pause, slots, failedPauses } = gate
  const asked = getRetryAfterMs(refusal)
  // One that comes while a pause is still on was begun before it, or before it was made longer.
  const isNew = ticket === pause.number && now >= pause.until
  requireFiniteWait(refusal, asked, isNew ? failedPauses.time : 0)
  if (!isNew) {
    const until = Math.max(pause.until, now + asked)
    const time = failedPauses.time + until - Math.max(pause.until, now)
    return { ...gate, pause: { ...pause, until }, failedPauses: { ...failedPauses, time } }
  }
  const length = Math.max(asked, computeBackoffMs({ first: 500, longest: 8000 }, failedPauses.pauses, random))
  return {
    ...gate,
    slots: Math.max(1, Math.floor(slots / 2)),
    answers: 0,
    consecutiveFailures: [],
    outage: undefined,
    ...newPause(gate, now, length, failedPauses.pauses + 1),
  }
}

/** Milliseconds. */
const getRetryAfterMs = ({ error }: FailedRequest) => (error.details.retryAfter ?? 0) * 1000

const newPause = ({ pause, failedPauses }: Gate, now: number, length: number, pauses: number) => ({
  pause: { number: pause.number + 1, from: now, until: now + length },
  failedPauses: { pauses, time: failedPauses.time + length },
})

/**
 * A request that is over failed as in an outage. When as many lines have as there are places, one after the other, an
 * outage begins: everybody pauses, and then one line tries, with a longer pause after each that fails. Throws a
 * `CliError` if waiting has no end.
 */
export function recordOutageFailure(gate: Gate, ticket: number, failed: FailedRequest): Gate {
  const { now, index } = failed
  const { consecutiveFailures: earlier } = gate
  const consecutiveFailures = earlier.includes(index) ? earlier : [...earlier, index]
  const { outage, pause, failedPauses } = gate
  const isDecisive = outage
    ? ticket === pause.number
    : consecutiveFailures.length >= Math.max(minOutageFailures, gate.slots)
  // Of an outage only the line that tries says something new.
  if (!isDecisive) return outage ? gate : { ...gate, consecutiveFailures }
  const asked = getRetryAfterMs(failed)
  requireFiniteWait(failed, asked, failedPauses.time)
  const trials = outage?.trials ?? 0
  return {
    ...gate,
    consecutiveFailures: [],
    outage: { number: outage?.number ?? pause.number + 1, trials, isTried: false },
    ...newPause(gate, now, Math.max(asked, computeBackoffMs(trialBackoff, trials)), failedPauses.pauses),
  }
}

function requireFiniteWait({ error, now, deadline }: FailedRequest, asked: number, failedMs: number): void {
  const isLate = now + asked > deadline
  const tooLong = asked > maxPauseMs ? 'more than an hour' : isLate && 'past the deadline'
  const because =
    failedMs >= maxFailedPausesMs
      ? 'nothing else came in 5 minutes of pauses'
      : tooLong && `the service asks to wait ${Math.ceil(asked / 1000)} s, ${tooLong}`
  if (because) throw error.with({ deadline: isLate || undefined }, `${error.message}; ${because}`)
}
