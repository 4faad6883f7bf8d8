import { type CollectedBody, collectBody } from '../exchange.ts'
import { createArraySplitter, createSequenceSplitter, type JsonSplitter } from '../json/splitter.ts'
import { notUnderstood } from '../problem/problem.ts'
import { parseReceived, parseReceivedBody, readErrorEvent } from '../received-json.ts'
import { createSseDecoder, isKeepAlive, isTerminator, type SseEvent } from '../sse.ts'
import { AnswerReader, type Progress } from './answer-reader.ts'
import type { ImageFinder } from './found-images.ts'

/**
 * Turns an answer's bytes into its text. The body's first characters decide its form, not what was asked for; the content
 * type decides only between events and text. Only a single native value without an end is whole or not by what was asked
 * for, unless its content type says that it is a document: a gateway may answer without a stream.
 */
export function createAnswerDecoder(contentType: string, sink: AnswerSink, isStreamed = false) {
  const reader = new AnswerReader(isStreamed && !isJsonDocument.test(contentType))
  const head = createHead()
  let unread: CollectedBody | undefined = collectBody()
  let decoder: BodyDecoder | undefined

  function open(): BodyDecoder {
    const start = unread?.bytes() ?? new Uint8Array()
    const whole = isStreamed ? undefined : unread
    // --raw has printed it.
    if (isStreamed && sink.raw) unread = undefined
    const watched: AnswerSink = {
      ...sink,
      text(text) {
        if (unread && !sink.images && text.trim() !== '') unread = undefined
        sink.text(text)
      },
    }
    decoder = chooseDecoder(head.start(), { reader, contentType, sink: watched, whole })
    take(decoder, start)
    return decoder
  }

  function take(decoder: BodyDecoder, bytes: Uint8Array): void {
    if (decoder.isVerbatim) sink.raw?.(bytes)
    decoder.push(bytes)
  }

  return {
    summary: reader.summary,
    /** What the answer has beside text. */
    holds: reader.holds,
    /** The body, as far as it came, until some text comes of it: it may be all that there is of an answer. */
    unread: () => unread?.bytes() ?? new Uint8Array(),
    /** In the middle of a value it is never `settled`. */
    progress(): Progress {
      const progress = reader.progress()
      return progress === 'settled' && !decoder?.mayEndHere() ? 'finished' : progress
    },
    /** How many values have brought text, or an image. */
    received: () => reader.received(),
    /** `--raw` prints the body as it is, including what follows the answer's end. */
    isVerbatim: () => decoder?.isVerbatim ?? false,
    /** Throws a `CliError` if the bytes are not understood. */
    push(bytes: Uint8Array): void {
      unread?.add(bytes)
      if (decoder) take(decoder, bytes)
      else if (head.push(bytes)) open()
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

/** How many bytes of blanks may come before an answer. */
const longestBlank = 64 * 1024

/** Collects a body's first characters; `push` says whether they are enough to know its form. */
function createHead() {
  let blanks = 0
  let start = ''
  function take(byte: number): boolean {
    const char = String.fromCharCode(byte)
    if (start === '' && /[\s\u00ef\u00bb\u00bf]/.test(char)) return ++blanks >= longestBlank
    start += char
    return start.length > longestField || !/[a-z]/.test(char)
  }
  return {
    start: () => start,
    push: (bytes: Uint8Array): boolean => bytes.some(take),
  }
}

/** The fields that an event stream may begin with. */
const eventFields = ['data', 'event', 'id', 'retry']
const longestField = 5

function chooseDecoder(start: string, reading: BodyReading): BodyDecoder {
  const { contentType } = reading
  const areEvents = contentType.toLowerCase().startsWith('text/event-stream')
  if (start[0] === '[') return createValuesDecoder(reading, createArraySplitter(), true)
  if (start[0] === '{' && !areEvents) return createValuesDecoder(reading, createSequenceSplitter())
  const isMarkup = start[0] === '<' || contentType.startsWith('text/html')
  const beginsAsEvent = start[0] === ':' || eventFields.includes(/^[a-z]*/.exec(start)?.[0] ?? '')
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

/**
 * Decodes UTF-8, which JSON and event streams are. A body that says otherwise most often is UTF-8 all the same; one that is
 * not is read up to its first other byte, and then throws a `CliError`.
 */
function createTextDecoding(contentType: string): (bytes: Uint8Array, isLast?: boolean) => string {
  const charset = /charset\s*=\s*"?([^";\s]+)/i.exec(contentType)?.[1] ?? 'utf-8'
  const decoder = new TextDecoder()
  let isOther = false
  return (bytes, isLast = false) => {
    const text = decoder.decode(bytes, { stream: !isLast })
    const other = /^utf-?8$/i.test(charset) ? -1 : text.indexOf('\ufffd')
    if (isOther || (other >= 0 && isLast))
      throw notUnderstood(`the answer is in the character set ${charset}, and not in UTF-8`)
    isOther = other >= 0
    return isOther ? text.slice(0, other) : text
  }
}

const hasEnded = (reader: AnswerReader) => reader.progress() === 'ended'

const brokenOff = () =>
  notUnderstood('the stream ended early: the answer is not complete').with({ brokeOff: true })

/** Server-sent events: those of a message stream, or native chunks. */
function createEventsDecoder(reading: BodyReading): BodyDecoder {
  const { reader, contentType, sink } = reading
  const decoder = createSseDecoder({ decode: createTextDecoding(contentType), acceptsBare: true })

  function read(data: string, event: string): string {
    const isError = event.length === 5 && event.toLowerCase() === 'error'
    if (!isError && isTerminator(data)) {
      reader.end()
      return ''
    }
    if (data.trim() !== '') sink.raw?.(`${data.replaceAll('\n', '')}\n`)
    if (!isError && isKeepAlive(data, event)) return ''
    const parse = isError ? readErrorEvent : parseReceived
    return addValue(reading, () => parse(data, 'an event of the stream'), event)
  }

  function readAll(events: SseEvent[]): void {
    let text = ''
    try {
      for (const { event, data } of events) {
        text += read(data, event)
        if (hasEnded(reader)) break
      }
    } finally {
      sink.text(text)
    }
  }

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
        if (torn && isTerminator(torn.data)) reader.end()
        else if (torn) throwForTorn(reading, torn)
      }
      if (reader.progress() === 'open') throw brokenOff()
    },
  }
}

/** An event that was cut off does not count, and its stream is not whole; but if it is an error, that is shown. */
function throwForTorn(reading: BodyReading, { event, data }: SseEvent): never {
  // It may have an image, whole or not.
  if (reading.sink.images) addValue(reading, () => parseReceived(data, 'an event of the stream'), event)
  reading.reader.throwIfError(readErrorEvent(data), event)
  throw brokenOff()
}

/** How much is read of a body that is not an answer, to find its message. Characters. */
const longestUnknown = 1024 * 1024

/** Adds an event or a chunk; returns the text that it adds. */
function addValue({ reader, sink: { images } }: BodyReading, parse: () => unknown, event = ''): string {
  let value: unknown
  try {
    value = parse()
    images?.find(value)
    return reader.addEvent(value, event)
  } catch (failure) {
    if (!images) throw failure
    images.refuse(failure, value, event)
    return ''
  }
}

function readChunks(reading: BodyReading, chunks: string[]): void {
  const { reader, sink } = reading
  let text = ''
  try {
    for (const chunk of chunks) {
      if (isTerminator(chunk)) reader.end()
      if (hasEnded(reader)) return
      if (!isKeepAlive(chunk, ''))
        text += addValue(reading, () => parseReceived(chunk, 'a chunk of the stream'))
    }
  } finally {
    sink.text(text)
  }
}

/**
 * A JSON array of chunks, one JSON value, or several in a row without any framing (recorded, 3). The bytes of a value that
 * was not asked for as a stream wait for its end, because its text would take up as much memory once more.
 */
function createValuesDecoder(reading: BodyReading, splitter: JsonSplitter, isArray = false): BodyDecoder {
  const { reader, contentType, sink, whole } = reading
  const decode = createTextDecoding(contentType)
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
      isStream = second[0] === '{' || isTerminator(second)
      if (!isStream) parseReceivedBody(all.join('\n'), contentType)
    }
    readChunks(reading, all)
    if (isArray && !splitter.isInside()) reader.end()
  }

  return {
    isVerbatim: true,
    mayEndHere: () => isStream && !splitter.isInside(),
    push(bytes) {
      if (!waiting && !hasEnded(reader)) take(splitter.push(decode(bytes)))
    },
    end() {
      if (hasEnded(reader)) return
      const bytes = waiting?.bytes() ?? new Uint8Array()
      take(splitter.push(decode(sink.images?.cutOut(bytes) ?? bytes, true)))
      const rest = splitter.rest()
      if (!isStream) return addBody(reading, parseReceivedBody((first ?? '') + rest, contentType))
      if (isTerminator(rest)) reader.end()
      if (reader.progress() === 'open' || (splitter.isInside() && !hasEnded(reader))) throw brokenOff()
    },
  }
}

/** A body that is not an answer; it may say why. */
function createUnknownDecoder(reading: BodyReading): BodyDecoder {
  const { contentType } = reading
  const decode = createTextDecoding(contentType)
  const pieces: string[] = []
  let size = 0
  return {
    isVerbatim: true,
    mayEndHere: () => false,
    push(bytes) {
      const piece = decode(bytes)
      pieces.push(piece)
      size += piece.length
      if (size > longestUnknown) parseReceivedBody(`${pieces.join('')}…`, contentType)
    },
    end() {
      addBody(reading, parseReceivedBody(pieces.join('') + decode(new Uint8Array(), true), contentType))
    },
  }
}

function addBody({ reader, sink }: BodyReading, value: unknown): void {
  sink.images?.find(value)
  try {
    sink.text(reader.addBody(value))
  } catch (failure) {
    if (!sink.images) throw failure
    sink.images.refuse(failure, value)
    return
  }
  if (reader.progress() === 'open') throw brokenOff()
}
