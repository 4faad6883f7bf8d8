import { rescue } from '../../content/rescue.ts'
import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { createRawPrinter } from '../../io/raw-printer.ts'
import { type HttpResponse, readBody } from '../../wire/exchange.ts'
import { brokenOff } from '../../wire/gateway/answer-decoder.ts'
import type { AnswerSummary } from '../../wire/gateway/answer-fields.ts'
import { createAnswerReader } from '../../wire/gateway/answer-reader.ts'
import { type BodyValues, readBodyValues } from '../../wire/gateway/body-values.ts'
import { type Findings, findImages } from '../../wire/gateway/found-images.ts'
import { isObject } from '../../wire/json/parse.ts'
import { notUnderstood } from '../../wire/problem/not-understood.ts'
import { failureInBody, isErrorEnvelope } from '../../wire/problem/problem.ts'

export interface ImageAnswer extends Findings {
  summary: AnswerSummary
  /** What else is wrong with the answer. */
  failure?: CliError
}

/**
 * Reads an answer. Throws a `CliError` if it has no image, with the reason and the text that the service gave instead.
 * That answer was paid for, so it is kept in a file. With `--raw` its bytes are printed as they come, and only what is
 * not JSON or an error is a failure: for all else there is a warning. `onSummary` is called before that is judged.
 */
export async function readImageAnswer(
  context: Context,
  response: HttpResponse,
  onSummary = (_: AnswerSummary) => {},
): Promise<ImageAnswer> {
  const { bytes, failure: broken } = await readBytes(context, response)
  const rescueBody = async (failure: CliError) => {
    const what = broken ? 'the part that came' : 'the answer'
    const extension = /^[[{]/.test(Buffer.from(bytes.subarray(0, 1)).toString()) ? 'json' : 'txt'
    return context.flags.raw || bytes.length === 0
      ? failure
      : rescue(context, failure, { bytes, extension, what })
  }
  if (broken) throw await rescueBody(broken)
  try {
    const read = readBodyValues(bytes, response.headers['content-type'] ?? '')
    const answer = context.flags.raw ? understandRaw(context, read) : understand(read, onSummary)
    // Now: decoding the images overwrites the memory that the answer is in.
    return read.failure ? { ...answer, failure: await rescueBody(read.failure) } : answer
  } catch (error) {
    throw error instanceof CliError && !isErrorAnswer(error) ? await rescueBody(error) : error
  }
}

/** The answer is an error of the service's, and has nothing else to keep. */
const isErrorAnswer = ({ details: { body } }: CliError) => isErrorEnvelope(body)

function understand(read: BodyValues, onSummary: (summary: AnswerSummary) => void): ImageAnswer {
  const findings = findImages(read)
  const { summary, failure } = summarize(read, findings.images.length > 0)
  if (!failure || findings.images.length > 0) onSummary(summary)
  if (findings.images.length > 0) return { ...findings, summary, failure }
  if (failure) throw failure
  const said = [...findings.texts, ...findings.reasons].join(' ')
  throw notUnderstood(noImage(summary), said || undefined)
}

const noImage = ({ stopReason }: AnswerSummary) =>
  `the answer has no image${stopReason ? `: ${stopReason}` : ''}`

function understandRaw(context: Context, read: BodyValues): ImageAnswer {
  const findings = findImages(read)
  const { summary, failure } = summarize(read, true)
  const envelope = read.values.find(({ value }) => isErrorEnvelope(value))
  if (envelope && read.form === 'body') throw failureInBody(envelope.value)
  if (findings.images.length === 0 && !failure) context.warn(noImage(summary))
  return { ...findings, summary, failure }
}

/** Reads all that comes, also if it breaks off. */
async function readBytes(
  { flags, output }: Context,
  { body }: HttpResponse,
): Promise<{ bytes: Uint8Array; failure: CliError | undefined }> {
  let failure: CliError | undefined
  async function* untilBroken(): AsyncGenerator<Uint8Array> {
    try {
      yield* body
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      failure = error
    }
  }
  const read = untilBroken()
  const bytes = await readBody(flags.raw ? printed(read, createRawPrinter(output)) : read)
  return { bytes, failure }
}

async function* printed(
  body: AsyncIterable<Uint8Array>,
  printer: ReturnType<typeof createRawPrinter>,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    printer.add(chunk)
    await printer.write()
    yield chunk
  }
  await printer.end()
}

/**
 * Reads the rest of an answer. With images it may have any shape, without them it must be understood. An error in a
 * stream counts in both cases, and so does a missing end.
 */
function summarize(
  { values, form, failure: unread }: BodyValues,
  hasImages: boolean,
): { summary: AnswerSummary; failure: CliError | undefined } {
  const reader = createAnswerReader()
  let failure = unread
  let hasEnd = false
  for (const { value, event } of values) {
    const isError = event === 'error' || isErrorEnvelope(value)
    hasEnd ||= needsEnd(value)
    try {
      if (form === 'body') reader.addBody(value)
      else reader.addEvent(value, event)
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      if (!hasImages || (isError && form !== 'body')) failure ??= error
    }
  }
  const { summary } = reader
  const isOpen = form === 'events' || form === 'sequence'
  if (isOpen && hasEnd && summary.stopReason === undefined) failure ??= brokenOff()
  return { summary, failure }
}

/** A piece of a stream that has an end of its own, also in an envelope as some gateways add it. */
const needsEnd = (value: unknown): boolean =>
  isAnswerPiece(value) || (isObject(value) && [value.response, value.data].some(isAnswerPiece))

const isAnswerPiece = (value: unknown): boolean =>
  isObject(value) &&
  (Object.hasOwn(value, 'candidates') ||
    (typeof value.type === 'string' && /^(message|content_block)_/.test(value.type)))
