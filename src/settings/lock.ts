import { mkdirSync, rmdirSync, statSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { CliError } from '../errors.ts'

/** The right to write a file, which only one process has at a time. */
export interface Lock {
  /** False once another process took this one for dead. */
  isHeld(): boolean
  release(): void
}

/** Milliseconds after which a lock counts as left behind by a killed process: who holds one writes at once. */
const longestHold = 3000

/** Milliseconds. */
const patience = 60_000

/** Waits for the lock of a file, a folder beside it. Throws a `CliError` where it does not come free. */
export async function lock(path: string): Promise<Lock> {
  const folder = `${path}.lock`
  const end = Date.now() + patience
  while (!make(folder)) {
    if (isLeftBehind(folder)) clear(folder)
    if (Date.now() > end) throw stuck(path, folder)
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

/**
 * Removes a lock that was left behind. Of all who wait for it one alone may do so, and looks again first: the others
 * would remove the lock that the first of them has taken since.
 */
function clear(folder: string): void {
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

/** A time far ahead is no better than one long ago: the clock was set back. */
function isLeftBehind(folder: string): boolean {
  const stat = statSync(folder, { throwIfNoEntry: false })
  return stat !== undefined && Math.abs(Date.now() - stat.mtimeMs) > longestHold
}

/** Tells one lock from the next. */
function markOf(folder: string): bigint | undefined {
  return statSync(folder, { bigint: true, throwIfNoEntry: false })?.ctimeNs
}

const stuck = (path: string, folder: string) =>
  new CliError('credentials', `${path}: another parley keeps it locked: if none is running, remove ${folder}`)
