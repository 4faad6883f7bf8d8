import { isObject } from '../json/parse.ts'
import { notUnderstood } from '../problem/not-understood.ts'
import { type AnswerSummary, mayHaveText } from './answer-piece.ts'
import { type AnswerState, addNative, addPiece, addText, createState, isFinished } from './answer-state.ts'
import { takeOutOfBody, takeOutOfEvent } from './envelope.ts'
import { isMessage, isMessageEvent, readMessage, readMessageEvent, textDelta } from './message-answer.ts'
import { isNative } from './native-answer.ts'

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
  /** Throws the `CliError` for an event that is an error; reads nothing else of it. */
  throwIfError(value: unknown, event: string): void
  /** Called for the stream's own terminator. */
  end(): void
  /** Throws a `CliError` where nothing was understood. */
  requireReadable(): void
}

export function createAnswerReader(): AnswerReader {
  const state = createState()
  return {
    summary: state.summary,
    get ended() {
      return state.ended
    },
    get received() {
      return state.received
    },
    get isWhole() {
      return state.ended || isFinished(state)
    },
    get isSettled() {
      return isFinished(state) && state.finishes === 1 && state.received > 0 && !state.hasCall
    },
    addBody(value) {
      const answer = takeOutOfBody(value)
      state.ended = true
      return isNative(answer) ? addNative(state, answer) : addPiece(state, readMessage(answer))
    },
    addEvent: (value, event = '') => addEvent(state, value, event),
    throwIfError: (value, event) => void takeOutOfEvent(value, event),
    end() {
      state.ended = true
    },
    requireReadable() {
      if (state.received > 0 || (state.isKnown && !state.isStrange)) return
      throw notUnderstood('the answer is whole, but has nothing of a documented shape')
    },
  }
}

function addEvent(state: AnswerState, whole: unknown, event: string): string {
  const delta = textDelta(whole)
  if (delta !== undefined) return addText(state, delta)
  const value = takeOutOfEvent(whole, event)
  if (isNative(value)) return addNative(state, value)
  const named = withType(value, event)
  if (isMessageEvent(named)) {
    if (named.type === 'message_stop') state.ended = true
    return addPiece(state, readMessageEvent(named))
  }
  if (isMessage(value)) {
    const piece = readMessage(value)
    state.isStopped = Boolean(piece.facts.stopReason)
    return addPiece(state, piece)
  }
  state.isStrange ||= mayHaveText(value)
  return ''
}

/** Where a value has no type of its own, the event's name is its type. */
const withType = (value: unknown, event: string): unknown =>
  isObject(value) && typeof value.type !== 'string' && isMessageEvent({ type: event })
    ? { ...value, type: event }
    : value
