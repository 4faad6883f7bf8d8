import { closeSync, fstatSync, futimesSync, rmSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { CliError, type Kind } from '../errors.ts'
import { createLockMaker, lookAt } from './lock-file.ts'

/** The right to write a file, which only one process has at a time. */
export interface Lock {
  /** False once another process removed the lock, because this process seemed dead. */
  isHeld(): boolean
  release(): void
}

export interface LockOptions {
  /** The longest wait for it. Milliseconds. */
  longest: number
  /** A lock without a sign of life for so long was left behind by a killed process. Milliseconds. */
  silence: number
  /** The kind of the failure where the lock does not become free. */
  kind: Kind
  /** The consequence of that failure. */
  consequence: string
  /** Called once, when the wait has taken a while. */
  onWait?(): void
}

/** How often a holder shows that it is alive. Milliseconds. */
const beat = 1000

/** Milliseconds. */
const aWhile = 2000

/** Waits for the lock of a file, which is a file beside it. Throws a `CliError` where it does not become free. */
export async function lock(path: string, { longest, onWait, ...options }: LockOptions): Promise<Lock> {
  const name = `${path}.lock`
  const [holder, guard] = [watch(name, options.silence), watch(`${name}.clearing`, options.silence)]
  const start = performance.now()
  let file = holder.tryToMake()
  for (let isReported = false; file === undefined; file = holder.tryToMake()) {
    if (holder.isSilent()) clear(holder, guard)
    const waited = performance.now() - start
    if (waited > longest) throw stuck(path, name, options)
    if (!isReported && waited > aWhile) {
      isReported = true
      onWait?.()
    }
    await wait(20 + Math.random() * 80)
  }
  return hold(name, file)
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
      if (isHeld()) rmSync(name, { force: true })
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
  /** Makes the file and opens it; `undefined` where there is one. */
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
 * Removes a lock that was left behind. Only one of the waiting processes may do this, and it looks again first: a
 * second one would remove the lock that the first has taken since.
 */
function clear(holder: Watched, guard: Watched): void {
  const file = guard.tryToMake()
  if (file === undefined) {
    if (guard.isSilent()) rmSync(guard.name, { force: true })
    return
  }
  try {
    // In an earlier version the lock was a folder.
    const isFolder = lookAt(holder.name)?.isDirectory() ?? false
    if (holder.isSilent()) rmSync(holder.name, { force: true, recursive: isFolder })
  } finally {
    closeSync(file)
    rmSync(guard.name, { force: true })
  }
}

const stuck = (
  path: string,
  name: string,
  { kind, consequence }: Pick<LockOptions, 'kind' | 'consequence'>,
) =>
  new CliError(kind, `${path}: another parley has locked it: if none is running, remove ${name}`, {
    consequence,
  })
