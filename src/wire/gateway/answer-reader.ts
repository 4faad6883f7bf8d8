import { isObject } from '../json/parse.ts'
import { failureInBody, isErrorEnvelope, notUnderstood, readProblem } from '../problem/problem.ts'
import type { AnswerPiece, AnswerSummary, Holding } from './answer-fields.ts'
import { isMessage, isMessageEvent, readMessage, readMessageEvent, textDelta } from './message.ts'
import { isNative, type NativePiece, readNative } from './native.ts'

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
  readonly holds = new Set<Holding>()
  readonly #isStreamed: boolean
  #hasEnded = false
  #received = 0
  /** A message has a reason why it stopped. */
  #isStopped = false
  /** How many native chunks finished a candidate. */
  #finishes = 0
  /** Whether the last chunks with the candidate that is printed, and with the others, finished them. */
  #finish: NativePiece['finish'] = {}

  /** If it was asked for as a stream, a native body alone may be its first chunk, after which it was cut. */
  constructor(isStreamed = false) {
    this.#isStreamed = isStreamed
  }

  progress(): Progress {
    if (this.#hasEnded) return 'ended'
    const { first, others } = this.#finish
    if (first === false || others === false || !(first || others || this.#isStopped)) return 'open'
    const isSettled = this.#finishes === 1 && this.#received > 0 && !this.holds.has('a function call')
    return isSettled ? 'settled' : 'finished'
  }

  /** How many values brought text, or an image. */
  received(): number {
    return this.#received
  }

  /** Reads a whole body, in the documented shape or in the family's native one; returns its text. */
  addBody(value: unknown): string {
    const answer = unwrap(value, failureInBody)
    this.#hasEnded = !this.#isStreamed || !isNative(answer)
    return isNative(answer) ? this.#addNative(answer) : this.#addPiece(readMessage(answer))
  }

  /** Reads one event of a message stream or one native chunk; returns the text that it adds. */
  addEvent(whole: unknown, event = ''): string {
    const delta = textDelta(whole)
    if (delta !== undefined) return this.#addText(delta)
    const value = takeOutOfEvent(whole, event)
    if (isNative(value)) return this.#addNative(value)
    const named = withType(value, event)
    if (isMessageEvent(named)) {
      if (named.type === 'message_stop') this.end()
      return this.#addPiece(readMessageEvent(named))
    }
    if (isMessage(value)) {
      const piece = readMessage(value)
      this.#isStopped = Boolean(piece.summary.stopReason)
      return this.#addPiece(piece)
    }
    this.holds.add('something else')
    return ''
  }

  /** Throws the `CliError` for an event that is an error; reads nothing else of it. */
  throwIfError(value: unknown, event: string): void {
    takeOutOfEvent(value, event)
  }

  /** Called for the stream's own terminator. */
  end(): void {
    this.#hasEnded = true
  }

  #addNative(value: unknown): string {
    const piece = readNative(value)
    if (piece.finish.first || piece.finish.others) this.#finishes++
    this.#finish = { ...this.#finish, ...piece.finish }
    // A chunk's counts are of all that came so far: none of an earlier chunk's may stay.
    if (piece.hasUsage) for (const count of counts) delete this.summary[count]
    const hasFile = piece.holds.includes('a picture') || piece.holds.includes('a file')
    if (piece.text === '' && hasFile) this.#received++
    return this.#addPiece(piece)
  }

  #addPiece({ text, summary, holds }: AnswerPiece): string {
    for (const what of holds) this.holds.add(what)
    for (const [name, value] of Object.entries(summary))
      if (value !== undefined) Object.assign(this.summary, { [name]: value })
    return this.#addText(text)
  }

  #addText(text: string): string {
    if (text !== '') this.#received++
    return text
  }
}

const counts = [
  'inputTokens',
  'outputTokens',
  'cacheReadInputTokens',
  'cacheCreationInputTokens',
  'reasoningTokens',
  'totalTokens',
] as const

/** If a value has no type of its own, the event's name is its type. */
const withType = (value: unknown, event: string): unknown =>
  isObject(value) && typeof value.type !== 'string' && isMessageEvent({ type: event })
    ? { ...value, type: event }
    : value

/** An event or a chunk of a stream, out of its envelope. Throws a `CliError` if it is an error. */
function takeOutOfEvent(value: unknown, event: string): unknown {
  if (event.toLowerCase() === 'error') throw failureInStream(value)
  return unwrap(value, failureInStream)
}

/** Takes an answer out of the envelope that some gateways put it in. Throws if it is an error. */
function unwrap(value: unknown, failure: (error: unknown) => Error): unknown {
  const isOpen = !isObject(value) || isAnswer(value)
  const inner = isOpen ? undefined : envelopes.map((name) => Object.hasOwn(value, name) && value[name])
  const answer = inner?.find((each) => isAnswer(each) || (isObject(each) && isErrorEnvelope(each)))
  if (isErrorEnvelope(value)) throw failure(value)
  if (answer === undefined) return value
  if (isErrorEnvelope(answer)) throw failure(answer)
  return answer
}

const envelopes = ['response', 'data']

const isAnswer = (value: unknown): boolean =>
  isNative(value) || isMessage(value) || (isObject(value) && typeof value.type === 'string')

function failureInStream(value: unknown) {
  const { message } = readProblem(value)
  // One that passes, such as an overload, broke off what would have been an answer.
  const brokeOff = ['service', 'rate-limited'].includes(failureInBody(value).kind)
  return notUnderstood('the stream ended with an error', message).with({ body: value, brokeOff })
}
