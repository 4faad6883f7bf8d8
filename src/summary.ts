import type { Money } from './wire/sessions/usage.ts'
import type { TokenCount, TokenCounts } from './wire/token-count.ts'

/** What was used, as far as the service tells. */
export interface UsageFigures {
  tokens?: (TokenCounts & { totalTokens: TokenCount }) | undefined
  cost?: Money | undefined
}

/** `run` are those that were carried out here; they count as allowed, too. */
interface ToolUseCounts {
  allowed: number
  denied: number
  run: number
  /** The --tool commands since the task that failed, also in earlier runs. */
  failedCommands: number
  open: number
}

/** Count the failures of a followed turn that may end well all the same, and the open workflow runs. */
type WarningCounts = {
  [Name in
    | 'deniedButRan'
    | 'refusedToolUses'
    | 'failedServers'
    | 'failedWorkflowRuns'
    | 'openWorkflowRuns']?: () => number
}

/** What only a run of a session can tell. */
interface SessionFigures {
  run?: UsageFigures
  /** All of the session, the run included. */
  session?: UsageFigures
  /** Counts the tool uses of the run by outcome, so far. */
  toolUses?(): ToolUseCounts
  readonly warnings: WarningCounts
}

/** The facts of a run, as its rooms add to them: `--report` shows them. */
export class Summary {
  command: string | undefined
  /** Of all requests. */
  attempts = 0
  /** The model that was asked, then the one that answered; `undefined` too if there were several. */
  model: string | undefined
  stopReason: string | undefined
  /** The answer's; `undefined` too if there were several. */
  id: string | undefined
  /** The last one's. */
  requestId: string | undefined
  session: string | undefined
  /** The command that resumes the work if a signal ends it now, without `parley`. */
  resume: (() => string[] | undefined) | undefined
  /** Sums of the answers that say it; `null` if that of one cannot be read. */
  readonly usage: Record<string, number | null> = {}
  readonly figures: SessionFigures = { warnings: {} }
  /** Files that results were written to; `undefined` if they are too many to be kept. */
  files: string[] | undefined = []
  /** Of a batch: the number of lines for each outcome, and of the failed ones for each kind of failure. */
  counts: (() => { counts: object; failures: object }) | undefined
}

interface AnswerFacts {
  id?: string
  model?: string
  stopReason?: string
  usage?: object
}

/** Adds what an answer says of itself. */
export function addAnswerFacts(summary: Summary, { id, model, stopReason, usage }: AnswerFacts): void {
  // Of many answers only the sums are shown.
  const isOneOfMany = summary.counts !== undefined
  summary.model = isOneOfMany ? undefined : (model ?? summary.model)
  summary.id = isOneOfMany ? undefined : id
  summary.stopReason = isOneOfMany ? undefined : stopReason
  addToSums(summary.usage, usage)
}

/** Adds numbers to their sums by name. A sum of which a part cannot be read is not known. */
export function addToSums(sums: Record<string, number | null>, counts: object = {}): void {
  for (const [name, count] of Object.entries<number | null | undefined>({ ...counts })) {
    const { [name]: before = 0 } = sums
    if (count !== undefined) sums[name] = before === null || count === null ? null : before + count
  }
}
