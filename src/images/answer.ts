import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { createRawPrinter } from '../io/raw-printer.ts'
import { collectLong, type HttpResponse } from '../wire/exchange.ts'
import { isObject } from '../wire/json/parse.ts'
import type { AnswerSummary } from '../wire/model/answer-piece.ts'
import { createAnswerReader } from '../wire/model/answer-reader.ts'
import { brokenOff } from '../wire/model/body-decoder.ts'
import { type BodyValues, readBodyValues } from '../wire/model/body-values.ts'
import { type Findings, findImages } from '../wire/model/found-images.ts'
import { notUnderstood } from '../wire/problem/not-understood.ts'
import { isErrorEnvelope } from '../wire/problem/problem.ts'
import { keep } from './recovery.ts'

export interface ImageAnswer extends Findings {
  summary: AnswerSummary
  /** What is wrong with the answer beside its images. */
  failure?: CliError | undefined
}

/**
 * Reads an answer, with `--raw` printing its bytes as they come. Throws a `CliError` where there is no image in it,
 * with the reason and the text that the service gave instead; such an answer was paid for, and is kept.
 */
export async function readImageAnswer(context: Context, response: HttpResponse): Promise<ImageAnswer> {
  const { bytes, failure: broken } = await readBytes(context, response)
  const keepBody = async (failure: CliError) => {
    const what = broken ? 'what came of it' : 'the answer'
    const extension = /^[[{]/.test(Buffer.from(bytes.subarray(0, 1)).toString()) ? 'json' : 'txt'
    return context.flags.raw || bytes.length === 0
      ? failure
      : keep(context, failure, { bytes, extension, what })
  }
  if (broken) throw await keepBody(broken)
  try {
    const read = readBodyValues(bytes, response.headers['content-type'] ?? '')
    const answer = understand(read)
    // Now: reading the images takes the memory that the answer is in.
    return read.failure ? { ...answer, failure: await keepBody(read.failure) } : answer
  } catch (error) {
    throw error instanceof CliError && !isTold(error) ? await keepBody(error) : error
  }
}

/** An error that the service told of is understood: there is nothing else in it. */
const isTold = ({ details: { body } }: CliError) => isErrorEnvelope(body)

function understand(read: BodyValues): ImageAnswer {
  const findings = findImages(read.values)
  const { summary, failure } = summarize(read, findings.images.length > 0)
  if (findings.images.length > 0) return { ...findings, summary, ...(failure ? { failure } : {}) }
  if (failure) throw failure
  const reason = summary.stopReason ? `: ${summary.stopReason}` : ''
  const said = [...findings.texts, ...findings.reasons].join(' ')
  throw notUnderstood(`the answer has no image${reason}`, said || undefined)
}

/** All that came, also where it broke off. */
async function readBytes(
  { flags, output }: Context,
  { body }: HttpResponse,
): Promise<{ bytes: Uint8Array; failure?: CliError }> {
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
  const bytes = await collectLong(flags.raw ? printed(read, createRawPrinter(output)) : read)
  return failure ? { bytes, failure } : { bytes }
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
 * What surrounds the images may be as strange as it likes; without any it has to make sense. An error in a stream
 * counts in any case, and so does an end that was not told of.
 */
function summarize(
  { values, form, failure: unread }: BodyValues,
  hasImages: boolean,
): { summary: AnswerSummary; failure?: CliError } {
  const reader = createAnswerReader()
  let failure = unread
  let hasEnd = false
  for (const { value, event } of values) {
    const isError = event === 'error' || isErrorEnvelope(value)
    const inner = isError ? value : unwrap(value)
    hasEnd ||= isAnswerPiece(inner)
    try {
      if (form === 'body') reader.addBody(inner)
      else reader.addEvent(inner, event)
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      if (!hasImages || (isError && form !== 'body')) failure ??= error
    }
  }
  const { summary } = reader
  if (form === 'events' && hasEnd && summary.stopReason === undefined) failure ??= brokenOff()
  return failure ? { summary, failure } : { summary }
}

/** Of the kinds that tell of their end. */
const isAnswerPiece = (value: unknown): boolean =>
  isObject(value) &&
  (Object.hasOwn(value, 'candidates') ||
    (typeof value.type === 'string' && /^(message|content_block)_/.test(value.type)))

/** Takes off what some gateways put around an answer: `{"response":…}`, `{"code":0,"data":…}`. */
function unwrap(value: unknown): unknown {
  if (!isObject(value)) return value
  const isBare = ['candidates', 'content', 'promptFeedback', 'type'].some((name) =>
    Object.hasOwn(value, name),
  )
  const inner = [value.response, value.data].find(isObject)
  return isBare || inner === undefined ? value : inner
}
