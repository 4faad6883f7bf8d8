import { createTextDecoding } from '../charset.ts'
import { createArraySplitter, createSequenceSplitter } from '../json/array.ts'
import { parse, parseBody } from '../json-body.ts'
import { isKeepAlive, isTerminator } from '../stream-words.ts'
import { type AnswerSink, brokenOff, type Form } from './answer-form.ts'
import type { AnswerReader } from './answer-reader.ts'

/** How much is read of what is no answer, for the sake of its title. Characters. */
const longestStranger = 1024 * 1024

/** A JSON array of chunks. */
export function readArray(reader: AnswerReader, contentType: string, sink: AnswerSink): Form {
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
      if (!isKeepAlive(chunk)) text += reader.addEvent(parse(chunk, 'a chunk of the stream'))
    }
  } finally {
    sink.text(text)
  }
}

/** One JSON value, or several in a row, without any framing (recorded, 3). */
export function readValues(reader: AnswerReader, contentType: string, sink: AnswerSink): Form {
  const decode = createTextDecoding(contentType)
  const splitter = createSequenceSplitter()
  let isStream = /ndjson|jsonl|json-?lines/i.test(contentType)
  /** The only value so far: a body of its own, or the first of several. */
  let first: string | undefined

  function take(values: string[]): void {
    const all = first === undefined || isStream ? values : [first, ...values]
    if (!isStream) {
      const [one, second] = all
      first = one
      if (second === undefined) return
      isStream = second[0] === '{' || isTerminator(second)
      if (!isStream) parseBody(all.join('\n'), contentType)
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
      if (!isStream) return addBody(reader, parseBody((first ?? '') + rest, contentType), sink)
      if (isTerminator(rest)) reader.end()
      if (!reader.isWhole || (rest !== '' && !reader.ended)) throw brokenOff()
      reader.requireReadable()
    },
  }
}

/** What is no answer, but may say why. */
export function readStranger(reader: AnswerReader, contentType: string, sink: AnswerSink): Form {
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
      if (size > longestStranger) parseBody(`${pieces.join('')}…`, contentType)
    },
    end() {
      addBody(reader, parseBody(pieces.join('') + decode(new Uint8Array(), true), contentType), sink)
    },
  }
}

function addBody(reader: AnswerReader, value: unknown, sink: AnswerSink): void {
  sink.text(reader.addBody(value))
  reader.requireReadable()
}
