import type { Context } from '../context.ts'
import { toOneLine } from '../io/escape.ts'
import type { AnswerSummary } from '../wire/gateway/answer-forms.ts'
import type { TokenCount } from '../wire/token-count.ts'
import { formatNumber, formatTokenUsage, readTokenUsage } from './tokens.ts'

/** Facts that are known when the response has ended. */
export interface AnswerOutcome {
  summary: AnswerSummary
  /** Kinds of content that are not text, such as `a function call`. */
  otherContent: ReadonlySet<string>
  /** True if some bytes were not valid UTF-8 and became U+FFFD. */
  isDamaged: boolean
  /**
   * True if the service did not end the stream. The answer then counts as complete, because the service
   * stayed silent.
   */
  isEndAssumed: boolean
}

/** Stop reasons of a complete answer. Any other reason causes a warning. */
const normalStopReasons = ['end_turn', 'stop_sequence', 'tool_use', 'STOP', 'stop']

export function printWarningsAndFooter(
  context: Context,
  outcome: AnswerOutcome,
  showsUsage: boolean | undefined,
): void {
  for (const warning of listAnswerWarnings(outcome)) context.messages.warn(warning)
  printAnswerFooter(context, outcome.summary, showsUsage)
}

export const listAnswerWarnings = (outcome: AnswerOutcome): string[] =>
  [
    outcome.isDamaged ? 'some bytes of the answer are not UTF-8, and became \ufffd' : undefined,
    describeCutAnswer(outcome),
  ].filter((warning) => warning !== undefined)

/**
 * `anything` accepts every answer. `text` requires text. `uncut` also rejects a text that was cut or
 * stopped (`--fail-on-cut`).
 */
export type AnswerRequirement = 'anything' | 'text' | 'uncut'

export function describeUnmetRequirement(
  outcome: AnswerOutcome,
  isBlank: boolean,
  requirement: AnswerRequirement,
): string | undefined {
  if (requirement === 'anything') return undefined
  const cut = describeCutAnswer(outcome)
  const mayBeCut = outcome.summary.lacksStopReason && 'the answer may be cut, because it has no stop reason'
  if (!isBlank) return requirement === 'uncut' ? (cut ?? mayBeCut) : undefined
  const others = [...outcome.otherContent].join(' and ')
  return `${cut === undefined ? '' : `${cut}; `}the answer has no text${others && `, only ${others}`}`
}

export function describeCutAnswer({
  summary,
  isEndAssumed,
}: Pick<AnswerOutcome, 'summary'> & { isEndAssumed?: boolean }): string | undefined {
  const { stopReason, stopMessage } = summary
  const isStopped = stopReason !== undefined && !normalStopReasons.includes(stopReason)
  const explanation = stopMessage ? `: ${toOneLine(stopMessage, 300)}` : ''
  const reasons = [
    ...(isStopped ? [`${describeStop(stopReason)}${explanation}`] : []),
    ...(isEndAssumed
      ? ['the service did not end the stream: parley stopped reading after 15 s of silence']
      : []),
  ]
  return reasons.join('; ') || undefined
}

const describeStop = (reason: string): string =>
  /^max_?tokens$/i.test(reason)
    ? 'the answer was cut at the output limit (--max-output-tokens)'
    : `the answer was stopped: ${toOneLine(reason, 100)}`

export function printAnswerFooter(
  context: Context,
  answer: AnswerSummary,
  showsUsage: boolean | undefined,
): void {
  const { host, flags, messages, summary } = context
  if (flags.verbose && answer.id !== undefined)
    messages.note(`the id of the answer: ${toOneLine(answer.id, 200)}`)
  if (showsUsage || host.stderr.isTerminal)
    messages.printFooter(describeUsage(answer, (host.timers.now() - summary.firstRequestMs) / 1000))
}

function describeUsage(summary: AnswerSummary, seconds: number): string {
  const { model, stopReason, cacheReadInputTokens, cacheCreationInputTokens, reasoningTokens } = summary
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
