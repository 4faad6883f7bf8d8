import type { Deadline } from '../deadline.ts'
import { CliError } from '../errors.ts'
import { computeBackoffMs, findLongWaitFailure, isTransientFailure, type RetryRules } from '../http/retry.ts'
import { toOneLine } from '../io/escape.ts'
import type { SessionClient } from './session.ts'

const maxUnreachableMs = 5 * 60_000

const maxInvalidResponses = 5

const backoffMs = { first: 250, longest: 8000 }

export function requireTimeLeft(deadline: Deadline): void {
  if (deadline.hasPassed) throw createFollowDeadlineError()
}

/**
 * Creates the failure for a passed deadline. The failure has no `sent`, because the last request only read
 * the session. The report then takes `sent` from the requests of the whole run.
 */
export const createFollowDeadlineError = (
  message = 'the deadline passed while parley followed the session',
) => new CliError('stopped', message, { retry: 'later', deadline: true })

/**
 * Retry rules of `events follow` and `events run`: parley retries until the service has been unreachable for
 * 5 minutes. These rules do not apply to a post that the service may have accepted, because a retry could deliver
 * its events twice.
 */
export class ReconnectPolicy implements RetryRules {
  readonly #access: SessionClient
  #lastResponseAt: number
  #attempts = 0
  #invalidResponses = 0
  #requestedWaitMs = 0
  #printedCause: string | undefined
  #printedMinutes = 0

  constructor(access: SessionClient) {
    this.#access = access
    this.#lastResponseAt = access.context.host.timers.now()
  }

  get isReconnecting(): boolean {
    return this.#printedCause !== undefined
  }

  recordResponse(): void {
    this.#lastResponseAt = this.#access.context.host.timers.now()
    this.#requestedWaitMs = 0
    this.#printedCause = undefined
  }

  decide(failure: CliError): number | CliError {
    return this.findFinalFailure(failure) ?? this.nextWaitMs()
  }

  /**
   * Returns the failure that ends the attempts. If another attempt is allowed, prints the failure on stderr,
   * later a note every minute, and returns `undefined`.
   */
  findFinalFailure(failure: CliError): CliError | undefined {
    const { context, parts } = this.#access
    if (parts.deadline.hasPassed) return this.#getDeadlineFailure(failure)
    if (!this.#allowsRetry(failure)) return failure
    const longWaitFailure = findLongWaitFailure(failure, this.#requestedWaitMs)
    if (longWaitFailure) return longWaitFailure
    const { serviceMessage } = failure.details
    const cause = `${failure.message}${serviceMessage ? `: ${toOneLine(serviceMessage)}` : ''}`
    const minutes = Math.floor((context.host.timers.now() - this.#lastResponseAt) / 60_000)
    if (cause !== this.#printedCause) context.messages.note(`${cause}; trying again`)
    else if (minutes > this.#printedMinutes)
      context.messages.note(`still failing after ${minutes} min; trying again`)
    this.#printedCause = cause
    this.#printedMinutes = minutes
    return undefined
  }

  /**
   * Returns the failure to report after a deadline: `failure` for a time limit of parley, such as 30 s for a
   * list, and a `stopped` failure for the user's deadline.
   */
  #getDeadlineFailure(failure: CliError): CliError {
    return this.#access.parts.deadline.passed?.limitText === undefined ? createFollowDeadlineError() : failure
  }

  requireNext(failure: CliError): void {
    if (this.#access.parts.deadline.hasPassed) throw this.#getDeadlineFailure(failure)
  }

  nextWaitMs(): number {
    const wait = Math.max(computeBackoffMs(backoffMs, this.#attempts++), this.#requestedWaitMs)
    this.#requestedWaitMs = 0
    return wait
  }

  #allowsRetry(error: CliError): boolean {
    const { isPermanent, retryAfterSeconds = 0 } = error.details
    if (error.kind === 'response') return !isPermanent && ++this.#invalidResponses <= maxInvalidResponses
    if (!isTransientFailure(error)) return false
    this.#requestedWaitMs = retryAfterSeconds * 1000
    return this.#access.context.host.timers.now() - this.#lastResponseAt < maxUnreachableMs
  }
}
