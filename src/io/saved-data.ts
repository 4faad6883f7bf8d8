import type { CliError } from '../errors.ts'
import { toOneLine } from './escape.ts'

export interface SavedData {
  /** End of a sentence about the data, such as `is saved as answer.txt.part`. */
  outcome: string
  name?: string | undefined
  /** Data that could not be saved; base64 for an image. */
  unsaved?: string | undefined
}

export const describeSavedData = ({ outcome }: SavedData, isFirst = true): string =>
  toOneLine(`${isFirst ? 'the received data' : 'the rest'} ${outcome}`, 2000)

export function addSavedDataToFailure(failure: CliError, part: SavedData | undefined): CliError {
  if (!part) return failure
  const { savedFiles, answer = part.unsaved } = failure.details
  const names = part.name === undefined ? [] : [part.name]
  const message = `${failure.message}; ${describeSavedData(part, !savedFiles)}`
  return failure.with({ savedFiles: [...(savedFiles ?? []), ...names], answer }, message)
}
