import { toOneLine } from '../io/escape.ts'
import { type AnswerSummary, unprintedContent } from '../wire/gateway/answer-forms.ts'

export interface AnswerOutcome {
  summary: AnswerSummary
  /** Kinds of content that are not text, such as `a function call`. */
  otherContent: ReadonlySet<string>
}

/** Stop reasons of a complete answer. Any other reason causes a warning. */
const normalStopReasons = ['end_turn', 'stop_sequence', 'tool_use', 'STOP', 'stop']

/**
 * `isTextOnly` means that the output has only the text of the first candidate. `where`: where the JSON of the
 * other content is.
 */
export function listAnswerWarnings(outcome: AnswerOutcome, isTextOnly = false, where = ''): string[] {
  const has = (what: string, isChecked = isTextOnly) => isChecked && outcome.otherContent.has(what)
  return [
    has('replaced bytes') && 'the answer has \ufffd, which usually replaces bytes that are not UTF-8',
    has('content after its end', true) &&
      'the service sent more content after the end of the answer, perhaps a second answer',
    ...unprintedContent.map(
      (what) => has(what) && `the answer also has ${what}, which parley does not print; its JSON ${where}`,
    ),
    describeCutAnswer(outcome),
  ].filter((warning) => typeof warning === 'string')
}

/**
 * Returns why an answer is a failure: it has no text or an unreadable part, or with `--fail-on-cut` it was cut or
 * stopped. An answer that `--raw` prints may have any form.
 */
export function describeUnusableAnswer(
  outcome: AnswerOutcome,
  { isBlank, isRaw, failOnCut = false }: { isBlank: boolean; isRaw: boolean; failOnCut?: boolean },
): string | undefined {
  const cut = describeCutAnswer(outcome)
  const mayBeCut = outcome.summary.lacksStopReason && 'the answer may be cut, because it has no stop reason'
  if (!isRaw && !isBlank && outcome.otherContent.has('an unreadable part'))
    return 'a part of the answer cannot be read'
  if (isRaw || !isBlank) return failOnCut ? (cut ?? mayBeCut) : undefined
  const others = [...outcome.otherContent].join(' and ')
  return `${cut === undefined ? '' : `${cut}; `}the answer has no text${others && `, only ${others}`}`
}

export function describeCutAnswer({ summary }: Pick<AnswerOutcome, 'summary'>): string | undefined {
  const { stopReason, stopMessage, isEndAssumed, blockReason } = summary
  const reasons: string[] = []
  if (isCutReason(stopReason))
    reasons.push(
      describeStop(stopReason, blockReason) + (stopMessage ? `: ${toOneLine(stopMessage, 300)}` : ''),
    )
  if (isEndAssumed)
    reasons.push('the service did not end the stream: parley stopped reading after 15 s of silence')
  return reasons.join('; ') || undefined
}

/** Returns whether `--fail-on-cut` rejects the answer of a successful result in a results file. */
export const isCutBatchResult = ({ stopReason }: Record<string, unknown>): boolean =>
  stopReason === null || isCutReason(stopReason)

const isCutReason = (reason: unknown): reason is string =>
  typeof reason === 'string' && !normalStopReasons.includes(reason)

const describeStop = (reason: string, blockReason?: string): string =>
  /^max_?tokens$/i.test(reason)
    ? 'the answer was cut at the output limit (--max-output-tokens N sets it)'
    : `the ${reason === blockReason ? 'prompt was blocked' : 'answer was stopped'}: ${toOneLine(reason, 100)}`
