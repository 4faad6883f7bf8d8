import type { Crowd } from '../crowd.ts'
import { CliError } from '../errors.ts'
import type { Calls } from '../fate.ts'
import { oneLine } from './escape.ts'
import type { KeptPart } from './file-output.ts'

interface RunEnds {
  cleanups: Crowd<() => void>
  calls: Pick<Calls, 'sayInstead' | 'lastWords'>
}

/** What keeps an answer of a run that ends early. */
export interface Keeper {
  /** As `FileOutput` does: synchronous, and does not throw. */
  keep(): KeptPart | undefined
  /** All of the answer came. */
  readonly isWhole?: boolean
}

/** Does `work` on an answer. If that ends early, also by a signal, it keeps what came, and prints where. */
export async function keepingPart<T>(
  { cleanups, calls }: RunEnds,
  keeper: Keeper | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (!keeper) return work()
  const keep = () => {
    const words = calls.lastWords() ?? (keeper.isWhole ? undefined : 'the answer was cut off')
    const part = keeper.keep()
    if (!part) return
    const told = tellKept(part, keeper.isWhole ? 'the answer' : undefined)
    calls.sayInstead(() => oneLine(words === undefined ? told : `${words}; ${told}`, 2000))
  }
  cleanups.add(keep)
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    // Nothing is wrong with an answer that only could not be written.
    const isWhole = keeper.isWhole && error.kind === 'file'
    throw withPart(error, keeper.keep(), isWhole ? 'the answer' : undefined)
  } finally {
    cleanups.delete(keep)
  }
}

/** Says where an answer is kept: the part of it that came, or all of one that does not fit its schema. */
export const tellKept = ({ outcome }: KeptPart, what = 'the part that came'): string => `${what} ${outcome}`

/** The same failure, with what became of the answer, as far as it came. */
export const withPart = (failure: CliError, part: KeptPart | undefined, what = nameOf(failure)): CliError =>
  part
    ? new CliError(failure.kind, `${failure.message}; ${tellKept(part, what)}`, {
        ...failure.details,
        kept: part.name,
      })
    : failure

const nameOf = ({ details }: CliError): string =>
  details.answer === undefined ? 'the part that came' : 'the answer'
