import type { Money } from './wire/sessions/usage.ts'
import type { TokenCount, TokenCounts } from './wire/token-count.ts'

export interface UsageAndCost {
  tokens?: (TokenCounts & { totalTokens: TokenCount }) | undefined
  cost?: Money | undefined
}

/** `run` counts the tool uses that parley executed with --tool. `allowed` includes them. */
interface ToolUseCounts {
  allowed: number
  denied: number
  run: number
  /** Failed --tool commands since the task was sent, including the commands of earlier runs. */
  failedCommands: number
  open: number
}

type WarningCounts = {
  [Name in
    | 'deniedButRan'
    | 'refusedToolUses'
    | 'failedServers'
    | 'sessionErrors'
    | 'failedWorkflowRuns'
    | 'openWorkflowRuns'
    | 'missingAnswers']?: () => number
}

export class ReportData {
  readonly startMs: number
  /** Equal to `startMs` until the first request begins. */
  firstRequestMs: number
  command: string | undefined
  attempts = 0
  /** The requested model, or the model that the answer names. `undefined` after several answers. */
  model: string | undefined
  stopReason: string | undefined
  id: string | undefined
  requestId: string | undefined
  session: string | undefined
  /** A number of the service that parley could not read is `null`. */
  readonly usage: Record<string, number | null> = {}
  readonly figures: {
    /** `sessionUsage`: usage since the session's creation. */
    usage?: { readonly runUsage: UsageAndCost; readonly sessionUsage: UsageAndCost }
    toolUses?(): ToolUseCounts
    readonly warnings: WarningCounts
  } = { warnings: {} }
  files: Set<string> | undefined = new Set()
  /** Counts of a batch: lines by outcome, and failed lines by kind of failure. */
  counts: (() => { counts: object; failures: object }) | undefined

  constructor(startMs: number) {
    this.startMs = startMs
    this.firstRequestMs = startMs
  }
}

/** If a batch writes more files, the report lists none. */
const maxFiles = 1000

export function addFileToReport(reportData: ReportData, name: string): void {
  if (reportData.files?.add(name) && reportData.files.size > maxFiles) reportData.files = undefined
}

export function addAnswerToReport(
  reportData: ReportData,
  { id, model, stopReason, usage }: { id?: string; model?: string; stopReason?: string; usage?: object },
): void {
  // A batch reports only sums, so its report omits the facts of a single answer.
  const isBatch = reportData.counts !== undefined
  reportData.model = isBatch ? undefined : (model ?? reportData.model)
  reportData.id = isBatch ? undefined : id
  reportData.stopReason = isBatch ? undefined : stopReason
  addCountsToSums(reportData.usage, usage)
}

export function addCountsToSums(sums: Record<string, number | null>, counts: object = {}): void {
  for (const [name, count] of Object.entries<number | null | undefined>({ ...counts })) {
    const { [name]: before = 0 } = sums
    if (count !== undefined) sums[name] = before === null || count === null ? null : before + count
  }
}
