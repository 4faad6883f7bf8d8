import { dirname } from 'node:path'
import type { Context } from '../context.ts'
import { AppendedFile } from '../io/appended-file.ts'
import type { SavedPart } from '../io/file-output.ts'
import { createSavedPath } from './saved-answer.ts'

/**
 * A file in the temporary folder for paid data that its destination did not accept. The first write creates
 * it, readable by its owner only. Methods do not throw. They are synchronous, because signal handlers call
 * them.
 */
export class SavedFile {
  readonly #context
  readonly #path
  #file: AppendedFile | undefined
  #problem: string | undefined

  constructor(context: Pick<Context, 'host' | 'cleanups'>, extension: string) {
    this.#context = context
    this.#path = createSavedPath(context.host, extension)
  }

  /** Appends the content. Returns false if it could not be written. */
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

  /** The saved data; `undefined` before the first write. */
  get part(): SavedPart | undefined {
    const failed = `could not be saved in ${this.#problem}`
    if (!this.#file) return this.#problem === undefined ? undefined : { outcome: failed }
    const rest = this.#problem === undefined ? '' : `; the rest ${failed}`
    return { outcome: `is saved as ${this.#path}${rest}`, name: this.#path }
  }

  #open(): AppendedFile {
    const file = new AppendedFile({
      path: this.#path,
      name: dirname(this.#path),
      refusal: 'a file of this name already exists',
    })
    this.#context.cleanups.add(() => file.close())
    return file
  }
}
