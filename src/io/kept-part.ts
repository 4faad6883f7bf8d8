import { CliError } from '../errors.ts'
import type { Calls } from '../fate.ts'
import { oneLine } from './escape.ts'
import type { FileOutput, KeptPart } from './file-output.ts'

interface RunEnds {
  cleanups: Set<() => void>
  calls: Pick<Calls, 'sayInstead' | 'lastWords'>
}

/** If `work` on a file ends early, by a signal too: keeps the part that came, and says where it is. */
export async function keepingPart<T>(
  { cleanups, calls }: RunEnds,
  file: FileOutput | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (!file) return work()
  const keep = () => {
    const words = calls.lastWords() ?? 'the answer was cut off'
    const outcome = file.keep()
    if (outcome) calls.sayInstead(() => oneLine(`${words}; ${outcome.inWords}`, 2000))
  }
  cleanups.add(keep)
  try {
    return await work()
  } catch (error) {
    throw error instanceof CliError ? withPart(error, file.keep()) : error
  } finally {
    cleanups.delete(keep)
  }
}

/** The same failure, with what became of the part of the answer that came. */
export const withPart = (failure: CliError, part: KeptPart | undefined): CliError =>
  part
    ? new CliError(failure.kind, `${failure.message}; ${part.inWords}`, {
        ...failure.details,
        kept: part.name,
      })
    : failure
