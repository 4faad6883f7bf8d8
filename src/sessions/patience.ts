import type { Context } from '../context.ts'
import type { RepeatRule } from '../delivery-state.ts'
import { CliError } from '../errors.ts'
import type { Caller } from '../http/call.ts'
import { computeBackoffMs, isTransient } from '../http/retry.ts'
import { oneLine } from '../io/escape.ts'

/** How long a service may be away without one response. Milliseconds. */
const longestAbsence = 5 * 60_000

/** How many times in a row the service may say what is not understood. */
const mostFailures = 5

/** The waits before the next attempt. Milliseconds. */
const waits = { first: 250, longest: 8000 }

/** Who is patient. */
interface Patient {
  context: Pick<Context, 'note' | 'timers'>
  caller: Pick<Caller, 'deadline' | 'forgetSecrets'>
}

/** Who has until a deadline. */
interface Timed {
  context: Pick<Context, 'timers'>
  caller: Pick<Caller, 'deadline'>
}

/** Milliseconds until the deadline. */
export const timeLeft = ({ context, caller: { deadline } }: Timed): number => deadline - context.timers.now()

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
 * Whether a request met the deadline, also if the clock has been set back since. A wait that would be longer than the
 * deadline ends with the failure before it.
 */
export const isCutByDeadline = ({ details: { deadline, isPermanent } }: CliError): boolean =>
  deadline === true && isPermanent === true

/**
 * How long a service that is away, or talks nonsense, is waited for. Once it has brought something new, it is waited for with
 * new patience.
 */
export class Patience {
  readonly #patient: Patient
  /** Which requests may be repeated. */
  readonly #repeat: RepeatRule
  /** When the service answered last. */
  #lastResponse: number
  /** How often was waited, how often the service was not understood, and whether a 401 had new secrets. */
  #waited = 0
  #failures = 0
  #hasNewSecrets = false
  /** What the service asked to be left alone for. Milliseconds. */
  #askedWait = 0

  constructor(patient: Patient, repeat: RepeatRule) {
    this.#patient = patient
    this.#repeat = repeat
    this.#lastResponse = patient.context.timers.now()
  }

  /** The service has answered. */
  addResponse(): void {
    this.#lastResponse = this.#patient.context.timers.now()
    this.#askedWait = 0
  }

  /** Shows a failure on stderr. Throws it if no patience is left for it, and any after the deadline. */
  endure(error: unknown): void {
    if (!(error instanceof CliError)) throw error
    if (isCutByDeadline(error)) throw tooLate()
    requireTime(this.#patient)
    if (!this.#mayPass(error)) throw error
    const { serviceMessage: said } = error.details
    this.#patient.context.note(`${error.message}${said ? `: ${oneLine(said)}` : ''}; trying again`)
  }

  /**
   * Waits before the next attempt, longer each time, or until nobody wants it. Throws a `CliError` if the deadline comes first:
   * no attempt has time.
   */
  async wait(unwanted?: AbortSignal): Promise<void> {
    const wait = Math.max(computeBackoffMs(waits, this.#waited++), this.#askedWait)
    this.#askedWait = 0
    const left = timeLeft(this.#patient)
    await this.#patient.context.timers.wait(Math.min(wait, Math.max(left, 0)), unwanted)
    if (left <= wait && !unwanted?.aborted) throw tooLate()
  }

  /** Whether a failure may pass by waiting. A 401 does, once, if the secrets can be had anew. */
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
 * Makes attempts, with waits between them, until one succeeds or nobody wants it. Throws a `CliError`: of the last attempt, or
 * of kind `stopped` at the deadline.
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
