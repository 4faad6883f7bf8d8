import {
  closeSync,
  constants,
  copyFileSync,
  fchmodSync,
  fstatSync,
  linkSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  writeFile,
  writeFileSync,
} from 'node:fs'
import { platform } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Crowd } from '../crowd.ts'
import { modeToKeep } from './paths.ts'

// Not by a `FileHandle`: Node 26 throws if one is collected that a broken answer left open.
const writeTo = promisify(writeFile)

/** A file under a name of its own, beside the one that it becomes. Methods throw what the file system throws. */
export class TemporaryFile {
  readonly #path: string
  #file: number | undefined

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
    return fstatSync(this.#opened).size
  }

  write(chunk: Uint8Array | string): Promise<void> {
    return writeTo(this.#opened, chunk)
  }

  /** The same, synchronous, for a signal. */
  writeNow(content: Uint8Array | string): void {
    writeFileSync(this.#opened, content)
  }

  /** Renames it to the target, replacing what is there; tries again after a failure that may pass. Synchronous. */
  replace(target: string): void {
    this.#close()
    for (let pause = 10; ; pause *= 2) {
      try {
        renameSync(this.#path, target)
        return
      } catch (error) {
        const mayPass =
          platform() === 'win32' && passing.includes((error as NodeJS.ErrnoException).code ?? '')
        if (!mayPass || pause > longest) throw error
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
        if (!withoutLinks.includes((error as NodeJS.ErrnoException).code ?? '')) throw error
        copyFileSync(this.#path, path, constants.COPYFILE_EXCL)
      }
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
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

  get #opened(): number {
    if (this.#file === undefined) throw new Error('the file is closed')
    return this.#file
  }

  #close(): void {
    const opened = this.#file
    this.#file = undefined
    if (opened !== undefined) closeSync(opened)
  }
}

/** The errors of a file system without links; EISDIR is what Windows' answer for exFAT becomes. */
const withoutLinks = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EISDIR']

/** What Windows says while a virus scanner or an indexer has one of the two files open. Elsewhere these do not pass. */
const passing = ['EPERM', 'EACCES', 'EBUSY']

/** The last of the waits, which double from 10. Milliseconds. */
const longest = 80

/** A new file gets `mode`, by default that of any new file; one of the user's own, whose number is `uid`, keeps its mode. */
interface Rights {
  mode?: number
  uid?: number | undefined
}

/**
 * Writes a file whole or not at all, over whatever is there: as a temporary file beside the target, which is then renamed.
 * Synchronous, so that no signal comes between. Throws what the file system throws.
 */
export function writeWhole(target: string, content: Uint8Array | string, { mode, uid }: Rights = {}): void {
  const file = new TemporaryFile(target, keptMode(target, uid) ?? mode)
  try {
    file.writeNow(content)
    file.replace(target)
  } finally {
    file.remove()
  }
}

const keptMode = (target: string, uid: number | undefined) =>
  uid === undefined ? undefined : modeToKeep(lstatSync(target, { throwIfNoEntry: false }), uid)

interface LargeFile {
  bytes: Uint8Array
  replaces: boolean
  uid: number | undefined
  /** Gets what removes the unfinished file, for a signal. */
  cleanups: Crowd<() => void>
}

/** The same for what takes long to write. Returns `false` if the target exists and is not replaced. */
export async function createFile(
  target: string,
  { bytes, replaces, uid, cleanups }: LargeFile,
): Promise<boolean> {
  const file = new TemporaryFile(target, replaces ? keptMode(target, uid) : undefined)
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
