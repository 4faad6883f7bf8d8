import type { Context } from '../context.ts'
import { usage } from '../errors.ts'
import { escapeJson } from '../io/escape.ts'
import { absolutePath, realPath } from '../io/paths.ts'
import { deadlineOf, readSettings } from '../settings/read-settings.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { type BatchContext, createBatchContext } from './batch-context.ts'
import { checkJobs, type Extent } from './check.ts'
import { type BatchOptions, checkBatchFlags } from './flags.ts'
import { type Call, readJobs } from './jobs.ts'
import { createLedger, type Ledger } from './ledger.ts'
import type { LineWork } from './line-work.ts'
import { readLines } from './lines.ts'
import { throwFailure } from './outcome.ts'
import { createReport, type Report } from './report.ts'
import { openResults, type ResultsFile } from './results-file.ts'
import { type Outcome, runBatch } from './run.ts'
import { openSource, type Source } from './source.ts'
import { createOpenWindow, createWindow, type Window } from './window.ts'

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
  const context = createBatchContext(outer)
  const settings = await readSettings(context)
  const work = await readWork(context, settings)
  checkBatchFlags(options, context.flags.curl)
  const source = await openSource(context, options.batch ?? '')
  const deadline = deadlineOf(context, settings) || Infinity
  const batch = { context, options, work, source, ledger: createLedger(), deadline }
  if (context.flags.dryRun) return preview(batch)
  // With --resume the ledger has to know the results first.
  const extent = options.resume ? undefined : await check(batch)
  const results = await openFile(batch)
  const close = () => results?.close()
  context.cleanups.add(close)
  try {
    await answer(batch, { extent: extent ?? (await check(batch)), results })
  } finally {
    source.close()
    close()
  }
}

const jobsOf = <C extends Call>({ source, work, ledger }: Batch<C>) =>
  readJobs(readLines(source.read()), work.prepare, ledger)

async function check<C extends Call>(batch: Batch<C>): Promise<Extent | undefined> {
  return batch.source.isRepeatable ? checkJobs(jobsOf(batch), batch.source.name) : undefined
}

async function preview<C extends Call>(batch: Batch<C>): Promise<void> {
  await check(batch)
  for await (const job of jobsOf(batch)) {
    if ('problem' in job) throw usage(`${batch.source.name}: line ${job.index}: ${job.problem}`)
    await batch.work.preview(job.call)
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

interface Opened {
  extent: Extent | undefined
  results: ResultsFile | undefined
}

async function answer<C extends Call>(batch: Batch<C>, { extent, results }: Opened): Promise<void> {
  const { context, options, source, deadline, work } = batch
  const { concurrency = defaultConcurrency } = options
  const window = options.unordered ? createOpenWindow() : createWindow(4 * concurrency)
  const report = createReport(context, { lines: extent?.lines, isResumable: results !== undefined })
  const interrupted = new AbortController()
  const interrupt = context.host.takeInterrupt?.(() => {
    context.note('finishing what was begun; a second Ctrl-C ends at once')
    interrupted.abort()
  })
  const stop = () => printHeld(context, window)
  context.cleanups.add(stop)
  const outcome = await runBatch(
    jobsOf(batch),
    work.ask,
    { ...report.sinks, window, results },
    {
      name: source.name,
      concurrency,
      deadline,
      mostTokens: options.maxTotalTokens ?? Infinity,
      earlierTokens: results?.earlier.tokens ?? 0,
      extent,
      interrupted: interrupted.signal,
      timers: context.timers,
      random: Math.random,
    },
  ).finally(report.end)
  // The signal says what the batch has come to.
  if (interrupted.signal.aborted) await interrupt?.raise()
  interrupt?.giveBack()
  context.cleanups.delete(stop)
  finish(batch, { outcome, report })
  throwFailure(outcome)
}

/** A signal ends the run at once: what waits for its turn is printed out of turn. */
function printHeld({ output }: BatchContext, window: Window): void {
  for (const line of window.takeHeld()) {
    void output.write(`${output.isTerminal ? escapeJson(line) : line}\n`).catch(() => {})
  }
}

function finish<C extends Call>(
  { context, ledger }: Batch<C>,
  { outcome, report }: { outcome: Outcome; report: Report },
): void {
  const { stop, tally } = outcome
  report.sum(tally, stop !== undefined || tally.failed > 0)
  if (stop === undefined && ledger.strangers > 0)
    context.note(`${ledger.strangers} of the results belong to no line of the input`)
}
