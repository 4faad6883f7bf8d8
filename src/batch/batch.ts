import type { Context } from '../context.ts'
import { CliError, usage } from '../errors.ts'
import type { Sent } from '../fate.ts'
import type { RetryPolicy } from '../http/retry.ts'
import { absolutePath } from '../io/paths.ts'
import { type ResolvedSettings, readSettings } from '../settings/resolve.ts'
import type { BatchOptions } from './flags.ts'
import {
  type BatchInput,
  type BatchLine,
  type BatchSource,
  type LineCall,
  openSource,
  type Prepare,
  readInput,
  type Tally,
} from './input.ts'
import { Ledger } from './ledger.ts'
import { type BatchContext, BatchReport, withStatusLine } from './report.ts'
import type { LineAnswer } from './result.ts'
import { Earlier, openResults, type ResultReader, type ResultsFile } from './results-file.ts'
import { BatchRun, type Outcome } from './run.ts'

/** The work of a batch: how a line becomes a request, and how it is asked. */
export interface LineWork<C extends LineCall> extends ResultReader {
  prepare: Prepare<C>
  ask(line: BatchLine<C>): Promise<LineAnswer>
  /** Prints the request in one line. */
  preview(call: LineCall): Promise<void>
  retry: Omit<RetryPolicy, 'deadline'>
}

const defaultConcurrency = 8

/** Once so many lines were asked, the memory for what lives short is as large as it has to be. */
const steady = 2000

/** Asks every line of a file, several at a time, and prints a result for each. Throws a `CliError`. */
export async function answerBatch<C extends LineCall>(
  outer: Context,
  options: BatchOptions,
  readWork: (context: Context, settings: ResolvedSettings) => Promise<LineWork<C>>,
): Promise<void> {
  const context = withStatusLine(outer)
  const settings = await readSettings(context)
  const work = await readWork(context, settings)
  if (context.flags.curl) throw usage('--curl shows one request, --batch has many: use --dry-run')
  if (context.host.stdout.isClosed && options.results === undefined && !context.flags.dryRun) throw noStdout()
  const source = await openSource(context, options.batch ?? '')
  try {
    const batch = { options, work, source, deadline: context.limit.deadline }
    await (context.flags.dryRun ? preview(context, batch) : answer(context, batch))
  } finally {
    source.close()
  }
}

const noStdout = () =>
  new CliError('file', 'stdout: it is closed, so no result could be printed: --results FILE keeps them', {
    consequence: 'nothing was sent',
  })

interface Batch<C extends LineCall> {
  options: BatchOptions
  work: LineWork<C>
  source: BatchSource
  /** By the forward clock, or Infinity. */
  deadline: number
}

async function preview<C extends LineCall>(
  context: BatchContext,
  { options, work, source }: Batch<C>,
): Promise<void> {
  const input = await readInput(source, work.prepare, new Ledger(), options.share)
  for await (const { call } of input.lines) await work.preview(call)
  requireLine(context, input, source)
}

/** Opens the results, and the input, which is checked if it is a file. */
async function open<C extends LineCall>(
  context: BatchContext,
  { options, work, source, deadline }: Batch<C>,
): Promise<{ input: BatchInput<C>; results: ResultsFile | undefined }> {
  const { host, note, cleanups, timers } = context
  const { results: name, resume: isResumed = false } = options
  const ledger = new Ledger()
  const read = () => readInput(source, work.prepare, ledger, options.share)
  // With --resume the ledger has to know the results first, else nothing is made before the input is known to be good.
  const checked = isResumed ? undefined : await read()
  if (name === undefined) return { input: checked ?? (await read()), results: undefined }
  const path = absolutePath(host, name)
  const results = await openResults({ path, name, isResumed, ledger, reader: work, deadline, timers, note })
  cleanups.add(results.close)
  return { input: checked ?? (await read()), results }
}

async function answer<C extends LineCall>(context: BatchContext, batch: Batch<C>): Promise<void> {
  const { options, work, deadline } = batch
  const { input, results } = await open(context, batch)
  const { concurrency = defaultConcurrency, maxTotalTokens: mostTokens = Infinity, maxFailed } = options
  const { tally } = input
  const { tokens: earlierTokens, isPartial } = results?.earlier ?? new Earlier()
  Object.assign(tally, { tokens: earlierTokens, earlierTokens, isPartial })
  const report = new BatchReport(context, tally, results !== undefined)
  const { stop: interrupted, end: endInterrupt } = takeInterrupt(context)
  context.calls.expectGoingOn(() => options.resume === true)
  let asked = 0
  const run = new BatchRun(
    input,
    (line) => {
      if (++asked === steady && context.host.holdMemory) context.cleanups.add(context.host.holdMemory())
      return work.ask(line)
    },
    {
      limits: {
        concurrency,
        retry: { ...work.retry, deadline },
        mostTokens,
        mostFailed: () => maxFailed?.most(tally.total) ?? Infinity,
      },
      interrupted,
      timers: context.timers,
      report,
      results,
    },
  )
  const outcome = await run.toEnd().finally(() => report.end())
  await endInterrupt()
  report.sum(outcome.stop)
  if (tally.gone > 0)
    context.note(`the files of ${tally.gone} line${tally.gone === 1 ? '' : 's'} were gone: asked for again`)
  throwFailure(outcome, options, tally, context.calls.sent)
  requireLine(context, input, batch.source)
  results?.close()
}

/** The first Ctrl-C begins nothing new, and the process dies by it once what was begun is finished. */
function takeInterrupt({ host, note, cleanups }: BatchContext) {
  const interrupted = new AbortController()
  const interrupt = host.takeInterrupt?.(() => {
    note('finishing what was begun; a second Ctrl-C ends at once')
    interrupted.abort()
  })
  return {
    stop: interrupted.signal,
    async end() {
      if (interrupted.signal.aborted) {
        // The terminal has shown the ^C long ago.
        cleanups.add(() => true)
        // The signal prints the counts.
        await interrupt?.raise()
      }
      interrupt?.giveBack()
    },
  }
}

/** A batch without a line is done; with `--fail-on-empty` that is a usage error. */
function requireLine<C extends LineCall>(
  { flags, note }: BatchContext,
  { tally }: BatchInput<C>,
  { name }: BatchSource,
): void {
  if (tally.hasLine) return
  const empty = `${name}: it has no line with a request`
  if (flags.failOnEmpty) throw usage(empty)
  note(empty)
}

/** Why the batch stopped, else a failure of a line, if more failed than may. */
function throwFailure(
  { stop, failure }: Outcome,
  { maxFailed, resume, results }: BatchOptions,
  { ok, failed, skipped, total, isAnswered }: Tally,
  sent: Sent,
): void {
  // Without --resume the same command would pay for the answers once more, or be refused by its own results.
  const isSpent = !resume && (isAnswered || (results !== undefined && failed > 0))
  const retryOf = ({ retry }: CliError['details']) => (isSpent && retry === 'later' ? 'never' : retry)
  if (stop instanceof CliError) {
    // After a deadline the same command goes on, or begins anew.
    const goesOn = stop.kind === 'stopped' && stop.details.deadline
    throw stop.with({ sent, retry: retryOf(goesOn ? { retry: 'later' } : stop.details) })
  }
  if (stop !== undefined) throw stop
  if (!failure || failed <= (maxFailed?.most(total) ?? 0)) return
  const counted = `${failed} of ${ok + failed + skipped} requests failed`
  const limit = maxFailed ? `, more than --max-failed ${maxFailed.text} allows` : ''
  const { index, error } = failure
  const which = `${failed === 1 ? '' : 'such as '}line ${index}`
  throw new CliError(error.kind, `${counted}${limit}, ${which}: ${error.message}`, {
    ...error.details,
    sent,
    retry: retryOf(error.details),
  })
}
