import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { addSavedPart, type FileOutput, openFileOutput } from '../io/file-output.ts'
import { saveAnswerAfterFailure, saveText } from './saved-answer.ts'

/**
 * Like `openFileOutput`, for the file of a paid answer. If a write fails, the caller can still write the rest
 * of the answer. `commit` then saves the whole answer in the temporary folder and throws.
 */
export async function openAnswerFile(context: Context, name: string): Promise<FileOutput> {
  const file = await openFileOutput(name, context)
  const pieces: Buffer[] = []
  let failure: CliError | undefined
  return {
    ...file,
    async write(chunk) {
      pieces.push(Buffer.from(chunk as Uint8Array))
      if (failure) return
      try {
        await file.write(chunk)
      } catch (error) {
        if (!(error instanceof CliError)) throw error
        failure = error
        file.discard()
      }
    },
    savePart(held = '') {
      if (failure) return saveText(context, Buffer.concat(pieces).toString())
      const part = file.savePart(held)
      if (part?.name !== undefined) return part
      const isLost = part !== undefined && !file.isDirect && pieces.length > 0
      const text = isLost ? Buffer.concat(pieces).toString() : held
      // `held` may be an unreadable body, which the caller saves.
      return typeof text === 'string' ? (saveText(context, text) ?? part) : part
    },
    async commit() {
      try {
        if (failure) throw failure
        await file.commit()
      } catch (error) {
        if (!(error instanceof CliError)) throw error
        failure = error
        const savedFailure = saveAnswerAfterFailure(context, error, Buffer.concat(pieces.splice(0)), 'txt')
        // The temporary file next to the target has the whole answer, so it is saved as `FILE.part`.
        if (savedFailure.details.kept === undefined) throw addSavedPart(savedFailure, file.savePart())
        file.discard()
        throw savedFailure
      }
    },
  }
}
