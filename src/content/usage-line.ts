import type { Context } from '../context.ts'
import { toOneLine } from '../io/escape.ts'
import type { SavedData } from '../io/saved-data.ts'
import type { AnswerSummary } from '../wire/gateway/answer-forms.ts'
import type { TokenCount } from '../wire/token-count.ts'
import { type AnswerOutcome, listAnswerWarnings } from './answer-checks.ts'
import { formatNumber, formatTokenUsage, readTokenUsage } from './tokens.ts'

export function printWarningsAndUsageLine(
  context: Context,
  outcome: AnswerOutcome,
  showsUsage: boolean | undefined,
  isTextOnly?: boolean,
  saved?: SavedData,
): void {
  for (const warning of listAnswerWarnings(outcome, isTextOnly, saved?.outcome))
    context.messages.warn(warning)
  printUsageLine(context, outcome.summary, showsUsage)
}

/** Prints `alpha-2.5-pro · end_turn · 12 tokens in · 5 out · 1.2 s` on a terminal or with `--usage`. */
export function printUsageLine(context: Context, answer: AnswerSummary, showsUsage = false): void {
  const { host, flags, messages, reportData } = context
  if (flags.verbose && answer.id !== undefined)
    messages.note(`the id of the answer: ${toOneLine(answer.id, 200)}`)
  const seconds = (host.timers.now() - reportData.firstRequestMs) / 1000
  // A native answer may omit its model, so the line has the requested model, like the report.
  if (showsUsage || host.stderr.isTerminal)
    messages.printFooter(formatUsageLine({ model: reportData.model, ...answer }, seconds))
}

function formatUsageLine(summary: AnswerSummary, seconds: number): string {
  const { model, stopReason = 'no stop reason' } = summary
  const { cacheReadInputTokens, cacheCreationInputTokens, reasoningTokens } = summary
  const count = (tokens: TokenCount | undefined, what: string) =>
    tokens ? `${formatNumber(tokens)} ${what}` : undefined
  const fields = [
    model,
    stopReason,
    ...formatTokenUsage(readTokenUsage(summary) ?? {}),
    count(cacheReadInputTokens, 'cached'),
    count(cacheCreationInputTokens, 'written to the cache'),
    count(reasoningTokens, 'for thoughts'),
    `${seconds.toFixed(1)} s`,
  ]
  return fields
    .filter((field) => field !== undefined)
    .map((field) => toOneLine(field, 100))
    .join(' · ')
}
