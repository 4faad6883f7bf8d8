import { isObject } from '../json/parse.ts'
import { isErrorEnvelope, notUnderstoodError, readFailureInBody, readProblem } from '../problem/problem.ts'
import {
  type AnswerPiece,
  type AnswerSummary,
  isMessage,
  isMessageEvent,
  isNative,
  type NativePiece,
  type OtherContent,
  readMessage,
  readMessageEvent,
  readNative,
  readTextDelta,
} from './answer-forms.ts'

/**
 * How far an answer has come:
 * - `open`: more has to come
 * - `finished`: it is whole if the body ends here
 * - `settled`: it is whole also if the body stays open and silent
 * - `ended`: the service said that nothing follows
 */
export type Progress = 'open' | 'finished' | 'settled' | 'ended'

/** Reads an answer's JSON values, one by one, into text. */
export class AnswerReader {
  readonly summary: AnswerSummary = {}
  /** What the answer has beside text. */
  readonly otherContent = new Set<OtherContent>()
  /** How many values brought text, or an image. */
  contentCount = 0
  /** Some of the text is not blank. */
  hasText = false
  readonly #isStreamed: boolean
  #hasEnded = false
  /** A value of a known form came. */
  #isKnown = false
  /** The last whole message, or the last native chunks with the printed candidate and with others, said why they stopped. */
  #isFinished = false
  readonly #isOpen: NativePiece['isOpen'] = {}
  /** How many native chunks had such a reason. */
  #finishes = 0

  /** If it was asked for as a stream, a native body alone may be its first chunk, after which it was cut. */
  constructor(isStreamed = false) {
    this.#isStreamed = isStreamed
  }

  progress(): Progress {
    if (this.#hasEnded) return 'ended'
    // Values of other forms, which may have images, have no end of their own.
    const isForeign = !this.#isKnown && this.otherContent.has('something else')
    if (!this.#isFinished) return isForeign ? 'finished' : 'open'
    const isSettled =
      this.#finishes === 1 && this.contentCount > 0 && !this.otherContent.has('a function call')
    return isSettled ? 'settled' : 'finished'
  }

  /** Reads a whole body, in the documented shape or in the family's native one; returns its text. */
  addBody(value: unknown): string {
    const answer = unwrap(value, readFailureInBody)
    this.#hasEnded = !this.#isStreamed || !isNative(answer)
    return isNative(answer) ? this.#addNative(answer) : this.#addPiece(readMessage(answer))
  }

  /** Reads one event of a message stream or one native chunk; returns the text that it adds. */
  addEvent(whole: unknown, event = ''): string {
    const delta = readTextDelta(whole)
    if (delta !== undefined) return this.#addText(delta)
    const value = unwrapEvent(whole, event)
    if (isNative(value)) return this.#addNative(value)
    const named = withType(value, event)
    if (isMessageEvent(named)) {
      if (named.type === 'message_stop') this.end()
      return ['ping', 'message_stop'].includes(named.type) ? '' : this.#addPiece(readMessageEvent(named))
    }
    if (isMessage(value)) {
      const piece = readMessage(value)
      this.#isFinished = Boolean(piece.summary.stopReason)
      return this.#addPiece(piece)
    }
    this.otherContent.add('something else')
    return ''
  }

  /** Called for the stream's own terminator. */
  end(): void {
    this.#hasEnded = true
  }

  #addNative(value: unknown): string {
    const piece = readNative(value)
    if (Object.values(piece.isOpen).includes(false)) this.#finishes++
    const isOpen = Object.values(Object.assign(this.#isOpen, piece.isOpen))
    if (isOpen.length > 0) this.#isFinished = !isOpen.includes(true)
    Object.assign(this.summary, piece.counts)
    const hasFile = piece.otherContent.includes('a picture') || piece.otherContent.includes('a file')
    if (piece.text === '' && hasFile) this.contentCount++
    return this.#addPiece(piece)
  }

  #addPiece({ text, summary, otherContent }: AnswerPiece): string {
    for (const what of otherContent) this.otherContent.add(what)
    for (const [name, value] of Object.entries(summary))
      if (value !== undefined) Object.assign(this.summary, { [name]: value })
    return this.#addText(text)
  }

  #addText(text: string): string {
    this.#isKnown = true
    if (text !== '') this.contentCount++
    this.hasText ||= text.trim() !== ''
    return text
  }
}

/** If a value has no type of its own, the event's name is its type. */
const withType = (value: unknown, event: string): unknown =>
  isObject(value) && typeof value.type !== 'string' && isMessageEvent({ type: event })
    ? { ...value, type: event }
    : value

/** An event or a chunk of a stream, out of its envelope. Throws a `CliError` if it is an error. */
export function unwrapEvent(value: unknown, event: string): unknown {
  if (event.toLowerCase() === 'error') throw failureInStream(value)
  return unwrap(value, failureInStream)
}

/** Takes an answer out of the envelope that some gateways put it in. Throws if it is an error. */
function unwrap(value: unknown, failure: (error: unknown) => Error): unknown {
  if (isErrorEnvelope(value)) throw failure(value)
  if (!isObject(value) || isAnswer(value)) return value
  const inner = envelopes
    .map((name) => (Object.hasOwn(value, name) ? value[name] : undefined))
    .find((each) => isObject(each) && (isAnswer(each) || isErrorEnvelope(each)))
  return inner === undefined ? value : unwrap(inner, failure)
}

const envelopes = ['response', 'data']

const isAnswer = (value: unknown): boolean =>
  isNative(value) || isMessage(value) || (isObject(value) && typeof value.type === 'string')

function failureInStream(value: unknown) {
  const { message } = readProblem(value)
  // One that passes, such as an overload, broke off what would have been an answer.
  const isCutOff = ['service', 'rate-limited'].includes(readFailureInBody(value).kind)
  return notUnderstoodError('the stream ended with an error', message).with({
    body: value,
    isCutOff,
  })
}
