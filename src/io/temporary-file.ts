import {
  closeSync,
  constants,
  copyFileSync,
  fchmodSync,
  linkSync,
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
import type { ActiveSet } from '../active-set.ts'
import { hasCode } from '../errors.ts'
import { findModeToKeep } from './paths.ts'

// Not by a `FileHandle`: Node 26 throws if one is collected that a broken answer left open.
const writeTo = promisify(writeFile)

/** A file under a name of its own, beside the one that it becomes. Methods throw what the file system throws. */
export class TemporaryFile {
  readonly #path: string
  #file: number

  /**
   * Creates it exclusively, so that it is never another's file or a link, and synchronously: a file created in the
   * background could appear after a signal's cleanup. Without `mode` it has that of any new file.
   */
  constructor(target: string, mode?: number) {
    this.#path = join(dirname(target), `.parley-${crypto.randomUUID()}.part`)
    this.#file = openSync(this.#path, 'wx', mode)
    try {
      if (mode !== undefined) fchmodSync(this.#file, mode)
    } catch (error) {
      this.remove()
      throw error
    }
  }

  /** How many bytes have been written. */
  get size(): number {
    return statSync(this.#path).size
  }

  write(chunk: Uint8Array | string): Promise<void> {
    return writeTo(this.#file, chunk)
  }

  /** The same, synchronous, for a signal. */
  writeSync(content: Uint8Array | string): void {
    writeFileSync(this.#file, content)
  }

  /** Renames it to the target, replacing what is there; tries again after a failure that may pass. Synchronous. */
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

  /** Gives it a second name. Returns `false` if something has that name: nothing is ever replaced. Synchronous. */
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

  /** Removes it under its own name. Does not throw: a file that cannot be removed is left. */
  readonly remove = (): void => {
    for (const step of [() => this.#close(), () => rmSync(this.#path, { force: true })]) {
      try {
        step()
      } catch {
        // This failure must not hide the one before it.
      }
    }
  }

  #close(): void {
    const opened = this.#file
    this.#file = closed
    if (opened !== closed) closeSync(opened)
  }
}

/** The system takes no file by this number. */
const closed = -1

/** The errors of a file system without links; EISDIR is what Windows' answer for exFAT becomes. */
const linkUnsupportedCodes = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EISDIR']

/** What Windows says while a virus scanner or an indexer has one of the two files open. Elsewhere these do not pass. */
const transientCodes = ['EPERM', 'EACCES', 'EBUSY']

/** The last of the waits, which double from 10. Milliseconds. */
const maxRenamePauseMs = 80

/**
 * Writes a file whole or not at all, over whatever is there: as a temporary file beside the target, which is then renamed.
 * Synchronous, so that no signal comes between. A new file gets `mode`, by default that of any new file; one of the user's
 * own, whose number is `uid`, keeps its mode. Throws what the file system throws.
 */
export function writeFileAtomically(
  target: string,
  content: Uint8Array | string,
  { mode, uid }: { mode?: number; uid?: number | undefined } = {},
): void {
  const file = new TemporaryFile(target, findModeToKeep(target, uid) ?? mode)
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
  /** Gets what removes the unfinished file, for a signal. */
  cleanups: ActiveSet<() => void>
}

/** The same for what takes long to write. Returns `false` if the target exists and is not replaced. */
export async function createFileAtomically(
  target: string,
  { bytes, replaces, uid, cleanups }: LargeFile,
): Promise<boolean> {
  const file = new TemporaryFile(target, replaces ? findModeToKeep(target, uid) : undefined)
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
