import type { Deadline } from '../deadline.ts'
import type { SentStatus } from '../delivery-state.ts'
import { CliError } from '../errors.ts'
import type { ServiceCaller } from '../http/call.ts'
import { computeBackoffMs, findLongWaitFailure, isTransientFailure, type RetryRules } from '../http/retry.ts'
import { toOneLine } from '../io/escape.ts'
import type { Timers } from '../timers.ts'

const maxUnreachableMs = 5 * 60_000

const maxInvalidResponses = 5

const backoffMs = { first: 250, longest: 8000 }

export function requireTimeLeft(deadline: Deadline): void {
  if (deadline.hasPassed) throw createFollowDeadlineError()
}

export const createFollowDeadlineError = (sent: SentStatus = 'yes') =>
  new CliError('stopped', 'the deadline passed while parley followed the session', {
    sent,
    retry: 'later',
    deadline: true,
  })

interface Access {
  context: { host: { timers: Timers }; messages: { note(line: string): void } }
  caller: Pick<ServiceCaller, 'dropPrintedSecrets'>
  parts: { deadline: Deadline }
}

/**
 * Retry rules of `events follow` and `events run`: retries until the service has been unreachable for 5
 * minutes. Each response restarts the 5 minutes. Callers use these rules only for requests that read, and for
 * posts that the service certainly did not accept.
 */
export class ReconnectPolicy implements RetryRules {
  readonly #access: Access
  #lastResponseAt: number
  #attempts = 0
  #invalidResponses = 0
  /**
   * After a 401, parley dropped the secrets that a command had printed, so the next request runs the command
   * again. A second 401 is final.
   */
  #hasDroppedSecrets = false
  #requestedWaitMs = 0
  /**
   * Cause of the last printed failure. parley prints a cause only once, although many attempts may fail
   * because of it.
   */
  #printedCause: string | undefined

  constructor(access: Access) {
    this.#access = access
    this.#lastResponseAt = access.context.host.timers.now()
  }

  addResponse(): void {
    this.#lastResponseAt = this.#access.context.host.timers.now()
    this.#requestedWaitMs = 0
    this.#printedCause = undefined
  }

  decide(failure: CliError): number | CliError {
    return this.findFinalFailure(failure) ?? this.nextWaitMs()
  }

  /**
   * Returns the failure that ends the attempts. If another attempt is allowed, prints the failure on stderr
   * and returns `undefined`.
   */
  findFinalFailure(failure: CliError): CliError | undefined {
    const { context, parts } = this.#access
    if (parts.deadline.hasPassed) return this.getDeadlineFailure(failure)
    if (!this.#allowsRetry(failure)) return failure
    const longWaitFailure = findLongWaitFailure(failure, this.#requestedWaitMs)
    if (longWaitFailure) return longWaitFailure
    const { serviceMessage } = failure.details
    const cause = `${failure.message}${serviceMessage ? `: ${toOneLine(serviceMessage)}` : ''}`
    if (cause !== this.#printedCause) context.messages.note(`${cause}; trying again`)
    this.#printedCause = cause
    return undefined
  }

  /** Returns `failure` if the deadline is a time limit of parley itself, such as 30 s for a list. */
  getDeadlineFailure(failure: CliError): CliError {
    return this.#access.parts.deadline.passed?.limitText === undefined ? createFollowDeadlineError() : failure
  }

  nextWaitMs(): number {
    const wait = Math.max(computeBackoffMs(backoffMs, this.#attempts++), this.#requestedWaitMs)
    this.#requestedWaitMs = 0
    return wait
  }

  /**
   * After the first 401, another attempt may succeed if a command prints the secrets, because the command
   * may print new secrets.
   */
  #allowsRetry(error: CliError): boolean {
    const { isPermanent, retryAfter = 0, status } = error.details
    if (error.kind === 'response') return !isPermanent && ++this.#invalidResponses <= maxInvalidResponses
    if (isTransientFailure(error)) {
      this.#requestedWaitMs = retryAfter * 1000
      return this.#access.context.host.timers.now() - this.#lastResponseAt < maxUnreachableMs
    }
    if (status !== 401 || this.#hasDroppedSecrets) return false
    this.#hasDroppedSecrets = this.#access.caller.dropPrintedSecrets()
    return this.#hasDroppedSecrets
  }
}
