import { type AnswerReader, type AnswerSummary, createAnswerReader } from './answer.ts'
import { createArraySplitter } from './json-array.ts'
import { notUnderstood, parse, parseBody } from './json-body.ts'
import { createSseDecoder } from './sse.ts'

/** Where a decoder hands on what it found, before anything that follows it can fail. */
export interface AnswerSink {
  text(text: string): void
  /** What `--raw` prints: each event's data as a line, or the bytes of a body that is no event stream. */
  raw(raw: Uint8Array | string): void
}

/** Turns an answer's bytes, in whichever form they come, into its text. */
export interface AnswerDecoder {
  readonly summary: AnswerSummary
  /** The service said that the answer is whole. */
  readonly whole: boolean
  /** The service said that nothing follows. */
  readonly ended: boolean
  /** Throws a `CliError` where the bytes are not understood. */
  push(bytes: Uint8Array): void
  /** Throws a `CliError` where the answer is not whole. */
  end(): void
}

/** A way of reading a body: a stream of events, a JSON array of chunks, or one JSON value. */
type Form = Pick<AnswerDecoder, 'push' | 'end'>

/** How many bytes of blanks may stand before an answer. */
const longestBlank = 64 * 1024

/** How much is read of what is no answer, for the sake of its title. Characters. */
const longestStranger = 1024 * 1024

/**
 * The form is known by the body's first character, not by what was asked for; the content type decides only
 * between events and text.
 */
export function createAnswerDecoder(contentType: string, sink: AnswerSink): AnswerDecoder {
  const reader = createAnswerReader()
  let head: Uint8Array = new Uint8Array()
  let form: Form | undefined

  return {
    summary: reader.summary,
    get whole() {
      return reader.whole
    },
    get ended() {
      return reader.ended
    },
    push(bytes) {
      if (form) return form.push(bytes)
      head = Buffer.concat([head, bytes])
      const start = new TextDecoder().decode(head).trimStart()
      if (start === '' && head.length < longestBlank) return
      form = chooseForm(start, contentType)(reader, contentType, sink)
      form.push(head)
    },
    end() {
      form ??= chooseForm('', contentType)(reader, contentType, sink)
      form.end()
    },
  }
}

function chooseForm(start: string, contentType: string): typeof readJson {
  if (start[0] === '[') return readArray
  if (start[0] === '{' || contentType.startsWith('text/html')) return readJson
  const areEvents =
    contentType.startsWith('text/event-stream') || /^(:|data\b|event\b|id\b|retry\b)/.test(start)
  return areEvents ? readEvents : readJson
}

function readEvents(reader: AnswerReader, _contentType: string, sink: AnswerSink): Form {
  const decoder = createSseDecoder()
  /** `[DONE]` alone is an answer without text. */
  let isSilent = true

  function read(data: string, event: string): string {
    // A keep-alive: there is nothing in it to understand.
    if (data.trim() === '') return ''
    if (data.trim() === '[DONE]') {
      reader.end()
      return ''
    }
    isSilent = false
    sink.raw(`${data.replaceAll('\n', '')}\n`)
    return reader.addEvent(parse(data, 'an event of the stream'), event)
  }

  return {
    push(bytes) {
      let text = ''
      try {
        for (const { event, data } of decoder.push(bytes)) {
          text += read(data, event)
          if (reader.ended) break
        }
      } finally {
        sink.text(text)
      }
    },
    end() {
      if (!reader.whole) throw brokenOff()
      if (!isSilent) requireKnown(reader)
    },
  }
}

function readArray(reader: AnswerReader, contentType: string, sink: AnswerSink): Form {
  const decoder = createTextDecoder(contentType)
  const splitter = createArraySplitter()
  return {
    push(bytes) {
      sink.raw(bytes)
      for (const element of splitter.push(decoder.decode(bytes, { stream: true }))) {
        sink.text(reader.addEvent(parse(element, 'a chunk of the stream')))
      }
      if (splitter.closed) reader.end()
    },
    end() {
      if (!splitter.closed) throw brokenOff()
      requireKnown(reader)
    },
  }
}

function readJson(reader: AnswerReader, contentType: string, sink: AnswerSink): Form {
  const decoder = createTextDecoder(contentType)
  const pieces: string[] = []
  let size = 0
  let isObject: boolean | undefined
  return {
    push(bytes) {
      sink.raw(bytes)
      const piece = decoder.decode(bytes, { stream: true })
      pieces.push(piece)
      size += piece.length
      isObject ??= piece.trimStart()[0] === '{'
      // Nothing else can become an answer: it is not kept in memory to its end.
      if (!isObject && size > longestStranger) parseBody(`${pieces.join('')}…`, contentType)
    },
    end() {
      sink.text(reader.addBody(parseBody(pieces.join('') + decoder.decode(), contentType)))
    },
  }
}

function createTextDecoder(contentType: string) {
  const charset = /charset\s*=\s*"?([^";\s]+)/i.exec(contentType)?.[1] ?? 'utf-8'
  try {
    return new TextDecoder(charset)
  } catch {
    throw notUnderstood(`the answer is in an unknown character set, ${charset}`)
  }
}

function requireKnown(reader: AnswerReader): void {
  if (!reader.isKnown) throw notUnderstood('the stream is whole, but holds nothing of a documented shape')
}

const brokenOff = () => notUnderstood('the stream ended early, without saying that it was whole')
