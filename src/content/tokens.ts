import { addAnswerFacts, addToSums, type Summary } from '../summary.ts'
import type { AnswerCounts, AnswerSummary } from '../wire/gateway/answer-forms.ts'
import { AnswerReader } from '../wire/gateway/answer-reader.ts'
import { sumTokens, type TokenCount } from '../wire/token-count.ts'

/** Reported tokens of an answer. */
export interface TokenUsage extends AnswerCounts {
  totalTokens: TokenCount
}

/** Formats a number of tokens: `1 token`, `12,282 tokens`. */
export const tokensInWords = (count: number): string =>
  `${groupDigits(count)} ${count === 1 ? 'token' : 'tokens'}`

/** The tokens of an answer in words: `12,282 tokens in`, `408 out`, and `13,000 in all` if the total is more than both. */
export function inAndOut({ inputTokens, outputTokens, totalTokens }: AnswerCounts): string[] {
  const told: string[] = []
  if (inputTokens !== undefined)
    told.push(`${inputTokens === null ? 'unknown tokens' : tokensInWords(inputTokens)} in`)
  if (outputTokens !== undefined)
    told.push(`${outputTokens === null ? 'unknown' : groupDigits(outputTokens)} out`)
  if (typeof totalTokens === 'number' && totalTokens !== sumTokens(inputTokens, outputTokens))
    told.push(`${told.length > 0 ? groupDigits(totalTokens) : tokensInWords(totalTokens)} in all`)
  return told
}

/** Formats a whole number with thousands separators: `12,282`. */
export const groupDigits = (number: number): string =>
  String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ',')

/** `undefined` if the service reports no usage. */
export function usageOf(summary: AnswerSummary): TokenUsage | undefined {
  const { inputTokens, outputTokens, cacheReadInputTokens, cacheCreationInputTokens } = summary
  const counts = { inputTokens, outputTokens, cacheReadInputTokens, cacheCreationInputTokens }
  const totalTokens = summary.totalTokens ?? sumTokens(...Object.values(counts))
  if (totalTokens === undefined) return undefined
  return { ...counts, reasoningTokens: summary.reasoningTokens, totalTokens }
}

/** What a result of a batch took that has the service's own answer (`--raw`). */
export function tokensOf({ response }: Record<string, unknown>): number | undefined {
  const reader = new AnswerReader()
  try {
    reader.addBody(response)
  } catch {
    // The readable part counts.
  }
  return usageOf(reader.summary)?.totalTokens ?? undefined
}

/** What a line of a batch took so far: all of its requests, and all answers to them, those that failed a check too. */
export class Spent {
  attempts = 0
  answers = 0
  /** Those of the answers that do not say what they took. */
  unmetered = 0
  /** All that the others took. */
  tokens = 0
  /** Sums of what the answers say, by the names that results have. */
  readonly usage: Record<string, TokenCount> = {}
}

/** Counts an answer as soon as it is known what it took: it is paid for, whatever becomes of it. */
export function countAnswer(spent: Spent, run: Summary, summary: AnswerSummary): void {
  recordAnswer(run, summary)
  const usage = usageOf(summary)
  spent.answers++
  const total = usage?.totalTokens ?? undefined
  if (total === undefined) spent.unmetered++
  else spent.tokens += total
  addToSums(spent.usage, usage)
}

/** Adds the facts and the usage of an answer, or of a part of one, to those of the run. */
export const recordAnswer = (run: Summary, summary: AnswerSummary): void =>
  addAnswerFacts(run, { ...summary, usage: usageOf(summary) })

/** Counts what is known of an answer that is not whole: it was paid for, too. */
export function countPart(run: Summary, summary: AnswerSummary): void {
  if (usageOf(summary)) recordAnswer(run, summary)
}
