import { dirname } from 'node:path'
import type { Context } from '../context.ts'
import { AppendedFile } from '../io/appended-file.ts'
import type { SavedPart } from '../io/file-output.ts'
import { createSavedPath } from './saved-answer.ts'

/**
 * Saves paid data that could not be written to its destination. The first write creates the file with mode
 * 0600. Methods do not throw. They are synchronous, because signal handlers call them.
 */
export class FallbackFile {
  readonly #context
  readonly #extension
  #file: AppendedFile | undefined
  #path = ''
  #problem: string | undefined

  constructor(context: Pick<Context, 'host' | 'cleanups'>, extension: string) {
    this.#context = context
    this.#extension = extension
  }

  write(content: Uint8Array | string): boolean {
    if (this.#problem !== undefined) return false
    try {
      this.#file ??= this.#open()
      this.#file.append(content)
      return true
    } catch (error) {
      this.#problem = (error as Error).message
      return false
    }
  }

  /** `undefined` before the first write. */
  get part(): SavedPart | undefined {
    const failed = `could not be saved in ${this.#problem}`
    if (!this.#file) return this.#problem === undefined ? undefined : { outcome: failed }
    const rest = this.#problem === undefined ? '' : `; the rest ${failed}`
    return { outcome: `is saved as ${this.#path}${rest}`, name: this.#path }
  }

  #open(): AppendedFile {
    const { host, cleanups } = this.#context
    this.#path = createSavedPath(host, this.#extension)
    const file = new AppendedFile({
      path: this.#path,
      name: dirname(this.#path),
      refusal: 'a file of this name already exists',
    })
    cleanups.add(() => file.close())
    return file
  }
}

/** Saves the part of a body that an output did not accept. */
export class UnprintedBody {
  readonly #saved: FallbackFile
  #acceptedBytes = 0
  #pending: (Uint8Array | string)[] = []
  #isRejected = false

  constructor(context: Pick<Context, 'host' | 'cleanups'>, extension: string) {
    this.#saved = new FallbackFile(context, extension)
  }

  /** Call this before the chunk is written to the output. */
  add(chunk: Uint8Array | string): void {
    if (this.#isRejected) this.#saved.write(chunk)
    else this.#pending.push(chunk)
  }

  /** Call this when the output has accepted every added chunk. */
  accept(): void {
    for (const chunk of this.#pending.splice(0)) this.#acceptedBytes += Buffer.byteLength(chunk)
  }

  reject(): void {
    this.#isRejected = true
    for (const chunk of this.#pending.splice(0)) this.#saved.write(chunk)
  }

  get part(): SavedPart | undefined {
    const { part } = this.#saved
    if (!part || this.#acceptedBytes === 0) return part
    return { ...part, outcome: `from byte ${this.#acceptedBytes} on ${part.outcome}` }
  }
}
