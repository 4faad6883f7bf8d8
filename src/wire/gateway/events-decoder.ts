import { createTextDecoding } from '../charset.ts'
import { parseReceived } from '../received-json.ts'
import { createSseDecoder, type SseEvent } from '../sse.ts'
import { isKeepAlive, isTerminator, readErrorEvent } from '../stream-words.ts'
import type { AnswerReader } from './answer-reader.ts'
import { type AnswerSink, type BodyDecoder, brokenOff } from './body-decoder.ts'

/** Server-sent events: those of a message stream, or native chunks. */
export function createEventsDecoder(
  reader: AnswerReader,
  contentType: string,
  sink: AnswerSink,
): BodyDecoder {
  const decoder = createSseDecoder({ decode: createTextDecoding(contentType), acceptsBare: true })
  /** A stream with a terminator alone is an answer without text. */
  let hasValues = false

  function read(data: string, event: string): string {
    const isError = event.length === 5 && event.toLowerCase() === 'error'
    if (!isError && isTerminator(data)) {
      reader.end()
      return ''
    }
    if (data.trim() !== '') sink.raw?.(`${data.replaceAll('\n', '')}\n`)
    if (isError) return reader.addEvent(readErrorEvent(data), event)
    if (isKeepAlive(data, event)) return ''
    hasValues = true
    return reader.addEvent(parseReceived(data, 'an event of the stream'), event)
  }

  function readAll(events: SseEvent[]): void {
    let text = ''
    try {
      for (const { event, data } of events) {
        text += read(data, event)
        if (reader.ended) break
      }
    } finally {
      sink.text(text)
    }
  }

  return {
    isVerbatim: false,
    get mayEndHere() {
      return decoder.isBetween
    },
    push: (bytes) => readAll(decoder.push(bytes)),
    end() {
      if (!reader.ended) {
        const { events, torn } = decoder.end()
        readAll(events)
        if (torn && isTerminator(torn.data)) reader.end()
        else if (torn) throwForTorn(reader, torn)
      }
      if (!reader.isWhole) throw brokenOff()
      if (hasValues) reader.requireReadable()
    },
  }
}

/** An event that was cut off does not count, and its stream is not whole; but if it is an error, that is shown. */
function throwForTorn(reader: AnswerReader, { event, data }: SseEvent): never {
  reader.throwIfError(readErrorEvent(data), event)
  throw brokenOff()
}
