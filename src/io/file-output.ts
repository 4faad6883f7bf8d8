import {
  closeSync,
  constants,
  copyFileSync,
  createWriteStream,
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
import type { Writable } from 'node:stream'
import { promisify } from 'node:util'
import type { Deadline } from '../deadline.ts'
import { CliError, describeFileError, hasErrorCode, joinSavedFiles, toFileFailure } from '../errors.ts'
import type { ShortLivedSet } from '../short-lived-set.ts'
import { toOneLine } from './escape.ts'
import { createWriteTimeoutError, type Output } from './output.ts'
import { findOutputTarget, findOwnDescriptor, type TargetHost } from './paths.ts'

export interface SavedPart {
  /** Ends a sentence, such as `is saved as answer.txt.part`. */
  outcome: string
  name?: string
  /** Data that could not be saved; base64 for an image. */
  unsaved?: string | undefined
}

/**
 * Receives the answer. A regular file changes only when the answer is complete: until then, parley writes
 * to a temporary file next to it.
 */
export interface FileOutput extends Output {
  /** True for a device, a pipe or an open descriptor, from which written bytes cannot be removed. */
  readonly isDirect: boolean
  commit(): Promise<void>
  /**
   * Saves the received part as `FILE.part` or under the next free name. If nothing was written yet, saves
   * `held`, which is the text of the answer or its unreadable body. Returns `undefined` if nothing was
   * received. Does not throw. Synchronous, because signal handlers call it.
   */
  savePart(held?: Uint8Array | string): SavedPart | undefined
  discard(): void
  /** Note that names the complete file; `undefined` for a device or a pipe. */
  readonly savedNote: string | undefined
}

/**
 * An existing file of the user keeps its mode. Writing to a device or a pipe takes at most until the
 * deadline. Throws a `CliError` of kind `file` if the file cannot be written.
 */
export async function openFileOutput(
  name: string,
  { host, deadline }: { host: TargetHost; deadline: Deadline },
): Promise<FileOutput> {
  const { path: target, stat: existing, isDirect } = findOutputTarget(host, name)
  const sink = isDirect
    ? createDirectSink(existing?.isFIFO() ? await openPipe(target, name) : openDevice(target), name, deadline)
    : createFileSink(target, name, host.uid)
  const wrapped = (work: Promise<void>) =>
    work.catch((error) => {
      throw toFileFailure(error, name)
    })
  return {
    ...sink,
    isTerminal: false,
    isDirect,
    write: (chunk) => wrapped(sink.write(chunk)),
    async flush() {},
    commit: () => wrapped(sink.commit()),
    savedNote: isDirect ? undefined : `the answer is in ${name}`,
  }
}

type Sink = Pick<FileOutput, 'write' | 'commit' | 'savePart' | 'discard'>

function createFileSink(target: string, name: string, uid: number | undefined): Sink {
  // A folder such as /proc accepts no file, even if its mode permits writing. So parley creates a test file.
  try {
    new TemporaryFile(target, { uid }).remove()
  } catch (error) {
    throw toFileFailure(error, name)
  }
  let file: TemporaryFile | undefined
  const begin = () => {
    file ??= new TemporaryFile(target, { uid })
    return file
  }
  return {
    async write(chunk) {
      await begin().write(chunk)
    },
    async commit() {
      begin().replace(target)
      file = undefined
    },
    savePart(held: Uint8Array | string = '') {
      try {
        if (held.length > 0 && !file) begin().writeSync(held)
        for (let number = 1; file && file.size > 0; number++) {
          const suffix = number === 1 ? '.part' : `.part-${number}`
          const kept = name + suffix
          if (file.link(target + suffix)) return { outcome: `is saved as ${kept}`, name: kept }
        }
        return undefined
      } catch (error) {
        return { outcome: `could not be saved as ${name}.part: ${describeFileError(error)}` }
      } finally {
        this.discard()
      }
    },
    discard() {
      file?.remove()
      file = undefined
    },
  }
}

/** Throws if nobody reads the pipe, because opening it would then block forever. */
async function openPipe(path: string, name: string): Promise<Writable> {
  const { Socket } = await import('node:net')
  try {
    // Opening in the thread pool could block a thread, which would keep the process from ending.
    const fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
    return new Socket({ fd, readable: false, writable: true })
  } catch (error) {
    const isUnread = hasErrorCode(error, 'ENXIO')
    throw new CliError('file', `${name}: ${isUnread ? 'nobody reads this pipe' : describeFileError(error)}`)
  }
}

/**
 * Uses an open descriptor of this process directly. A second descriptor would have another offset, so
 * parley and other writers would overwrite each other's text.
 */
function openDevice(path: string): Writable {
  const fd = findOwnDescriptor(path)
  return createWriteStream(path, fd === undefined ? { flags: 'a' } : { fd, autoClose: false })
}

function createDirectSink(stream: Writable, name: string, deadline: Deadline): Sink {
  let hasWritten = false
  let failure: Error | undefined
  stream.on('error', (error) => {
    failure ??= error
  })
  const finish = (begin: (done: (error?: Error | null) => void) => void) => {
    hasWritten = true
    const work = new Promise<void>((resolve, reject) =>
      begin((error) => (error ? reject(failure ?? error) : resolve())),
    )
    return deadline.race(work, () => createWriteTimeoutError(name))
  }
  return {
    write: (chunk) => finish((done) => stream.write(chunk, done)),
    commit: () => finish((done) => stream.end(done)),
    savePart: () => (hasWritten && !stream.writableFinished ? { outcome: 'is not saved' } : undefined),
    discard: () => void stream.destroy(),
  }
}

export type ReceivedPartSaver = Pick<FileOutput, 'savePart'>

export const createSaveHooks = (...savers: (ReceivedPartSaver | undefined)[]) => ({
  save: () =>
    savers
      .flatMap((saver) => saver?.savePart() ?? [])
      .map((part) => ({ text: describeSavedPart(part), file: part.name })),
  explain: (failure: CliError) =>
    savers.reduce((explained, saver) => addSavedPart(explained, saver?.savePart()), failure),
})

const describeSavedPart = ({ outcome }: SavedPart): string => toOneLine(`the received data ${outcome}`, 2000)

export const addSavedPart = (failure: CliError, part: SavedPart | undefined): CliError =>
  part
    ? new CliError(failure.kind, `${failure.message}; ${describeSavedPart(part)}`, {
        ...failure.details,
        kept: joinSavedFiles(failure.details.kept, part.name),
        answer: failure.details.answer ?? part.unsaved,
      })
    : failure

// Node 26 throws if a `FileHandle` is garbage-collected while it is open, which may happen after a broken
// answer. So this file uses descriptors.
const writeTo = promisify(writeFile)

interface FileMode {
  /** A target that this user owns keeps its mode. `undefined` on Windows. */
  uid?: number | undefined
  /** Default: the mode that the system gives to new files. */
  mode?: number
}

/** A file with a random name next to its target. Methods throw the errors of the file system. */
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

  /** Synchronous. On Windows, retries transient errors. */
  replace(target: string): void {
    this.#close()
    for (let pause = 10; ; pause *= 2) {
      try {
        renameSync(this.#path, target)
        return
      } catch (error) {
        const mayPass = platform() === 'win32' && hasErrorCode(error, ...transientCodes)
        if (!mayPass || pause > maxRenamePauseMs) throw error
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pause)
      }
    }
  }

  /** Gives the file a second name. Returns `false` if `path` exists, and never replaces it. Synchronous. */
  link(path: string): boolean {
    try {
      try {
        linkSync(this.#path, path)
      } catch (error) {
        if (!hasErrorCode(error, ...linkUnsupportedCodes)) throw error
        copyFileSync(this.#path, path, constants.COPYFILE_EXCL)
      }
      return true
    } catch (error) {
      if (hasErrorCode(error, 'EEXIST')) return false
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

/**
 * Errors of file systems without hard links, on which parley copies the file. Node reports EISDIR for
 * Windows' error on exFAT.
 */
const linkUnsupportedCodes = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EISDIR']

/** Errors on Windows while a virus scanner or an indexer has a file open. A later attempt may succeed. */
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

/** Writes a large file asynchronously. Returns `false` if the target exists and must not be replaced. */
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
