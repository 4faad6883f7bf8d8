import { addAnswerToReport, type ReportData } from '../report-data.ts'
import type { AnswerSummary, AnswerTokenCounts } from '../wire/gateway/answer-forms.ts'
import { computeTotalTokens, sumTokenCounts } from '../wire/token-count.ts'

export const formatTokenCount = (count: number): string =>
  `${formatNumber(count)} ${count === 1 ? 'token' : 'tokens'}`

/**
 * Returns, for example, `12,282 tokens in` and `408 out`, and `13,000 in all` if the total differs from their
 * sum.
 */
export function formatTokenUsage({ inputTokens, outputTokens, totalTokens }: AnswerTokenCounts): string[] {
  const fields: string[] = []
  if (inputTokens !== undefined)
    fields.push(`${inputTokens === null ? 'unknown tokens' : formatTokenCount(inputTokens)} in`)
  if (outputTokens !== undefined)
    fields.push(`${outputTokens === null ? 'unknown' : formatNumber(outputTokens)} out`)
  if (typeof totalTokens === 'number' && totalTokens !== sumTokenCounts(inputTokens, outputTokens))
    fields.push(`${fields.length > 0 ? formatNumber(totalTokens) : formatTokenCount(totalTokens)} in all`)
  return fields
}

export const formatNumber = (number: number): string =>
  String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ',')

export function readTokenUsage(summary: AnswerSummary): AnswerTokenCounts | undefined {
  const { inputTokens, outputTokens, cacheReadInputTokens, cacheCreationInputTokens } = summary
  const counts = { inputTokens, outputTokens, cacheReadInputTokens, cacheCreationInputTokens }
  const totalTokens = summary.totalTokens ?? computeTotalTokens(counts)
  if (totalTokens === undefined && Object.values(counts).every((count) => count === undefined))
    return undefined
  return Object.assign(counts, { reasoningTokens: summary.reasoningTokens, totalTokens })
}

export const addAnswerSummaryToReport = (run: ReportData, summary: AnswerSummary): void =>
  addAnswerToReport(run, { usage: readTokenUsage(summary), ...summary })
