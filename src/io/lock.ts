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
import { CliError, type Kind } from '../errors.ts'
import type { Timers } from '../timers.ts'

interface LockOptions {
  /** What is locked, as a person calls it; by default the file. */
  name?: string
  /** Milliseconds. */
  longestWait: number
  /** A lock that did not change for so long was left behind by a killed process. Milliseconds. */
  silence: number
  /** Of the failure if the lock cannot be had. */
  kind: Kind
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
const beat = 1000

/** The right to write a file, which one process has at a time: an empty file beside it. */
export class Lock {
  readonly #path: string
  readonly #file: number
  /** While the file is open, no other can have this number. */
  readonly #inode: bigint
  readonly #heart: NodeJS.Timeout
  #isReleased = false

  constructor(path: string, file: number) {
    this.#path = path
    this.#file = file
    this.#inode = fstatSync(file, { bigint: true }).ino
    this.#heart = setInterval(() => this.#showLife(), beat).unref()
  }

  /** False once another process has removed the lock, because this one seemed dead, or has written into it. */
  isHeld(): boolean {
    const stat = this.#isReleased ? undefined : lookAt(this.#path)
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
  return lock(path, { name, longestWait, silence: 5000, onWait, ...failing })
}

/** Milliseconds. */
const aWhile = 2000

/** Waits for the lock of a file. Throws a `CliError` if it does not become free, or if something else has its name. */
export async function lock(path: string, options: LockOptions): Promise<Lock> {
  const place = new LockPlace(path, options)
  const start = performance.now()
  for (let isTold = false; ; ) {
    const waited = performance.now() - start
    const file = place.tryToMake(waited)
    if (file !== undefined) return new Lock(place.path, file)
    if (place.isDead()) {
      place.clear()
      continue
    }
    if (waited > options.longestWait) throw place.stuck()
    if (!isTold && waited > aWhile) {
      isTold = true
      options.onWait?.()
    }
    await wait(20 + Math.random() * 80)
  }
}

/** The longest time between two looks that counts: a process that was stopped has not seen that nothing changed. */
const longestStep = 500

/** Where a lock is made. What is there and is not an empty regular file is not a lock, and is left alone. */
class LockPlace {
  readonly path: string
  readonly #target: string
  readonly #options: LockOptions
  #mark = ''
  #lastLook = 0
  #silence = 0

  constructor(target: string, options: LockOptions) {
    this.path = `${target}.parley-lock`
    this.#target = target
    this.#options = options
  }

  /** Makes the file and opens it; `undefined` if there is one. A name that is refused for longer is refused for good. */
  tryToMake(waited: number): number | undefined {
    try {
      return openSync(this.path, 'wx', 0o600)
    } catch (error) {
      const isRemoved = mayBeRemoved(error) && waited <= aWhile
      if (isRemoved || (error as NodeJS.ErrnoException).code === 'EEXIST') return undefined
      throw error
    }
  }

  /** The lock has not changed for long, by the waiter's own clock: other clocks may differ. */
  isDead(): boolean {
    const stat = lookAt(this.path)
    if (stat && !(stat.isFile() && stat.size === 0n))
      throw this.#failure(`it cannot be locked: ${this.path} is not a lock, and is left alone`)
    const mark = stat ? markOf(stat) : ''
    const now = performance.now()
    this.#silence = mark === this.#mark ? this.#silence + Math.min(now - this.#lastLook, longestStep) : 0
    this.#mark = mark
    this.#lastLook = now
    return mark !== '' && this.#silence > this.#options.silence
  }

  /**
   * Removes the lock of a killed process. Of several waiters only one can give it another name. If that is not the dead one
   * any more, because a faster waiter has cleared it and made its own, it gets its name back.
   */
  clear(): void {
    const aside = `${this.path}.${crypto.randomUUID()}`
    try {
      renameSync(this.path, aside)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
      throw error
    }
    const stat = lookAt(aside)
    if (stat && markOf(stat) === this.#mark) rmSync(aside, { force: true })
    else renameSync(aside, this.path)
  }

  stuck(): CliError {
    const failure = this.#failure(`another parley has locked it: if none is running, remove ${this.path}`)
    const { retry } = this.#options
    return retry ? failure.with({ retry, deadline: true }) : failure
  }

  #failure(why: string): CliError {
    const { name = this.#target, kind, consequence } = this.#options
    return new CliError(kind, `${name}: ${why}`, { consequence })
  }
}

/** A file keeps it when it is renamed. A holder changes it with every beat. */
const markOf = ({ ino, mtimeNs }: BigIntStats): string => `${ino} ${mtimeNs}`

/** On Windows a removed file keeps its name until no process has it open any more. Until then EPERM refuses the name. */
const mayBeRemoved = (error: unknown) =>
  platform() === 'win32' && (error as NodeJS.ErrnoException).code === 'EPERM'

function lookAt(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    if (mayBeRemoved(error)) return undefined
    throw error
  }
}
