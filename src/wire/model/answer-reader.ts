import { isObject } from '../json/parse.ts'
import { notUnderstood } from '../problem/not-understood.ts'
import { type AnswerPiece, type AnswerSummary, mayHaveText } from './answer-piece.ts'
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
  /** Throws the `CliError` for an event that is an error; reads nothing else of it. */
  throwIfError(value: unknown, event: string): void
  /** Called for the stream's own terminator. */
  end(): void
  /** Throws a `CliError` where nothing was understood. */
  requireReadable(): void
}

/** What was read so far. */
interface State {
  summary: AnswerSummary
  ended: boolean
  received: number
  /** A message has a reason why it stopped. */
  isStopped: boolean
  /** How many native chunks finished a candidate. */
  finishes: number
  /** Whether the last chunks with the candidate that is printed, and with the others, finished them. */
  finish: NativePiece['finish']
  hasCall: boolean
  /** Something had a known shape. */
  isKnown: boolean
  /** Something may be text, in an unknown shape. */
  isStrange: boolean
}

export function createAnswerReader(): AnswerReader {
  const summary: AnswerSummary = {}
  const state: State = {
    summary,
    ended: false,
    received: 0,
    isStopped: false,
    finishes: 0,
    finish: {},
    hasCall: false,
    isKnown: false,
    isStrange: false,
  }

  return {
    summary,
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
    addEvent(value, event = '') {
      const delta = textDelta(value)
      return delta === undefined
        ? addValue(state, takeOutOfEvent(value, event), event)
        : addText(state, delta)
    },
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

function isFinished({ finish, isStopped }: State): boolean {
  return (
    finish.first !== false && finish.others !== false && Boolean(finish.first || finish.others || isStopped)
  )
}

function addValue(state: State, value: unknown, event: string): string {
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

function addNative(state: State, value: unknown): string {
  const piece = readNative(value)
  state.hasCall ||= piece.hasCall
  if (piece.finish.first || piece.finish.others) state.finishes++
  state.finish = { ...state.finish, ...piece.finish }
  // A chunk's counts are of all that came so far: none of an earlier chunk's may stay.
  if (piece.hasUsage) for (const count of counts) delete state.summary[count]
  return addPiece(state, piece)
}

function addPiece(state: State, { text, facts, isStrange }: AnswerPiece): string {
  state.isStrange ||= isStrange
  for (const [fact, value] of Object.entries(facts)) {
    if (value !== undefined) Object.assign(state.summary, { [fact]: value })
  }
  return addText(state, text)
}

function addText(state: State, text: string): string {
  state.isKnown = true
  if (text !== '') state.received++
  return text
}

const counts = ['inputTokens', 'outputTokens', 'cachedTokens'] as const

/** Where a value has no type of its own, the event's name is its type. */
const withType = (value: unknown, event: string): unknown =>
  isObject(value) && typeof value.type !== 'string' && isMessageEvent({ type: event })
    ? { ...value, type: event }
    : value
