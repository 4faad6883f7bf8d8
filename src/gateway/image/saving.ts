import { saveAnswerAfterFailure } from '../../content/saved-answer.ts'
import type { Context } from '../../context.ts'
import { CliError, OutputClosedError, toFailure } from '../../errors.ts'
import { escapeControls } from '../../io/escape.ts'
import { addFileToReport } from '../../report-data.ts'
import { yieldToSignals } from '../../timers.ts'
import { decodeBase64 } from '../../wire/gateway/base64.ts'
import type { FoundImage } from '../../wire/gateway/found-images.ts'
import { createResponseError } from '../../wire/problem/problem.ts'
import type { ImageDestination } from './destination.ts'
import { detectImageFormat, findWrongExtension } from './format.ts'

export interface ImageSaveOptions {
  destination: ImageDestination
  earlier?: number
  warn(message: string): void
  onSaved(path: string, image: { bytes: Uint8Array; extension: string }): Promise<void>
}

/**
 * Saves all images. If an image cannot be written to its destination, saves the image in the temporary folder
 * and continues. At the end, throws a `CliError` with all failures.
 */
export async function saveImages(context: Context, images: FoundImage[], options: ImageSaveOptions) {
  const { destination, earlier = 0 } = options
  const count = images.length + earlier
  const tooMany =
    count > (destination.maxImages ?? Infinity)
      ? `-o - can write only one image, and the answer has ${count}: use -o FILE or -o FOLDER/`
      : undefined
  const failures: CliError[] = []
  let closed: OutputClosedError | undefined
  for (const [index, found] of images.entries()) {
    const refusal = tooMany === undefined ? undefined : new CliError('file', `image ${earlier + index + 1}`)
    try {
      await saveImage(context, found, { ...options, refusal })
    } catch (error) {
      if (error instanceof OutputClosedError) closed = error
      else failures.push(toFailure(error))
    }
  }
  if (failures.length > 0) throw summarize(failures, images.length, tooMany)
  if (closed) throw closed
}

function summarize(failures: CliError[], count: number, cause: string | undefined): CliError {
  const [first] = failures as [CliError]
  if (failures.length === 1 && cause === undefined) return first.with({ sent: 'yes' })
  const problems = failures.map(({ message }) => message)
  const what =
    cause ?? `${failures.length} of ${count} images were not saved, or their paths were not printed`
  return new CliError(first.kind, what, {
    sent: 'yes',
    problems,
    savedFiles: failures.flatMap(({ details: { savedFiles = [] } }) => savedFiles),
    answer: failures.flatMap(({ details: { answer } }) => answer ?? []).join('\n') || undefined,
  })
}

const binary = { extension: 'bin' }

async function saveImage(
  context: Context,
  found: FoundImage,
  { destination, onSaved, warn, refusal }: ImageSaveOptions & { refusal: CliError | undefined },
): Promise<void> {
  const { mimeType } = found
  const bytes = await decode(context, found)
  const format = await detectImageFormat(bytes, mimeType).catch((error: unknown) => {
    throw saveAnswerAfterFailure(context, toFailure(error), bytes, binary)
  })
  if (refusal) throw saveAnswerAfterFailure(context, refusal, bytes, format ?? binary)
  if (!format) {
    const declared = mimeType ? ` (declared as ${mimeType})` : ''
    const failure = createResponseError(`the service sent an unknown image format${declared}`)
    throw saveAnswerAfterFailure(context, failure, bytes, binary)
  }
  const { extension, problem } = format
  const path = await destination.save(bytes, extension).catch(async (error: unknown) => {
    throw error instanceof OutputClosedError
      ? error
      : saveAnswerAfterFailure(context, toFailure(error), bytes, format)
  })
  if (problem !== undefined) warn(`${path ?? 'stdout'}: ${problem}`)
  if (path === undefined) return
  const wrong = findWrongExtension(path, extension)
  if (wrong !== undefined) context.messages.note(`${path}: ${wrong}`)
  addFileToReport(context.reportData, path)
  await onSaved(path, { bytes, extension })
  // Writing an image is synchronous, so a signal that arrived meanwhile ends the process only here.
  await yieldToSignals()
}

export const printImagePath = (context: Context, path: string): Promise<void> =>
  printStdoutLine(context, path).catch((error: unknown) => {
    if (error instanceof OutputClosedError) throw error
    const { kind, message } = toFailure(error)
    throw new CliError(kind, `${path} is saved, but its path was not printed: ${message}`)
  })

export async function printStdoutLine({ output }: Context, text: string): Promise<void> {
  await output.write(`${output.isTerminal ? escapeControls(text) : text}\n`)
  await output.flush()
}

async function decode(context: Context, { base64 }: FoundImage): Promise<Uint8Array> {
  const bytes = decodeBase64(base64)
  if (bytes) return bytes
  const failure = createResponseError("an image's data is not valid base64")
  throw saveAnswerAfterFailure(context, failure, base64)
}
