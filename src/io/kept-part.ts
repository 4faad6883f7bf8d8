import { CliError } from '../errors.ts'
import { oneLine } from './escape.ts'
import type { FileOutput } from './file-output.ts'

interface Run {
  cleanups: Set<() => void>
  whenInterrupted(describe: () => string | undefined): void
}

/** Where `work` on a file ends early, by a signal too: keeps the part that came, and says where it is. */
export async function keepingPart<T>(
  { cleanups, whenInterrupted }: Run,
  file: FileOutput | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (!file) return work()
  const keep = () => {
    const outcome = file.keep()
    if (outcome) whenInterrupted(() => oneLine(`the answer was cut off; ${outcome}`, 2000))
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
