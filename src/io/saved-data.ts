import { CliError } from '../errors.ts'
import { toOneLine } from './escape.ts'

export interface SavedData {
  /** End of a sentence about the data, such as `is saved as answer.txt.part`. */
  outcome: string
  name?: string | undefined
  /** Data that could not be saved; base64 for an image. */
  unsaved?: string | undefined
}

export const describeSavedData = ({ outcome }: SavedData): string =>
  toOneLine(`the received data ${outcome}`, 2000)

export const addSavedDataToFailure = (failure: CliError, part: SavedData | undefined): CliError =>
  part
    ? new CliError(failure.kind, `${failure.message}; ${describeSavedData(part)}`, {
        ...failure.details,
        savedFiles: [...(failure.details.savedFiles ?? []), ...(part.name === undefined ? [] : [part.name])],
        answer: failure.details.answer ?? part.unsaved,
      })
    : failure
