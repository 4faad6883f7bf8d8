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
  writeNow(text: string): void {
    writeFileSync(this.#opened, text)
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
  /** Of a new file; by default that of any new file. */
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
  const file = new TemporaryFile(target, kept ?? mode)
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
  const file = new TemporaryFile(target, mode)
  try {
    file.writeNow(text)
    file.replace(target)
  } catch (error) {
    file.remove()
    throw error
  }
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
