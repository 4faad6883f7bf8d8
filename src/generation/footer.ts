import type { Context } from '../context.ts'
import { oneLine } from '../io/escape.ts'
import type { AnswerSummary } from '../wire/model/answer-piece.ts'
import { notUnderstood } from '../wire/problem/not-understood.ts'

export interface Told {
  summary: AnswerSummary
  isBlank: boolean
  isDamaged: boolean
  /** As in `PrintedAnswer`. */
  isAssumed?: boolean | undefined
  seconds: number
  /** `--usage`: also where stderr is no terminal. */
  isAsked: boolean | undefined
}

/** Ends that need no word; any other is worth a warning. */
const normalEnds = ['end_turn', 'stop_sequence', 'tool_use', 'pause_turn', 'STOP', 'stop']

const noText = 'the answer holds no text'

/** Says on stderr what a text does not: how it ended, and what it took. */
export function tellAbout(context: Context, told: Told): void {
  const { note, warn } = context
  if (told.isBlank) note(noText)
  if (told.isDamaged) note('the answer holds \ufffd: some of its bytes may not have been UTF-8')
  for (const cut of cutsOf(told)) warn(cut)
  tellUsage(context, told)
}

/** Throws a `CliError` where an answer is less than what was asked for (`--fail-on-cut`). */
export function requireUncut(context: Context, told: Told): void {
  const cuts = cutsOf(told)
  const [cut = told.isBlank ? noText : undefined] = cuts
  if (cut === undefined) return
  tellUsage(context, told)
  throw notUnderstood(cut)
}

/** In which ways an answer is not what it would have become, as far as the service tells. */
function cutsOf({ summary: { stopReason, stopMessage }, isAssumed }: Told): string[] {
  const isStopped = stopReason !== undefined && !normalEnds.includes(stopReason)
  const why = stopMessage ? `: ${oneLine(stopMessage, 300)}` : ''
  return [
    ...(isStopped ? [`${describeStop(stopReason)}${why}`] : []),
    ...(isAssumed ? ['the service did not end the stream; it is taken as whole after 15 s of silence'] : []),
  ]
}

const describeStop = (reason: string): string =>
  /^max_?tokens$/i.test(reason)
    ? 'the answer was cut at the output limit (--max-output-tokens)'
    : `the answer was stopped: ${oneLine(reason, 100)}`

function tellUsage({ host, tell, style }: Context, { summary, seconds, isAsked }: Told): void {
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
