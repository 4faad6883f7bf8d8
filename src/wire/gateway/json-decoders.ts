import { createTextDecoding } from '../charset.ts'
import { createArraySplitter, createSequenceSplitter } from '../json/splitter.ts'
import { parseReceived, parseReceivedBody } from '../received-json.ts'
import { isKeepAlive, isTerminator } from '../stream-words.ts'
import type { AnswerReader } from './answer-reader.ts'
import { type AnswerSink, type BodyDecoder, brokenOff } from './body-decoder.ts'

/** How much is read of a body that is not an answer, to find its message. Characters. */
const longestStranger = 1024 * 1024

/** A JSON array of chunks. */
export function createArrayDecoder(reader: AnswerReader, contentType: string, sink: AnswerSink): BodyDecoder {
  const decode = createTextDecoding(contentType)
  const splitter = createArraySplitter()

  function read(text: string): void {
    readChunks(reader, splitter.push(text), sink)
    if (splitter.closed) reader.end()
  }

  return {
    isVerbatim: true,
    mayEndHere: false,
    push(bytes) {
      sink.raw?.(bytes)
      if (!reader.ended) read(decode(bytes))
    },
    end() {
      if (!reader.ended) read(decode(new Uint8Array(), true))
      if (!reader.ended) throw brokenOff()
      reader.requireReadable()
    },
  }
}

function readChunks(reader: AnswerReader, chunks: string[], sink: AnswerSink): void {
  let text = ''
  try {
    for (const chunk of chunks) {
      if (isTerminator(chunk)) reader.end()
      if (reader.ended) return
      if (!isKeepAlive(chunk)) text += reader.addEvent(parseReceived(chunk, 'a chunk of the stream'))
    }
  } finally {
    sink.text(text)
  }
}

/** One JSON value, or several in a row, without any framing (recorded, 3). */
export function createSequenceDecoder(
  reader: AnswerReader,
  contentType: string,
  sink: AnswerSink,
): BodyDecoder {
  const decode = createTextDecoding(contentType)
  const splitter = createSequenceSplitter()
  let isStream = /ndjson|jsonl|json-?lines/i.test(contentType)
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
    readChunks(reader, all, sink)
  }

  return {
    isVerbatim: true,
    get mayEndHere() {
      return isStream && !splitter.isInside
    },
    push(bytes) {
      sink.raw?.(bytes)
      take(splitter.push(decode(bytes)))
    },
    end() {
      take(splitter.push(decode(new Uint8Array(), true)))
      const { rest } = splitter
      if (!isStream) return addBody(reader, parseReceivedBody((first ?? '') + rest, contentType), sink)
      if (isTerminator(rest)) reader.end()
      if (!reader.isWhole || (rest !== '' && !reader.ended)) throw brokenOff()
      reader.requireReadable()
    },
  }
}

/** A body that is not an answer; it may say why. */
export function createStrangerDecoder(
  reader: AnswerReader,
  contentType: string,
  sink: AnswerSink,
): BodyDecoder {
  const decode = createTextDecoding(contentType)
  const pieces: string[] = []
  let size = 0
  return {
    isVerbatim: true,
    mayEndHere: false,
    push(bytes) {
      sink.raw?.(bytes)
      const piece = decode(bytes)
      pieces.push(piece)
      size += piece.length
      if (size > longestStranger) parseReceivedBody(`${pieces.join('')}…`, contentType)
    },
    end() {
      addBody(reader, parseReceivedBody(pieces.join('') + decode(new Uint8Array(), true), contentType), sink)
    },
  }
}

function addBody(reader: AnswerReader, value: unknown, sink: AnswerSink): void {
  sink.text(reader.addBody(value))
  reader.requireReadable()
}
