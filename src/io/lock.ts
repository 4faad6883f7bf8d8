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
import type { Deadline } from '../deadline.ts'
import { CliError, hasErrorCode } from '../errors.ts'

interface LockOptions {
  name: string
  deadline: Deadline
  messages: { note(line: string): void }
}

const heartbeatMs = 1000

/**
 * A lock on a file is an empty file next to it. Its holder updates the modification time every second, so
 * other processes can recognize the lock of a killed process.
 */
export class FileLock {
  readonly #name: string
  readonly #path: string
  readonly #file: number
  /** No other file can get this inode number while the lock is open, so `isHeld` compares the number. */
  readonly #inode: bigint
  readonly #timer: NodeJS.Timeout
  #isReleased = false

  constructor(path: string, file: number, name: string) {
    this.#name = name
    this.#path = path
    this.#file = file
    this.#inode = fstatSync(file, { bigint: true }).ino
    this.#timer = setInterval(() => this.#updateTime(), heartbeatMs).unref()
  }

  /** Returns false if another process has removed the lock as abandoned, or has written to its file. */
  isHeld(): boolean {
    const stat = this.#isReleased ? undefined : statLock(this.#path)
    return stat?.ino === this.#inode && stat.size === 0n
  }

  readonly requireHeld = (): void => {
    if (!this.isHeld()) throw new CliError('file', `${this.#name}: another parley process took over its lock`)
  }

  readonly release = (): void => {
    if (this.#isReleased) return
    clearInterval(this.#timer)
    try {
      if (this.isHeld()) rmSync(this.#path, { force: true })
    } catch {
      // If the file cannot be removed, the next run removes it like the lock of a killed process.
    }
    this.#isReleased = true
    closeSync(this.#file)
  }

  #updateTime(): void {
    try {
      futimesSync(this.#file, new Date(), new Date())
    } catch {
      // A failed update of the time is ignored, because `isHeld` detects a lost lock.
    }
  }
}

const staleAfterMs = 4000

/** Most holders keep a lock for less time, so most waits need no note. */
const waitingNoteDelayMs = 500

/** Time for retries while Windows has not yet removed a deleted lock. */
const maxRemovalMs = 2000

/**
 * Maximum time between two checks that counts towards the age of a lock. If more time passes, this process
 * was suspended and could not observe the lock.
 */
const maxCountedStepMs = 500

/**
 * Waits until no other run has the lock, and acquires it. At the deadline, throws a `CliError` of kind
 * `file`. Throws the same error if the lock file is not empty, because then the file is not a lock, and
 * parley must not change it.
 */
export async function acquireLock(
  target: string,
  { name, deadline, messages }: LockOptions,
): Promise<FileLock> {
  const path = `${target}.parley-lock`
  const failure = (why: string) => new CliError('file', `${name}: ${why}`)
  // The monotonic clock of this process measures all times, because the clocks of other machines may differ.
  const start = performance.now()
  const maxWaitMs = deadline.leftMs
  let isNoted = false
  let fingerprint: string | undefined
  let unchangedMs = 0
  let waitedMs = 0
  for (;;) {
    const stepMs = performance.now() - start - waitedMs
    waitedMs += stepMs
    const file = tryCreate(path, waitedMs)
    if (file !== undefined) return new FileLock(path, file, name)
    const stat = statLock(path)
    if (stat && !(stat.isFile() && stat.size === 0n))
      throw failure(`it cannot be locked: ${path} is not a lock, so parley does not change it`)
    const found = stat && getFingerprint(stat)
    unchangedMs = found === fingerprint ? unchangedMs + Math.min(stepMs, maxCountedStepMs) : 0
    fingerprint = found
    if (found !== undefined && unchangedMs > staleAfterMs) {
      removeStaleLock(path, found)
      continue
    }
    if (waitedMs > maxWaitMs) {
      throw failure(
        `the deadline passed while it was locked: if no other parley is running, remove ${path}`,
      ).with({ retry: 'later', deadline: true })
    }
    if (!isNoted && waitedMs > waitingNoteDelayMs) {
      messages.note(
        `another parley process locked ${name}; waiting until it ends, or for a few seconds if it was killed`,
      )
      isNoted = true
    }
    await wait(20 + Math.random() * 80)
  }
}

function tryCreate(path: string, waitedMs: number): number | undefined {
  try {
    return openSync(path, 'wx', 0o600)
  } catch (error) {
    const isRemoved = mayBePendingRemoval(error) && waitedMs <= maxRemovalMs
    if (isRemoved || hasErrorCode(error, 'EEXIST')) return undefined
    throw error
  }
}

/**
 * Renames the lock, checks it, and deletes it. If several processes wait, only one of them can rename the
 * lock. If the renamed lock belongs to a new holder, it gets its name back.
 */
function removeStaleLock(path: string, fingerprint: string): void {
  const aside = `${path}.${crypto.randomUUID()}`
  try {
    renameSync(path, aside)
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) return
    throw error
  }
  const stat = statLock(aside)
  if (stat && getFingerprint(stat) === fingerprint) rmSync(aside, { force: true })
  else renameSync(aside, path)
}

/** Changes with every heartbeat of the holder, and stays the same if the lock is renamed. */
const getFingerprint = ({ ino, mtimeNs }: BigIntStats): string => `${ino} ${mtimeNs}`

/**
 * On Windows, a removed file keeps its name until every process has closed it. Until then, creating the file
 * fails with EPERM.
 */
const mayBePendingRemoval = (error: unknown) => platform() === 'win32' && hasErrorCode(error, 'EPERM')

function statLock(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false })
  } catch (error) {
    if (mayBePendingRemoval(error)) return undefined
    throw error
  }
}
