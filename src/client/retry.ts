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
  retryAfter?: number | undefined
  /** `x-should-retry: false`. */
  isFinal?: boolean | undefined
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

function mayRepeat({ repeat, retryUnknown }: RetryPolicy, { error }: FailedAttempt): boolean {
  const { status, sent } = error.details
  if (error.kind === 'not-sent' || error.kind === 'rate-limited') return true
  if (error.kind === 'unknown') return repeat === 'always' || (retryUnknown && repeat === 'failed')
  if (sent !== 'yes' || status === undefined) return false
  return repeat !== 'refused' && [408, 500, 502, 503, 504, 529].includes(status)
}

const day = '[A-Z][a-z]{2}'
const month = '[A-Z][a-z]{2}'
const time = '\\d{2}:\\d{2}:\\d{2}'

/** The three dates of HTTP: IMF-fixdate, RFC 850, asctime. */
const httpDate = new RegExp(
  [
    `^${day}, \\d{2} ${month} \\d{4} ${time} GMT$`,
    `^[A-Z][a-z]{5,8}, \\d{2}-${month}-\\d{2} ${time} GMT$`,
    `^${day} ${month} [ \\d]\\d ${time} \\d{4}$`,
  ].join('|'),
)

/**
 * Reads `Retry-After` (whole seconds or one of the three HTTP dates) or `Retry-After-Ms` into seconds; anything
 * else counts as absent.
 */
export function parseRetryAfter(headers: Record<string, string>, now: number): number | undefined {
  const { 'retry-after': value = '', 'retry-after-ms': milliseconds = '' } = headers
  if (/^\d+(\.\d+)?$/.test(milliseconds)) return toFinite(Number(milliseconds) / 1000)
  if (/^\d+$/.test(value)) return toFinite(Number(value))
  if (!httpDate.test(value)) return undefined
  // The asctime form has no zone and means UTC; the others say GMT.
  const date = Date.parse(value.endsWith('GMT') ? value : `${value} GMT`)
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000)
}

const toFinite = (seconds: number) => Math.min(seconds, Number.MAX_SAFE_INTEGER)
