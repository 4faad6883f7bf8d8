import { formatNumber } from '../content/tokens.ts'
import type { Context } from '../context.ts'
import type { SentStatus } from '../delivery-state.ts'
import { type CliError, convertFileErrors, usageError } from '../errors.ts'
import type { RetryPolicy } from '../http/retry.ts'
import { requireOpenStdout } from '../io/output.ts'
import type { SavedData } from '../io/saved-data.ts'
import { type ResolvedSettings, readSettings } from '../settings/resolve.ts'
import type { WorkHooks } from '../work-tracker.ts'
import type { BatchOptions } from './flags.ts'
import {
  type BatchInput,
  type BatchLineCall,
  BatchTally,
  openBatchSource,
  type PrepareBatchLine,
  readBatchInput,
} from './input.ts'
import { BatchLineRegistry } from './line-registry.ts'
import { BatchReporter } from './reporter.ts'
import { openResultsFile, type ResultsFileOptions } from './results-file.ts'
import { type BatchOutcome, BatchRun } from './run.ts'

interface BatchLineHandlers {
  prepare: PrepareBatchLine
  isAccepted?: ResultsFileOptions['isAccepted']
  preview(call: BatchLineCall): Promise<unknown>
  retry: RetryPolicy
}

const defaultConcurrency = 8

export async function runBatch(
  context: Context,
  options: BatchOptions,
  createHandlers: (context: Context, settings: ResolvedSettings) => Promise<BatchLineHandlers>,
): Promise<void> {
  const settings = await readSettings(context)
  if (options.results === undefined && !context.flags.dryRun)
    requireOpenStdout(context.host.stdout, { consequence: 'use --results FILE' })
  // The source is opened first, so that a pipe with the lines is not added to the prompt.
  const source = await openBatchSource(context, options.batch ?? '')
  const handlers = await createHandlers(context, settings)
  const registry = new BatchLineRegistry()
  const tally = new BatchTally()
  const input: BatchInput = { source, prepare: handlers.prepare, registry, tally, share: options.share }
  try {
    if (context.flags.dryRun)
      for await (const lines of await readBatchInput(input))
        for (const { call } of lines) await handlers.preview(call)
    else await requestLines(context, options, handlers, input)
  } finally {
    source.close()
  }
  requireLine(context, input)
}

async function requestLines(
  context: Context,
  options: BatchOptions,
  handlers: BatchLineHandlers,
  input: BatchInput,
): Promise<void> {
  const { source, registry, tally } = input
  const { host, deadline, tracker } = context
  const { isAccepted, retry } = handlers
  const { concurrency = defaultConcurrency, maxTotalTokens: maxTokens = Infinity, maxFailed } = options
  const { results: name, resume: isResumed } = options
  // The results file is opened before the input is read, because its results show which lines are finished.
  // If the input is invalid, a cleanup deletes a results file that this run created.
  const results =
    name === undefined
      ? undefined
      : await convertFileErrors(name, () =>
          openResultsFile(context, { name, isResumed, registry, tally, isAccepted }),
        )
  const lines = await readBatchInput(input)
  const reporter = new BatchReporter(context, tally, results !== undefined)
  const noteRequestsNotInInput = () => {
    const requests = registry.endInput()
    const which = `${formatNumber(requests)} request${requests === 1 ? ' that is' : 's that are'}`
    if (requests > 0) reporter.note(`${name} has results of ${which} not in the input`)
  }
  if (source.isRepeatable) noteRequestsNotInInput()
  const getMaxFailed = () => maxFailed?.getMaxFailed(tally.total) ?? Infinity
  const limits = { concurrency, retry, deadlineMs: deadline.atMs, maxTokens, getMaxFailed }
  const run = new BatchRun({ lines, tally, limits, timers: host.timers, reporter, results })
  const hooks: WorkHooks = {
    save() {
      run.saveReceivedAnswers()
      return [reporter.savedPart]
    },
    onInterrupt: () => reporter.describeSummary(),
    describeRerun: () =>
      isResumed
        ? { mayDuplicate: run.mayDuplicate }
        : { retry: wouldPayAgain(options, tally) ? 'never' : 'later' },
  }
  await tracker.during(hooks, async () => {
    const endInterrupt = handleInterrupt(context, run)
    const outcome = await run.runToEnd().finally(() => reporter.end())
    await endInterrupt()
    // All requests from a pipe are known only after its last line. So parley only now reports results whose
    // requests are not in the input.
    if (!source.isRepeatable && tally.total !== undefined) noteRequestsNotInInput()
    if (Number.isFinite(maxTokens) && tally.hasUncountedAnswer)
      context.messages.warn('--max-total-tokens did not count the tokens that the service did not report')
    reporter.printSummary(outcome.stop)
    const stop = addResumeAdvice(outcome.stop, reporter.savedPart, options)
    throwFailure({ ...outcome, stop }, options, tally, tracker.sent)
  })
}

/**
 * On the first Ctrl-C, starts no further request. Returns a function to call when the running requests have
 * ended. After a Ctrl-C, that function ends the process by the signal, unless all lines have succeeded.
 */
function handleInterrupt({ host, messages, cleanups }: Context, run: BatchRun): () => Promise<void> {
  let isInterrupted = false
  const interrupt = host.interceptInterrupt?.(() => {
    messages.note('finishing running requests; press Ctrl-C again to end at once')
    isInterrupted = true
    run.finish()
  })
  return async () => {
    if (isInterrupted && !run.tally.hasSucceeded) {
      // The signal handler prints a line break after ^C unless a cleanup returns true. parley has printed
      // complete lines since ^C, so a line break would add an empty line.
      cleanups.add(() => true)
      // `raise` sends SIGINT again. The signal handler then prints the summary and ends the process.
      await interrupt?.raise()
    }
    interrupt?.release()
  }
}

function requireLine({ flags, messages }: Context, { source, tally }: BatchInput): void {
  if (tally.hasLine) return
  const empty = `${source.name}: it has no line with a request, so nothing was sent`
  if (flags.failOnEmpty) throw usageError(empty)
  messages.note(empty)
}

function addResumeAdvice(stop: CliError | undefined, part: SavedData | undefined, { results }: BatchOptions) {
  if (part?.name === undefined) return stop
  const resumeText =
    results === undefined
      ? 'write the printed results, then the saved results, to a FILE, and run the same command with --results FILE --resume'
      : `append the saved results to ${results}, then run the same command with --resume`
  return stop?.with({ consequence: `to resume: ${resumeText}` })
}

/**
 * Without --resume, the same command would pay for the answers again, or fail because its results file
 * exists.
 */
const wouldPayAgain = ({ resume, results }: BatchOptions, { hasAnswer, failed }: BatchTally): boolean =>
  !resume && (hasAnswer || (results !== undefined && failed > 0))

function throwFailure(
  { stop, failure }: BatchOutcome,
  options: BatchOptions,
  tally: BatchTally,
  sent: SentStatus,
): void {
  const getDetails = ({ retry }: CliError['details']) => ({
    sent,
    retry: retry === 'later' && wouldPayAgain(options, tally) ? 'never' : retry,
  })
  if (stop) throw stop.with(getDetails(stop.details))
  const { maxFailed } = options
  const { ok, failed, skipped, total } = tally
  if (!failure || failed <= (maxFailed?.getMaxFailed(total) ?? 0)) return
  const counted = `${failed} of ${ok + failed + skipped} requests failed`
  const limit = maxFailed ? `, more than --max-failed ${maxFailed.text} allows` : ''
  const { index, error } = failure
  const which = `${failed === 1 ? '' : 'such as '}line ${index}`
  // The result of the line already contains its answer, so the failure omits the answer.
  const details = { ...getDetails(error.details), answer: undefined }
  throw error.with(details, `${counted}${limit}, ${which}: ${error.message}`)
}
