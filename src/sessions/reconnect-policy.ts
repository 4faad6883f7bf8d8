import type { Deadline } from '../deadline.ts'
import { CliError } from '../errors.ts'
import { computeBackoffMs, findLongWaitFailure, isTransientFailure, type RetryRules } from '../http/retry.ts'
import { toOneLine } from '../io/escape.ts'
import type { SessionClient } from './session.ts'

const maxOutageMinutes = 5

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

/** Prints notes about failing requests. All requests of a run share it, so that each note is printed once. */
export class OutageNotes {
  readonly #messages: SessionClient['context']['messages']
  #cause: string | undefined
  #minutes = 0

  constructor({ messages }: SessionClient['context']) {
    this.#messages = messages
  }

  get isOngoing(): boolean {
    return this.#cause !== undefined
  }

  /** Prints each new cause of the outage, later a note every minute. */
  print({ message, details: { serviceMessage } }: CliError, minutes: number): void {
    const cause = `${message}${serviceMessage ? `: ${toOneLine(serviceMessage)}` : ''}`
    if (cause !== this.#cause) this.#messages.note(`${cause}; trying again`)
    else if (minutes > this.#minutes) this.#messages.note(`still failing after ${minutes} min; trying again`)
    this.#cause = cause
    this.#minutes = Math.max(minutes, this.#minutes)
  }

  end(): void {
    this.#cause = undefined
    this.#minutes = 0
  }
}

/**
 * Retry rules of `events follow` and `events run`: parley retries until the requests have failed for
 * 5 minutes. These rules do not apply to a post that the service may have accepted, because a retry could deliver
 * its events twice.
 */
export class ReconnectPolicy implements RetryRules {
  readonly #access: SessionClient
  readonly #notes: OutageNotes
  #failingSince: number | undefined
  #respondedAt = -Infinity
  #attempts = 0
  #invalidResponses = 0
  #requestedWaitMs = 0

  constructor(access: SessionClient, notes: OutageNotes) {
    this.#access = access
    this.#notes = notes
  }

  /** Ends the notes only if requests of this policy have failed: other requests of the run may still fail. */
  recordResponse(): void {
    if (this.#failingSince !== undefined) this.#notes.end()
    this.#failingSince = undefined
    this.#requestedWaitMs = 0
  }

  /** Restarts the 5 minutes after a response, although requests of another kind still fail. */
  recordPartialResponse(): void {
    this.#respondedAt = this.#access.context.host.timers.now()
  }

  /** Counts the invalid responses anew, because other responses have new events. */
  recordProgress(): void {
    this.#invalidResponses = 0
  }

  decide(failure: CliError): number | CliError {
    return this.findFinalFailure(failure) ?? this.nextWaitMs()
  }

  /**
   * Returns the failure that ends the attempts. If another attempt is allowed, prints a note and returns
   * `undefined`.
   */
  findFinalFailure(failure: CliError): CliError | undefined {
    const { context, parts } = this.#access
    if (parts.deadline.hasPassed) return this.#getDeadlineFailure(failure)
    if (!this.#allowsRetry(failure)) return failure
    const longWaitFailure = findLongWaitFailure(failure, this.#requestedWaitMs)
    if (longWaitFailure) return createOutageError(longWaitFailure)
    const now = context.host.timers.now()
    this.#failingSince ??= now
    const countMinutes = (since: number) => Math.floor((now - since) / 60_000)
    const minutes = countMinutes(this.#failingSince)
    if (countMinutes(Math.max(this.#failingSince, this.#respondedAt)) >= maxOutageMinutes)
      return createOutageError(failure.with({}, `${failure.message} (parley tried for ${minutes} min)`))
    this.#notes.print(failure, minutes)
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
    return true
  }
}

/**
 * Creates the failure after which parley stops reading a session. The events are then incomplete, whatever
 * the cause, so the kind is always `response`. The failure has no `sent`, because the last request only read
 * the session.
 */
function createOutageError({ message, details }: CliError): CliError {
  const { delivery: _, consequence: __, ...more } = details
  return new CliError('response', message, { ...more, sent: undefined, retry: 'later' })
}
