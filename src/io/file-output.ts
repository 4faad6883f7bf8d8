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
import type { BasicContext } from '../basic-context.ts'
import type { Deadline } from '../deadline.ts'
import { CliError, convertFileErrors, describeFileError, hasErrorCode, toFileFailure } from '../errors.ts'
import { createWriteTimeoutError, type Output } from './output.ts'
import { findOutputTarget } from './paths.ts'
import type { SavedData } from './saved-data.ts'

/**
 * Output to the file of `-o`. A regular file changes only when the answer is complete: until then, parley
 * writes to a temporary file next to it.
 */
export interface FileOutput extends Output {
  /** True for a device or a pipe, from which written bytes cannot be removed. */
  readonly isDirect: boolean
  commit(): Promise<void>
  /**
   * Saves the received part as `FILE.part`, or as `FILE.part-2` and so on if that name is taken. If nothing
   * was written yet, saves `unwritten`. Returns `undefined` for a device or a pipe, and if there is nothing
   * to save. Does not throw. Synchronous, because signal handlers call it.
   */
  savePart(unwritten?: Uint8Array | string): SavedData | undefined
  discard(): void
  /** Note that names the complete file; `undefined` for a device or a pipe. */
  readonly savedNote: string | undefined
}

/**
 * Opens a file, a device or a pipe for output. An existing file of the user keeps its mode. A write to a
 * device or a pipe fails at the deadline. Throws a `CliError` of kind `file` if the file cannot be written.
 */
export async function openFileOutput(
  name: string,
  { host, deadline }: Pick<BasicContext, 'host' | 'deadline'>,
): Promise<FileOutput> {
  const { path: target, stat: existing, isDirect } = findOutputTarget(host, name)
  const openDirect = () =>
    existing?.isFIFO() ? openPipe(target, name) : createWriteStream(target, { flags: 'a' })
  const sink = isDirect
    ? createDirectSink(await convertFileErrors(name, async () => openDirect()), name, deadline)
    : createFileSink(target, name, host.uid)
  return {
    ...sink,
    isTerminal: false,
    isDirect,
    write: (chunk) => convertFileErrors(name, () => sink.write(chunk)),
    async flush() {},
    commit: () => convertFileErrors(name, () => sink.commit()),
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
    savePart(unwritten: Uint8Array | string = '') {
      try {
        if (unwritten.length > 0 && !file) begin().writeSync(unwritten)
        for (let number = 1; file && file.size > 0; number++) {
          const suffix = number === 1 ? '.part' : `.part-${number}`
          const savedName = name + suffix
          if (file.link(target + suffix)) return { outcome: `is saved as ${savedName}`, name: savedName }
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

/** Throws if nobody reads the pipe, because opening the pipe would otherwise block forever. */
async function openPipe(path: string, name: string): Promise<Writable> {
  const { Socket } = await import('node:net')
  try {
    // Opens the pipe synchronously, because a blocked thread of the thread pool would keep the process from
    // ending.
    const fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
    return new Socket({ fd, readable: false, writable: true })
  } catch (error) {
    if (!hasErrorCode(error, 'ENXIO')) throw error
    throw new CliError('file', `${name}: nobody reads this pipe; start its reader first`)
  }
}

function createDirectSink(stream: Writable, name: string, deadline: Deadline): Sink {
  let failure: Error | undefined
  stream.on('error', (error) => {
    failure ??= error
  })
  const finish = (begin: (done: (error?: Error | null) => void) => void) => {
    const work = new Promise<void>((resolve, reject) =>
      begin((error) => (error ? reject(failure ?? error) : resolve())),
    )
    return deadline.race(work, () => createWriteTimeoutError(name))
  }
  return {
    write: (chunk) => finish((done) => stream.write(chunk, done)),
    commit: () => finish((done) => stream.end(done)),
    savePart: () => undefined,
    discard: () => void stream.destroy(),
  }
}

// Node 26 throws if an open `FileHandle` is garbage-collected, for example after a broken answer. So parley
// uses descriptors instead.
const writeTo = promisify(writeFile)

interface FileMode {
  /** Id of the user. A target that this user owns keeps its mode. `undefined` on Windows. */
  uid?: number | undefined
  mode?: number
}

/** A file with a random name next to its target. Methods throw the errors of the file system. */
export class TemporaryFile {
  readonly #path: string
  #file: number

  /**
   * Creates the file exclusively, so it is never a link or the file of another user. Synchronous: an
   * asynchronous call could create the file after a signal handler has cleaned up.
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

  /** Returns `false` if `path` exists already. */
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

  /** Does not throw. If the file cannot be removed, it stays. */
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
 * Errors of `link` on file systems without hard links. parley then copies the file. Windows reports EISDIR on
 * exFAT.
 */
const linkUnsupportedCodes = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EISDIR']

/** Errors on Windows while a virus scanner or an indexer has a file open. A later attempt may succeed. */
const transientCodes = ['EPERM', 'EACCES', 'EBUSY']

const maxRenamePauseMs = 80

/**
 * Writes a temporary file and renames it, so that the target is complete or unchanged. Returns false if
 * `replaces` is false and the target exists. Synchronous, so that no signal interrupts the steps. Throws the
 * errors of the file system.
 */
export function writeFileAtomically(
  target: string,
  content: Uint8Array | string,
  { replaces = true, ...mode }: FileMode & { replaces?: boolean } = {},
): boolean {
  const file = new TemporaryFile(target, mode)
  try {
    file.writeSync(content)
    if (!replaces) return file.link(target)
    file.replace(target)
    return true
  } finally {
    file.remove()
  }
}
