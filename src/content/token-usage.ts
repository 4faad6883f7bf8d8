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

/** `undefined` where the service tells nothing. */
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
