import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { escapeJson } from '../io/escape.ts'
import { absolutePath, realPath } from '../io/paths.ts'
import { deadlineOf, readSettings } from '../settings/read-settings.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { type BatchOptions, checkBatchFlags } from './flags.ts'
import { type Call, type Input, openSource, type Prepare, readInput, type Source } from './input.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { asTheyCome, inOrder, type Turns } from './record.ts'
import { type BatchContext, createReport, withStatusLine } from './report.ts'
import { openResults, type ResultsFile } from './results-file.ts'
import { type Ask, type Outcome, runBatch } from './run.ts'

/** What is done for each line of a batch. */
export interface LineWork<C extends Call> {
  prepare: Prepare<C>
  ask: Ask<C>
  /** Finds the tokens of an answer in a result that was written with `--raw`. */
  tokensOf(line: Record<string, unknown>): number | undefined
  /** Prints the request in one line. */
  preview(call: C): Promise<void>
}

/** An open batch. */
interface Batch<C extends Call> {
  context: BatchContext
  options: BatchOptions
  work: LineWork<C>
  source: Source
  ledger: Ledger
  /** Milliseconds since the epoch, or Infinity. */
  deadline: number
}

const defaultConcurrency = 8

/** Has every line of a file asked, several at a time, and prints what comes of each. Throws a `CliError`. */
export async function answerBatch<C extends Call>(
  outer: Context,
  options: BatchOptions,
  readWork: (context: Context, settings: ResolvedSettings) => Promise<LineWork<C>>,
): Promise<void> {
  const context = withStatusLine(outer)
  const settings = await readSettings(context)
  const work = await readWork(context, settings)
  checkBatchFlags(options, context.flags.curl)
  const source = await openSource(context, options.batch ?? '')
  const ledger = createLedger()
  const deadline = deadlineOf(context, settings) || Infinity
  const batch = { context, options, work, source, ledger, deadline }
  const read = () => readInput(source, work.prepare, ledger)
  if (context.flags.dryRun) {
    for await (const { call } of (await read()).lines) await work.preview(call)
    return
  }
  // With --resume the ledger has to know the results first.
  const checked = options.resume ? undefined : await read()
  const results = await openFile(batch)
  const close = () => results?.close()
  context.cleanups.add(close)
  try {
    await answer(batch, checked ?? (await read()), results)
  } finally {
    source.close()
    close()
  }
}

async function openFile<C extends Call>(batch: Batch<C>): Promise<ResultsFile | undefined> {
  const { context, options, ledger, deadline, work } = batch
  const { results: name, resume: isResumed = false } = options
  if (name === undefined) return undefined
  const path = realPath(absolutePath(context.host, name))
  const { note } = context
  return openResults({ path, name, isResumed, ledger, tokensOf: work.tokensOf, deadline, note })
}

async function answer<C extends Call>(
  { context, options, work, ledger, deadline }: Batch<C>,
  input: Input<C>,
  results: ResultsFile | undefined,
): Promise<void> {
  const { concurrency = defaultConcurrency, maxTotalTokens: mostTokens = Infinity } = options
  const turns = options.unordered ? asTheyCome() : inOrder(4 * concurrency)
  const report = createReport(context, { lines: input.total, isResumable: results !== undefined })
  const interrupted = new AbortController()
  const interrupt = context.host.takeInterrupt?.(() => {
    context.note('finishing what was begun; a second Ctrl-C ends at once')
    interrupted.abort()
  })
  const giveOut = () => printHeld(context, turns)
  context.cleanups.add(giveOut)
  const outcome = await runBatch(
    input,
    work.ask,
    { ...report.sinks, turns, results },
    {
      concurrency,
      deadline,
      mostTokens,
      earlierTokens: results?.earlier.tokens ?? 0,
      interrupted: interrupted.signal,
      timers: context.timers,
      random: Math.random,
      onPause: report.onPause,
    },
  ).finally(report.end)
  // The signal says what the batch has come to.
  if (interrupted.signal.aborted) await interrupt?.raise()
  interrupt?.giveBack()
  context.cleanups.delete(giveOut)
  const { tally, stop } = outcome
  report.sum(tally, stop !== undefined || tally.failed > 0)
  if (stop === undefined && ledger.unmatched > 0)
    context.note(`${ledger.unmatched} of the results belong to no line of the input`)
  throwFailure(outcome)
}

/** A signal ends the run at once: what waits for its turn is printed out of turn. */
function printHeld({ output }: BatchContext, turns: Turns): void {
  for (const line of turns.takeHeld()) {
    void output.write(`${output.isTerminal ? escapeJson(line) : line}\n`).catch(() => {})
  }
}

/** Why the batch stopped, else the failure of the first line that failed. */
function throwFailure({ stop, failure, tally: { ok, failed, skipped } }: Outcome): void {
  const isBegun = ok + failed > 0
  if (stop instanceof CliError && isBegun && stop.details.sent === undefined) throw stop.with({ sent: 'yes' })
  if (stop !== undefined) throw stop
  if (!failure) return
  const message = `${failed} of ${ok + failed + skipped} requests failed, the first of them: ${failure.message}`
  throw new CliError(failure.kind, message, failure.details)
}
