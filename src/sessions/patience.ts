import type { Context } from '../context.ts'
import type { RepeatRule } from '../delivery-state.ts'
import { CliError } from '../errors.ts'
import type { Caller } from '../http/call.ts'
import { computeBackoffMs, isTransient } from '../http/retry.ts'
import { oneLine } from '../io/escape.ts'

/** Maximum time without any response of the service. */
const longestAbsence = 5 * 60_000

/** Maximum number of consecutive responses that are not understood. */
const mostFailures = 5

/** Pauses before the next attempt, in milliseconds. */
const waits = { first: 250, longest: 8000 }

/** A caller that waits for an unreachable service. */
interface Patient {
  context: Pick<Context, 'note' | 'timers'>
  caller: Pick<Caller, 'deadline' | 'forgetSecrets'>
}

/** A caller with a deadline. */
interface Timed {
  context: Pick<Context, 'timers'>
  caller: Pick<Caller, 'deadline'>
}

/** Milliseconds until the deadline. */
export const timeLeft = ({ context, caller: { deadline } }: Timed): number => deadline - context.timers.now()

/** Waits, but not beyond the deadline. In milliseconds. */
export async function pause(timed: Timed, wait: number): Promise<void> {
  if (wait > 0) await timed.context.timers.wait(Math.min(wait, Math.max(timeLeft(timed), 0)))
}

/** Throws a `CliError` after the deadline. */
export function requireTime(timed: Timed): void {
  if (timeLeft(timed) <= 0) throw tooLate()
}

const tooLate = () =>
  new CliError('stopped', 'the deadline passed while the session was followed', {
    sent: 'yes',
    retry: 'later',
    deadline: true,
  })

/**
 * Returns whether the deadline cut a request, even if the clock was set back since. A wait beyond the
 * deadline ends with the failure before it.
 */
export const isCutByDeadline = ({ details: { deadline, isPermanent } }: CliError): boolean =>
  deadline === true && isPermanent === true

/**
 * Reconnect policy: how long a caller waits for a service that is unreachable or not understood. Each new
 * response restarts it.
 */
export class Patience {
  readonly #patient: Patient
  /** Requests that may be repeated. */
  readonly #repeat: RepeatRule
  /** Monotonic time of the last response. */
  #lastResponse: number
  /** Number of waits, number of responses that were not understood, and whether a 401 led to new secrets. */
  #waited = 0
  #failures = 0
  #hasNewSecrets = false
  /** Wait that the service requested, in milliseconds. */
  #askedWait = 0

  constructor(patient: Patient, repeat: RepeatRule) {
    this.#patient = patient
    this.#repeat = repeat
    this.#lastResponse = patient.context.timers.now()
  }

  /** Records a response of the service. */
  addResponse(): void {
    this.#lastResponse = this.#patient.context.timers.now()
    this.#askedWait = 0
  }

  /**
   * Prints a failure on stderr. Rethrows it if the policy does not allow another attempt, and every failure
   * after the deadline.
   */
  endure(error: unknown): void {
    if (!(error instanceof CliError)) throw error
    if (isCutByDeadline(error)) throw tooLate()
    requireTime(this.#patient)
    if (!this.#mayPass(error)) throw error
    const { serviceMessage: said } = error.details
    this.#patient.context.note(`${error.message}${said ? `: ${oneLine(said)}` : ''}; trying again`)
  }

  /**
   * Waits before the next attempt, longer each time, or until the attempt is unwanted. Throws a `CliError` if
   * the deadline comes first.
   */
  async wait(unwanted?: AbortSignal): Promise<void> {
    const wait = Math.max(computeBackoffMs(waits, this.#waited++), this.#askedWait)
    this.#askedWait = 0
    const left = timeLeft(this.#patient)
    await this.#patient.context.timers.wait(Math.min(wait, Math.max(left, 0)), unwanted)
    if (left <= wait && !unwanted?.aborted) throw tooLate()
  }

  /** Returns whether a failure is transient. A 401 is, once, if a command can provide new secrets. */
  #mayPass(error: CliError): boolean {
    const { isPermanent, retryAfter = 0, status } = error.details
    if (error.kind === 'response') return !isPermanent && ++this.#failures <= mostFailures
    if (isTransient(error, this.#repeat)) {
      this.#askedWait = retryAfter * 1000
      const absence = this.#patient.context.timers.now() - this.#lastResponse
      return this.#askedWait <= longestAbsence && absence < longestAbsence
    }
    if (status !== 401 || this.#hasNewSecrets) return false
    this.#hasNewSecrets = this.#patient.caller.forgetSecrets()
    return this.#hasNewSecrets
  }
}

/**
 * Retries with growing pauses until an attempt succeeds or is unwanted. Throws the failure of the last
 * attempt.
 */
export async function patiently<T>(
  patient: Patient,
  repeat: RepeatRule,
  attempt: () => Promise<T>,
  unwanted?: AbortSignal,
): Promise<T> {
  for (const patience = new Patience(patient, repeat); ; ) {
    try {
      return await attempt()
    } catch (error) {
      if (!unwanted?.aborted) {
        patience.endure(error)
        await patience.wait(unwanted)
      }
      if (unwanted?.aborted) throw error
    }
  }
}
