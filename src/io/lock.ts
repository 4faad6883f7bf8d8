import { closeSync, fstatSync, futimesSync, lstatSync, openSync, rmSync } from 'node:fs'
import { platform } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { CliError, type Kind } from '../errors.ts'
import type { Timers } from '../timers.ts'

/** The right to write a file, which only one process has at a time. */
export interface Lock {
  /** False once another process removed the lock, because this process seemed dead. */
  isHeld(): boolean
  release(): void
}

export interface LockOptions {
  /** What it is the lock of, for a person; by default the file. */
  name?: string
  /** The longest wait for it. Milliseconds. */
  longest: number
  /** A lock without a sign of life for so long was left behind by a killed process. Milliseconds. */
  silence: number
  /** The kind of the failure if the lock does not become free. */
  kind: Kind
  /** The consequence of that failure. */
  consequence: string
  /** Called once, when the wait has taken a while. */
  onWait?(): void
}

export interface RunLockOptions {
  /** The file as the person wrote it, or what else is locked. */
  name: string
  /** When the run has to be over, by the forward clock, or Infinity. */
  deadline: number
  timers: Timers
  note(line: string): void
}

/**
 * Takes the lock of what a run keeps to its end: a conversation, an audit, results, a session. Another run is waited for,
 * without a deadline as long as it takes. Throws a `CliError` of kind `file` at the deadline.
 */
export const lockForRun = (path: string, options: RunLockOptions): Promise<Lock> => watchForRun(path)(options)

/** The same for one that is taken after another: if nobody holds it any more, it shows while the other is waited for. */
export function watchForRun(path: string): (options: RunLockOptions) => Promise<Lock> {
  const silence = 5000
  const holder = watch(`${path}.lock`, silence)
  try {
    holder.isSilent()
  } catch {
    // What is wrong with it is told when it is taken.
  }
  return async ({ name, deadline, timers, note }) => {
    const longest = deadline - timers.now()
    const onWait = () => note(`waiting for another parley that uses ${name}`)
    const failing = { kind: 'file', consequence: 'nothing was sent' } as const
    return lock(path, { name, longest, silence, onWait, ...failing }, holder).catch((error: unknown) => {
      // The other run will end.
      throw error instanceof CliError ? error.with({ retry: 'later', deadline: true }) : error
    })
  }
}

/** How often a holder shows that it is alive. Milliseconds. */
const beat = 1000

/** Milliseconds. */
const aWhile = 2000

/** Waits for the lock of a file, which is a file beside it. Throws a `CliError` if it does not become free. */
export async function lock(
  path: string,
  { longest, onWait, ...options }: LockOptions,
  holder = watch(`${path}.lock`, options.silence),
): Promise<Lock> {
  const file = holder.name
  const guard = watch(`${file}.clearing`, options.silence)
  const start = performance.now()
  let made = holder.tryToMake()
  for (let isReported = false; made === undefined; made = holder.tryToMake()) {
    if (holder.isSilent() && clear(holder, guard)) continue
    const waited = performance.now() - start
    if (waited > longest) throw stuck(file, { name: path, ...options })
    if (!isReported && waited > aWhile) {
      isReported = true
      onWait?.()
    }
    await wait(20 + Math.random() * 80)
  }
  return hold(file, made)
}

/** While the lock's file is open, no other file can have its inode number. */
function hold(name: string, file: number): Lock {
  const { ino } = fstatSync(file, { bigint: true })
  const isHeld = () => lookAt(name)?.ino === ino
  const timer = setInterval(() => showLife(file), beat).unref()
  let isReleased = false
  return {
    isHeld,
    release() {
      if (isReleased) return
      isReleased = true
      clearInterval(timer)
      try {
        if (isHeld()) rmSync(name, { force: true })
      } catch {
        // One that cannot be removed is like one that a killed holder left.
      }
      closeSync(file)
    },
  }
}

function showLife(file: number): void {
  try {
    futimesSync(file, new Date(), new Date())
  } catch {
    // A holder that lost its lock learns it from isHeld.
  }
}

interface Watched {
  name: string
  /** It has not changed for long, by this process's own clock: other clocks may differ, or be set. */
  isSilent(): boolean
  /** Makes the file and opens it; `undefined` if there is one. */
  tryToMake(): number | undefined
}

function watch(name: string, silence: number): Watched {
  let last: string | undefined
  let since = 0
  return {
    name,
    isSilent() {
      const stat = lookAt(name)
      const mark = stat && `${stat.ino} ${stat.ctimeNs} ${stat.mtimeNs}`
      if (mark !== last) since = performance.now()
      last = mark
      return mark !== undefined && performance.now() - since > silence
    },
    tryToMake: createLockMaker(name),
  }
}

/**
 * Removes a lock that was left behind, and returns whether it did. Only one of the waiting processes may do this, and it
 * looks again first: a second one would remove the lock that the first has taken since.
 */
function clear(holder: Watched, guard: Watched): boolean {
  const file = guard.tryToMake()
  if (file === undefined) {
    if (guard.isSilent()) rmSync(guard.name, { force: true })
    return false
  }
  try {
    // In an earlier version the lock was a folder.
    const isFolder = lookAt(holder.name)?.isDirectory() ?? false
    if (!holder.isSilent()) return false
    rmSync(holder.name, { force: true, recursive: isFolder })
    return true
  } finally {
    closeSync(file)
    rmSync(guard.name, { force: true })
  }
}

const stuck = (
  file: string,
  { name, kind, consequence }: Pick<LockOptions, 'name' | 'kind' | 'consequence'>,
) =>
  new CliError(kind, `${name}: another parley has locked it: if none is running, remove ${file}`, {
    consequence,
  })

/** A name that is refused so often, one time after the other, is refused for good. */
const mostRefusals = 20

/** On Windows a removed file keeps its name, and refuses whoever asks for it, until nobody has it open any more. */
const mayBeRemoved = (error: unknown) =>
  platform() === 'win32' && (error as NodeJS.ErrnoException).code === 'EPERM'

/** Returns what makes a lock's file and opens it, or returns `undefined` if there is one. */
function createLockMaker(name: string): () => number | undefined {
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

/** What is known of a lock's file; `undefined` if there is none. */
function lookAt(name: string) {
  try {
    return lstatSync(name, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    if (mayBeRemoved(error)) return undefined
    throw error
  }
}
