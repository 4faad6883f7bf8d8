import {
  type BigIntStats,
  closeSync,
  fstatSync,
  futimesSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { platform } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { CliError, type FailureKind, hasCode } from '../errors.ts'
import type { Timers } from '../timers.ts'

interface LockOptions {
  /** What is locked, as a person calls it; by default the file. */
  name?: string
  /** Milliseconds. */
  maxWaitMs: number
  /** Of the failure if the lock cannot be had. */
  kind: FailureKind
  consequence: string
  /** The wait ends at the run's deadline: the same command may get the lock later. */
  retry?: 'later'
  /** Called once, when the wait has taken a while. */
  onWait?(): void
}

interface RunLockOptions {
  /** What is locked, as a person calls it. */
  name: string
  /** By the forward clock, or Infinity. */
  deadline: number
  timers: Timers
  note(line: string): void
}

/** A holder changes the time of its lock so often, in milliseconds, to show that it is alive. */
const heartbeatMs = 1000

/** The right to write a file, which one process has at a time: an empty file beside it. */
export class Lock {
  /** What is locked, as a person calls it. */
  readonly name: string
  readonly #path: string
  readonly #file: number
  /** While the file is open, no other can have this number. */
  readonly #inode: bigint
  readonly #heart: NodeJS.Timeout
  #isReleased = false

  constructor(path: string, file: number, name: string) {
    this.name = name
    this.#path = path
    this.#file = file
    this.#inode = fstatSync(file, { bigint: true }).ino
    this.#heart = setInterval(() => this.#showLife(), heartbeatMs).unref()
  }

  /** False once another process has removed the lock, because this one seemed dead, or has written into it. */
  isHeld(): boolean {
    const stat = this.#isReleased ? undefined : statLock(this.#path)
    return stat?.ino === this.#inode && stat.size === 0n
  }

  readonly release = (): void => {
    if (this.#isReleased) return
    clearInterval(this.#heart)
    try {
      if (this.isHeld()) rmSync(this.#path, { force: true })
    } catch {
      // The next run takes it for the lock of a killed process.
    }
    this.#isReleased = true
    closeSync(this.#file)
  }

  #showLife(): void {
    try {
      futimesSync(this.#file, new Date(), new Date())
    } catch {
      // A holder that lost its lock learns it from isHeld.
    }
  }
}

/**
 * Takes the lock of a file that a run keeps to its end, and waits for another run until the deadline. Throws a `CliError`
 * of kind `file` if the deadline passes, or if something else has the lock's name.
 */
export async function lockForRun(path: string, options: RunLockOptions): Promise<Lock> {
  const { name, deadline, timers, note } = options
  const longestWait = deadline - timers.now()
  const onWait = () => note(`waiting for another parley that uses ${name}`)
  const failing = { kind: 'file', consequence: 'nothing was sent', retry: 'later' } as const
  return lock(path, { name, maxWaitMs: longestWait, onWait, ...failing })
}

/** A lock that did not change for so long was left behind by a killed process. Milliseconds. */
const staleAfterMs = 4000

/** Milliseconds. */
const waitingNoteDelayMs = 2000

/** The longest time between two looks that counts: a process that was stopped has not seen that nothing changed. */
const maxCountedStepMs = 500

/**
 * Waits for the lock of a file. Throws a `CliError` if it does not become free, or if what has its name is not an empty
 * regular file: that is not a lock, and is left alone.
 */
export async function lock(target: string, options: LockOptions): Promise<Lock> {
  const { name = target, maxWaitMs, kind, consequence, retry, onWait } = options
  const path = `${target}.parley-lock`
  const failure = (why: string) => new CliError(kind, `${name}: ${why}`, { consequence })
  const start = performance.now()
  let isTold = false
  let mark = ''
  let lastLook = start
  /** For how long the lock has not changed, by the waiter's own clock: other clocks may differ. */
  let unchanged = 0
  for (;;) {
    const now = performance.now()
    const waited = now - start
    const file = tryCreate(path, waited)
    if (file !== undefined) return new Lock(path, file, name)
    const stat = statLock(path)
    if (stat && !(stat.isFile() && stat.size === 0n))
      throw failure(`it cannot be locked: ${path} is not a lock, and is left alone`)
    const before = mark
    mark = stat ? getFingerprint(stat) : ''
    unchanged = mark === before ? unchanged + Math.min(now - lastLook, maxCountedStepMs) : 0
    lastLook = now
    if (mark !== '' && unchanged > staleAfterMs) {
      removeStaleLock(path, mark)
      continue
    }
    if (waited > maxWaitMs) {
      const stuck = failure(`another parley has locked it: if none is running, remove ${path}`)
      throw retry ? stuck.with({ retry, deadline: true }) : stuck
    }
    if (!isTold && waited > waitingNoteDelayMs) onWait?.()
    isTold ||= waited > waitingNoteDelayMs
    await wait(20 + Math.random() * 80)
  }
}

/** Makes the file and opens it; `undefined` if there is one. A name that is refused for longer is refused for good. */
function tryCreate(path: string, waited: number): number | undefined {
  try {
    return openSync(path, 'wx', 0o600)
  } catch (error) {
    const isRemoved = mayBePendingRemoval(error) && waited <= waitingNoteDelayMs
    if (isRemoved || hasCode(error, 'EEXIST')) return undefined
    throw error
  }
}

/**
 * Removes the lock of a killed process. Of several waiters only one can give it another name. If that is not the dead one
 * any more, because a faster waiter has cleared it and made its own, it gets its name back.
 */
function removeStaleLock(path: string, mark: string): void {
  const aside = `${path}.${crypto.randomUUID()}`
  try {
    renameSync(path, aside)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return
    throw error
  }
  const stat = statLock(aside)
  if (stat && getFingerprint(stat) === mark) rmSync(aside, { force: true })
  else renameSync(aside, path)
}

/** A file keeps it when it is renamed. A holder changes it with every beat. */
const getFingerprint = ({ ino, mtimeNs }: BigIntStats): string => `${ino} ${mtimeNs}`

/** On Windows a removed file keeps its name until no process has it open any more. Until then EPERM refuses the name. */
const mayBePendingRemoval = (error: unknown) => platform() === 'win32' && hasCode(error, 'EPERM')

function statLock(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    if (mayBePendingRemoval(error)) return undefined
    throw error
  }
}
