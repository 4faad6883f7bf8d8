import {
  closeSync,
  constants,
  copyFileSync,
  fchmodSync,
  linkSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFile,
  writeFileSync,
} from 'node:fs'
import { platform } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { hasCode } from '../errors.ts'
import type { ShortLivedSet } from '../short-lived-set.ts'

// Node 26 throws if a `FileHandle` is garbage-collected while it is open, which may happen after a broken
// answer. So this file uses descriptors.
const writeTo = promisify(writeFile)

interface FileMode {
  /** A target that this user owns keeps its mode. `undefined` on Windows. */
  uid?: number | undefined
  /** Mode of a new file. If omitted, the file gets the default mode. */
  mode?: number
}

/** Has a random name next to its target. Methods throw the errors of the file system. */
export class TemporaryFile {
  readonly #path: string
  #file: number

  /**
   * Creates the file exclusively, so it is never a link or the file of another user. Synchronous, because a
   * file created in the background could appear after a signal's cleanup.
   */
  constructor(target: string, { uid, mode: newMode }: FileMode = {}) {
    const mode = findModeToKeep(target, uid) ?? newMode
    this.#path = join(dirname(target), `.parley-${crypto.randomUUID()}.part`)
    this.#file = openSync(this.#path, 'wx', mode)
    try {
      if (mode !== undefined) fchmodSync(this.#file, mode)
    } catch (error) {
      this.remove()
      throw error
    }
  }

  get size(): number {
    return statSync(this.#path).size
  }

  write(chunk: Uint8Array | string): Promise<void> {
    return writeTo(this.#file, chunk)
  }

  writeSync(content: Uint8Array | string): void {
    writeFileSync(this.#file, content)
  }

  /** Retries transient errors. Synchronous. */
  replace(target: string): void {
    this.#close()
    for (let pause = 10; ; pause *= 2) {
      try {
        renameSync(this.#path, target)
        return
      } catch (error) {
        const mayPass = platform() === 'win32' && hasCode(error, ...transientCodes)
        if (!mayPass || pause > maxRenamePauseMs) throw error
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pause)
      }
    }
  }

  /** Returns `false` if the second name exists; nothing is replaced. Synchronous. */
  link(path: string): boolean {
    try {
      try {
        linkSync(this.#path, path)
      } catch (error) {
        if (!hasCode(error, ...linkUnsupportedCodes)) throw error
        copyFileSync(this.#path, path, constants.COPYFILE_EXCL)
      }
      return true
    } catch (error) {
      if (hasCode(error, 'EEXIST')) return false
      throw error
    }
  }

  /** Does not throw; a file that cannot be removed stays. */
  readonly remove = (): void => {
    for (const step of [() => this.#close(), () => rmSync(this.#path, { force: true })]) {
      try {
        step()
      } catch {
        // A failed step must not hide an earlier failure, and the next step still runs.
      }
    }
  }

  #close(): void {
    const opened = this.#file
    this.#file = closed
    if (opened !== closed) closeSync(opened)
  }
}

const closed = -1

/** Returns the mode without set-uid, set-gid and sticky bits. */
function findModeToKeep(path: string, uid: number | undefined): number | undefined {
  const stat = uid === undefined ? undefined : lstatSync(path, { throwIfNoEntry: false })
  return stat && stat.uid === uid ? stat.mode & 0o777 : undefined
}

/** File systems without links. Node reports EISDIR for Windows' error on exFAT. */
const linkUnsupportedCodes = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EISDIR']

/** Windows, while a virus scanner or an indexer has one of the files open. */
const transientCodes = ['EPERM', 'EACCES', 'EBUSY']

const maxRenamePauseMs = 80

/**
 * Writes to a temporary file next to the target, which is then renamed. Synchronous, so that no signal
 * interrupts the steps. Throws the errors of the file system.
 */
export function writeFileAtomically(target: string, content: Uint8Array | string, mode: FileMode = {}): void {
  const file = new TemporaryFile(target, mode)
  try {
    file.writeSync(content)
    file.replace(target)
  } finally {
    file.remove()
  }
}

interface LargeFile {
  bytes: Uint8Array
  replaces: boolean
  uid: number | undefined
  /** While the file is incomplete, the set has a function that removes it. */
  cleanups: ShortLivedSet<() => void>
}

/** For a large file, asynchronously. Returns `false` if the target exists and must not be replaced. */
export async function createFileAtomically(
  target: string,
  { bytes, replaces, uid, cleanups }: LargeFile,
): Promise<boolean> {
  const file = new TemporaryFile(target, { uid })
  cleanups.add(file.remove)
  try {
    await file.write(bytes)
    if (!replaces) return file.link(target)
    file.replace(target)
    return true
  } finally {
    file.remove()
    cleanups.delete(file.remove)
  }
}
