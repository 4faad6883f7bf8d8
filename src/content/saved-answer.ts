import { openSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Context } from '../context.ts'
import { type CliError, describeFileError, OutputClosed } from '../errors.ts'
import {
  addSavedPartToFailure,
  type FileOutput,
  openFileOutput,
  type SavedPart,
  writeFileAtomically,
} from '../io/file-output.ts'

/**
 * Saves a paid answer next to its output file `file`. Without a file, or if saving there fails, saves the
 * answer in the temporary folder. The returned failure names the saved file. If the answer cannot be saved,
 * the failure contains the answer itself (an image in base64).
 */
export function saveAnswerAfterFailure(
  context: Pick<Context, 'host'>,
  failure: CliError,
  bytes: Uint8Array,
  extension = 'bin',
  file?: Pick<FileOutput, 'savePart'>,
): CliError {
  return addSavedPartToFailure(failure, saveNearby(context, bytes, extension, file))
}

export interface AnswerDestination {
  /**
   * File of `-o`, or `undefined` for stdout. After a failed write, `write` only collects the text, so that
   * the caller can read the rest of the answer. `commit` then throws the failure.
   */
  file: Omit<FileOutput, 'savePart' | 'discard'> | undefined
  /**
   * Saves the text that was written to the file, or `content` if no text was written. Returns `undefined` if
   * both are empty. Does not throw. Synchronous, because signal handlers call it.
   */
  save(content: Uint8Array | string, extension: string): SavedPart | undefined
}

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
 * A file in the temporary folder for paid data that could not be written to its destination. The first
 * write creates the file. Methods do not throw. They are synchronous, because signal handlers call them.
 */
export class FallbackFile {
  readonly #host
  readonly #extension
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

  /** `undefined` before the first write. */
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
 * Writes an answer to an output. After a failed write, parley still reads the rest of a paid answer, so the
 * failure is stored and not thrown. The chunks that the output did not accept are saved.
 */
export class AnswerWriter {
  failure: Error | undefined
  readonly #saved: FallbackFile
  #writtenBytes = 0
  #queued: (Uint8Array | string)[] = []

  constructor(context: Pick<Context, 'host'>, extension: string) {
    this.#saved = new FallbackFile(context, extension)
  }

  /** Stores a chunk until `attempt` has written it. After a failed write, saves the chunk at once. */
  queue(chunk: Uint8Array | string): void {
    if (this.failure) this.#saved.write(chunk)
    else this.#queued.push(chunk)
  }

  /** Throws only `OutputClosed`. */
  async attempt(write: () => Promise<unknown>): Promise<void> {
    if (this.failure) return
    try {
      await write()
      for (const chunk of this.#queued.splice(0)) this.#writtenBytes += Buffer.byteLength(chunk)
    } catch (error) {
      if (error instanceof OutputClosed) throw error
      this.failure = error as Error
      for (const chunk of this.#queued.splice(0)) this.#saved.write(chunk)
    }
  }

  get part(): SavedPart | undefined {
    const { part } = this.#saved
    if (!part || this.#writtenBytes === 0) return part
    return { ...part, outcome: `from byte ${this.#writtenBytes} on ${part.outcome}` }
  }
}
