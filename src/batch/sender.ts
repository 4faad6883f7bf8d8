import { CliError } from '../errors.ts'
import type { Call, Job } from './jobs.ts'
import type { Answer } from './result-line.ts'

/**
 * Asks for one line. Throws a `CliError`, at once where it is `rate-limited` or `not-sent`: then all pause, and the
 * line is asked again.
 */
export type Ask<C extends Call> = (job: Job<C>) => Promise<Answer>

/** What is under way when the signal comes has failed, and is not waited for. */
export function createSender<C extends Call>(ask: Ask<C>, signal: AbortSignal): Ask<C> {
  const open = new Set<(error: CliError) => void>()
  signal.addEventListener('abort', () => {
    for (const fail of open) fail(deadlinePassed())
  })
  return async (job) => {
    let fail = (_: CliError) => {}
    try {
      return await new Promise<Answer>((resolve, reject) => {
        fail = reject
        open.add(fail)
        ask(job).then(resolve, reject)
      })
    } finally {
      open.delete(fail)
    }
  }
}

const deadlinePassed = () => new CliError('unknown', 'the deadline passed', { sent: 'unknown' })
