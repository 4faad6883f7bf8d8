import { type BodyTextDecoder, createBodyTextDecoder, decodeBodyText, toUtf8 } from '../charset.ts'
import { type CollectedBody, collectBody } from '../exchange.ts'
import { createArraySplitter, createSequenceSplitter, type JsonSplitter } from '../json/splitter.ts'
import { notUnderstoodError } from '../problem/problem.ts'
import { parseReceived, parseReceivedBody, readErrorEvent } from '../received-json.ts'
import { createSseDecoder, isKeepAlive, isStreamEnd, type SseEvent } from '../sse.ts'
import { AnswerReader, type Progress, unwrapEvent } from './answer-reader.ts'
import type { ImageFinder } from './found-images.ts'

/**
 * Turns an answer's bytes into its text. The body's first characters decide its form, not what was asked for; the content
 * type decides only between events and text. Only a single native value without an end is whole or not by what was asked
 * for, unless its content type says that it is a document: a gateway may answer without a stream.
 */
export function createAnswerDecoder(contentType: string, sink: AnswerSink, isStreamed = false) {
  const reader = new AnswerReader(isStreamed && !isJsonDocument.test(contentType))
  const startText = createBodyTextDecoder(contentType)
  /** The first characters, until they are enough to know the body's form. */
  let start = ''
  let unread: CollectedBody | undefined = collectBody()
  let decoder: BodyDecoder | undefined

  function open(): BodyDecoder {
    const bytes = unread?.bytes() ?? new Uint8Array()
    const whole = isStreamed ? undefined : unread
    // --raw has printed it.
    if (isStreamed && sink.raw) unread = undefined
    const text = createBodyTextDecoder(contentType)
    decoder = chooseDecoder(start, { reader, contentType, text, sink, whole })
    take(decoder, bytes)
    return decoder
  }

  function take(decoder: BodyDecoder, bytes: Uint8Array): void {
    if (decoder.isVerbatim) sink.raw?.(bytes)
    decoder.push(bytes)
  }

  const isUnread = () => sink.images !== undefined || !reader.hasText

  return {
    summary: reader.summary,
    /** What the answer has beside text. */
    otherContent: reader.otherContent,
    /** The body, as far as it came, until some text comes of it: it may be all that there is of an answer. */
    unread: () => (isUnread() && unread?.bytes()) || new Uint8Array(),
    /** In the middle of a value it is never `settled`. */
    progress(): Progress {
      const progress = reader.progress()
      return progress === 'settled' && !decoder?.mayEndHere() ? 'finished' : progress
    },
    /** How many values have brought text, or an image. */
    contentCount: () => reader.contentCount,
    /** `--raw` prints the body as it is, including what follows the answer's end. */
    isVerbatim: () => decoder?.isVerbatim ?? false,
    /** Throws a `CliError` if the bytes are not understood. */
    push(bytes: Uint8Array): void {
      if (!isUnread()) unread = undefined
      const size = unread?.add(bytes) ?? 0
      if (!decoder) {
        start = (start + startText.decode(bytes, { stream: true }))
          .trimStart()
          .slice(0, maxFieldNameLength + 1)
        if (start.length > maxFieldNameLength || !/^[a-z]*$/.test(start) || size > maxBlankBytes) open()
      } else take(decoder, bytes)
    },
    /** Throws a `CliError` if the answer is not whole. */
    end(): void {
      const chosen = decoder ?? open()
      chosen.end()
    },
  }
}

export type AnswerDecoder = ReturnType<typeof createAnswerDecoder>

const isJsonDocument = /^application\/json\b/i

/** How much may come before the first character of an answer. Bytes. */
const maxBlankBytes = 64 * 1024

/** Of the names of fields that an event stream may begin with. */
const maxFieldNameLength = 5

function chooseDecoder(start: string, reading: BodyReading): BodyDecoder {
  const { contentType } = reading
  const areEvents = contentType.toLowerCase().startsWith('text/event-stream')
  if (start[0] === '[') return createValuesDecoder(reading, createArraySplitter(), true)
  if (start[0] === '{' && !areEvents) return createValuesDecoder(reading, createSequenceSplitter())
  const isMarkup = start[0] === '<' || contentType.startsWith('text/html')
  const beginsAsEvent = /^(?::|(?:data|event|id|retry)(?![a-z]))/.test(start)
  return !isMarkup && (areEvents || beginsAsEvent)
    ? createEventsDecoder(reading)
    : createUnknownDecoder(reading)
}

/** Where a decoder sends what it has read, before anything that follows can fail. */
export interface AnswerSink {
  text(text: string): void
  /** What `--raw` prints: each event's data as a line, or the bytes of a body of another form. */
  raw?: ((raw: Uint8Array | string) => void) | undefined
  /** Gets each value. With images an answer may have any shape, so it gets also what cannot be read. */
  images?: ImageFinder
}

/** What a body is decoded with. */
interface BodyReading {
  reader: AnswerReader
  contentType: string
  text: BodyTextDecoder
  sink: AnswerSink
  /** All bytes that were pushed: of a body that was not asked for as a stream. */
  whole: CollectedBody | undefined
}

/** Decodes a body of one form. */
interface BodyDecoder {
  /** `raw` gets the body's bytes as they are. */
  isVerbatim: boolean
  /** The body needs no mark of its end, and nothing in it is incomplete. */
  mayEndHere(): boolean
  push(bytes: Uint8Array): void
  /** Throws a `CliError` if the answer is not whole. */
  end(): void
}

/** Throws a `CliError` if the charset that a body declares was not used, and the body is not UTF-8. */
function requireText(piece: string, { text }: BodyReading): void {
  const charset = text.ignoredCharset()
  if (charset !== undefined && piece.includes('\ufffd'))
    throw notUnderstoodError(`the answer is in the character set ${charset}, and not in UTF-8`)
}

const hasEnded = (reader: AnswerReader) => reader.progress() === 'ended'

const incompleteStreamError = () =>
  notUnderstoodError('the stream ended early: the answer is not complete').with({ isCutOff: true })

/** Server-sent events: those of a message stream, or native chunks. */
function createEventsDecoder(reading: BodyReading): BodyDecoder {
  const { reader, sink } = reading
  const decoder = createSseDecoder(reading.text)
  const readAll = (events: SseEvent[]) =>
    readPieces(reading, events, 'an event of the stream', (data) => {
      if (data.trim() !== '') sink.raw?.(`${data.replaceAll('\n', '')}\n`)
    })
  return {
    isVerbatim: false,
    mayEndHere: decoder.isBetween,
    push(bytes) {
      if (!hasEnded(reader)) readAll(decoder.push(bytes))
    },
    end() {
      if (!hasEnded(reader)) {
        const { events, torn } = decoder.end()
        readAll(events)
        if (torn) throwForIncompleteEvent(reading, torn)
      }
      if (reader.progress() === 'open') throw incompleteStreamError()
    },
  }
}

/** An event that was cut off does not count, and its stream is not whole; but if it is an error, that is shown. */
function throwForIncompleteEvent(reading: BodyReading, { event, data }: SseEvent): never {
  // It may have an image, whole or not.
  if (reading.sink.images) addValue(reading, () => parseReceived(data, 'an event of the stream'), event)
  unwrapEvent(readErrorEvent(data), event)
  throw incompleteStreamError()
}

/** Reads events or chunks until one ends the answer. `what` names one, and `print` gets each as it comes. */
function readPieces(
  reading: BodyReading,
  pieces: SseEvent[],
  what: string,
  print?: (data: string) => void,
): void {
  const { reader, sink } = reading
  let text = ''
  try {
    for (const { event, data } of pieces) {
      const isError = event.toLowerCase() === 'error'
      if (!isError && isStreamEnd(data)) reader.end()
      if (hasEnded(reader)) return
      requireText(data, reading)
      print?.(data)
      if (!isError && isKeepAlive(data, event)) continue
      const parse = isError ? readErrorEvent : parseReceived
      text += addValue(reading, () => parse(data, what), event) ?? ''
    }
  } finally {
    sink.text(text)
  }
}

/** Adds an event or a chunk, or without `event` a whole body. Returns its text; `undefined` if it is not understood. */
function addValue(
  { reader, sink: { images } }: BodyReading,
  parse: () => unknown,
  event?: string,
): string | undefined {
  let value: unknown
  try {
    value = parse()
    images?.find(value)
    return event === undefined ? reader.addBody(value) : reader.addEvent(value, event)
  } catch (failure) {
    if (!images) throw failure
    images.recordFailure(failure, value, event)
    return undefined
  }
}

/**
 * A JSON array of chunks, one JSON value, or several in a row without any framing (recorded, 3). The bytes of a value that
 * was not asked for as a stream wait for its end, because its text would take up as much memory once more.
 */
function createValuesDecoder(reading: BodyReading, splitter: JsonSplitter, isArray = false): BodyDecoder {
  const { reader, contentType, text, sink, whole } = reading
  let isStream = isArray || /ndjson|jsonl|json-lines/i.test(contentType)
  const waiting = isStream ? undefined : whole
  /** The only value so far: the whole body, or the first of several. */
  let first: string | undefined

  function take(values: string[]): void {
    const all = first === undefined || isStream ? values : [first, ...values]
    if (!isStream) {
      const [one, second] = all
      first = one
      if (second === undefined) return
      isStream = second[0] === '{' || isStreamEnd(second)
      if (!isStream) parseReceivedBody(all.join('\n'), contentType)
    }
    const chunks = all.map((data) => ({ event: '', data }))
    readPieces(reading, chunks, 'a chunk of the stream')
    if (isArray && !splitter.isInside()) reader.end()
  }

  return {
    isVerbatim: true,
    mayEndHere: () => isStream && !splitter.isInside(),
    push(bytes) {
      if (!waiting && !hasEnded(reader)) take(splitter.push(text.decode(bytes, { stream: true })))
    },
    end() {
      if (hasEnded(reader)) return
      const bytes = waiting && toUtf8(waiting.bytes(), contentType)
      const last = bytes
        ? new TextDecoder().decode(sink.images?.strings.replaceLongStrings(bytes) ?? bytes)
        : text.decode()
      take(splitter.push(last))
      const rest = splitter.rest()
      if (!isStream) return addBody(reading, (first ?? '') + rest)
      if (isStreamEnd(rest)) reader.end()
      if (reader.progress() === 'open' || (splitter.isInside() && !hasEnded(reader)))
        throw incompleteStreamError()
    },
  }
}

/** How much is read of a body that is not an answer, to find its message. Bytes. */
const maxUnknownBytes = 1024 * 1024

/** A body that is not an answer; it may say why. */
function createUnknownDecoder(reading: BodyReading): BodyDecoder {
  const body = collectBody(maxUnknownBytes)
  const end = () => addBody(reading, decodeBodyText(body.bytes(), reading.contentType))
  let isFull = false
  return {
    isVerbatim: true,
    mayEndHere: () => false,
    push(bytes) {
      if (isFull) return
      isFull = body.add(bytes) === maxUnknownBytes
      if (isFull) end()
    },
    end,
  }
}

function addBody(reading: BodyReading, body: string): void {
  const { reader, sink, contentType } = reading
  requireText(body, reading)
  const text = addValue(reading, () => parseReceivedBody(body, contentType))
  if (text === undefined) return
  sink.text(text)
  if (reader.progress() === 'open') throw incompleteStreamError()
}
