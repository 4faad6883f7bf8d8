import type { Money } from './wire/sessions/usage.ts'
import { addTokenCounts, type TokenCount, type TokenCounts } from './wire/token-count.ts'

export interface UsageAndCost {
  tokens?: (TokenCounts & { totalTokens?: TokenCount }) | undefined
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
  /** Sums of `answers`. A count is `null` if an answer lacks it, or if parley could not read it. */
  readonly usage: Record<string, TokenCount> = {}
  answers = 0
  readonly figures: {
    /** `sessionUsage`: usage since the session's creation. */
    usage?: { readonly runUsage: UsageAndCost; readonly sessionUsage: UsageAndCost }
    toolUses?(): ToolUseCounts
    readonly warnings: WarningCounts
  } = { warnings: {} }
  files: Set<string> | undefined = new Set()
  /** Files with saved data, in addition to the files of a failure. */
  readonly savedFiles: string[] = []
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
  addCountsToSums(reportData.usage, usage, reportData.answers++)
}

/**
 * Adds the counts of an answer to the sums of `answers` earlier answers. A sum is `null` if an answer lacks the
 * count, because a sum of the other answers would look complete. Services omit cache and reasoning counts of
 * 0, so these count as 0 in an answer with a total.
 */
export function addCountsToSums(
  sums: Record<string, TokenCount>,
  counts: object | undefined,
  answers: number,
): void {
  const before = { ...sums }
  const added: Record<string, TokenCount | undefined> = { ...counts }
  for (const name of new Set([...Object.keys(before), ...Object.keys(added)])) {
    const { [name]: count } = added
    if (count === undefined && before[name] === undefined) continue
    sums[name] =
      answers > 0 ? addTokenCounts(findCount(before, name), findCount(added, name)) : (count ?? null)
  }
}

function findCount(counts: Record<string, TokenCount | undefined>, name: string): TokenCount {
  const { [name]: count, totalTokens } = counts
  const mayBeOmitted = /^(cache|reasoning)/.test(name) && typeof totalTokens === 'number'
  return count === undefined && mayBeOmitted ? 0 : (count ?? null)
}
