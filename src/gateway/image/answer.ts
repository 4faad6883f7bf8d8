import { type AnswerOutcome, describeCutAnswer } from '../../content/answer-checks.ts'
import { saveAnswerAfterFailure, saveReceivedAnswer } from '../../content/saved-answer.ts'
import { readTokenUsage } from '../../content/tokens.ts'
import type { Context } from '../../context.ts'
import { type CliError, toFailure } from '../../errors.ts'
import type { HttpResponse } from '../../wire/exchange.ts'
import { type AnswerDecoder, createAnswerDecoder } from '../../wire/gateway/answer-decoder.ts'
import { type AnswerSummary, needsContinuation } from '../../wire/gateway/answer-forms.ts'
import { ImageFinder } from '../../wire/gateway/found-images.ts'
import { createResponseError, isErrorEnvelope } from '../../wire/problem/problem.ts'
import { readAnswerBody } from '../answer-body.ts'
import type { AnswerPartOutcome } from '../continued-answer.ts'
import { detectImageFormat } from './format.ts'
import { type ImageSaveOptions, saveImages } from './saving.ts'

interface ImageReaderOptions extends Omit<ImageSaveOptions, 'earlier'> {
  /** Called for each part of the answer. A failed part without token counts may be skipped. */
  onSummary(summary: AnswerSummary): void
}

/**
 * Returns a reader that saves the images of each part before the next request. The reader saves the body of
 * an answer that failed or has no image, because the user paid for the answer.
 */
export function createImageReader(context: Context, reading: ImageReaderOptions) {
  const finder = new ImageFinder()
  const { file } = reading.destination
  let decoder: AnswerDecoder | undefined
  let bytes: Uint8Array = new Uint8Array()
  let failure: CliError | undefined
  let summary: AnswerSummary = {}
  let saved = 0

  async function saveFoundImages(): Promise<void> {
    const earlier = saved
    saved = finder.images.length
    if (saved > earlier) await saveImages(context, finder.images.slice(earlier), { ...reading, earlier })
  }

  async function withSavedBody(failure: CliError): Promise<CliError> {
    if (bytes.length === 0) return failure
    const { extension } = (await detectImageFormat(bytes)) ?? {}
    return saveAnswerAfterFailure(context, failure, bytes, { file, extension })
  }

  return {
    finder,

    /** If the part fails, the answer ends with this part, and `finish` returns or throws the failure. */
    async read(response: HttpResponse): Promise<AnswerPartOutcome> {
      // `text` does nothing, because the finder collects the texts itself.
      const sink = { text() {}, images: finder }
      const opened = createAnswerDecoder(response.headers['content-type'] ?? '', sink)
      decoder = opened
      failure = undefined
      summary = opened.summary
      const { otherContent } = opened
      const { timers } = context.host
      const part = await readAnswerBody(response, opened, { timers }).catch((error: unknown) => {
        failure = toFailure(error)
        return { summary: { ...summary, stopReason: undefined }, hasContent: true, otherContent }
      })
      decoder = undefined
      bytes = opened.unread()
      if (needsContinuation(part.summary)) {
        reading.onSummary(summary)
        await saveFoundImages()
      }
      return part
    },

    /**
     * Returns the failure, if any, of an answer with images. For an answer without images, throws a
     * `CliError` with the stop reason and the text.
     */
    async finish(): Promise<CliError | undefined> {
      finder.finish()
      const { hasImages } = finder
      if (!failure || hasImages || readTokenUsage(summary)) reading.onSummary(summary)
      const problem = failure ?? (hasImages ? undefined : createMissingImageError(finder.texts, summary))
      const isOnlyError = problem && isErrorEnvelope(problem.details.body) && finder.texts.length === 0
      // `decodeBase64` overwrites the body, so the body is saved before the images.
      const reported = problem && !isOnlyError ? await withSavedBody(problem) : problem
      if (reported && !hasImages) throw reported
      return reported
    },

    saveFoundImages,

    saveReceivedPart: () => saveReceivedAnswer(context, decoder?.unread() ?? '', { file }),

    async saveRemainingImages(): Promise<void> {
      finder.finish()
      await saveFoundImages()
    },
  }
}

/**
 * Returns the failure of `--fail-on-cut`, if any. `problems` are the warnings about saved images, such as a
 * missing end. An answer without a stop reason passes, because some API formats never have one.
 */
export function findCutAnswerFailure(end: AnswerOutcome, problems: readonly string[]): CliError | undefined {
  const all = [describeCutAnswer(end) ?? [], problems].flat()
  return all.length > 0 ? createResponseError(all.join('; ')) : undefined
}

export type ImageReader = ReturnType<typeof createImageReader>

function createMissingImageError(texts: string[], summary: AnswerSummary): CliError {
  const { stopReason, stopMessage = '', blockReason } = summary
  const isBlocked = blockReason !== undefined && stopReason === blockReason
  const what = isBlocked ? 'the prompt was blocked' : 'the answer has no image'
  const serviceMessage = [...texts, stopMessage].join(' ').trim() || undefined
  return createResponseError(`${what}${stopReason ? `: ${stopReason}` : ''}`, serviceMessage)
}
