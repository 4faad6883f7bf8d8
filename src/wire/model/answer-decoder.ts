import type { AnswerSink, Form } from './answer-form.ts'
import type { AnswerSummary } from './answer-piece.ts'
import { createAnswerReader } from './answer-reader.ts'
import { readEvents } from './events-form.ts'
import { readArray, readStranger, readValues } from './json-forms.ts'

/** Turns an answer's bytes, in whichever form they come, into its text. */
export interface AnswerDecoder {
  readonly summary: AnswerSummary
  /** The service said that nothing follows. */
  readonly ended: boolean
  /** How many values have come that brought text. */
  readonly received: number
  /** Though it did not say so: it is whole, should nothing follow. */
  readonly isSettled: boolean
  /** `--raw` prints the body as it is, also what follows the answer's end. */
  readonly isVerbatim: boolean
  /** Throws a `CliError` where the bytes are not understood. */
  push(bytes: Uint8Array): void
  /** Throws a `CliError` where the answer is not whole. */
  end(): void
}

/**
 * The form is known by the body's first characters, not by what was asked for; the content type decides only
 * between events and text.
 */
export function createAnswerDecoder(contentType: string, sink: AnswerSink): AnswerDecoder {
  const reader = createAnswerReader()
  const head = createHead()
  const kept: Uint8Array[] = []
  let form: Form | undefined

  function open(): Form {
    form = chooseForm(head.start, contentType)(reader, contentType, sink)
    for (const bytes of kept.splice(0)) form.push(bytes)
    return form
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
      return reader.isSettled && (form?.mayEndHere ?? false)
    },
    get isVerbatim() {
      return form?.isVerbatim ?? false
    },
    push(bytes) {
      if (form) return form.push(bytes)
      kept.push(bytes)
      if (head.push(bytes)) open()
    },
    end() {
      const chosen = form ?? open()
      chosen.end()
    },
  }
}

/** How many bytes of blanks may stand before an answer. */
const longestBlank = 64 * 1024

/** Finds a body's first characters; `push` says whether they are enough to know its form. */
function createHead() {
  let blanks = 0
  let start = ''
  function take(byte: number): boolean {
    const char = String.fromCharCode(byte)
    if (start === '' && /[\s\u00ef\u00bb\u00bf]/.test(char)) return ++blanks >= longestBlank
    start += char
    return start.length > longestName || !/[a-z]/.test(char)
  }
  return {
    get start() {
      return start
    },
    push: (bytes: Uint8Array): boolean => bytes.some(take),
  }
}

/** The fields that an event stream may begin with. */
const names = ['data', 'event', 'id', 'retry']
const longestName = 5

function chooseForm(start: string, contentType: string): typeof readEvents {
  const areEvents = contentType.toLowerCase().startsWith('text/event-stream')
  if (start[0] === '[') return readArray
  if (start[0] === '{') return areEvents ? readEvents : readValues
  if (start[0] === '<' || contentType.startsWith('text/html')) return readStranger
  return areEvents || names.includes(/^[a-z]*/.exec(start)?.[0] ?? '') || start[0] === ':'
    ? readEvents
    : readStranger
}
