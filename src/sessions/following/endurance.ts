import type { Caller } from '../../calls/caller.ts'
import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'

/** How long a service that is away, or talks nonsense, is waited for. */
export interface Endurance {
  /** The service answered. */
  answered(): void
  /** It brought something new: whatever went wrong before is forgotten. */
  progressed(): void
  /** Throws a failure that waiting does not mend, and any once the deadline has passed; else says it on stderr. */
  endure(error: unknown): void
  /** Waits before the next attempt, longer each time. */
  wait(): Promise<void>
  /** Milliseconds to the deadline. */
  left(): number
  stopped(): CliError
}

/** How long a service may be away without one answer. Milliseconds. */
const longestAbsence = 5 * 60_000

/** How many times in a row the service may answer what is not understood. */
const mostFailures = 5

/** The shortest and the longest wait before the next attempt. Milliseconds. */
const [shortestWait, longestWait] = [250, 8000]

const awayKinds = ['not-sent', 'unknown', 'service', 'rate-limited']

export function createEndurance(
  { note, timers }: Pick<Context, 'note' | 'timers'>,
  { deadline, forgetSecrets }: Pick<Caller, 'deadline' | 'forgetSecrets'>,
): Endurance {
  let lastAnswer = timers.now()
  let round = 0
  let failures = 0
  let hasAskedAgain = false
  /** By the service. Milliseconds. */
  let askedWait = 0

  const left = () => (deadline > 0 ? deadline - timers.now() : Infinity)
  const stopped = () =>
    new CliError('stopped', 'the deadline passed while the session was followed', { sent: 'yes' })

  /** Whether the next attempt may go better. */
  function isPassing({ kind, details }: CliError): boolean {
    if (kind === 'response') return !details.isPermanent && ++failures <= mostFailures
    askedWait = (details.retryAfter ?? 0) * 1000
    if (awayKinds.includes(kind)) {
      return askedWait <= longestAbsence && timers.now() - lastAnswer < longestAbsence
    }
    // Credentials that a command gave may have expired: it is asked once more.
    if (details.status !== 401 || hasAskedAgain) return false
    hasAskedAgain = forgetSecrets()
    return hasAskedAgain
  }

  return {
    answered() {
      lastAnswer = timers.now()
      askedWait = 0
    },
    progressed() {
      this.answered()
      round = 0
      failures = 0
      hasAskedAgain = false
    },
    endure(error) {
      if (!(error instanceof CliError)) throw error
      if (left() <= 0) throw stopped()
      if (!isPassing(error)) throw error
      note(`${error.message}; trying again`)
    },
    async wait() {
      const wait = Math.max(Math.min(shortestWait * 2 ** round++, longestWait), askedWait)
      askedWait = 0
      await timers.wait(Math.min(wait, Math.max(left(), 0)))
    },
    left,
    stopped,
  }
}
