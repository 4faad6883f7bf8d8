import { isObject } from '../json/parse.ts'
import { notUnderstood } from '../json-body.ts'
import { type AnswerPiece, type AnswerSummary, mayHoldText } from './answer-piece.ts'
import { takeOutOfBody, takeOutOfEvent } from './envelope.ts'
import { isMessage, isMessageEvent, readMessage, readMessageEvent, textDelta } from './message-answer.ts'
import { isNative, type NativePiece, readNative } from './native-answer.ts'

/** Reads an answer's JSON values, one by one, into text. */
export interface AnswerReader {
  readonly summary: AnswerSummary
  /** The service said that nothing follows. */
  readonly ended: boolean
  /** How many values were read that brought text. */
  readonly received: number
  /** If the body ends here, the answer is whole. */
  readonly isWhole: boolean
  /** It is whole also if the body stays open and silent. */
  readonly isSettled: boolean
  /** Reads a whole body, in the documented shape or in the family's native one; returns its text. */
  addBody(value: unknown): string
  /** Reads one event of a message stream or one native chunk; returns the text that it adds. */
  addEvent(value: unknown, event?: string): string
  /** Throws the `CliError` that an event is, where it is one; nothing else is read of it. */
  refuse(value: unknown, event: string): void
  /** Takes note that the stream's own terminator came. */
  end(): void
  /** Throws a `CliError` where nothing of what came was understood. */
  requireReadable(): void
}

export function createAnswerReader(): AnswerReader {
  const summary: AnswerSummary = {}
  let ended = false
  let received = 0
  let isFinished = false
  let finishes = 0
  /** Of the candidate that is printed, and of the others: whether the last chunk with them finished them. */
  let finish: NativePiece['finish'] = {}
  let hasText = false
  let hasCall = false
  let isKnown = false
  let isStrange = false

  function add({ text, facts, isStrange: adds }: AnswerPiece): string {
    isKnown = true
    isStrange ||= adds
    if (text !== '') {
      hasText = true
      received++
    }
    for (const [fact, value] of Object.entries(facts)) {
      if (value !== undefined) Object.assign(summary, { [fact]: value })
    }
    return text
  }

  function addNative(value: unknown): string {
    const piece = readNative(value)
    hasCall ||= piece.hasCall
    if (piece.finish.first || piece.finish.others) finishes++
    finish = { ...finish, ...piece.finish }
    // The counts are of all that came so far: none is left of an earlier chunk's.
    if (piece.hasUsage) for (const count of counts) delete summary[count]
    return add(piece)
  }

  function addAnswer(value: unknown, event: string): string {
    if (isNative(value)) return addNative(value)
    const named = withType(value, event)
    if (isMessageEvent(named)) {
      if (named.type === 'message_stop') ended = true
      return add(readMessageEvent(named))
    }
    if (isMessage(value)) {
      const piece = readMessage(value)
      isFinished = Boolean(piece.facts.stopReason)
      return add(piece)
    }
    isStrange ||= mayHoldText(value)
    return ''
  }

  const areFinished = () =>
    finish.first !== false && finish.others !== false && (finish.first || finish.others || isFinished)

  return {
    summary,
    get ended() {
      return ended
    },
    get received() {
      return received
    },
    get isWhole() {
      return ended || areFinished()
    },
    get isSettled() {
      return areFinished() && finishes === 1 && hasText && !hasCall
    },
    addBody(value) {
      const answer = takeOutOfBody(value)
      ended = true
      return isNative(answer) ? addNative(answer) : add(readMessage(answer))
    },
    addEvent(value, event = '') {
      const delta = textDelta(value)
      if (delta !== undefined) {
        isKnown = true
        if (delta === '') return delta
        hasText = true
        received++
        return delta
      }
      return addAnswer(takeOutOfEvent(value, event), event)
    },
    refuse: (value, event) => void takeOutOfEvent(value, event),
    end() {
      ended = true
    },
    requireReadable() {
      if (hasText || (isKnown && !isStrange)) return
      throw notUnderstood('the answer is whole, but holds nothing of a documented shape')
    },
  }
}

const counts = ['inputTokens', 'outputTokens', 'cachedTokens'] as const

/** An event without a type of its own has its name's. */
const withType = (value: unknown, event: string): unknown =>
  isObject(value) && typeof value.type !== 'string' && isMessageEvent({ type: event })
    ? { ...value, type: event }
    : value
