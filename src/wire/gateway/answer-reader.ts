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
export interface AnswerReader {
  readonly summary: AnswerSummary
  /** What the answer has beside text. */
  readonly holds: ReadonlySet<Holding>
  progress(): Progress
  /** How many values brought text, or an image. */
  received(): number
  /** Reads a whole body, in the documented shape or in the family's native one; returns its text. */
  addBody(value: unknown): string
  /** Reads one event of a message stream or one native chunk; returns the text that it adds. */
  addEvent(value: unknown, event?: string): string
  /** Throws the `CliError` for an event that is an error; reads nothing else of it. */
  throwIfError(value: unknown, event: string): void
  /** Called for the stream's own terminator. */
  end(): void
}

/** If it was asked for as a stream, a native body alone may be its first chunk, after which it was cut. */
export function createAnswerReader(isStreamed = false): AnswerReader {
  const summary: AnswerSummary = {}
  let hasEnded = false
  let received = 0
  /** A message has a reason why it stopped. */
  let isStopped = false
  /** How many native chunks finished a candidate. */
  let finishes = 0
  /** Whether the last chunks with the candidate that is printed, and with the others, finished them. */
  let finish: NativePiece['finish'] = {}
  const holds = new Set<Holding>()

  /** Whether every candidate, or the message, is finished. */
  const isFinished = () =>
    finish.first !== false && finish.others !== false && Boolean(finish.first || finish.others || isStopped)

  function addNative(value: unknown): string {
    const piece = readNative(value)
    if (piece.finish.first || piece.finish.others) finishes++
    finish = { ...finish, ...piece.finish }
    // A chunk's counts are of all that came so far: none of an earlier chunk's may stay.
    if (piece.hasUsage) for (const count of counts) delete summary[count]
    if (piece.text === '' && piece.holds.some((what) => what === 'a picture' || what === 'a file')) received++
    return addPiece(piece)
  }

  function addPiece(piece: AnswerPiece): string {
    for (const what of piece.holds) holds.add(what)
    for (const [name, value] of Object.entries(piece.summary)) {
      if (value !== undefined) Object.assign(summary, { [name]: value })
    }
    return addText(piece.text)
  }

  function addText(text: string): string {
    if (text !== '') received++
    return text
  }

  return {
    summary,
    holds,
    progress() {
      if (hasEnded) return 'ended'
      if (!isFinished()) return 'open'
      return finishes === 1 && received > 0 && !holds.has('a function call') ? 'settled' : 'finished'
    },
    received: () => received,
    addBody(value) {
      const answer = takeOutOfBody(value)
      hasEnded = !isStreamed || !isNative(answer)
      return isNative(answer) ? addNative(answer) : addPiece(readMessage(answer))
    },
    addEvent(whole, event = '') {
      const delta = textDelta(whole)
      if (delta !== undefined) return addText(delta)
      const value = takeOutOfEvent(whole, event)
      if (isNative(value)) return addNative(value)
      const named = withType(value, event)
      if (isMessageEvent(named)) {
        if (named.type === 'message_stop') hasEnded = true
        return addPiece(readMessageEvent(named))
      }
      if (isMessage(value)) {
        const piece = readMessage(value)
        isStopped = Boolean(piece.summary.stopReason)
        return addPiece(piece)
      }
      holds.add('something else')
      return ''
    },
    throwIfError: (value, event) => void takeOutOfEvent(value, event),
    end() {
      hasEnded = true
    },
  }
}

const counts = [
  'inputTokens',
  'outputTokens',
  'cachedTokens',
  'cacheCreationTokens',
  'reasoningTokens',
  'totalTokens',
] as const

/** If a value has no type of its own, the event's name is its type. */
const withType = (value: unknown, event: string): unknown =>
  isObject(value) && typeof value.type !== 'string' && isMessageEvent({ type: event })
    ? { ...value, type: event }
    : value

/** Takes a whole body out of its envelope. Throws a `CliError` if it is an error. */
const takeOutOfBody = (value: unknown): unknown => unwrap(value, failureInBody)

/** The same for an event or a chunk of a stream. */
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
