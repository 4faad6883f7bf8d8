import { CliError } from '../errors.ts'
import { toOneLine } from './escape.ts'

export interface SavedPart {
  /** End of a sentence about the data, such as `is saved as answer.txt.part`. */
  outcome: string
  name?: string
  /** Data that could not be saved; base64 for an image. */
  unsaved?: string | undefined
}

export const describeSavedPart = ({ outcome }: SavedPart): string =>
  toOneLine(`the received data ${outcome}`, 2000)

export const addSavedPartToFailure = (failure: CliError, part: SavedPart | undefined): CliError =>
  part
    ? new CliError(failure.kind, `${failure.message}; ${describeSavedPart(part)}`, {
        ...failure.details,
        savedFiles: [...(failure.details.savedFiles ?? []), ...(part.name === undefined ? [] : [part.name])],
        answer: failure.details.answer ?? part.unsaved,
      })
    : failure
