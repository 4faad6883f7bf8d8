import { lstatSync, readFileSync, rmSync } from 'node:fs'
import { version } from '../package.json'
import type { Host } from './basic-context.ts'
import type { RunContext } from './context.ts'
import { CliError, exitCodes, toFileFailure, usageError } from './errors.ts'
import { escapeControlsInJson, toOneLine } from './io/escape.ts'
import { formatFailureMessage } from './io/failure.ts'
import { TemporaryFile, writeFileAtomically } from './io/file-output.ts'
import { findFileKindProblem, toAbsolutePath } from './io/paths.ts'
import type { ReportData, UsageAndCost } from './report-data.ts'
import { isObject, tryParseJson } from './wire/json/parse.ts'
import type { WorkTracker } from './work-tracker.ts'

export interface RunOutcome {
  exit: number
  failure?: CliError
  isSignal?: boolean
}

export type ReportSource = Pick<RunContext, 'reportData' | 'tracker' | 'secrets'> & { host: Host }

/**
 * Removes an earlier report and returns a function that writes the new one. The returned function is
 * synchronous, because signal handlers call it. Both functions throw a `CliError` of kind `file`.
 */
export function createReportWriter(
  name: string,
  { host, reportData, tracker, secrets }: ReportSource,
): (end: RunOutcome) => void {
  if (name === '-' || name.endsWith('/'))
    throw usageError('--report needs the name of a file, such as report.json')
  const target = toAbsolutePath(host, name)
  const toReportFailure = (error: unknown) => toFileFailure(error, `--report ${name}`)
  try {
    requireReplaceable(target, name)
    // Creating a temporary file shows whether the report can be written.
    new TemporaryFile(target).remove()
    rmSync(target, { force: true })
  } catch (error) {
    throw toReportFailure(error)
  }
  return (end) => {
    try {
      requireReplaceable(target, name)
      const report = describeRun(reportData, tracker, end, (host.timers.now() - reportData.startMs) / 1000)
      writeFileAtomically(target, `${escapeControlsInJson(JSON.stringify(secrets.redactValue(report)))}\n`)
    } catch (error) {
      throw toReportFailure(error).with({ consequence: 'the report was not written', sent: tracker.sent })
    }
  }
}

function requireReplaceable(target: string, name: string): void {
  const found = lstatSync(target, { throwIfNoEntry: false })
  const isOther = () => found !== undefined && found.size > 0 && !isReport(target, found.size)
  const other = 'it is neither empty nor a report, so parley does not replace it'
  const problem = findFileKindProblem(found) ?? (isOther() ? other : undefined)
  if (problem !== undefined) throw new CliError('file', `--report ${name}: ${problem}`)
}

/**
 * A report lists at most 1,000 files, so a file over 16 MiB is not a report. parley does not read such a
 * file.
 */
const maxReportBytes = 16 * 2 ** 20

function isReport(path: string, size: number): boolean {
  if (size > maxReportBytes) return false
  const report = tryParseJson(readFileSync(path).toString())
  return (
    isObject(report) &&
    ['command', 'exit', 'kind', 'sent', 'usage'].every((key) => Object.hasOwn(report, key))
  )
}

const usageFields = [
  'inputTokens',
  'outputTokens',
  'cacheReadInputTokens',
  'cacheCreationInputTokens',
  'reasoningTokens',
  'totalTokens',
] as const

function describeRun(
  reportData: ReportData,
  tracker: WorkTracker,
  { exit, failure, isSignal }: RunOutcome,
  seconds: number,
): object {
  const { command, id, model, stopReason, session, usage, attempts, files, savedFiles, counts } = reportData
  const { toolUses, warnings, usage: { runUsage, sessionUsage } = {} } = reportData.figures
  const requestId = failure?.details.requestId ?? reportData.requestId
  const { retry = 'never', deadline = false, sent = tracker.sent } = failure?.details ?? {}
  return {
    format: 1,
    version,
    command: command ?? null,
    exit,
    kind: isSignal ? 'signal' : (failure?.kind ?? findKind(exit)),
    retry: failure ? retry : null,
    deadline,
    message: failure ? formatFailureMessage(failure) : null,
    status: failure?.details.status ?? null,
    sent,
    id: toShortLine(id),
    model: toShortLine(model),
    stopReason: toShortLine(stopReason),
    usage: pickUsage(runUsage?.tokens ?? usage),
    seconds,
    attempts,
    requestId: toShortLine(requestId),
    session: toShortLine(session),
    files: files ? [...new Set([...files, ...(failure?.details.savedFiles ?? []), ...savedFiles])] : null,
    cost: formatCost(runUsage),
    sessionUsage: sessionUsage?.tokens ? pickUsage(sessionUsage.tokens) : null,
    sessionCost: formatCost(sessionUsage),
    toolUses: toolUses?.() ?? null,
    warnings: countWarnings(warnings),
    resume: failure?.details.resumeArguments ?? null,
    ...counts?.(),
  }
}

function countWarnings(counters: Record<string, () => number>): Record<string, number> | null {
  const counts = Object.entries(counters).map(([name, count]) => [name, count()])
  return counts.length > 0 ? Object.fromEntries(counts) : null
}

const pickUsage = (tokens: { [Name in (typeof usageFields)[number]]?: number | null } = {}) =>
  Object.fromEntries(usageFields.map((name) => [name, tokens[name] ?? null]))

const formatCost = ({ cost }: UsageAndCost = {}) =>
  cost ? { amount: String(cost.amount), currency: cost.currency } : null

const toShortLine = (text: string | undefined) => (text === undefined ? null : toOneLine(text, 200))

const findKind = (exit: number): string | null =>
  Object.entries<number>(exitCodes).find(([, code]) => code === exit)?.[0] ?? null
