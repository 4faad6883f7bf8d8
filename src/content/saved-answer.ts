import { openSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Context } from '../context.ts'
import { type CliError, describeFileError, OutputClosed } from '../errors.ts'
import {
  addSavedPart,
  type FileOutput,
  openFileOutput,
  type SavedPart,
  writeFileAtomically,
} from '../io/file-output.ts'

/**
 * Saves a paid answer after a failure: next to `file`, its output file, otherwise in the temporary folder.
 * Returns the failure with the name of the saved file. If saving also fails, the returned failure contains the
 * answer itself (images in base64).
 */
export function saveAnswerAfterFailure(
  context: Pick<Context, 'host'>,
  failure: CliError,
  bytes: Uint8Array,
  extension = 'bin',
  file?: Pick<FileOutput, 'savePart'>,
): CliError {
  return addSavedPart(failure, saveNearby(context, bytes, extension, file))
}

/** Destination of an answer in text. */
export interface AnswerDestination {
  /**
   * File of `-o`, or `undefined` for stdout. If a write fails, the caller can still write the rest of the
   * answer, and `commit` throws the failure.
   */
  file: Omit<FileOutput, 'savePart' | 'discard'> | undefined
  /**
   * After a failure, saves the text written to the file, or `content` if no text was written. Saves next to
   * the file or in the temporary folder. Returns `undefined` if there is nothing to save. Does not throw.
   * Synchronous, because signal handlers call it.
   */
  save(content: Uint8Array | string, extension: string): SavedPart | undefined
}

/** `name` is the file of `-o`. Throws a `CliError` of kind `file` if it cannot be written. */
export async function openAnswerDestination(
  context: Context,
  name: string | undefined,
): Promise<AnswerDestination> {
  if (name === undefined) {
    const save: AnswerDestination['save'] = (content, extension) =>
      isEmpty(content) ? undefined : saveNearby(context, content, extension)
    return { file: undefined, save }
  }
  const file = await openFileOutput(name, context)
  const pieces: Buffer[] = []
  let failure: unknown
  const fail = (error: unknown) => {
    failure = error
    file.discard()
  }
  return {
    file: {
      ...file,
      async write(chunk) {
        pieces.push(Buffer.from(chunk as Uint8Array))
        if (!failure) await file.write(chunk).catch(fail)
      },
      async commit() {
        if (!failure) await file.commit().catch(fail)
        if (failure) throw failure
      },
    },
    save(content, extension) {
      const written = pieces.splice(0)
      const isWritten = written.length > 0
      const [whole, kind] = isWritten ? [Buffer.concat(written), 'txt'] : [content, extension]
      const isDelivered = file.isDirect && isWritten && !failure
      return isDelivered || isEmpty(whole) ? file.savePart() : saveNearby(context, whole, kind, file)
    },
  }
}

/** Saves the content next to `file`, its output file, otherwise in the temporary folder. */
function saveNearby(
  { host }: Pick<Context, 'host'>,
  content: Uint8Array | string,
  extension: string,
  file?: Pick<FileOutput, 'savePart'>,
): SavedPart {
  const part = file?.savePart(content)
  return part?.name === undefined ? saveInTemporaryFolder(host, content, extension) : part
}

const isEmpty = (content: Uint8Array | string): boolean =>
  typeof content === 'string' ? content.trim() === '' : content.length === 0

/** Maximum size of an answer in a failure, because `--errors json` prints the failure as one line. */
const maxBytesInFailure = 64 * 1024 * 1024

const createSavedPath = ({ env }: Pick<Context['host'], 'env'>, extension: string): string =>
  join(env.TMPDIR || tmpdir(), `parley-${crypto.randomUUID()}.${extension}`)

/** Saves the content in a new file that only its owner can read. */
function saveInTemporaryFolder(
  host: Pick<Context['host'], 'env'>,
  content: Uint8Array | string,
  extension: string,
): SavedPart {
  const path = createSavedPath(host, extension)
  try {
    writeFileAtomically(path, content, { mode: 0o600 })
    return { outcome: `is saved as ${path}`, name: path }
  } catch (error) {
    const outcome = `could not be saved in ${dirname(path)}: ${describeFileError(error)}`
    return {
      outcome,
      unsaved: content.length > maxBytesInFailure ? undefined : toText(content, extension),
    }
  }
}

function toText(content: Uint8Array | string, extension: string): string {
  if (typeof content === 'string') return content
  const { buffer, byteOffset, length } = content
  return Buffer.from(buffer, byteOffset, length).toString(
    ['json', 'txt'].includes(extension) ? 'utf8' : 'base64',
  )
}

/**
 * Saves paid data that could not be written to its destination. The first write creates the file with mode
 * 0600. Methods do not throw. They are synchronous, because signal handlers call them.
 */
export class FallbackFile {
  readonly #host
  readonly #extension
  /** File descriptor, which stays open until the process ends. */
  #file: number | undefined
  #path = ''
  #problem: string | undefined

  constructor({ host }: Pick<Context, 'host'>, extension: string) {
    this.#host = host
    this.#extension = extension
  }

  write(content: Uint8Array | string): boolean {
    if (this.#problem !== undefined) return false
    try {
      this.#file ??= this.#open()
      writeFileSync(this.#file, content)
      return true
    } catch (error) {
      this.#problem = `${dirname(this.#path)}: ${describeFileError(error)}`
      return false
    }
  }

  /** Path and outcome of the saved part. `undefined` before the first write. */
  get part(): SavedPart | undefined {
    const failed = `could not be saved in ${this.#problem}`
    if (this.#file === undefined) return this.#problem === undefined ? undefined : { outcome: failed }
    const rest = this.#problem === undefined ? '' : `; the rest ${failed}`
    return { outcome: `is saved as ${this.#path}${rest}`, name: this.#path }
  }

  #open(): number {
    this.#path = createSavedPath(this.#host, this.#extension)
    return openSync(this.#path, 'wx', 0o600)
  }
}

/**
 * Writes an answer to an output. Stores the first failure instead of throwing it, so that parley still reads the
 * rest of a paid answer. Then saves the kept chunks that the output did not accept.
 */
export class AnswerWriter {
  failure: Error | undefined
  readonly #saved: FallbackFile
  #writtenBytes = 0
  #kept: (Uint8Array | string)[] = []

  constructor(context: Pick<Context, 'host'>, extension: string) {
    this.#saved = new FallbackFile(context, extension)
  }

  /** Keeps a chunk until `run` has written it. */
  keep(chunk: Uint8Array | string): void {
    if (this.failure) this.#saved.write(chunk)
    else this.#kept.push(chunk)
  }

  /** Throws only `OutputClosed`. */
  async run(write: () => Promise<unknown>): Promise<void> {
    if (this.failure) return
    try {
      await write()
      for (const chunk of this.#kept.splice(0)) this.#writtenBytes += Buffer.byteLength(chunk)
    } catch (error) {
      if (error instanceof OutputClosed) throw error
      this.failure = error as Error
      for (const chunk of this.#kept.splice(0)) this.#saved.write(chunk)
    }
  }

  get part(): SavedPart | undefined {
    const { part } = this.#saved
    if (!part || this.#writtenBytes === 0) return part
    return { ...part, outcome: `from byte ${this.#writtenBytes} on ${part.outcome}` }
  }
}
