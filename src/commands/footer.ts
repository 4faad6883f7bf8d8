import type { Context } from '../context.ts'
import { oneLine } from '../terminal/escape.ts'
import type { AnswerSummary } from '../wire/answer.ts'

export interface Told {
  summary: AnswerSummary
  isBlank: boolean
  isDamaged: boolean
  seconds: number
  /** `--usage`: also where stderr is no terminal. */
  isAsked: boolean | undefined
}

/** Ends that need no word; any other is worth a warning. */
const normalEnds = [
  'end_turn',
  'stop_sequence',
  'tool_use',
  'pause_turn',
  'STOP',
  'stop',
  'FINISH_REASON_UNSPECIFIED',
]

/** Says on stderr what a text does not: how it ended, and what it took. */
export function tellAbout(
  { host, note, tell, style }: Context,
  { summary, isBlank, isDamaged, seconds, isAsked }: Told,
): void {
  const { stopReason } = summary
  if (isBlank) note('the answer holds no text')
  if (isDamaged) note('the answer holds \ufffd: some of its bytes may not have been UTF-8')
  if (stopReason && !normalEnds.includes(stopReason)) {
    const isCut = /^max_?tokens$/i.test(stopReason)
    note(
      isCut
        ? 'the answer was cut at the output limit (--max-output-tokens)'
        : `the answer was stopped: ${oneLine(stopReason, 100)}`,
    )
  }
  // A dash first: what a service wrote never stands at the start of a line, where CI systems look for commands.
  if (isAsked || host.stderr.isTerminal) tell(style.dim(`— ${footer(summary, seconds)}`))
}

function footer(summary: AnswerSummary, seconds: number): string {
  const { model, stopReason, inputTokens, outputTokens, cachedTokens } = summary
  const fields = [
    model,
    stopReason,
    inputTokens === undefined ? undefined : `${inputTokens} tokens in`,
    outputTokens === undefined ? undefined : `${outputTokens} out`,
    cachedTokens ? `${cachedTokens} cached` : undefined,
    `${seconds.toFixed(1)} s`,
  ]
  return fields
    .filter((field) => field !== undefined)
    .map((field) => oneLine(field, 100))
    .join(' · ')
}
