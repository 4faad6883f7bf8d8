import { CliError } from '../errors.ts'
import type { Calls } from '../fate.ts'
import { oneLine } from './escape.ts'
import type { FileOutput } from './file-output.ts'

interface RunEnds {
  cleanups: Set<() => void>
  calls: Pick<Calls, 'sayInstead'>
}

/** If `work` on a file ends early, by a signal too: keeps the part that came, and says where it is. */
export async function keepingPart<T>(
  { cleanups, calls }: RunEnds,
  file: FileOutput | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (!file) return work()
  const keep = () => {
    const outcome = file.keep()
    if (outcome) calls.sayInstead(() => oneLine(`the answer was cut off; ${outcome}`, 2000))
  }
  cleanups.add(keep)
  try {
    return await work()
  } catch (error) {
    const outcome = file.keep()
    if (!outcome || !(error instanceof CliError)) throw error
    throw new CliError(error.kind, `${error.message}; ${outcome}`, error.details)
  } finally {
    cleanups.delete(keep)
  }
}
