import type { CliError } from '../errors.ts'
import type { Repeat } from '../wire/endpoints.ts'

export interface RetryPolicy {
  repeat: Repeat
  /** How many attempts may follow the first. */
  retries: number
  /** Also try again after a request that was sent and got no answer. */
  retryUnknown: boolean
  /** What was refused for now, or not sent at all, is not tried again here. */
  leavesRefusals?: boolean
  /** Milliseconds since the epoch; 0 for none. */
  deadline: number
}

/** An attempt's failure, with what the answer's headers said about trying again. */
export interface FailedAttempt {
  error: CliError
  /** Seconds. */
  retryAfter?: number
}

export type Decision = { again: true; wait: number } | { again: false; because?: string }

const longestWait = 60_000

/**
 * Decides whether and when to try again. `attempt` counts from 1; the wait is milliseconds;
 * `random` is between 0 and 1.
 */
export function decideRetry(
  policy: RetryPolicy,
  failed: FailedAttempt,
  { attempt, now, random }: { attempt: number; now: number; random: number },
): Decision {
  if (attempt > policy.retries || failed.error.details.isPermanent) return { again: false }
  if (!mayRepeat(policy, failed)) return { again: false }
  const backoff = Math.min(500 * 2 ** (attempt - 1), 8000) * (0.5 + random / 2)
  const wait = Math.max((failed.retryAfter ?? 0) * 1000, backoff)
  if (wait > longestWait) {
    return { again: false, because: `the service asks to wait ${Math.ceil(wait / 1000)} s, more than 60 s` }
  }
  if (policy.deadline > 0 && now + wait >= policy.deadline) {
    return {
      again: false,
      because: `the next attempt, in ${(wait / 1000).toFixed(1)} s, would be past the deadline`,
    }
  }
  return { again: true, wait }
}

function mayRepeat({ repeat, retryUnknown, leavesRefusals }: RetryPolicy, { error }: FailedAttempt): boolean {
  const { status, sent } = error.details
  if (error.kind === 'not-sent' || error.kind === 'rate-limited') return !leavesRefusals
  if (error.kind === 'unknown') return repeat === 'always' || (retryUnknown && repeat === 'failed')
  if (sent !== 'yes' || status === undefined) return false
  return repeat !== 'not-taken' && [408, 500, 502, 503, 504, 529].includes(status)
}
