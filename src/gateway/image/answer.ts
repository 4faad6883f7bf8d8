import { type AnswerOutcome, describeCutAnswer } from '../../content/answer-checks.ts'
import { saveAnswerAfterFailure, saveReceivedAnswer } from '../../content/saved-answer.ts'
import { readTokenUsage } from '../../content/tokens.ts'
import type { Context } from '../../context.ts'
import { type CliError, toFailure } from '../../errors.ts'
import type { FileOutput } from '../../io/file-output.ts'
import type { Timers } from '../../timers.ts'
import type { HttpResponse } from '../../wire/exchange.ts'
import { type AnswerDecoder, createAnswerDecoder } from '../../wire/gateway/answer-decoder.ts'
import { type AnswerSummary, needsContinuation } from '../../wire/gateway/answer-forms.ts'
import { type FoundImage, ImageFinder } from '../../wire/gateway/found-images.ts'
import { createResponseError, isErrorEnvelope } from '../../wire/problem/problem.ts'
import { readAnswerBody } from '../answer-body.ts'
import type { AnswerPartOutcome } from '../continued-answer.ts'
import { detectImageFormat } from './format.ts'

interface ImageReaderOptions {
  /** Called for each part of the answer. A failed part without token counts may be skipped. */
  onSummary(summary: AnswerSummary): void
  /**
   * Saves the images of one part. `earlier` is the number of images before this part. Throws a `CliError`.
   */
  save(images: readonly FoundImage[], earlier: number): Promise<void>
  /** If the answer has no image, its body is saved next to this file. */
  file?: FileOutput | undefined
  /** If true, reads the body to its end, so that the connection can serve the next request of a batch. */
  keepsConnection?: boolean
}

/**
 * Returns a reader that saves the images of each part, also of a cut part, before the next request. The
 * reader saves the body of an answer without images, because the user paid for the answer.
 */
export function createImageReader(context: Context, reading: ImageReaderOptions) {
  const finder = new ImageFinder()
  const { findings } = finder
  let last: ReadPart | undefined
  let decoder: AnswerDecoder | undefined
  let saved = 0

  async function saveFoundImages(): Promise<void> {
    const earlier = saved
    saved = findings.images.length
    if (saved > earlier) await reading.save(findings.images.slice(earlier), earlier)
  }

  async function withSavedBody(failure: CliError): Promise<CliError> {
    const { bytes } = last as ReadPart
    if (bytes.length === 0) return failure
    const { extension = getTextExtension(bytes) } = (await detectImageFormat(bytes)) ?? {}
    return saveAnswerAfterFailure(context, failure, bytes, extension, reading.file)
  }

  return {
    findings,

    /**
     * Throws a `CliError` if a part after the first is incomplete. `finish` returns or throws the failure of
     * the first part.
     */
    async read(response: HttpResponse): Promise<AnswerPartOutcome> {
      const isContinuation = last !== undefined
      // `text` does nothing, because the finder collects the texts itself.
      const sink = { text() {}, images: finder }
      decoder = createAnswerDecoder(response.headers['content-type'] ?? '', sink)
      const { keepsConnection } = reading
      const part = await readImagePart(context.host.timers, response, { decoder, finder, keepsConnection })
      decoder = undefined
      last = part
      const { summary } = part
      const failure =
        part.failure ?? finder.parseFailure ?? finder.streamError ?? (isContinuation && finder.shapeFailure)
      // The first part may contain images, so its failure is not thrown here. `finish` returns the failure,
      // and the caller throws it after saving the images. Without a stop reason, this part is the last.
      if (failure && !isContinuation) return { ...part, summary: { ...summary, stopReason: undefined } }
      if (!needsContinuation(summary) && !failure) return part
      if (!failure || readTokenUsage(summary)) reading.onSummary(summary)
      if (failure) finder.finish()
      // `decodeBase64` overwrites the body, so the body is saved before the images.
      const reported = failure && !isErrorAnswer(failure) ? await withSavedBody(failure) : failure
      await saveFoundImages()
      if (reported) throw reported
      return part
    },

    /**
     * Returns the failure, if any, of an answer with images. For an answer without images, throws a
     * `CliError` with the stop reason and the text.
     */
    async finish(): Promise<CliError | undefined> {
      const { summary, failure: broken } = last as ReadPart
      finder.finish()
      try {
        const problem = checkAnswer(finder, summary, reading)
        const failure = broken ?? problem
        // A value that cannot be parsed may contain an image. `decodeBase64` overwrites the body, so the body
        // is saved before the other images.
        return failure && finder.parseFailure ? await withSavedBody(failure) : failure
      } catch (error) {
        const failure = toFailure(error)
        const isOnlyError = isErrorAnswer(failure) && findings.texts.length === 0
        throw isOnlyError ? error : await withSavedBody(broken ?? failure)
      }
    },

    saveFoundImages,

    saveReceivedPart() {
      const bytes = decoder?.unread() ?? new Uint8Array()
      return bytes.length === 0
        ? undefined
        : saveReceivedAnswer(context, bytes, getTextExtension(bytes), reading.file)
    },

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

const getTextExtension = (bytes: Uint8Array): string =>
  /^[[{]/.test(Buffer.from(bytes.subarray(0, 1)).toString()) ? 'json' : 'txt'

const isErrorAnswer = ({ details: { body } }: CliError) => isErrorEnvelope(body)

/** Ignores an unexpected shape, which does not matter in an answer with images. */
const findFailureWithImages = ({ parseFailure, streamError, cutFailure, shapeFailure }: ImageFinder) =>
  parseFailure ??
  streamError ??
  cutFailure ??
  (shapeFailure && isErrorAnswer(shapeFailure) ? shapeFailure : undefined)

function checkAnswer(
  finder: ImageFinder,
  summary: AnswerSummary,
  { onSummary }: ImageReaderOptions,
): CliError | undefined {
  const { findings, hasImages, parseFailure, shapeFailure, cutFailure } = finder
  const failure = hasImages ? findFailureWithImages(finder) : (parseFailure ?? shapeFailure ?? cutFailure)
  if (!failure || hasImages || readTokenUsage(summary)) onSummary(summary)
  if (hasImages) return failure
  if (failure) throw failure
  const explanation = [...findings.texts, ...findings.reasons].join(' ')
  const { stopReason } = summary
  throw createResponseError(
    `the answer has no image${stopReason ? `: ${stopReason}` : ''}`,
    explanation || undefined,
  )
}

interface ReadPart extends AnswerPartOutcome {
  bytes: Uint8Array
  failure: CliError | undefined
}

interface ImagePartReading {
  decoder: AnswerDecoder
  finder: ImageFinder
  keepsConnection?: boolean | undefined
}

async function readImagePart(
  timers: Timers,
  response: HttpResponse,
  { decoder, finder, keepsConnection = false }: ImagePartReading,
): Promise<ReadPart> {
  const { images, links } = finder.findings
  const before = images.length + links.length
  const onChunk = (chunk: Uint8Array) => finder.tryRead(() => decoder.push(chunk))
  const readsToEnd = () => keepsConnection
  let failure: CliError | undefined
  let isEndAssumed = false
  try {
    ;({ isEndAssumed } = await readAnswerBody(response, decoder, { onChunk, readsToEnd, timers }))
  } catch (error) {
    failure = toFailure(error)
  }
  finder.tryRead(decoder.end)
  return {
    summary: decoder.summary,
    hasContent: decoder.contentCount() > 0 || images.length + links.length > before,
    otherContent: decoder.otherContent,
    isEndAssumed,
    isDamaged: decoder.isDamaged(),
    bytes: decoder.unread(),
    failure,
  }
}
