import { FallbackFile } from '../content/saved-answer.ts'
import { formatNumber as count, formatTokenCount } from '../content/tokens.ts'
import type { Context } from '../context.ts'
import type { CliError } from '../errors.ts'
import { describeRetry } from '../http/call.ts'
import { escapeControlsInJson } from '../io/escape.ts'
import { createFailureRecord } from '../io/failure.ts'
import { printProgressLines } from '../io/progress-lines.ts'
import type { SavedData } from '../io/saved-data.ts'
import { createSpinner } from '../io/spinner.ts'
import type { BatchTally } from './input.ts'

/**
 * Number of results after which parley stops the growth of V8's young generation, which is large enough by
 * then.
 */
const steadyResults = 1000

export class BatchReporter {
  readonly #context
  readonly #tally
  readonly #isResumable
  readonly #saved
  readonly #spinner
  readonly #stopProgressLines
  /**
   * True if another program reads stdout. That program may print results on the same terminal, so parley
   * hides the spinner while it sends a result to stdout.
   */
  readonly #isPiped
  #pausedUntil = 0

  constructor(context: Context, tally: BatchTally, isResumable: boolean) {
    this.#context = context
    this.#tally = tally
    this.#isResumable = isResumable
    this.#saved = new FallbackFile(context, 'ndjson')
    this.#spinner = createSpinner(context)
    this.#isPiped = !context.output.isTerminal && context.host.stdout.writeWhole === undefined
    context.reportData.counts = () => this.#counts()
    this.#showProgress()
    const describeProgress = (time: string) => `still at work ${time}: ${this.#progress()}`
    this.#stopProgressLines = printProgressLines(context, describeProgress)
  }

  async write(line: string): Promise<void> {
    const { output } = this.#context
    if (this.#isPiped) this.#spinner.stop()
    await output.write(`${output.isTerminal ? escapeControlsInJson(line) : line}\n`)
    await output.flush()
    if (this.#isPiped) this.#showProgress()
  }

  /** Saves a result that stdout did not accept. Synchronous, because signal handlers call it. */
  save(line: string): void {
    this.#saved.write(`${line}\n`)
  }

  get savedPart(): SavedData | undefined {
    return this.#saved.part
  }

  note(message: string): void {
    this.#context.messages.note(message)
  }

  /**
   * Returns the failure as an object with the fields of `--errors json`. Redacts secrets. Shortens long texts,
   * but not a paid answer whose only copy is this result.
   */
  describe(error: CliError): object {
    const { status = 0, answer, body, savedFiles = [] } = error.details
    const isPaid = answer !== undefined || (status >= 200 && status < 300)
    const { secrets } = this.#context
    if (!isPaid || savedFiles.length > 0) return createFailureRecord(secrets.redactFailure(error))
    const shown = secrets.redactFailure(error.with({ answer: undefined, body: undefined }))
    return { ...createFailureRecord(shown), body: secrets.redactValue(answer ?? body) }
  }

  onResult(): void {
    const { host, cleanups } = this.#context
    if (this.#tally.ok + this.#tally.failed === steadyResults) host.limitYoungGeneration?.(cleanups)
  }

  onPause(error: CliError, until: number, slots: number): void {
    this.#pausedUntil = until
    const wait = ((until - this.#context.host.timers.now()) / 1000).toFixed(1)
    this.note(`${error.message}; all requests wait ${wait} s, then at most ${slots} run at a time`)
  }

  onRetry(index: number, failure: CliError, waitMs: number): void {
    this.note(`line ${index}: ${describeRetry(failure, waitMs)}`)
  }

  end(): void {
    this.#stopProgressLines()
    this.#spinner.stop()
  }

  #counts() {
    const { ok, warned, failed, skipped, failures, total = null } = this.#tally
    return { counts: { total, ok, warned, failed, skipped, notDone: this.#tally.left ?? null }, failures }
  }

  #showProgress(): void {
    this.#spinner.show(() => this.#progress())
  }

  #progress(): string {
    const { host, reportData } = this.#context
    const now = host.timers.now()
    const pause = Math.max(0, this.#pausedUntil - now)
    return formatBatchProgress(this.#tally, (now - reportData.firstRequestMs) / 1000, pause / 1000)
  }

  /** Prints the summary. With `--quiet`, prints it only if an answer has a warning, such as a cut answer. */
  printSummary(stop: CliError | undefined): void {
    const { warn, note } = this.#context.messages
    const print = this.#tally.warned > 0 ? warn : note
    print(this.describeSummary(stop))
  }

  describeSummary(stop?: CliError): string {
    const { host, reportData } = this.#context
    const seconds = (host.timers.now() - reportData.startMs) / 1000
    const counts = formatBatchSummary(this.#tally, seconds)
    return `${counts}${this.#describeUnanswered()}${this.#describeResume(stop)}`
  }

  #describeUnanswered(): string {
    const { unanswered } = this.#tally
    if (unanswered === 0) return ''
    return `; ${count(unanswered)} request${unanswered === 1 ? '' : 's'} without an answer may be billed`
  }

  #describeResume(stop: CliError | undefined): string {
    const { left, hasSucceeded } = this.#tally
    // If parley saved results in another file, the message of the failure or the signal explains how to
    // resume.
    if (this.savedPart || hasSucceeded) return ''
    if (this.#isResumable) {
      if (stop?.kind === 'stopped' && !stop.details.deadline)
        return '; to resume: --resume with a larger --max-total-tokens'
      const again = 'the same command with --resume'
      return left === 0 ? `; ${again} repeats the failed lines` : `; to resume: ${again}`
    }
    return left === 0 || this.#context.tracker.sent === 'no'
      ? ''
      : '; a batch without --results cannot be resumed'
  }
}

export function formatBatchProgress(tally: BatchTally, passedSeconds: number, pauseSeconds: number): string {
  const { ok, failed, skipped, total } = tally
  const done = ok + failed + skipped
  const rate = passedSeconds > 0 ? (ok + failed) / passedSeconds : 0
  return joinFields(
    total === undefined ? `${count(done)} done` : `${count(done)} of ${count(total)} done`,
    failed > 0 && `${count(failed)} failed`,
    pauseSeconds > 0 && `paused for ${formatTime(pauseSeconds)}`,
    total !== undefined && rate > 0 && `${formatTime((total - done) / rate)} left`,
    rate > 0 && (rate >= 1 ? `${rate.toFixed(rate < 10 ? 1 : 0)}/s` : `${(rate * 60).toFixed(1)}/min`),
    describeTokens(tally),
  )
}

export function formatBatchSummary(tally: BatchTally, seconds: number): string {
  const { ok, warned, failed, savedElsewhere, skipped, failures, left = 0 } = tally
  const kinds = Object.entries(failures).map(([kind, number]) => `${count(number)} ${kind}`)
  return joinFields(
    `${count(ok)} ok${warned > 0 ? ` (${count(warned)} with a warning)` : ''}`,
    `${count(failed)} failed${kinds.length > 0 ? ` (${kinds.join(', ')})` : ''}`,
    savedElsewhere > 0 && `${count(savedElsewhere)} of these saved elsewhere`,
    skipped > 0 && `${count(skipped)} already done`,
    left > 0 && `${count(left)} not done`,
    describeTokens(tally),
    formatTime(seconds),
  )
}

const joinFields = (...fields: (string | false)[]): string => fields.filter((field) => field).join(' · ')

function describeTokens({ tokens, earlierTokens, hasUncountedAnswer }: BatchTally): string {
  if (tokens === 0) return hasUncountedAnswer ? 'unknown tokens' : ''
  const atLeast = hasUncountedAnswer ? 'at least ' : ''
  if (earlierTokens === 0) return `${atLeast}${formatTokenCount(tokens)}`
  return `${atLeast}${formatTokenCount(tokens - earlierTokens)} in this run, ${count(tokens)} in all`
}

function formatTime(seconds: number): string {
  const whole = Math.ceil(seconds)
  if (whole < 60) return `${whole} s`
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  return `${count(Math.floor(whole / 3600))} h ${Math.floor((whole % 3600) / 60)} min`
}
