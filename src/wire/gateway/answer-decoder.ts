import { CliError } from '../../errors.ts'
import { type BodyCollector, createBodyCollector } from '../exchange.ts'
import { tryParseJson } from '../json/parse.ts'
import { createJsonArraySplitter, createJsonSequenceSplitter, type JsonSplitter } from '../json/splitter.ts'
import { isMarkup } from '../markup.ts'
import { createResponseError } from '../problem/problem.ts'
import { parseReceivedBody, parseReceivedJson, readErrorEvent } from '../received-json.ts'
import { createSseDecoder, isKeepAliveEvent, isStreamEnd, type SseEvent } from '../sse.ts'
import { isMessageAnswer, isNativeAnswer } from './answer-forms.ts'
import { type AnswerProgress, AnswerReader } from './answer-reader.ts'
import type { ImageFinder } from './found-images.ts'

/**
 * Decodes the bytes of an answer into text. The first characters of the body decide its format, because a
 * gateway may ignore the request for a stream. The content type only distinguishes an event stream from plain
 * text. If a stream was requested, one native chunk without a finish reason is incomplete, since the stream
 * may have been cut. If the content type is JSON, such a chunk is a whole answer.
 */
export function createAnswerDecoder(contentType: string, sink: AnswerSink, isStreamed = false) {
  const reader = new AnswerReader(isStreamed && !isJsonDocument.test(contentType))
  // The format requires UTF-8, so a declared charset is usually wrong.
  const text = new TextDecoder()
  let start = ''
  const received = createBodyCollector()
  const reading: BodyReading = { reader, contentType, text, sink, isStreamed, received }
  let decoder: BodyDecoder | undefined
  let isWhole = false

  function open(): BodyDecoder {
    decoder = chooseDecoder(start, reading)
    decoder.push(received.bytes())
    return decoder
  }

  const isUnread = () => sink.images !== undefined || !reader.hasText

  function mayBePaid(): boolean {
    if (start === '' || (start[0] === '<' && !sink.images)) return false
    if (reader.otherContent.size > 0 || reader.hasText) return true
    return reading.failure ? !isOnlyError(reading.failure) : !isWhole && !decoder?.mayEndHere()
  }

  return {
    summary: reader.summary,
    otherContent: reader.otherContent,
    /**
     * Returns the received body if it may be the only copy of a paid answer. Returns an empty body if text was
     * decoded and images are not searched, and for a body without content: only an error, a web page, or
     * events such as `message_start`.
     */
    unread: () => (isUnread() && mayBePaid() ? received.bytes() : new Uint8Array()),
    /**
     * Returns the reader's progress, with two exceptions. Inside an incomplete JSON value, the answer is not
     * `settled`, because the rest of the value may still arrive. After an unreadable event, the answer is
     * `settled`, because the answer has failed, and its rest may never arrive.
     */
    progress(): AnswerProgress {
      const progress = reader.progress()
      if (reading.failure && progress !== 'ended') return 'settled'
      return progress === 'settled' && !decoder?.mayEndHere() ? 'finished' : progress
    },
    contentCount: () => reader.contentCount,
    hasContent: () => reader.contentCount > 0 || [...reader.otherContent].some((what) => what !== 'thoughts'),
    push(bytes: Uint8Array): void {
      // Only `--raw` prints the blanks before an answer. Without `--raw`, the blanks are not stored, because
      // a service may send blanks without end.
      if (!decoder && !sink.raw && skipBlankBytes(bytes).length === 0) return
      if (isUnread()) received.add(bytes)
      if (!decoder) {
        // parley recognizes a format by ASCII characters, so Latin-1 is sufficient here. Latin-1 has one
        // character per byte, so even a byte order mark may be split over two chunks.
        const { buffer, byteOffset, length } = bytes
        start += Buffer.from(buffer, byteOffset, length).toString('latin1')
        start = start.replace(/^(?:\xef\xbb\xbf|[ \t\r\n])+/, '').slice(0, maxFieldNameLength + 1)
        if (start.length > maxFieldNameLength || !/^(?:\xef\xbb?|[a-z]*)$/.test(start)) open()
      } else decoder.push(bytes)
    },
    /** Throws a `CliError` if the answer is incomplete or partly unreadable, or if another answer follows. */
    end(): void {
      try {
        ;(decoder ?? open()).end()
      } catch (failure) {
        throw reading.failure ?? failure
      }
      if (reading.failure) throw reading.failure
      if (reader.hasSecondAnswer)
        throw createResponseError('the service sent a second answer after the first')
      isWhole = true
    },
  }
}

export type AnswerDecoder = ReturnType<typeof createAnswerDecoder>

/** A body that is an error and also has content of an answer may be the only copy of a paid answer. */
function isOnlyError(failure: unknown): boolean {
  if (!(failure instanceof CliError)) return false
  const { errorIn, body } = failure.details
  return errorIn !== undefined && !isMessageAnswer(body) && !isNativeAnswer(body)
}

const isJsonDocument = /^application\/json\b/i

/**
 * Uses a plain loop, because `findIndex` is 14 times slower, and a small compressed body may contain 512 MiB of
 * blanks.
 */
function skipBlankBytes(bytes: Uint8Array): Uint8Array {
  const { length } = bytes
  let start = 0
  while (start < length && isBlankByte(bytes[start])) start++
  return bytes.subarray(start)
}

const isBlankByte = (byte: number | undefined) =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** Length of `event` and `retry`, the longest field names with which an event stream may start. */
const maxFieldNameLength = 5

function chooseDecoder(start: string, reading: BodyReading): BodyDecoder {
  const { contentType } = reading
  const areEvents = contentType.toLowerCase().startsWith('text/event-stream')
  if (start[0] === '[') return createValuesDecoder(reading, createJsonArraySplitter(), true)
  if (start[0] === '{' && !areEvents) return createValuesDecoder(reading, createJsonSequenceSplitter())
  const isPage = isMarkup(start) || contentType.startsWith('text/html')
  const beginsAsEvent = /^(?::|(?:data|event|id|retry)(?![a-z]))/.test(start)
  return !isPage && (areEvents || beginsAsEvent)
    ? createEventsDecoder(reading)
    : createUnknownDecoder(reading)
}

/** Receives content as soon as it is decoded, so a later failure does not lose it. */
interface AnswerSink {
  text(text: string): void
  /** Receives the data of each stream event as a line, or the bytes of any other body, for `--raw`. */
  raw?: ((raw: Uint8Array | string) => void) | undefined
  /** Receives the JSON of each body, event or chunk with content that is not in the text, such as an image. */
  unprinted?: (json: string) => void
  images?: ImageFinder
}

interface BodyReading {
  reader: AnswerReader
  contentType: string
  text: InstanceType<typeof TextDecoder>
  sink: AnswerSink
  isStreamed: boolean
  /** The bytes that arrived before the decoder found text. */
  received: BodyCollector
  /** First failure to read a part of the body, which is thrown at the end of the body. */
  failure?: unknown
}

interface BodyDecoder {
  /**
   * Returns true if the received bytes can be the whole body: no value is incomplete, and no end marker is
   * missing.
   */
  mayEndHere(): boolean
  push(bytes: Uint8Array): void
  end(): void
}

const isEnded = (reader: AnswerReader) => reader.progress() === 'ended'

const incompleteStreamError = () =>
  createResponseError('the stream ended early: the answer is not complete').with({ isCutOff: true })

function createEventsDecoder(reading: BodyReading): BodyDecoder {
  const { reader, sink } = reading
  const decoder = createSseDecoder()
  const readAll = (events: SseEvent[]) =>
    readPieces(reading, events, 'an event of the stream', (data) => {
      if (data.trim() !== '') sink.raw?.(`${data.replaceAll('\n', '')}\n`)
    })
  return {
    mayEndHere: decoder.isBetweenEvents,
    push(bytes) {
      if (!isEnded(reader)) readAll(decoder.push(bytes))
    },
    end() {
      if (!isEnded(reader)) {
        const { events, partial } = decoder.end()
        readAll(events)
        if (partial) {
          // The received part of the event may contain text or an image that the user paid for.
          const isError = partial.event.toLowerCase() === 'error'
          if (sink.images || isError || tryParseJson(partial.data) !== undefined) readAll([partial])
          throw incompleteStreamError()
        }
      }
      if (reader.progress() === 'open') throw incompleteStreamError()
    },
  }
}

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
      if (isEnded(reader)) return
      print?.(data)
      if (!isError && isKeepAliveEvent(data, event)) continue
      const parse = isError ? readErrorEvent : parseReceivedJson
      text += addValue(reading, data, (json) => parse(json, what), event) ?? ''
    }
  } finally {
    sink.text(text)
  }
}

/**
 * Adds a value to the reader and the image finder. `event` is absent for a whole body. Returns the text of
 * the value, or `undefined` if the value is unreadable and the failure is stored.
 */
function addValue(
  reading: BodyReading,
  json: string,
  parse: (json: string) => unknown,
  event?: string,
): string | undefined {
  const { reader, sink } = reading
  const { images, raw } = sink
  const { unprintedCount } = reader
  let value: unknown
  try {
    value = parse(json)
    images?.find(value)
    const text = event === undefined ? reader.addBody(value) : reader.addEvent(value, event)
    if (reader.unprintedCount > unprintedCount) sink.unprinted?.(json)
    return text
  } catch (failure) {
    const isUnreadable = failure instanceof CliError && failure.details.errorIn === undefined
    // `--raw` prints JSON of any form, and images may be in JSON of any form. So an unknown form is not a failure.
    if ((raw || images) && value !== undefined && isUnreadable) {
      reader.otherContent.add('something else')
      return ''
    }
    // parley continues after an unreadable event, because the user paid for the text or the images that may
    // follow. Two events stop it: an error event, which ends the answer, and an unreadable event before any
    // text, because such a stream may never end. `--raw` prints the rest in any case.
    const continues = event !== undefined && isUnreadable && (images || reader.hasText)
    reading.failure ??= failure
    if (!continues && !raw) throw failure
    return undefined
  }
}

/**
 * Decodes a JSON body: an array of chunks, one value, or several consecutive values (src/wire/README.md:
 * recorded, 3). If no stream was requested, decodes the body at its end. Until then, only the bytes are
 * stored, because the text would double the memory.
 */
function createValuesDecoder(reading: BodyReading, splitter: JsonSplitter, isArray = false): BodyDecoder {
  const { reader, contentType, text, sink, isStreamed, received } = reading
  reader.isListOfChunks = isArray
  let isStream = isArray || /ndjson|jsonl|json-lines/i.test(contentType)
  const waiting = isStream || isStreamed ? undefined : received
  let first: string | undefined

  function take(values: string[]): void {
    const all = first === undefined || isStream ? values : [first, ...values]
    if (!isStream) {
      const [one, second] = all
      first = one
      if (second === undefined) return
      isStream = true
      if (second[0] !== '{' && !isStreamEnd(second)) {
        addBody(reading, all.join('\n'))
        return
      }
    }
    const chunks = all.map((data) => ({ event: '', data }))
    readPieces(reading, chunks, 'a chunk of the stream')
    if (isArray && !splitter.isInside()) reader.end()
  }

  return {
    mayEndHere: () => isStream && !splitter.isInside(),
    push(bytes) {
      sink.raw?.(bytes)
      if (!waiting && !isEnded(reader)) take(splitter.push(text.decode(bytes, { stream: true })))
    },
    end() {
      if (isEnded(reader)) return
      const whole = waiting?.bytes()
      const bytes = whole && (sink.images?.strings.replaceLongStrings(whole) ?? whole)
      take(splitter.push(text.decode(bytes)))
      const rest = splitter.rest()
      if (!isStream) return addBody(reading, (first ?? '') + rest)
      if (isStreamEnd(rest)) reader.end()
      if (reader.progress() === 'open' || (splitter.isInside() && !isEnded(reader)))
        throw incompleteStreamError()
    },
  }
}

const maxUnknownBytes = 1024 * 1024

/** Reads the start of a body of unknown format, such as a web page. The body may contain an error message. */
function createUnknownDecoder(reading: BodyReading): BodyDecoder {
  const { sink, received } = reading
  let isRead = false
  function end(): void {
    if (!isRead) addBody(reading, new TextDecoder().decode(received.bytes().subarray(0, maxUnknownBytes)))
    isRead = true
  }
  return {
    mayEndHere: () => false,
    push(bytes) {
      sink.raw?.(bytes)
      // The body may itself be an image, which is saved whole.
      if (!sink.images && received.bytes().length >= maxUnknownBytes) end()
    },
    end,
  }
}

function addBody(reading: BodyReading, body: string): void {
  const { reader, sink, contentType } = reading
  const text = addValue(reading, body, (json) => parseReceivedBody(json, contentType))
  if (text === undefined) return
  sink.text(text)
  if (reader.progress() === 'open') throw incompleteStreamError()
}
