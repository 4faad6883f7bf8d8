import type { CliError } from '../errors.ts'
import type { Repeat } from '../wire/endpoints.ts'

export interface RetryPolicy {
  repeat: Repeat
  /** Extra attempts. */
  retries: number
  /** Also try again when the request left and no answer came. */
  retryUnknown: boolean
  /** Milliseconds since the epoch; 0 for none. */
  deadline: number
}

/** An attempt's failure, with what the answer's headers said about trying again. */
export interface FailedAttempt {
  error: CliError
  /** Seconds. */
  retryAfter?: number
  /** `x-should-retry: false`. */
  isFinal?: boolean
}

export type Decision = { again: true; wait: number } | { again: false; because?: string }

const longestWait = 60_000

/**
 * Decides whether and when to try again (`cli.md`, Network). `attempt` counts from 1; the wait is milliseconds;
 * `random` is between 0 and 1.
 */
export function decideRetry(
  policy: RetryPolicy,
  failed: FailedAttempt,
  { attempt, now, random }: { attempt: number; now: number; random: number },
): Decision {
  if (attempt > policy.retries || failed.isFinal || failed.error.details.isPermanent) return { again: false }
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

function mayRepeat({ repeat, retryUnknown }: RetryPolicy, { error, retryAfter }: FailedAttempt): boolean {
  const { status, sent } = error.details
  if (error.kind === 'not-sent') return true
  if (error.kind === 'unknown') return repeat === 'always' || retryUnknown
  if (sent !== 'yes' || status === undefined) return false
  if (status === 429) return true
  if (status === 503 && retryAfter !== undefined) return true
  return repeat !== 'refused' && [408, 500, 502, 503, 504, 529].includes(status)
}

/**
 * Reads `Retry-After` (whole seconds or one of the three HTTP dates) or `Retry-After-Ms` into seconds; anything
 * else counts as absent.
 */
export function parseRetryAfter(headers: Record<string, string>, now: number): number | undefined {
  const { 'retry-after': value, 'retry-after-ms': milliseconds } = headers
  if (milliseconds !== undefined && /^\d+(\.\d+)?$/.test(milliseconds)) return Number(milliseconds) / 1000
  if (value === undefined) return undefined
  if (/^\d+$/.test(value)) return Number(value)
  // The asctime form has no zone and means UTC; the others say GMT.
  const isDate = /^[A-Z][a-z]{2,8},? .*\d{2}:\d{2}:\d{2}/.test(value)
  const date = isDate ? Date.parse(value.endsWith('GMT') ? value : `${value} GMT`) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000)
}
