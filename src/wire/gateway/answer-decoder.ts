import type { AnswerSummary } from './answer-piece.ts'
import { createAnswerReader } from './answer-reader.ts'
import type { AnswerSink, BodyDecoder } from './body-decoder.ts'
import { createEventsDecoder } from './events-decoder.ts'
import { createArrayDecoder, createSequenceDecoder, createStrangerDecoder } from './json-decoders.ts'

/** Turns an answer's bytes into its text, whatever form the body has. */
export interface AnswerDecoder {
  readonly summary: AnswerSummary
  /** The service said that nothing follows. */
  readonly ended: boolean
  /** How many values have brought text. */
  readonly received: number
  /** The answer is whole if nothing follows, though the service did not say so. */
  readonly isSettled: boolean
  /** `--raw` prints the body as it is, including what follows the answer's end. */
  readonly isVerbatim: boolean
  /** Throws a `CliError` where the bytes are not understood. */
  push(bytes: Uint8Array): void
  /** Throws a `CliError` where the answer is not whole. */
  end(): void
}

/**
 * The body's first characters decide its form, not what was asked for; the content type decides only between events
 * and text.
 */
export function createAnswerDecoder(contentType: string, sink: AnswerSink): AnswerDecoder {
  const reader = createAnswerReader()
  const head = createHead()
  const kept: Uint8Array[] = []
  let decoder: BodyDecoder | undefined

  function open(): BodyDecoder {
    decoder = chooseDecoder(head.start, contentType)(reader, contentType, sink)
    for (const bytes of kept.splice(0)) decoder.push(bytes)
    return decoder
  }

  return {
    summary: reader.summary,
    get ended() {
      return reader.ended
    },
    get received() {
      return reader.received
    },
    get isSettled() {
      return reader.isSettled && (decoder?.mayEndHere ?? false)
    },
    get isVerbatim() {
      return decoder?.isVerbatim ?? false
    },
    push(bytes) {
      if (decoder) return decoder.push(bytes)
      kept.push(bytes)
      if (head.push(bytes)) open()
    },
    end() {
      const chosen = decoder ?? open()
      chosen.end()
    },
  }
}

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
    get start() {
      return start
    },
    push: (bytes: Uint8Array): boolean => bytes.some(take),
  }
}

/** The fields that an event stream may begin with. */
const eventFields = ['data', 'event', 'id', 'retry']
const longestField = 5

function chooseDecoder(start: string, contentType: string): typeof createEventsDecoder {
  const areEvents = contentType.toLowerCase().startsWith('text/event-stream')
  if (start[0] === '[') return createArrayDecoder
  if (start[0] === '{') return areEvents ? createEventsDecoder : createSequenceDecoder
  if (start[0] === '<' || contentType.startsWith('text/html')) return createStrangerDecoder
  return areEvents || eventFields.includes(/^[a-z]*/.exec(start)?.[0] ?? '') || start[0] === ':'
    ? createEventsDecoder
    : createStrangerDecoder
}
