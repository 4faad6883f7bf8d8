import type { Deadline } from '../deadline.ts'
import { CliError } from '../errors.ts'
import type { Caller } from '../http/call.ts'
import { computeBackoffMs, isTransient, type RetryRules, refuseLongWait } from '../http/retry.ts'
import { oneLine } from '../io/escape.ts'
import type { Timers } from '../timers.ts'

const maxAbsenceMs = 5 * 60_000

/** Maximum number of responses that are not understood. */
const maxFailures = 5

const waits = { first: 250, longest: 8000 }

/** Throws a `CliError` after the deadline. */
export function requireTime(deadline: Deadline): void {
  if (deadline.hasPassed) throw tooLate()
}

const tooLate = () =>
  new CliError('stopped', 'the deadline passed while the session was followed', {
    sent: 'yes',
    retry: 'later',
    deadline: true,
  })

interface Access {
  context: { host: { timers: Timers }; messages: { note(line: string): void } }
  caller: Pick<Caller, 'forgetSecrets'>
  parts: { deadline: Deadline }
}

/**
 * Rules for a service that is unreachable or not understood: a session is followed until the service has been
 * absent for 5 minutes. Each response starts the 5 minutes again. The failed request is repeated, so it must be
 * a reading request, or one that was certainly not accepted.
 */
export class ReconnectPolicy implements RetryRules {
  readonly #access: Access
  /** Monotonic time of the last response. */
  #lastResponse: number
  /** Number of waits, number of responses that were not understood, and whether a 401 led to new secrets. */
  #waited = 0
  #failures = 0
  #hasNewSecrets = false
  /** Wait that the service requested, in milliseconds. */
  #requestedWaitMs = 0

  constructor(access: Access) {
    this.#access = access
    this.#lastResponse = access.context.host.timers.now()
  }

  /** Records a response of the service. */
  addResponse(): void {
    this.#lastResponse = this.#access.context.host.timers.now()
    this.#requestedWaitMs = 0
  }

  /** Returns the wait before the next attempt, or the failure that ends the attempts. */
  decide(failure: CliError): number | CliError {
    return this.findEnd(failure) ?? this.nextWaitMs()
  }

  /**
   * Returns the failure that ends the attempts; `undefined` if another attempt is allowed. Then prints the
   * failure on stderr.
   */
  findEnd(failure: CliError): CliError | undefined {
    const { context, parts } = this.#access
    if (parts.deadline.hasPassed) return this.whenLate(failure)
    if (!this.#allowsRetry(failure)) return failure
    const refusal = refuseLongWait(failure, this.#requestedWaitMs)
    if (refusal) return refusal
    const { serviceMessage } = failure.details
    context.messages.note(
      `${failure.message}${serviceMessage ? `: ${oneLine(serviceMessage)}` : ''}; trying again`,
    )
    return undefined
  }

  /** A time limit of parley itself has no other failure, so its own failure is returned. */
  whenLate(failure: CliError): CliError {
    return this.#access.parts.deadline.passed?.limitText === undefined ? tooLate() : failure
  }

  /** Returns the wait before the next attempt, longer each time. */
  nextWaitMs(): number {
    const wait = Math.max(computeBackoffMs(waits, this.#waited++), this.#requestedWaitMs)
    this.#requestedWaitMs = 0
    return wait
  }

  /**
   * Returns whether a failure is transient. A 401 is transient once, if a command can provide new secrets.
   */
  #allowsRetry(error: CliError): boolean {
    const { isPermanent, retryAfter = 0, status } = error.details
    if (error.kind === 'response') return !isPermanent && ++this.#failures <= maxFailures
    if (isTransient(error)) {
      this.#requestedWaitMs = retryAfter * 1000
      return this.#access.context.host.timers.now() - this.#lastResponse < maxAbsenceMs
    }
    if (status !== 401 || this.#hasNewSecrets) return false
    this.#hasNewSecrets = this.#access.caller.forgetSecrets()
    return this.#hasNewSecrets
  }
}
