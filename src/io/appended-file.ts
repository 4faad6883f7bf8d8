import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  openSync,
  read,
  readSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { promisify } from 'node:util'
import { asFileError, CliError, hasCode } from '../errors.ts'

const newline = 0x0a

interface AppendedFileOptions {
  path: string
  /** As messages call it. */
  name: string
  /** A file that exists is refused with this message. */
  refusal?: string | undefined
}

/**
 * A regular file that a run adds to: results, an audit. The next run decides by it what not to do again. So a run stops if
 * its file was removed, replaced or made shorter. Methods throw a `CliError` of kind `file`.
 */
export class AppendedFile {
  readonly #path: string
  readonly #name: string
  readonly #file: number
  /** How long the file was when it was last looked at. */
  #size = 0

  /** Makes the file if there is none, with mode 0600. */
  constructor({ path, name, refusal }: AppendedFileOptions) {
    this.#path = path
    this.#name = name
    // The last two are not there on every system. A FIFO would be waited for.
    const { O_RDWR, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants
    const flags = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK
    const failure = (why: string) => new CliError('file', `${name}: ${why}`)
    try {
      this.#file = openSync(path, refusal === undefined ? flags : flags | O_EXCL, 0o600)
    } catch (error) {
      if (hasCode(error, 'ELOOP')) throw failure('it is a link')
      throw refusal !== undefined && hasCode(error, 'EEXIST') ? failure(refusal) : asFileError(error, name)
    }
    const stat = fstatSync(this.#file)
    if (stat.isFile()) return
    closeSync(this.#file)
    // Windows opens a folder, too.
    throw failure(stat.isDirectory() ? 'it is a folder' : 'it is not a regular file')
  }

  get size(): number {
    return this.#size
  }

  /**
   * Its bytes from the beginning; what was added by then counts as known. Not by a stream: one that is left early closes the
   * file, and maybe so late that the number is that of another file.
   */
  async *read(): AsyncGenerator<Uint8Array> {
    this.#size = fstatSync(this.#file).size
    for (let at = 0; ; ) {
      const piece = Buffer.allocUnsafe(readSizeBytes)
      const { bytesRead } = await readPiece(this.#file, piece, 0, readSizeBytes, at)
      if (bytesRead === 0) return
      at += bytesRead
      yield piece.subarray(0, bytesRead)
    }
  }

  /** How the file was changed under its name; `undefined` if others have added to it at most. */
  findChange(): string | undefined {
    return this.#attempt(() => {
      const named = lstatSync(this.#path, { bigint: true, throwIfNoEntry: false })
      if (!named) return 'removed'
      const { dev, ino } = fstatSync(this.#file, { bigint: true })
      if (named.ino !== ino || named.dev !== dev) return 'replaced'
      return named.size < this.#size ? 'made shorter' : undefined
    })
  }

  requireUnchanged(): void {
    const change = this.findChange()
    if (change !== undefined)
      throw new CliError(
        'file',
        `${this.#name}: it was ${change} while this run wrote it: put it back, or what was done may be done again`,
      )
  }

  /** What was written of a text that does not fit stays. */
  append(text: string): void {
    this.requireUnchanged()
    this.#attempt(() => {
      writeFileSync(this.#file, text)
      this.#size = fstatSync(this.#file).size
    })
  }

  sync(): void {
    this.#attempt(() => fsyncSync(this.#file))
  }

  /** Gives a last line that was cut off its end. */
  completeLastLine(): void {
    const last = Buffer.alloc(1)
    const length = this.#attempt(() => this.#size && readSync(this.#file, last, 0, 1, this.#size - 1))
    if (length > 0 && last[0] !== newline) this.append('\n')
  }

  /** Takes it from the eyes of others. Windows has no such modes. */
  restrictToOwner(): void {
    if (!constants.O_NOFOLLOW) return
    this.#attempt(() => {
      if ((fstatSync(this.#file).mode & 0o077) !== 0) fchmodSync(this.#file, 0o600)
    })
  }

  truncate(size: number): void {
    this.#attempt(() => {
      try {
        ftruncateSync(this.#file, size)
      } catch (error) {
        // Windows refuses it for a file that was opened to be added to.
        if (!hasCode(error, 'EPERM')) throw error
        truncateSync(this.#path, size)
      }
      this.#size = size
    })
  }

  close(): void {
    closeSync(this.#file)
  }

  #attempt<T>(act: () => T): T {
    try {
      return act()
    } catch (error) {
      throw asFileError(error, this.#name)
    }
  }
}

const readPiece = promisify(read)

/** Bytes. */
const readSizeBytes = 256 * 1024
