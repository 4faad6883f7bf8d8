import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import type { Repeat } from '../fate.ts'
import type { Caller } from '../http/call.ts'
import { backoff, mayPass } from '../http/retry.ts'
import { oneLine } from '../io/escape.ts'

/** How long a service may be away without one response. Milliseconds. */
const longestAbsence = 5 * 60_000

/** How many times in a row the service may say what is not understood. */
const mostFailures = 5

/** The waits before the next attempt. Milliseconds. */
const waits = { first: 250, longest: 8000 }

/** How long a service that is away, or talks nonsense, is waited for: each function gives the patience that is left. */
export interface Patience {
  /** When the service answered last. */
  readonly lastResponse: number
  /** Since it brought something new: how often was waited, how often it was not understood, and a 401 had new secrets. */
  readonly waited: number
  readonly failures: number
  readonly hasNewSecrets: boolean
  /** What the service asked to be left alone for. Milliseconds. */
  readonly askedWait: number
}

/** Who is patient, and which of its requests may be repeated. */
export interface Patient {
  context: Pick<Context, 'note' | 'timers'>
  caller: Pick<Caller, 'deadline' | 'forgetSecrets'>
  repeat: Repeat
}

/** Who has until a deadline. */
interface Timed {
  context: Pick<Context, 'timers'>
  caller: Pick<Caller, 'deadline'>
}

/** At the beginning, and whenever the service has brought something new. */
export const freshPatience = (now: number): Patience => ({
  lastResponse: now,
  waited: 0,
  failures: 0,
  hasNewSecrets: false,
  askedWait: 0,
})

export const afterResponse = (patience: Patience, now: number): Patience => ({
  ...patience,
  lastResponse: now,
  askedWait: 0,
})

/** Nothing is left if the failure does not pass by waiting. A 401 does, once, if the secrets can be had anew. */
export function afterFailure(
  patience: Patience,
  error: CliError,
  { now, repeat, forgetSecrets }: { now: number; repeat: Repeat; forgetSecrets(): boolean },
): Patience | undefined {
  const { kind, details } = error
  if (kind === 'response') {
    const failures = patience.failures + 1
    return details.isPermanent || failures > mostFailures ? undefined : { ...patience, failures }
  }
  const askedWait = (details.retryAfter ?? 0) * 1000
  if (mayPass(error, repeat)) {
    const isWorthIt = askedWait <= longestAbsence && now - patience.lastResponse < longestAbsence
    return isWorthIt ? { ...patience, askedWait } : undefined
  }
  if (details.status !== 401 || patience.hasNewSecrets || !forgetSecrets()) return undefined
  return { ...patience, hasNewSecrets: true }
}

/** Milliseconds until the deadline. */
export const timeLeft = ({ context, caller: { deadline } }: Timed): number => deadline - context.timers.now()

/** Throws a `CliError` after the deadline. */
export function requireTime(patient: Timed): void {
  if (timeLeft(patient) <= 0) throw tooLate()
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

/** Shows a failure on stderr. Throws it if no patience is left for it, and any after the deadline. */
export function endure(patient: Patient, patience: Patience, error: unknown): Patience {
  const { context, caller, repeat } = patient
  if (!(error instanceof CliError)) throw error
  if (isCutByDeadline(error)) throw tooLate()
  requireTime(patient)
  const left = afterFailure(patience, error, {
    now: context.timers.now(),
    repeat,
    forgetSecrets: caller.forgetSecrets,
  })
  if (!left) throw error
  const { serviceMessage: said } = error.details
  context.note(`${error.message}${said ? `: ${oneLine(said)}` : ''}; trying again`)
  return left
}

/**
 * Waits before the next attempt, longer each time, or until nobody wants it. Throws a `CliError` if the deadline comes first:
 * no attempt has time.
 */
export async function waitPatiently(
  patient: Patient,
  patience: Patience,
  unwanted?: AbortSignal,
): Promise<Patience> {
  const { waited, askedWait } = patience
  const wait = Math.max(backoff(waits, waited), askedWait)
  const left = timeLeft(patient)
  await patient.context.timers.wait(Math.min(wait, Math.max(left, 0)), unwanted)
  if (left <= wait && !unwanted?.aborted) throw tooLate()
  return { ...patience, waited: waited + 1, askedWait: 0 }
}

/**
 * Makes attempts, with waits between them, until one succeeds or nobody wants it. Throws a `CliError`: of the last attempt, or
 * of kind `stopped` at the deadline.
 */
export async function patiently<T>(
  patient: Patient,
  attempt: () => Promise<T>,
  unwanted?: AbortSignal,
): Promise<T> {
  for (let patience = freshPatience(patient.context.timers.now()); ; ) {
    try {
      return await attempt()
    } catch (error) {
      if (!unwanted?.aborted)
        patience = await waitPatiently(patient, endure(patient, patience, error), unwanted)
      if (unwanted?.aborted) throw error
    }
  }
}
