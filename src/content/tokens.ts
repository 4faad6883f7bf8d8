import { CliError } from '../errors.ts'
import { addAnswer, type Summary } from '../summary.ts'
import type { AnswerSummary } from '../wire/gateway/answer.ts'
import { createAnswerReader } from '../wire/gateway/answer-reader.ts'

/** The tokens of an answer, as far as the service tells. */
export interface TokenUsage {
  inputTokens?: number
  outputTokens?: number
  cacheReadInputTokens?: number
  cacheCreationInputTokens?: number
  /** A part of the output's. */
  reasoningTokens?: number
  totalTokens: number
}

/** A number of tokens in words: `1 token`, `12,282 tokens`. */
export const tokensInWords = (count: number): string =>
  `${groupDigits(count)} ${count === 1 ? 'token' : 'tokens'}`

/** A whole number as a person reads it: `12,282`. */
export const groupDigits = (number: number): string =>
  String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ',')

/** `undefined` if the service tells nothing. */
export function usageOf(summary: AnswerSummary): TokenUsage | undefined {
  const { inputTokens, outputTokens, reasoningTokens } = summary
  if (inputTokens === undefined && outputTokens === undefined) return undefined
  const totalTokens = (inputTokens ?? 0) + (outputTokens ?? 0)
  return {
    inputTokens,
    outputTokens,
    cacheReadInputTokens: summary.cachedTokens,
    cacheCreationInputTokens: summary.cacheCreationTokens,
    reasoningTokens,
    totalTokens,
  }
}

/** What a result of a batch took that has the service's own answer (`--raw`). */
export const tokensOf = ({ response }: Record<string, unknown>): number | undefined =>
  usageOf(summaryOf(response))?.totalTokens

/** What a whole answer, parsed, says of itself. */
export function summaryOf(response: unknown): AnswerSummary {
  const reader = createAnswerReader()
  try {
    reader.addBody(response)
  } catch {
    // What is understood of it counts.
  }
  return reader.summary
}

/** What a line of a batch took so far: all of its requests, and all answers to them, those that failed a check too. */
export interface Spent {
  attempts: number
  answers: number
  /** Those of the answers that do not say what they took. */
  unmetered: number
  /** Sums of what the others say, by the names that results have. */
  usage: Record<string, number>
}

export const nothingSpent = (): Spent => ({ attempts: 0, answers: 0, unmetered: 0, usage: {} })

/** Counts an answer as soon as it is known what it took: it is paid for, whatever becomes of it. */
export function countAnswer(spent: Spent, run: Summary, summary: AnswerSummary): void {
  const usage = usageOf(summary)
  addAnswer(run, { ...summary, usage })
  spent.answers++
  if (!usage) spent.unmetered++
  for (const [name, count] of Object.entries(usage ?? {}))
    if (typeof count === 'number') spent.usage[name] = (spent.usage[name] ?? 0) + count
}

/** Counts the requests of a call, whatever becomes of it. */
export async function countAttempts<T extends { attempts: number }>(
  spent: Spent,
  call: () => Promise<T>,
): Promise<T> {
  try {
    const answer = await call()
    spent.attempts += answer.attempts
    return answer
  } catch (error) {
    if (error instanceof CliError) spent.attempts += error.details.attempts ?? 0
    throw error
  }
}
