import type { Crowd } from '../crowd.ts'
import { CliError } from '../errors.ts'
import type { Calls } from '../fate.ts'
import { oneLine } from './escape.ts'
import type { FileOutput, KeptPart } from './file-output.ts'

interface RunEnds {
  cleanups: Crowd<() => void>
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
    if (outcome) calls.sayInstead(() => oneLine(`${words}; ${tellKept(outcome)}`, 2000))
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

/** What became of the part that came, or of an answer that is whole, but not as it was asked for. */
export const tellKept = ({ fate }: KeptPart, what = 'the part that came'): string => `${what} ${fate}`

/** The same failure, with what became of the answer, as far as it came. */
export const withPart = (failure: CliError, part: KeptPart | undefined): CliError =>
  part
    ? new CliError(failure.kind, `${failure.message}; ${tellKept(part, nameOf(failure))}`, {
        ...failure.details,
        kept: part.name,
      })
    : failure

/** The name of what came of an answer. */
export const nameOf = ({ details }: CliError): string =>
  details.answer === undefined ? 'the part that came' : 'the answer'
