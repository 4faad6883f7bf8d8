import { lstatSync, openSync } from 'node:fs'
import { platform } from 'node:os'

/** Where a name is refused so often, one after the other, it is refused for good. */
const mostRefusals = 20

/** On Windows a removed file keeps its name, and refuses whoever asks for it, until nobody has it open any more. */
const mayBeRemoved = (error: unknown) =>
  platform() === 'win32' && (error as NodeJS.ErrnoException).code === 'EPERM'

/** Returns what makes a lock's file and opens it, or returns `undefined` where there is one. */
export function createLockMaker(name: string): () => number | undefined {
  let refusals = 0
  return () => {
    try {
      return openSync(name, 'wx', 0o600)
    } catch (error) {
      refusals = mayBeRemoved(error) ? refusals + 1 : 0
      const isThere = refusals > 0 || (error as NodeJS.ErrnoException).code === 'EEXIST'
      if (!isThere || refusals === mostRefusals) throw error
      return undefined
    }
  }
}

/** What is known of a lock's file; `undefined` where there is none. */
export function lookAt(name: string) {
  try {
    return lstatSync(name, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    if (mayBeRemoved(error)) return undefined
    throw error
  }
}
