import { mkdirSync, rmdirSync, statSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { CliError } from '../errors.ts'

/** The right to write a file, which only one process has at a time. */
export interface Lock {
  /** False once another process took this one for dead. */
  isHeld(): boolean
  release(): void
}

/**
 * Milliseconds for which a lock may stay the same: who holds one writes at once, so a killed process left it behind.
 * They are counted while one waits: clocks differ between machines, and are set.
 */
const longestHold = 3000

/** Milliseconds. */
const patience = 60_000

/** Waits for the lock of a file, a folder beside it. Throws a `CliError` where it does not come free. */
export async function lock(path: string): Promise<Lock> {
  const folder = `${path}.lock`
  const isLeftBehind = createWatch()
  const end = performance.now() + patience
  while (!make(folder)) {
    if (isLeftBehind(folder)) clear(folder, isLeftBehind)
    if (performance.now() > end) throw stuck(path, folder)
    await wait(20 + Math.random() * 80)
  }
  const mark = markOf(folder)
  const isHeld = () => markOf(folder) === mark
  return {
    isHeld,
    release() {
      if (isHeld()) remove(folder)
    },
  }
}

/** Tells of a folder whether it has been the same one for too long, since it was first asked about it. */
function createWatch(): (folder: string) => boolean {
  const seen = new Map<string, { mark: string | undefined; since: number }>()
  return (folder) => {
    const mark = markOf(folder)
    const before = seen.get(folder)
    if (before && before.mark === mark) {
      return mark !== undefined && performance.now() - before.since > longestHold
    }
    seen.set(folder, { mark, since: performance.now() })
    return false
  }
}

/**
 * Removes a lock that was left behind. Of all who wait for it one alone may do so, and looks again first: the others
 * would remove the lock that the first of them has taken since.
 */
function clear(folder: string, isLeftBehind: (folder: string) => boolean): void {
  const guard = `${folder}.clearing`
  if (make(guard)) {
    try {
      if (isLeftBehind(folder)) remove(folder)
    } finally {
      remove(guard)
    }
  } else if (isLeftBehind(guard)) {
    remove(guard)
  }
}

function make(folder: string): boolean {
  try {
    mkdirSync(folder)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function remove(folder: string): void {
  try {
    rmdirSync(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/** Tells one lock from the next. */
function markOf(folder: string): string | undefined {
  const stat = statSync(folder, { bigint: true, throwIfNoEntry: false })
  return stat && `${stat.ino} ${stat.ctimeNs}`
}

const stuck = (path: string, folder: string) =>
  new CliError('credentials', `${path}: another parley keeps it locked: if none is running, remove ${folder}`)
