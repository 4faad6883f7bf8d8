import { ArraySet } from '../array-set.ts'
import { isCertainlyUnaccepted } from '../delivery-state.ts'
import { CliError, convertDeadlineFailure, OutputClosedError, toFailure } from '../errors.ts'
import { canRetry, decideRetry } from '../http/retry.ts'
import { schedule, type Timers } from '../timers.ts'
import {
  type BatchLimits,
  type BatchState,
  classifyLineFailure,
  createRequestGate,
  createTokenLimitError,
  decideBatchStep,
  type RequestGate,
  recordAnswer,
  recordOutageFailure,
  recordRefusal,
  recordRequestEnd,
  recordRequestStart,
} from './gate.ts'
import type { BatchLine, BatchLineAnswer, BatchTally } from './input.ts'
import type { BatchReporter } from './reporter.ts'
import { formatFailedResult, formatSuccessfulResult, type ResultsFile } from './results-file.ts'

interface LineFailure {
  index: number
  error: CliError
}

export interface BatchRunOptions {
  lines: AsyncIterable<Iterable<BatchLine>>
  tally: BatchTally
  limits: BatchLimits
  timers: Timers
  reporter: Pick<BatchReporter, 'write' | 'save' | 'describe' | 'onResult' | 'onRetry' | 'onPause'>
  /** If omitted, or if writing fails, results are printed on stdout. */
  results?: Pick<ResultsFile, 'write' | 'requireOwned'> | undefined
}

export interface BatchOutcome {
  /** Failure that stopped the batch early. */
  stop: CliError | undefined
  failure: LineFailure | undefined
}

export class BatchRun implements BatchState {
  gate
  readonly waitingForRetry: BatchLine[] = []
  next: BatchState['next'] = 'awaited'
  phase: BatchState['phase'] = 'running'
  readonly tally
  readonly limits
  readonly #chunks
  #lines: Iterator<BatchLine, void> = [].values()
  readonly #options
  /** Lines with a running request or a scheduled retry. */
  readonly #activeLines: ArraySet<BatchLine> = new ArraySet()
  #failure: LineFailure | undefined
  #stopReason: CliError | undefined
  readonly #retryAbort = new AbortController()
  #pauseCause: CliError | undefined
  mayDuplicate = false
  readonly #unprintedResults: ArraySet<string> = new ArraySet()
  /** Continues the loop of `runToEnd` when a request, a read or a retry delay ends. */
  #wake = () => {}

  constructor(options: BatchRunOptions) {
    this.#chunks = options.lines[Symbol.asyncIterator]()
    this.tally = options.tally
    this.limits = options.limits
    this.gate = createRequestGate(options.limits.concurrency)
    this.#options = options
  }

  async runToEnd(): Promise<BatchOutcome> {
    try {
      this.#readNext()
      for (;;) {
        const now = this.#options.timers.now()
        const step = decideBatchStep(this, now)
        if (step.do === 'end') break
        if (step.do === 'start') this.#startLine(step.line)
        else if (step.do === 'finish') this.#stop(step.because)
        else if (step.do === 'cancel') this.#cancelRunning()
        else await this.#waitForEvent(now, step.until)
      }
    } finally {
      // parley does not wait for the end of the read, because a silent pipe may never end.
      this.#chunks.return?.().catch(() => {})
    }
    // A waiting line has a failure only if the line has received a paid part of its answer. The failure
    // becomes the result of the line, so that the part is saved.
    for (const line of this.waitingForRetry.splice(0)) {
      this.#countUnanswered(line)
      if (line.failure) await this.#finishLine(line, line.failure)
    }
    return { stop: this.#stopReason, failure: this.#failure }
  }

  finish(): void {
    this.#stop(undefined)
    this.#wake()
  }

  /**
   * Saves unprinted results and the received parts of unfinished answers. Synchronous, because signal
   * handlers call it.
   */
  saveReceivedAnswers(): void {
    const { results, reporter } = this.#options
    for (const text of this.#unprintedResults) {
      this.#unprintedResults.delete(text)
      reporter.save(text)
    }
    for (const line of [...this.#activeLines, ...this.waitingForRetry]) {
      this.#countUnanswered(line)
      const isPaid = line.failure === undefined || line.answers > 0
      const interrupted = createCancelFailure(line, 'the run was interrupted')
      const failure = line.failure ?? line.call.addReceivedPart?.(interrupted)
      if (!failure || !isPaid) continue
      this.mayDuplicate = true
      const text = formatFailedResult(line, reporter.describe(withLineDetails(failure, line)))
      this.#countFailure(failure)
      try {
        results?.write(text)
        if (results) continue
      } catch {
        // The result is saved in another file instead.
      }
      reporter.save(text)
      this.tally.savedElsewhere++
    }
  }

  /** Called when the batch ends before the line. */
  #countUnanswered(line: BatchLine): void {
    const state = line.getDeliveryState?.()
    if (!line.mayDuplicate && (state === undefined || isCertainlyUnaccepted(state))) return
    this.mayDuplicate = true
    this.tally.unanswered++
  }

  /** Starts an operation that handles its own failures. Any other error is a bug and stops the batch. */
  #start(work: Promise<void>): void {
    void work.catch((error: unknown) => this.#stop(error)).then(() => this.#wake())
  }

  async #waitForEvent(now: number, until: number): Promise<void> {
    const at = this.phase === 'cancelled' ? until : Math.min(until, this.limits.deadlineMs)
    let cancelTimer = () => {}
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      if (at !== Infinity) cancelTimer = schedule(this.#options.timers, at - now, resolve)
    })
    cancelTimer()
  }

  #stop(because: unknown): void {
    if (because !== undefined) this.#stopReason ??= toFailure(because)
    if (this.phase === 'running') this.phase = 'finishing'
    this.#retryAbort.abort()
  }

  #cancelRunning(): void {
    const deadline = true
    const isPaused = this.waitingForRetry.length > 0 && this.#pauseCause
    const because = isPaused ? `; before that, ${isPaused.message}` : ''
    this.#stop(new CliError('stopped', `the deadline passed${because}`, { retry: 'later', deadline }))
    this.phase = 'cancelled'
    for (const line of this.#activeLines) {
      this.#countUnanswered(line)
      this.#activeLines.delete(line)
      const error = createCancelFailure(line, 'the deadline passed', deadline)
      this.#start(this.#finishLine(line, line.failure ?? line.call.addReceivedPart?.(error) ?? error))
    }
  }

  #readNext(): void {
    try {
      this.next = this.#lines.next().value ?? 'awaited'
      if (this.next === 'awaited') this.#start(this.#readChunk())
    } catch (error) {
      this.#endInput(error)
    }
  }

  async #readChunk(): Promise<void> {
    try {
      const { done, value } = await this.#chunks.next()
      if (done) this.next = 'none'
      else this.#lines = value[Symbol.iterator]()
    } catch (error) {
      this.#endInput(error)
    }
    if (this.next === 'awaited') this.#readNext()
  }

  /** Ends the input after a failed read. parley still requests the lines that it read before the failure. */
  #endInput(error: unknown): void {
    this.next = 'none'
    this.#stopReason ??= toFailure(error)
  }

  #startLine(line: BatchLine): void {
    if (line === this.next) this.#readNext()
    else this.waitingForRetry.shift()
    this.gate = recordRequestStart(this.gate)
    this.#start(this.#requestLine(line))
  }

  async #requestLine(line: BatchLine): Promise<void> {
    const { timers } = this.#options
    const pauseNumber = this.gate.pause.number
    const start = timers.now()
    this.#activeLines.add(line)
    line.failure = undefined
    line.getDeliveryState = undefined
    const outcome = await this.#send(line)
    // If the line is no longer active, the deadline has passed and the line's failure is already written.
    if (!this.#activeLines.delete(line)) return
    const now = timers.now()
    line.seconds = (now - start) / 1000
    if (!(outcome instanceof CliError)) {
      this.gate = recordAnswer(this.gate, pauseNumber, { isOk: true, now })
      return this.#finishLine(line, outcome)
    }
    line.mayDuplicate ||= outcome.mayDuplicate
    const next = this.#decideAfterFailure(line, outcome, pauseNumber, now)
    if (next instanceof CliError) return this.#finishLine(line, next)
    if (next !== 'wait') {
      line.failure = outcome
      this.#activeLines.add(line)
      await timers.wait(next, this.#retryAbort.signal)
      if (!this.#activeLines.delete(line)) return
      if (this.phase !== 'running') return this.#finishLine(line, outcome)
    }
    // If the batch stops before a retry, this failure becomes the line's result, because it has the paid part
    // of the answer.
    line.failure = line.answers > 0 ? outcome : undefined
    this.waitingForRetry.push(line)
    this.gate = recordRequestEnd(this.gate)
  }

  async #send(line: BatchLine): Promise<BatchLineAnswer | CliError> {
    try {
      // While the process is suspended, another process may take over the results file. So parley checks the
      // lock of the file before each request.
      this.#options.results?.requireOwned()
      return await line.call.send(line, () => this.#requireNext(line))
    } catch (error) {
      return toFailure(error)
    }
  }

  #requireNext(line: BatchLine): void {
    this.#options.results?.requireOwned()
    if (!this.#activeLines.has(line)) throw new CliError('stopped', 'the deadline passed', { deadline: true })
    if (this.tally.tokens >= this.limits.maxTokens) throw createTokenLimitError(this.limits)
  }

  /**
   * Decides what happens to a line after a failed request:
   * - a `CliError`: the line fails with this error
   * - `wait`: the line waits for the end of a pause, unless the batch stops first
   * - a number: the line is retried after this number of milliseconds
   */
  #decideAfterFailure(line: BatchLine, error: CliError, pauseNumber: number, now: number) {
    const effect = classifyLineFailure(error)
    if (effect === 'stop') {
      this.#stop(error)
      return 'wait'
    }
    const { retry, deadlineMs } = this.limits
    const random = this.#options.timers.random()
    const failed = { error, index: line.index, now, deadlineMs, random }
    const before = this.gate
    try {
      if (effect === 'pause') this.gate = recordRefusal(before, pauseNumber, failed)
      else if (effect === 'pause-if-repeated') this.gate = recordOutageFailure(before, pauseNumber, failed)
      else this.gate = recordAnswer(before, pauseNumber, { isOk: false, now })
    } catch (reason) {
      this.#stop(reason)
      return effect === 'pause' ? 'wait' : error
    }
    this.#reportPause(before, error)
    if (effect === 'pause') return 'wait'
    if (effect === 'fail-and-stop') this.#stop(error)
    if (this.gate.outage) return canRetry(retry, error) ? 'wait' : error
    if (this.phase !== 'running') return error
    const wait = decideRetry(retry, error, { attempt: ++line.failures, now, deadlineMs, random })
    if (wait instanceof CliError) return wait
    this.#options.reporter.onRetry(line.index, error, wait)
    return wait
  }

  #reportPause({ pause: before }: RequestGate, error: CliError): void {
    const { pause, slots, outage } = this.gate
    if (pause === before) return
    this.#pauseCause = error
    if (pause.number !== before.number) this.#options.reporter.onPause(error, pause.until, outage ? 1 : slots)
  }

  async #finishLine(line: BatchLine, outcome: BatchLineAnswer | CliError): Promise<void> {
    const { tally } = this
    const { reporter } = this.#options
    try {
      if (outcome instanceof CliError) {
        const error = withLineDetails(outcome, line)
        const text = formatFailedResult(line, reporter.describe(error))
        this.mayDuplicate ||= error.mayDuplicate
        const failure = { index: line.index, error }
        if (!this.#failure || compareFailures(failure, this.#failure) < 0) this.#failure = failure
        await this.#write(text)
        this.#countFailure(error)
      } else {
        await this.#write(formatSuccessfulResult(line, outcome))
        tally.ok++
        if (outcome.warning !== undefined) tally.warned++
      }
      reporter.onResult()
    } finally {
      this.gate = recordRequestEnd(this.gate)
    }
  }

  #countFailure({ kind }: CliError): void {
    const { tally } = this
    tally.failed++
    tally.failures[kind] = (tally.failures[kind] ?? 0) + 1
  }

  async #write(text: string): Promise<void> {
    const { results, reporter } = this.#options
    try {
      results?.write(text)
      if (results) return
    } catch (error) {
      this.#stop(error instanceof CliError ? error.with({ consequence: writtenToStdout }) : error)
      this.tally.savedElsewhere++
    }
    // The answer was paid for, so the result is printed instead. If printing also fails, the result is saved.
    this.#unprintedResults.add(text)
    try {
      await reporter.write(text)
    } catch (error) {
      if (this.#unprintedResults.has(text)) reporter.save(text)
      if (!results) this.tally.savedElsewhere++
      const isClosed = error instanceof OutputClosedError
      this.#stop(
        isClosed ? new CliError('file', 'stdout: its reader closed the pipe') : convertDeadlineFailure(error),
      )
    } finally {
      this.#unprintedResults.delete(text)
    }
  }
}

const compareFailures = (one: LineFailure, other: LineFailure): number =>
  Number(isTransient(other)) - Number(isTransient(one)) || one.index - other.index

const isTransient = ({ error }: LineFailure) => error.details.retry === 'later'

const withLineDetails = (failure: CliError, { attempts, answers, mayDuplicate = false }: BatchLine) =>
  failure.with({ attempts, mayDuplicate: mayDuplicate || failure.mayDuplicate || answers > 0 })

function createCancelFailure(line: BatchLine, message: string, deadline?: true): CliError {
  const kind = getCancelKind(line)
  return new CliError(kind, message, { retry: 'later', deadline, ...cancelDetails[kind] })
}

const cancelDetails = {
  response: { sent: 'yes' },
  unknown: { sent: 'unknown' },
  'not-sent': { sent: 'no' },
} as const

/**
 * The kind depends on the latest request of the line. If no byte of that request was sent, the kind depends
 * on the earlier requests.
 */
function getCancelKind({ getDeliveryState, answers, mayDuplicate }: BatchLine): keyof typeof cancelDetails {
  const state = getDeliveryState?.()
  if (state === 'sent') return 'unknown'
  if (state === 'answered' || answers > 0) return 'response'
  return mayDuplicate ? 'unknown' : 'not-sent'
}

const writtenToStdout = 'results that could not be written are on stdout; --resume requests their lines again'
