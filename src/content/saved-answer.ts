import { appendFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import { type CliError, describeFileError, OutputClosedError } from '../errors.ts'
import { type FileOutput, writeFileAtomically } from '../io/file-output.ts'
import { addSavedDataToFailure, type SavedData } from '../io/saved-data.ts'
import { createBodyCollector } from '../wire/exchange.ts'

/**
 * Saves a paid answer, and adds the name of its file to the failure. If the answer cannot be saved, the
 * returned failure contains the answer itself (an image in base64).
 */
export const saveAnswerAfterFailure = (
  context: Pick<Context, 'host'>,
  failure: CliError,
  content: Uint8Array | string,
  options?: SavingOptions,
): CliError => addSavedDataToFailure(failure, saveReceivedAnswer(context, content, options))

interface SavingOptions {
  /** Saves the answer next to this output file. */
  file?: FileOutput | undefined
  /** Extension of a file in the temporary folder. */
  extension?: string | undefined
}

/**
 * Saves a received answer next to its output file `file`. Without a file, or if saving there fails, saves it
 * in the temporary folder. Returns `undefined` for an empty answer. Does not throw. Synchronous, because
 * signal handlers call it.
 */
export function saveReceivedAnswer(
  context: Pick<Context, 'host'>,
  content: Uint8Array | string,
  { file, extension = getTextExtension(content) }: SavingOptions = {},
): SavedData | undefined {
  // A failed write may have left a partial answer in the file, so parley writes the whole answer again.
  file?.discard()
  const isEmpty = typeof content === 'string' ? content.trim() === '' : content.length === 0
  if (isEmpty) return undefined
  const part = file?.savePart(content)
  if (part?.name !== undefined) return part
  const fallback = new FallbackFile(context, extension)
  fallback.write(content)
  return fallback.part
}

/** A text may begin with a bracket, but a received body with a bracket is JSON. */
const getTextExtension = (content: Uint8Array | string): string =>
  typeof content !== 'string' && /^\s*[[{]/.test(Buffer.from(content.subarray(0, 100)).toString())
    ? 'json'
    : 'txt'

/**
 * Maximum size of an unsaved answer in a failure. `--errors json` escapes the answer, and the line must fit
 * into a string.
 */
const maxBytesInFailure = 64 * 1024 * 1024

/**
 * A file in the temporary folder for paid data that could not be written to its destination. The first
 * write creates the file. Methods do not throw. They are synchronous, because signal handlers call them.
 */
export class FallbackFile {
  readonly #host
  readonly #extension
  #path = ''
  #hasData = false
  #problem: string | undefined
  readonly #unsaved = createBodyCollector(maxBytesInFailure)

  constructor({ host }: Pick<Context, 'host'>, extension: string) {
    this.#host = host
    this.#extension = extension
  }

  write(content: Uint8Array | string): void {
    // Creating the name loads Node's crypto module, which takes 3 % of the time of a chat.
    const folder = this.#host.env.TMPDIR || tmpdir()
    this.#path ||= join(folder, `parley-${crypto.randomUUID()}.${this.#extension}`)
    try {
      if (this.#problem === undefined) {
        if (this.#hasData) appendFileSync(this.#path, content)
        else writeFileAtomically(this.#path, content, { mode: 0o600 })
        this.#hasData = true
        return
      }
    } catch (error) {
      this.#problem = `${folder}: ${describeFileError(error)}`
    }
    this.#unsaved.add(Buffer.from(content))
  }

  get part(): SavedData | undefined {
    const saved = `is saved as ${this.#path}`
    if (this.#problem === undefined) return this.#hasData ? { outcome: saved, name: this.#path } : undefined
    const failed = `could not be saved in ${this.#problem}`
    // If a failure names a file, parley does not print the answer. So `name` stays `undefined`.
    const encoding = /json|txt/.test(this.#extension) ? 'utf8' : 'base64'
    return {
      outcome: this.#hasData ? `${saved}; the rest ${failed}` : failed,
      unsaved: Buffer.from(this.#unsaved.bytes()).toString(encoding) || undefined,
    }
  }
}

/**
 * Writes an answer to an output. After a failed write, stores the failure, because parley still reads the
 * rest of a paid answer. Saves the chunks that the output did not accept.
 */
export class AnswerWriter {
  failure: Error | undefined
  readonly #saved: FallbackFile
  #writtenBytes = 0
  #queued: (Uint8Array | string)[] = []

  constructor(context: Pick<Context, 'host'>, extension: string) {
    this.#saved = new FallbackFile(context, extension)
  }

  queue(chunk: Uint8Array | string): void {
    if (this.failure) this.#saved.write(chunk)
    else this.#queued.push(chunk)
  }

  /** Throws only `OutputClosedError`. Any other failure is stored in `failure`. */
  async attempt(write: () => Promise<unknown>): Promise<void> {
    if (this.failure) return
    try {
      await write()
      for (const chunk of this.#queued.splice(0)) this.#writtenBytes += Buffer.byteLength(chunk)
    } catch (error) {
      if (error instanceof OutputClosedError) throw error
      this.failure = error as Error
      for (const chunk of this.#queued.splice(0)) this.#saved.write(chunk)
    }
  }

  get part(): SavedData | undefined {
    const { part } = this.#saved
    if (!part || this.#writtenBytes === 0) return part
    return { ...part, outcome: `from byte ${this.#writtenBytes} on ${part.outcome}` }
  }
}
