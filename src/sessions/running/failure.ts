import { CliError, type Kind } from '../../errors.ts'
import type { Progress } from './progress.ts'

/** These say how the session ended, or what is not known of it. */
const endings: Kind[] = ['waiting', 'stuck', 'denied', 'unknown']

interface Circumstances extends Progress {
  /** There was a task, and it was accepted. */
  hasTask: boolean
  /** The command that goes on with the session. */
  resume: string[]
  /** The deadline has passed. */
  isLate: boolean
}

/** A failure must not look like a reason to send the task again. */
export function explainFailure(error: unknown, { hasTask, isBegun, resume, isLate }: Circumstances): unknown {
  if (!(error instanceof CliError)) return error
  if (isLate && error.kind === 'not-sent' && isBegun) {
    return new CliError('stopped', error.message, { sent: 'yes', safeToRetry: false, resume })
  }
  if (error.kind === 'stopped') return error.with({ safeToRetry: false, consequence: undefined, resume })
  if (!hasTask) return error
  const known = { sent: 'yes', safeToRetry: false } as const
  if (error.kind === 'unknown') return error.with({ safeToRetry: false })
  if (endings.includes(error.kind)) return error.with(known)
  // A reply was refused: the status of that says what to do.
  if (error.details.pending) return error.with({ ...known, consequence: 'the task was accepted', resume })
  const { consequence: _, rawBody: __, retryAfter: ___, ...details } = error.details
  if (error.kind === 'file' || error.kind === 'unexpected')
    return error.with({ ...known, consequence: undefined, resume })
  return new CliError('response', `the session could not be followed: ${error.message}`, {
    ...details,
    ...known,
    consequence: 'the task was accepted',
    resume,
  })
}
