import { rescue } from '../../content/rescue.ts'
import { usageOf } from '../../content/tokens.ts'
import type { Context } from '../../context.ts'
import { asFailure, CliError, OutputClosed } from '../../errors.ts'
import { createRawPrinter } from '../../io/raw-printer.ts'
import type { HttpResponse } from '../../wire/exchange.ts'
import { createAnswerDecoder } from '../../wire/gateway/answer-decoder.ts'
import type { AnswerSummary } from '../../wire/gateway/answer-forms.ts'
import { type Findings, ImageFinder } from '../../wire/gateway/found-images.ts'
import { isErrorEnvelope, notUnderstoodError } from '../../wire/problem/problem.ts'
import { readAnswerBody } from '../answer-body.ts'

export interface ImageAnswer extends Findings {
  summary: AnswerSummary
  /** The service did not end the stream. */
  isAssumed: boolean
  /** What else is wrong with the answer. */
  failure?: CliError
}

/** How an answer is read. */
export interface ImageReading {
  /** Called with what an answer took, also if it is not one, as far as that is known. */
  onSummary(summary: AnswerSummary): void
  /** The connection can carry the next request. */
  isOneOfMany?: boolean
}

/**
 * Reads an answer. Throws a `CliError` if it has no image, with the reason and the text that the service gave instead.
 * That answer was paid for, so it is kept in a file. Of an answer that breaks off the images count that came whole. With
 * `--raw` the bytes are printed as they come. Then only an error, or a body that is not JSON, is a failure; anything else
 * is a warning.
 */
export async function readImageAnswer(
  context: Context,
  response: HttpResponse,
  reading: ImageReading,
): Promise<ImageAnswer> {
  const { finder, summary, bytes, broken, isAssumed } = await readImages(context, response, reading)
  const isRaw = context.flags.raw
  const rescueBody = (failure: CliError) => {
    const extension = /^[[{]/.test(Buffer.from(bytes.subarray(0, 1)).toString()) ? 'json' : 'txt'
    return isRaw || bytes.length === 0 ? failure : rescue(context, failure, bytes, extension)
  }
  if (broken && isRaw) throw broken
  try {
    const found = isRaw ? judgeRaw(context, finder, summary) : judge(finder, summary, reading)
    const failure = broken ?? found
    // A value that is not JSON may have had an image. Keep the body now: decoding the images overwrites its memory.
    const isUnread = failure !== undefined && finder.unread !== undefined
    const known = { ...finder.findings, summary, isAssumed }
    return { ...known, failure: isUnread ? rescueBody(failure) : failure }
  } catch (error) {
    throw error instanceof CliError && !isErrorAnswer(error) ? rescueBody(broken ?? error) : error
  }
}

/** The answer is an error of the service's, and has nothing else to keep. */
const isErrorAnswer = ({ details: { body } }: CliError) => isErrorEnvelope(body)

/** With images an answer may have any shape, but an error in a stream counts. */
const failureBesideImages = ({ unread, error, broken }: ImageFinder) => unread ?? error ?? broken

/** What is wrong with an answer that has images or links. Throws the `CliError` of one that has none. */
function judge(
  finder: ImageFinder,
  summary: AnswerSummary,
  { onSummary }: ImageReading,
): CliError | undefined {
  const { findings, hasImages, unread, broken } = finder
  const failure = hasImages ? failureBesideImages(finder) : (unread ?? finder.failure ?? broken)
  if (!failure || hasImages || usageOf(summary)) onSummary(summary)
  if (hasImages) return failure
  if (failure) throw failure
  const said = [...findings.texts, ...findings.reasons].join(' ')
  throw notUnderstoodError(noImage(summary), said || undefined)
}

const noImage = ({ stopReason }: AnswerSummary) =>
  `the answer has no image${stopReason ? `: ${stopReason}` : ''}`

function judgeRaw(context: Context, finder: ImageFinder, summary: AnswerSummary): CliError | undefined {
  const { failure, error } = finder
  if (failure && !error && isErrorAnswer(failure)) throw failure
  const other = failureBesideImages(finder)
  if (!finder.hasImages && !other) context.warn(noImage(summary))
  return other
}

/**
 * Reads all that comes of an answer, also if it breaks off, and with `--raw` prints it meanwhile; of one of many nothing is
 * printed.
 */
export async function readImages(
  { flags, output, timers }: Context,
  response: HttpResponse,
  { isOneOfMany = false }: Pick<ImageReading, 'isOneOfMany'>,
) {
  const finder = new ImageFinder()
  // Its texts are among the findings.
  const sink = { text() {}, images: finder }
  const decoder = createAnswerDecoder(response.headers['content-type'] ?? '', sink)
  const printer = flags.raw && !isOneOfMany ? createRawPrinter(output) : undefined
  async function take(chunk: Uint8Array): Promise<void> {
    finder.attempt(() => decoder.push(chunk))
    printer?.add(chunk)
    await printer?.write()
  }
  const takesRest = () => printer !== undefined || isOneOfMany
  let broken: CliError | undefined
  let isAssumed = false
  try {
    ;({ isAssumed } = await readAnswerBody(response, decoder, { take, takesRest, timers }))
    await printer?.end()
  } catch (error) {
    if (error instanceof OutputClosed) throw error
    printer?.breakLine()
    broken = asFailure(error)
  }
  finder.attempt(decoder.end)
  finder.finish()
  return { finder, summary: decoder.summary, bytes: decoder.unread(), broken, isAssumed }
}
