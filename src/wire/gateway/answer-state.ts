import type { AnswerPiece, AnswerSummary } from './answer-piece.ts'
import { type NativePiece, readNative } from './native-answer.ts'

/** What was read of an answer so far. */
export interface AnswerState {
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

export const createState = (): AnswerState => ({
  summary: {},
  ended: false,
  received: 0,
  isStopped: false,
  finishes: 0,
  finish: {},
  hasCall: false,
  isKnown: false,
  isStrange: false,
})

/** Whether every candidate, or the message, is finished. */
export function isFinished({ finish, isStopped }: AnswerState): boolean {
  return (
    finish.first !== false && finish.others !== false && Boolean(finish.first || finish.others || isStopped)
  )
}

/** Reads a native body or chunk, and returns the text that it adds, as do the next two. */
export function addNative(state: AnswerState, value: unknown): string {
  const piece = readNative(value)
  state.hasCall ||= piece.hasCall
  if (piece.finish.first || piece.finish.others) state.finishes++
  state.finish = { ...state.finish, ...piece.finish }
  // A chunk's counts are of all that came so far: none of an earlier chunk's may stay.
  if (piece.hasUsage) for (const count of counts) delete state.summary[count]
  return addPiece(state, piece)
}

export function addPiece(state: AnswerState, { text, facts, isStrange }: AnswerPiece): string {
  state.isStrange ||= isStrange
  for (const [fact, value] of Object.entries(facts)) {
    if (value !== undefined) Object.assign(state.summary, { [fact]: value })
  }
  return addText(state, text)
}

export function addText(state: AnswerState, text: string): string {
  state.isKnown = true
  if (text !== '') state.received++
  return text
}

const counts = [
  'inputTokens',
  'outputTokens',
  'cachedTokens',
  'cacheCreationTokens',
  'reasoningTokens',
] as const
