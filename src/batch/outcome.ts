import { CliError } from '../errors.ts'
import type { Outcome } from './run.ts'

/** Why the batch stopped, else the failure of the first line that failed. */
export function throwFailure({ stop, failure, tally: { ok, failed, skipped } }: Outcome): void {
  const isBegun = ok + failed > 0
  if (stop instanceof CliError && isBegun && stop.details.sent === undefined) throw stop.with({ sent: 'yes' })
  if (stop !== undefined) throw stop
  if (!failure) return
  const message = `${failed} of ${ok + failed + skipped} requests failed, the first of them: ${failure.message}`
  throw new CliError(failure.kind, message, failure.details)
}
