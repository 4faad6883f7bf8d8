import type { Deadline } from '../deadline.ts'
import { CliError } from '../errors.ts'
import type { Caller } from '../http/call.ts'
import { computeBackoffMs, isTransient, type RetryRules, refuseLongWait } from '../http/retry.ts'
import { oneLine } from '../io/escape.ts'
import type { Timers } from '../timers.ts'

const maxUnreachableMs = 5 * 60_000

const maxInvalidResponses = 5

const backoffMs = { first: 250, longest: 8000 }

/** Throws a `CliError` if the deadline has passed. */
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
  caller: Pick<Caller, 'dropPrintedSecrets'>
  parts: { deadline: Deadline }
}

/**
 * Retry rules for following a session: the run fails once the service has been unreachable for 5 minutes.
 * Each response restarts the 5 minutes. Failed requests are repeated, so they must be reads, or posts that
 * the service certainly did not accept.
 */
export class ReconnectPolicy implements RetryRules {
  readonly #access: Access
  /** Monotonic time. */
  #lastResponseAt: number
  #attempts = 0
  #invalidResponses = 0
  /** A 401 made parley run the command for the secret again. */
  #hasNewSecrets = false
  /** From the header Retry-After. */
  #requestedWaitMs = 0

  constructor(access: Access) {
    this.#access = access
    this.#lastResponseAt = access.context.host.timers.now()
  }

  /** Records that the service has responded. */
  addResponse(): void {
    this.#lastResponseAt = this.#access.context.host.timers.now()
    this.#requestedWaitMs = 0
  }

  /** Returns the wait before the next attempt in milliseconds, or the failure that ends the attempts. */
  decide(failure: CliError): number | CliError {
    return this.findEnd(failure) ?? this.nextWaitMs()
  }

  /**
   * Returns the failure that ends the attempts. If another attempt is allowed, prints the failure on stderr
   * and returns `undefined`.
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

  /**
   * Returns the failure to report after a deadline. After the user's deadline, the failure is that following
   * stopped. After an internal time limit of parley, it is the failure of the request.
   */
  whenLate(failure: CliError): CliError {
    return this.#access.parts.deadline.passed?.limitText === undefined ? tooLate() : failure
  }

  nextWaitMs(): number {
    const wait = Math.max(computeBackoffMs(backoffMs, this.#attempts++), this.#requestedWaitMs)
    this.#requestedWaitMs = 0
    return wait
  }

  /**
   * Returns whether another attempt may succeed. After the first 401, it may if a command provides new
   * secrets.
   */
  #allowsRetry(error: CliError): boolean {
    const { isPermanent, retryAfter = 0, status } = error.details
    if (error.kind === 'response') return !isPermanent && ++this.#invalidResponses <= maxInvalidResponses
    if (isTransient(error)) {
      this.#requestedWaitMs = retryAfter * 1000
      return this.#access.context.host.timers.now() - this.#lastResponseAt < maxUnreachableMs
    }
    if (status !== 401 || this.#hasNewSecrets) return false
    this.#hasNewSecrets = this.#access.caller.dropPrintedSecrets()
    return this.#hasNewSecrets
  }
}
