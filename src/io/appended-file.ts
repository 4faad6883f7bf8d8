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
import { CliError, hasErrorCode, toFileFailure } from '../errors.ts'
import { findFileKindProblem } from './paths.ts'

const newline = 0x0a

/**
 * A regular file to which a run appends, such as results or an audit. The next run reads the file to skip
 * finished work. So a run stops if another program removed, replaced or shortened its file. Methods throw a
 * `CliError` of kind `file`.
 */
export class AppendedFile {
  readonly #path: string
  readonly #name: string
  readonly #file: number
  #size = 0

  /** `refusal`: reason to refuse an existing file. If omitted, the run appends to the file. */
  constructor(path: string, name: string, refusal?: string) {
    this.#path = path
    this.#name = name
    // Windows has neither O_NOFOLLOW nor O_NONBLOCK. Without O_NONBLOCK, opening a FIFO would block.
    const { O_RDWR, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants
    const flags = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK
    const failure = (why: string) => new CliError('file', `${name}: ${why}`)
    try {
      this.#file = openSync(path, refusal === undefined ? flags : flags | O_EXCL, 0o600)
    } catch (error) {
      if (!hasErrorCode(error, 'ELOOP', 'EEXIST')) throw toFileFailure(error, name)
      const found = this.#attempt(() => lstatSync(path, { throwIfNoEntry: false }))
      const problem = findFileKindProblem(found) ?? refusal
      throw problem === undefined ? toFileFailure(error, name) : failure(problem)
    }
    // Windows opens a folder without an error, so parley checks the kind of the opened file.
    const problem = findFileKindProblem(fstatSync(this.#file))
    if (problem === undefined) return
    closeSync(this.#file)
    throw failure(problem)
  }

  get size(): number {
    return this.#size
  }

  /**
   * Yields the content, then updates `size`. Does not use a stream: an abandoned stream closes its descriptor
   * late, when the number of the descriptor may belong to another file.
   */
  async *read(): AsyncGenerator<Uint8Array> {
    let at = 0
    for (;;) {
      const piece = Buffer.allocUnsafe(readSizeBytes)
      const { bytesRead } = await readPiece(this.#file, piece, 0, readSizeBytes, at)
      if (bytesRead === 0) break
      at += bytesRead
      yield piece.subarray(0, bytesRead)
    }
    this.#size = at
  }

  /**
   * Returns how another program changed the file, such as `replaced`. Returns `undefined` if other programs
   * did not change the file, or only appended to it.
   */
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
        `${this.#name}: it was ${change} while this run wrote it: restore the file, or finished work may be repeated`,
      )
  }

  /** If the disk is full, the file keeps a part of `content`, so its last line may be incomplete. */
  append(content: Uint8Array | string): void {
    this.requireUnchanged()
    this.#attempt(() => {
      writeFileSync(this.#file, content)
      this.#size = fstatSync(this.#file).size
    })
  }

  sync(): void {
    this.#attempt(() => fsyncSync(this.#file))
  }

  /**
   * Removes the incomplete last line at this offset. Without an offset, or if another program has changed the
   * file since `read`, adds a missing line break instead.
   */
  endLastLine(incompleteLineOffset?: number): void {
    const isUnchanged = this.#attempt(() => fstatSync(this.#file).size === this.#size)
    const last = Buffer.alloc(1)
    const length = this.#attempt(() => this.#size && readSync(this.#file, last, 0, 1, this.#size - 1))
    if (incompleteLineOffset !== undefined && isUnchanged) this.truncate(incompleteLineOffset)
    else if (length > 0 && last[0] !== newline) this.append('\n')
  }

  /** Has no effect on Windows, which has no file modes. */
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
        // Windows cannot truncate a file that is open for appending, so the file is opened again.
        if (!hasErrorCode(error, 'EPERM')) throw error
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
      throw toFileFailure(error, this.#name)
    }
  }
}

const readPiece = promisify(read)

const readSizeBytes = 256 * 1024
