import {
  closeSync,
  constants,
  copyFileSync,
  fchmodSync,
  promises as fs,
  linkSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  write,
} from 'node:fs'
import { platform } from 'node:os'
import { dirname, join } from 'node:path'
import type { Crowd } from '../crowd.ts'
import { writeAll } from './open-file.ts'
import { isLink, modeToKeep } from './paths.ts'

interface TemporaryFileOptions {
  mode?: number
  /** The mode is set without the process's umask. */
  isExact?: boolean
}

/** A file under a name of its own, beside the one that it becomes. Methods throw what the file system throws. */
export class TemporaryFile {
  readonly #path: string
  #file: number | undefined
  /** How many bytes have been written. */
  size = 0

  /**
   * Creates it exclusively, so that it is never another's file or a link, and synchronously: a file created in the
   * background could appear after a signal's cleanup.
   */
  constructor(target: string, { mode = 0o666, isExact = false }: TemporaryFileOptions = {}) {
    this.#path = join(dirname(target), `.parley-${crypto.randomUUID()}.part`)
    this.#file = openSync(this.#path, 'wx', mode)
    try {
      if (isExact) fchmodSync(this.#file, mode & 0o7777)
    } catch (error) {
      this.remove()
      throw error
    }
  }

  async write(chunk: Uint8Array | string): Promise<void> {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    for (let rest = bytes; rest.length > 0; ) {
      const written = await writeSome(this.#opened, rest)
      this.size += written
      rest = rest.subarray(written)
    }
  }

  /** The same, synchronous, for a signal. */
  writeNow(text: string): void {
    const bytes = Buffer.from(text)
    writeAll(this.#opened, bytes)
    this.size += bytes.length
  }

  /** Renames it to the target, replacing what is there. Synchronous. */
  replace(target: string): void {
    this.#close()
    renameFile(this.#path, target)
  }

  /** Gives it a second name. Returns `false` if something has that name. Synchronous. */
  link(path: string): boolean {
    return linkInto(this.#path, path)
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

const writeSome = (file: number, bytes: Uint8Array): Promise<number> =>
  new Promise((resolve, reject) =>
    write(file, bytes, (error, written) => (error ? reject(error) : resolve(written))),
  )

/** Neither a link nor, if there are no links, a copy ever replaces something that exists. */
function linkInto(path: string, other: string): boolean {
  try {
    try {
      linkSync(path, other)
    } catch (error) {
      if (!withoutLinks.includes((error as NodeJS.ErrnoException).code ?? '')) throw error
      copyFileSync(path, other, constants.COPYFILE_EXCL)
    }
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** The errors of a file system without links; EISDIR is what Windows' answer for exFAT becomes. */
const withoutLinks = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EISDIR']

export interface NewFileOptions {
  /** Replace a regular file. */
  replaces?: boolean
  /** Of a new file, less the process's umask; by default that of any new file. */
  mode?: number
  /** The user's number: a file of the user's own keeps its mode. */
  uid?: number | undefined
  /** Gets what removes the unfinished file, for a signal. */
  cleanups: Crowd<() => void>
}

/**
 * Writes a file whole or not at all: as a temporary file beside the target, which is then renamed or linked. Returns
 * `false` if the target exists and is not replaced. Throws what the file system throws.
 */
export async function createFile(
  target: string,
  bytes: Uint8Array,
  { replaces = false, mode, uid, cleanups }: NewFileOptions,
): Promise<boolean> {
  const kept = replaces ? modeToKeep(lstatSync(target, { throwIfNoEntry: false }), uid) : undefined
  const file = new TemporaryFile(target, { mode: kept ?? mode, isExact: kept !== undefined })
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

/** The same with a text, over whatever is there: synchronous, so that a signal can call it. */
export function replaceFileNow(target: string, text: string, mode?: number): void {
  const file = new TemporaryFile(target, { mode })
  try {
    file.writeNow(text)
    file.replace(target)
  } catch (error) {
    file.remove()
    throw error
  }
}

/**
 * Says in words why no new file can be made, or returns `undefined`. A link or a special file is always in the way, a
 * regular file unless it may be replaced. Throws what the file system throws.
 */
export async function findObstacle(path: string, replaces: boolean): Promise<string | undefined> {
  const found = await fs.lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (!found) return undefined
  if (found.isFile()) return replaces ? undefined : 'it already exists (--force replaces it)'
  if (found.isSymbolicLink()) return isLink
  return found.isDirectory()
    ? 'it is a folder (with a / at its end, images go into it)'
    : 'it is not a regular file'
}

/** What Windows says while a virus scanner or an indexer has one of the two files open. Elsewhere these do not pass. */
const passing = ['EPERM', 'EACCES', 'EBUSY']

/** The last of the waits, which double from 10. Milliseconds. */
const longest = 80

/** Renames a file, over another; tries again after a failure that may pass. Throws what the file system throws. */
function renameFile(path: string, target: string): void {
  for (let pause = 10; ; pause *= 2) {
    try {
      renameSync(path, target)
      return
    } catch (error) {
      const mayPass = platform() === 'win32' && passing.includes((error as NodeJS.ErrnoException).code ?? '')
      if (!mayPass || pause > longest) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pause)
    }
  }
}
