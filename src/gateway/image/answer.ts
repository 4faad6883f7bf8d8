import { rescue } from '../../content/rescue.ts'
import { usageOf } from '../../content/tokens.ts'
import type { Context } from '../../context.ts'
import { asFailure, CliError, OutputClosed } from '../../errors.ts'
import { createRawPrinter } from '../../io/raw-printer.ts'
import type { HttpResponse } from '../../wire/exchange.ts'
import { createAnswerDecoder } from '../../wire/gateway/answer-decoder.ts'
import { type AnswerSummary, hasContinuation } from '../../wire/gateway/answer-forms.ts'
import { type Findings, type FoundImage, ImageFinder } from '../../wire/gateway/found-images.ts'
import { isErrorEnvelope, notUnderstoodError } from '../../wire/problem/problem.ts'
import { readAnswerBody } from '../answer-body.ts'
import type { AnswerPart } from '../long-answer.ts'

export interface ImageAnswer extends Omit<Findings, 'images'> {
  /** The service did not end the stream. */
  isAssumed: boolean
  /** What else is wrong with the answer. */
  failure?: CliError
}

/** How an answer is read. */
export interface ImageReading {
  /** Called with what a part took, also if it is not one, as far as that is known. */
  onSummary(summary: AnswerSummary): void
  /** Saves images of a part, after `earlier` images of the parts before. Throws a `CliError`. */
  save(images: readonly FoundImage[], earlier: number): Promise<void>
  /** The connection can carry the next request. */
  keepsConnection?: boolean
}

/**
 * Prepares to read an answer, which may have several parts. The images of each part are saved before the next one is
 * requested. An answer without an image was paid for, so it is kept in a file. Of a part that breaks off the images count
 * that came whole. With `--raw` the bytes are printed as they come. Then only an error, or a body that is not JSON, is a
 * failure; anything else is a warning.
 */
export function openImageAnswer(context: Context, reading: ImageReading) {
  const finder = new ImageFinder()
  const { findings } = finder
  const isRaw = context.flags.raw
  let last: ReadPart | undefined
  let isAssumed = false
  let saved = 0

  async function saveFound(): Promise<void> {
    const earlier = saved
    saved = findings.images.length
    if (saved > earlier) await reading.save(findings.images.slice(earlier), earlier)
  }

  const rescueBody = (failure: CliError) => {
    const { bytes } = last as ReadPart
    const extension = /^[[{]/.test(Buffer.from(bytes.subarray(0, 1)).toString()) ? 'json' : 'txt'
    return isRaw || bytes.length === 0 ? failure : rescue(context, failure, bytes, extension)
  }

  return {
    findings,

    /** Throws a `CliError` if a part that continues the answer is not whole. */
    async read(response: HttpResponse): Promise<AnswerPart> {
      const isContinuation = last !== undefined
      const part = await readPart(context, response, finder, reading)
      last = part
      isAssumed ||= part.isAssumed
      const { summary, hasContent } = part
      const failure = part.failure ?? finder.unreadable ?? finder.error ?? (isContinuation && finder.failure)
      // What is wrong with the first part, `finish` finds.
      if (failure && !isContinuation) return { summary: { ...summary, stopReason: undefined }, hasContent }
      if (!hasContinuation(summary) && !failure) return { summary, hasContent }
      if (!failure || usageOf(summary)) reading.onSummary(summary)
      if (failure) finder.finish()
      // Before the images are saved: decoding them overwrites the body.
      const kept = failure && !isErrorAnswer(failure) ? rescueBody(failure) : failure
      await saveFound()
      if (kept) throw kept
      return { summary, hasContent }
    },

    /** Saves the images. Throws a `CliError` if the answer has none, with the reason and the text that it has instead. */
    async finish(): Promise<ImageAnswer> {
      const { summary, failure: broken } = last as ReadPart
      finder.finish()
      if (broken && isRaw) throw broken
      try {
        const problem = isRaw
          ? checkRawAnswer(context, finder, summary)
          : checkAnswer(finder, summary, reading)
        const failure = broken ?? problem
        // A value that is not JSON may have had an image. Keep the body now: decoding the images overwrites its memory.
        const isUnread = failure !== undefined && finder.unreadable !== undefined
        const whole = isUnread ? rescueBody(failure) : failure
        const { links, texts, reasons } = findings
        return { links, texts, reasons, isAssumed, failure: whole }
      } catch (error) {
        throw error instanceof CliError && !isErrorAnswer(error) ? rescueBody(broken ?? error) : error
      }
    },

    /** Images that are found, and not saved yet. */
    saveFound,

    /** Saves what the parts before a failure have. */
    async saveRest(): Promise<void> {
      finder.finish()
      await saveFound()
    },
  }
}

/** The answer is an error of the service's, and has nothing else to keep. */
const isErrorAnswer = ({ details: { body } }: CliError) => isErrorEnvelope(body)

/** With images an answer may have any shape, but an error in a stream counts. */
const findFailureWithImages = ({ unreadable, error, broken }: ImageFinder) => unreadable ?? error ?? broken

/** What is wrong with an answer that has images or links. Throws the `CliError` of one that has none. */
function checkAnswer(
  finder: ImageFinder,
  summary: AnswerSummary,
  { onSummary }: ImageReading,
): CliError | undefined {
  const { findings, hasImages, unreadable, broken } = finder
  const failure = hasImages ? findFailureWithImages(finder) : (unreadable ?? finder.failure ?? broken)
  if (!failure || hasImages || usageOf(summary)) onSummary(summary)
  if (hasImages) return failure
  if (failure) throw failure
  const said = [...findings.texts, ...findings.reasons].join(' ')
  throw notUnderstoodError(noImage(summary), said || undefined)
}

const noImage = ({ stopReason }: AnswerSummary) =>
  `the answer has no image${stopReason ? `: ${stopReason}` : ''}`

function checkRawAnswer(context: Context, finder: ImageFinder, summary: AnswerSummary): CliError | undefined {
  const { failure, error } = finder
  if (failure && !error && isErrorAnswer(failure)) throw failure
  const other = findFailureWithImages(finder)
  if (!finder.hasImages && !other) context.warn(noImage(summary))
  return other
}

/** One part, also if it breaks off. */
interface ReadPart extends AnswerPart {
  bytes: Uint8Array
  failure: CliError | undefined
  isAssumed: boolean
}

/** Reads one part, and with `--raw` prints it meanwhile; of one of many nothing is printed. */
export async function readPart(
  { flags, output, timers }: Context,
  response: HttpResponse,
  finder: ImageFinder,
  { keepsConnection = false }: Pick<ImageReading, 'keepsConnection'>,
): Promise<ReadPart> {
  const { images, links } = finder.findings
  const before = images.length + links.length
  // Its texts are among the findings.
  const sink = { text() {}, images: finder }
  const decoder = createAnswerDecoder(response.headers['content-type'] ?? '', sink)
  const printer = flags.raw && !keepsConnection ? createRawPrinter(output) : undefined
  async function onChunk(chunk: Uint8Array): Promise<void> {
    finder.tryRead(() => decoder.push(chunk))
    printer?.add(chunk)
    await printer?.write()
  }
  const readsRest = () => printer !== undefined || keepsConnection
  let broken: CliError | undefined
  let isAssumed = false
  try {
    ;({ isAssumed } = await readAnswerBody(response, decoder, {
      onChunk,
      readsRest,
      timers,
    }))
    await printer?.end()
  } catch (error) {
    if (error instanceof OutputClosed) throw error
    printer?.breakLine()
    broken = asFailure(error)
  }
  finder.tryRead(decoder.end)
  const hasContent = decoder.contentCount() > 0 || images.length + links.length > before
  return { summary: decoder.summary, hasContent, bytes: decoder.unread(), failure: broken, isAssumed }
}
