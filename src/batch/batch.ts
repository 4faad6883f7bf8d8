import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import type { Sent } from '../fate.ts'
import { escapeJson } from '../io/escape.ts'
import { absolutePath, realPlace } from '../io/paths.ts'
import { deadlineOf, readSettings } from '../settings/read-settings.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { type BatchOptions, checkBatchFlags, mostFailedOf } from './flags.ts'
import {
  type BatchInput,
  type Line,
  type LineRequest,
  openSource,
  type Prepare,
  readInput,
  type Source,
} from './input.ts'
import { createLedger } from './ledger.ts'
import { asTheyCome, inOrder, type LineAnswer, type Result, type Turns } from './record.ts'
import { type BatchContext, createBatchReport, withStatusLine } from './report.ts'
import { openResults, type ResultsFile } from './results-file.ts'
import { type Asking, type Outcome, runBatch } from './run.ts'

/** The work of a batch: how a line becomes a request, and how it is asked. */
export interface LineWork<C extends LineRequest> {
  prepare: Prepare<C>
  /** The same as `Ask`, with what a line does not say itself. */
  ask(line: Line<C>, asking: Asking): Promise<LineAnswer>
  /** Finds the tokens of an answer in a result that was written with `--raw`. */
  tokensOf(line: Record<string, unknown>): number | undefined
  /** Prints the request in one line. */
  preview(call: C): Promise<void>
}

const defaultConcurrency = 8

/** Once so many lines were asked, the memory for what lives short is as large as it has to be. */
const steady = 2000

/** Asks every line of a file, several at a time, and prints a result for each. Throws a `CliError`. */
export async function answerBatch<C extends LineRequest>(
  outer: Context,
  options: BatchOptions,
  readWork: (context: Context, settings: ResolvedSettings) => Promise<LineWork<C>>,
): Promise<void> {
  const context = withStatusLine(outer)
  const settings = await readSettings(context)
  const work = await readWork(context, settings)
  checkBatchFlags(context.flags.curl)
  const source = await openSource(context, options.batch ?? '')
  if (context.flags.dryRun) {
    const { lines } = await readInput(source, work.prepare, createLedger(), options.share)
    for await (const { call } of lines) await work.preview(call)
    return
  }
  try {
    const deadline = deadlineOf(context, settings)
    const { input, results } = await open(context, { options, work, source, deadline })
    await answer(context, { options, work, input, results, deadline })
    results?.close()
  } finally {
    source.close()
  }
}

interface OpeningBatch<C extends LineRequest> {
  options: BatchOptions
  work: LineWork<C>
  source: Source
  /** By the forward clock, or Infinity. */
  deadline: number
}

interface OpenBatch<C extends LineRequest> extends Omit<OpeningBatch<C>, 'source'> {
  input: BatchInput<C>
  results: ResultsFile | undefined
}

/** Opens the results, and the input, which is checked if it is a file. */
async function open<C extends LineRequest>(
  context: Context,
  { options, work, source, deadline }: OpeningBatch<C>,
): Promise<Pick<OpenBatch<C>, 'input' | 'results'>> {
  const { host, note, cleanups, timers } = context
  const { results: name, resume: isResumed = false } = options
  const ledger = createLedger()
  const read = () => readInput(source, work.prepare, ledger, options.share)
  // With --resume the ledger has to know the results first, else nothing is made before the input is known to be good.
  const checked = isResumed ? undefined : await read()
  if (name === undefined) return { input: checked ?? (await read()), results: undefined }
  const given = absolutePath(host, name)
  // Only what is resumed is made through a link.
  const path = isResumed ? realPlace(given) : given
  const { tokensOf } = work
  const results = await openResults({ path, name, isResumed, ledger, tokensOf, deadline, timers, note })
  cleanups.add(results.close)
  return { input: checked ?? (await read()), results }
}

async function answer<C extends LineRequest>(
  context: BatchContext,
  { options, work, input, results, deadline }: OpenBatch<C>,
): Promise<void> {
  const { concurrency = defaultConcurrency, maxTotalTokens: mostTokens = Infinity } = options
  const { maxFailed } = options
  const turns: Turns<Result> = options.unordered ? asTheyCome() : inOrder(4 * concurrency)
  const report = createBatchReport(context, { input, isResumable: results !== undefined })
  context.calls.expectGoingOn(() => options.resume === true)
  const interrupted = new AbortController()
  const interrupt = context.host.takeInterrupt?.(() => {
    context.note('finishing what was begun; a second Ctrl-C ends at once')
    interrupted.abort()
  })
  const giveOut = () => printHeld(context, turns)
  context.cleanups.add(giveOut)
  const width = results?.earlier.width ?? widthOf(input.lastNumber)
  let asked = 0
  const outcome = await runBatch(
    input,
    (line) => {
      if (++asked === steady && context.host.holdMemory) context.cleanups.add(context.host.holdMemory())
      return work.ask(line, {
        number: `${line.index}`.padStart(width, '0'),
        onRetry: (failure, wait) => report.onRetry(line.index, failure, wait),
      })
    },
    { ...report.sinks, turns, results },
    {
      concurrency,
      deadline,
      mostTokens,
      mostFailed: () => (maxFailed ? mostFailedOf(maxFailed, input.total) : Infinity),
      earlier: results?.earlier ?? { tokens: 0 },
      interrupted: interrupted.signal,
      timers: context.timers,
      onPause: report.onPause,
    },
  ).finally(report.end)
  if (interrupted.signal.aborted) {
    // The terminal has shown the ^C long ago.
    context.cleanups.add(() => true)
    // The signal prints the counts.
    await interrupt?.raise()
  }
  interrupt?.giveBack()
  context.cleanups.delete(giveOut)
  const { tally, stop } = outcome
  report.sum(tally)
  if (stop === undefined && input.unmatched > 0)
    context.note(
      `${input.unmatched} of the results ${input.unmatched === 1 ? 'belongs' : 'belong'} to no line of the input`,
    )
  if (input.moved > 0) {
    const kept =
      input.moved === 1
        ? '1 result keeps its earlier index'
        : `${input.moved} results keep their earlier index`
    context.note(`the lines stand in another order now: ${kept}; the hash tells them apart`)
  }
  throwFailure(outcome, options, { total: input.total, sent: context.calls.sent })
}

/** How many digits the number of every line has, in a name that sorts. */
const widthOf = (lastNumber: number | undefined) => (lastNumber === undefined ? 6 : `${lastNumber}`.length)

/** Prints the results that wait for their turn, when a signal ends the run at once. */
function printHeld({ output }: BatchContext, turns: Turns<Result>): void {
  for (const { text } of turns.takeHeld()) {
    void output.write(`${output.isTerminal ? escapeJson(text) : text}\n`).catch(() => {})
  }
}

/** Why the batch stopped, else the failure of the first line that failed, if more failed than may. */
function throwFailure(
  { stop, failure, mayPass, tally: { ok, failed, lost = 0, skipped } }: Outcome,
  { maxFailed, resume, results }: BatchOptions,
  { total, sent }: { total: number | undefined; sent: Sent },
): void {
  // Without --resume the same command would pay for the answers once more, or be refused by its own results.
  const isSpent = !resume && (ok + lost > 0 || (results !== undefined && failed > 0))
  const retryOf = ({ retry }: CliError['details']) => (isSpent && retry === 'later' ? 'never' : retry)
  if (stop instanceof CliError) {
    // After a deadline the same command goes on, or begins anew.
    const goesOn = stop.kind === 'stopped' && stop.details.deadline
    throw stop.with({ sent, retry: retryOf(goesOn ? { retry: 'later' } : stop.details) })
  }
  if (stop !== undefined) throw stop
  if (!failure || failed <= (maxFailed ? mostFailedOf(maxFailed, total) : 0)) return
  const counted = `${failed} of ${ok + failed + skipped} requests failed`
  const limit = maxFailed ? `, more than --max-failed ${maxFailed.text} allows` : ''
  const { index, error } = failure
  const which = failed === 1 ? `line ${index}` : `the first of them, line ${index}`
  throw new CliError(error.kind, `${counted}${limit}, ${which}: ${error.message}`, {
    ...error.details,
    sent,
    // A line that would fail again takes nothing from one that may not.
    retry: resume && mayPass ? 'later' : retryOf(error.details),
  })
}
