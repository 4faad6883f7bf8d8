import { isObject } from '../json/parse.ts'
import {
  createErrorBodyFailure,
  createResponseError,
  createUnexpectedBodyFailure,
  isErrorEnvelope,
  readErrorBody,
} from '../problem/problem.ts'
import {
  type AnswerPiece,
  type AnswerSummary,
  isMessageAnswer,
  isMessageEvent,
  isNativeAnswer,
  type NativeAnswerPiece,
  type NonTextContent,
  readMessageAnswer,
  readMessageEvent,
  readNativeAnswer,
  readTextDelta,
  unprintedContent,
} from './answer-forms.ts'

/**
 * Progress of an answer:
 * - `open`: incomplete
 * - `finished`: complete if the body ends here
 * - `settled`: complete, even if the service sends nothing more and does not end the body
 * - `ended`: the service has sent an end marker or a whole body
 */
export type AnswerProgress = 'open' | 'finished' | 'settled' | 'ended'

export class AnswerReader {
  readonly summary: AnswerSummary = {}
  readonly otherContent = new Set<NonTextContent>()
  /** Number of received JSON values with text, an image, a file or an unreadable part. */
  contentCount = 0
  /** Number of received JSON values with content that is not in the text. */
  unprintedCount = 0
  hasText = false
  isListOfChunks = false
  /** True if another message began after some text, so the text may belong to two answers. */
  hasSecondAnswer = false
  readonly #isStreamed: boolean
  #hasEnded = false
  #isKnown = false
  /**
   * True if the received part can be the whole answer. A native answer can end when each candidate has a
   * finish reason.
   */
  #isFinished = false
  readonly #isUnfinished: NativeAnswerPiece['isUnfinished'] = {}
  #finishReasonCount = 0

  constructor(isStreamed = false) {
    this.#isStreamed = isStreamed
  }

  progress(): AnswerProgress {
    if (this.#hasEnded) return 'ended'
    // An answer of unknown form has no known end marker but may have images. So the answer counts as complete
    // when the body ends.
    const hasUnknownForm = !this.#isKnown && this.otherContent.has('something else')
    if (!this.#isFinished) return hasUnknownForm ? 'finished' : 'open'
    const isSettled =
      this.#finishReasonCount === 1 && this.contentCount > 0 && !this.otherContent.has('a function call')
    return isSettled ? 'settled' : 'finished'
  }

  addBody(value: unknown): string {
    const answer = unwrap(value, createErrorBodyFailure)
    const isNative = isNativeAnswer(answer)
    this.#hasEnded = !this.#isStreamed || !isNative
    if (!isNative && !(isObject(answer) && Object.hasOwn(answer, 'content')))
      throw createUnexpectedBodyFailure(answer, 'the answer has another form than documented')
    const text = isNative ? this.#addNative(answer) : this.#addPiece(readMessageAnswer(answer))
    if (this.summary.stopReason === undefined) this.summary.lacksStopReason = true
    return text
  }

  addEvent(whole: unknown, event = ''): string {
    const delta = readTextDelta(whole)
    if (delta !== undefined) return this.#addText(delta)
    // A list that begins with an error is an error body (src/wire/README.md: public clients, 8).
    const isErrorBody = this.isListOfChunks && !this.#isKnown && this.otherContent.size === 0
    const value = isErrorBody ? unwrap(whole, createErrorBodyFailure) : unwrapAnswerEvent(whole, event)
    if (isNativeAnswer(value)) return this.#addNative(value)
    const named = withType(value, event)
    if (isMessageEvent(named)) {
      if (named.type === 'message_stop') this.end()
      if (['ping', 'message_stop'].includes(named.type)) return ''
      const piece = readMessageEvent(named)
      const { id } = this.summary
      this.hasSecondAnswer ||= this.hasText && id !== undefined && id !== (piece.summary.id ?? id)
      return this.#addPiece(piece)
    }
    if (isMessageAnswer(value)) {
      this.hasSecondAnswer ||= this.#isFinished
      const piece = readMessageAnswer(value)
      this.#isFinished = Boolean(piece.summary.stopReason)
      return this.#addPiece(piece)
    }
    this.otherContent.add('something else')
    return ''
  }

  end(): void {
    this.#hasEnded = true
  }

  #addNative(value: Record<string, unknown>): string {
    const piece = readNativeAnswer(value)
    if (this.#beginsSecondAnswer(piece)) this.otherContent.add('content after its end')
    if (Object.values(piece.isUnfinished).includes(false)) this.#finishReasonCount++
    const isUnfinished = Object.values(Object.assign(this.#isUnfinished, piece.isUnfinished))
    if (isUnfinished.length > 0) this.#isFinished = !isUnfinished.includes(true)
    Object.assign(this.summary, piece.counts)
    if (piece.text === '' && hasContent(piece, files)) this.contentCount++
    return this.#addPiece(piece)
  }

  /**
   * Another id after a function call does not begin a second answer. A service that runs a tool may continue
   * the answer with another id.
   */
  #beginsSecondAnswer({ text, summary: { id } }: AnswerPiece): boolean {
    const isOther = id !== undefined && id !== (this.summary.id ?? id)
    return (
      this.#isFinished && this.hasText && text !== '' && isOther && !this.otherContent.has('a function call')
    )
  }

  #addPiece(piece: AnswerPiece): string {
    const { text, summary, otherContent } = piece
    for (const what of otherContent) this.otherContent.add(what)
    if (hasContent(piece, unprinted)) this.unprintedCount++
    for (const [name, value] of Object.entries(summary))
      if (value !== undefined) Object.assign(this.summary, { [name]: value })
    return this.#addText(text)
  }

  #addText(text: string): string {
    this.#isKnown = true
    if (text !== '') this.contentCount++
    this.hasText ||= text.trim() !== ''
    if (text.includes('\ufffd')) this.otherContent.add('replaced bytes')
    return text
  }
}

const unprinted: NonTextContent[] = [...unprintedContent, 'an unreadable part']
const files: NonTextContent[] = ['an image', 'a file', 'an unreadable part']

const hasContent = ({ otherContent }: AnswerPiece, kinds: NonTextContent[]): boolean =>
  otherContent.some((what) => kinds.includes(what))

const withType = (value: unknown, event: string): unknown =>
  isObject(value) && typeof value.type !== 'string' && isMessageEvent({ type: event })
    ? { ...value, type: event }
    : value

/** Removes the envelope that some gateways add to an event. Throws a `CliError` if the event is an error. */
function unwrapAnswerEvent(value: unknown, event: string): unknown {
  if (event.toLowerCase() === 'error') throw failureInStream(value)
  return unwrap(value, failureInStream)
}

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
  isNativeAnswer(value) || isMessageAnswer(value) || (isObject(value) && typeof value.type === 'string')

function failureInStream(value: unknown) {
  const { message } = readErrorBody(value)
  // After a transient error, such as an overload, the answer counts as cut, because a retry may succeed.
  const isCutOff = ['service', 'rate-limited'].includes(createErrorBodyFailure(value).kind)
  const details = { errorIn: 'stream', body: value, isCutOff } as const
  return createResponseError('the stream ended with an error', message).with(details)
}
