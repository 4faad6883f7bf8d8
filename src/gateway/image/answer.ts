import { rescue } from '../../content/rescue.ts'
import { usageOf } from '../../content/tokens.ts'
import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { createRawPrinter } from '../../io/raw-printer.ts'
import { collectBody, type HttpResponse } from '../../wire/exchange.ts'
import { brokenOff, createAnswerDecoder } from '../../wire/gateway/answer-decoder.ts'
import type { AnswerSummary } from '../../wire/gateway/answer-fields.ts'
import { createAnswerReader } from '../../wire/gateway/answer-reader.ts'
import { type BodyValues, readBodyValues } from '../../wire/gateway/body-values.ts'
import { type Findings, findImages } from '../../wire/gateway/found-images.ts'
import { isObject } from '../../wire/json/parse.ts'
import { failureInBody, isErrorEnvelope, notUnderstood } from '../../wire/problem/problem.ts'
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
 * `--raw` its bytes are printed as they come, and only what is not JSON or an error is a failure: for all else there is a
 * warning.
 */
export async function readImageAnswer(
  context: Context,
  response: HttpResponse,
  reading: ImageReading,
): Promise<ImageAnswer> {
  const { bytes, failure: broken, isAssumed } = await readBytes(context, response, reading)
  const rescueBody = async (failure: CliError) => {
    const what = broken ? 'the part that came' : 'the answer'
    const extension = /^[[{]/.test(Buffer.from(bytes.subarray(0, 1)).toString()) ? 'json' : 'txt'
    return context.flags.raw || bytes.length === 0
      ? failure
      : rescue(context, failure, { bytes, extension, what })
  }
  if (broken && context.flags.raw) throw broken
  try {
    const read = readBodyValues(bytes, response.headers['content-type'] ?? '')
    const answer = context.flags.raw ? understandRaw(context, read) : understand(read, reading.onSummary)
    const failure = broken ?? answer.failure
    // Now: decoding the images overwrites the memory that the answer is in.
    return { ...answer, isAssumed, failure: failure && read.failure ? await rescueBody(failure) : failure }
  } catch (error) {
    throw error instanceof CliError && !isErrorAnswer(error) ? await rescueBody(broken ?? error) : error
  }
}

/** The answer is an error of the service's, and has nothing else to keep. */
const isErrorAnswer = ({ details: { body } }: CliError) => isErrorEnvelope(body)

type Understood = Omit<ImageAnswer, 'isAssumed'>

function understand(read: BodyValues, onSummary: ImageReading['onSummary']): Understood {
  const findings = findImages(read)
  const hasAny = findings.images.length + findings.links.length > 0
  const { summary, failure } = summarize(read, hasAny)
  if (!failure || hasAny || usageOf(summary)) onSummary(summary)
  if (hasAny) return { ...findings, summary, failure }
  if (failure) throw failure
  const said = [...findings.texts, ...findings.reasons].join(' ')
  throw notUnderstood(noImage(summary), said || undefined)
}

const noImage = ({ stopReason }: AnswerSummary) =>
  `the answer has no image${stopReason ? `: ${stopReason}` : ''}`

function understandRaw(context: Context, read: BodyValues): Understood {
  const findings = findImages(read)
  const { summary, failure } = summarize(read, true)
  const envelope = read.values.find(({ value }) => isErrorEnvelope(value))
  if (envelope && read.form === 'body') throw failureInBody(envelope.value)
  if (findings.images.length + findings.links.length === 0 && !failure) context.warn(noImage(summary))
  return { ...findings, summary, failure }
}

/**
 * Reads all that comes of an answer, also if it breaks off, and with `--raw` prints it meanwhile; of one of many nothing is
 * printed.
 */
export async function readBytes(
  { flags, output, timers }: Context,
  response: HttpResponse,
  { isOneOfMany = false }: Pick<ImageReading, 'isOneOfMany'>,
): Promise<{ bytes: Uint8Array; failure: CliError | undefined; isAssumed: boolean }> {
  const collected = collectBody()
  const end = createEndFinder(response.headers['content-type'] ?? '')
  const printer = flags.raw && !isOneOfMany ? createRawPrinter(output) : undefined
  async function take(chunk: Uint8Array): Promise<void> {
    collected.add(chunk)
    end.push(chunk)
    printer?.add(chunk)
    await printer?.write()
  }
  const after = isOneOfMany ? 'skipped' : 'left'
  const rest = () => (printer ? 'taken' : after)
  let failure: CliError | undefined
  let isAssumed = false
  try {
    ;({ isAssumed } = await readAnswerBody(response, end, { take, rest, timers }))
    await printer?.end()
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    printer?.breakLine()
    failure = error
  }
  return { bytes: collected.bytes(), failure, isAssumed }
}

/** Finds where a stream ends. A single JSON value, and what is not understood, is read to the body's end. */
function createEndFinder(contentType: string) {
  const decoder = createAnswerDecoder(contentType, { text() {} })
  let isStream: boolean | undefined
  return {
    received: decoder.received,
    progress: () => (isStream ? decoder.progress() : 'open'),
    push(chunk: Uint8Array): void {
      isStream ??= !/^\s*\{/.test(Buffer.from(chunk.subarray(0, 100)).toString())
      try {
        if (isStream) decoder.push(chunk)
      } catch {
        isStream = false
      }
    },
  }
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

/** What the rest says of an answer of which nothing else is wanted, as far as it is understood. */
export function summaryOfBytes(bytes: Uint8Array, contentType: string): AnswerSummary {
  try {
    return summarize(readBodyValues(bytes, contentType), true).summary
  } catch {
    return {}
  }
}

/** A piece of a stream that has an end of its own, also in an envelope as some gateways add it. */
const needsEnd = (value: unknown): boolean =>
  isAnswerPiece(value) || (isObject(value) && [value.response, value.data].some(isAnswerPiece))

const isAnswerPiece = (value: unknown): boolean =>
  isObject(value) &&
  (Object.hasOwn(value, 'candidates') ||
    (typeof value.type === 'string' && /^(message|content_block)_/.test(value.type)))
