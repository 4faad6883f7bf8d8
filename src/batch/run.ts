import { Crowd } from '../crowd.ts'
import { asStop, CliError, OutputClosed } from '../errors.ts'
import { decideRetry, mayRepeat, type RetryPolicy } from '../http/retry.ts'
import { callAfter, type Timers } from '../timers.ts'
import {
  answer,
  begin,
  createGate,
  decide,
  effectOf,
  fail,
  type Gate,
  leave,
  refuse,
  type State,
} from './gate.ts'
import type { BatchInput, BatchLine, LineCall } from './input.ts'
import { formatAnswer, formatFailure, type LineAnswer } from './result.ts'

/**
 * Sends the request of one line, once, and counts what it spent. Throws a `CliError`. The batch decides whether to try
 * again.
 */
export type Ask<C extends LineCall> = (line: BatchLine<C>) => Promise<LineAnswer>

interface LineFailure {
  index: number
  error: CliError
}

/** Takes results. */
export interface ResultSink {
  /** Resolves once a line is written; throws as its file or stdout does. */
  write(line: string): Promise<void> | void
}

/** Prints results on stdout, and tells a person how the batch goes. */
export interface Reporter extends ResultSink {
  /** A failure as it stands in a result, secrets redacted. */
  describe(error: CliError): object
  note(message: string): void
  /** The line with this number has its result. */
  onResult(index: number): void
  /** A line is tried again after this many milliseconds. */
  onRetry(index: number, failure: CliError, wait: number): void
  /** All lines pause until then (by the forward clock). Afterwards `places` may run at a time, in an outage one. */
  onPause(error: CliError, until: number, places: number): void
}

export interface BatchLimits {
  /** The most requests at a time. */
  concurrency: number
  /** When a single line is tried again, until the deadline (by the forward clock, or Infinity). */
  retry: RetryPolicy
  /** Stop starting requests after this many tokens; Infinity for no limit. */
  mostTokens: number
  /** Stop starting requests once more lines have failed; Infinity for no limit. */
  mostFailed(): number
}

export interface BatchSettings {
  limits: BatchLimits
  /** Aborted to start no more requests. Those under way are finished. */
  interrupted: AbortSignal
  timers: Timers
  report: Reporter
  /** The results file. A result that it does not take goes to stdout, and does not count. */
  results?: ResultSink | undefined
}

export interface Outcome {
  /** Why it ended before all lines were asked. */
  stop: unknown
  /** The first failed line by its number; one that may still succeed goes before others. */
  failure: LineFailure | undefined
}

/** Answers that come together differ by some milliseconds. */
const worthTelling = 1000

/** Asks all lines of an input, several at a time, and writes a result for each as it comes. */
export class BatchRun<C extends LineCall> implements State<BatchLine<C>> {
  gate
  readonly waiting: BatchLine<C>[] = []
  next: State<BatchLine<C>>['next'] = 'awaited'
  course: State<BatchLine<C>>['course'] = 'going on'
  readonly mostTokens
  mostFailed = Infinity
  deadline
  readonly #lines
  readonly #ask
  readonly #options
  readonly #tally
  /** Lines that are being asked, and have no answer yet. */
  readonly #asked: Crowd<BatchLine<C>> = new Crowd()
  #first: LineFailure | undefined
  #firstToPass: LineFailure | undefined
  /** Why the batch stops: the first reason counts. */
  #reason: unknown
  /** Why all pause. */
  #refusal: CliError | undefined
  #isUnmeteredTold = false
  /** The number of pending operations. The end of each wakes the loop. */
  #underWay = 0
  #wake = () => {}

  constructor(input: BatchInput<C>, ask: Ask<C>, options: BatchSettings) {
    this.#lines = input.lines[Symbol.asyncIterator]()
    this.#ask = ask
    this.#options = options
    this.gate = createGate(options.limits.concurrency)
    this.mostTokens = options.limits.mostTokens
    this.deadline = options.limits.retry.deadline
    this.#tally = input.tally
  }

  get tokens() {
    return this.#tally.tokens
  }

  get failed() {
    return this.#tally.failed
  }

  async toEnd(): Promise<Outcome> {
    const { interrupted, limits } = this.#options
    const onInterrupt = () => {
      this.#stop(undefined)
      this.#wake()
    }
    interrupted.addEventListener('abort', onInterrupt)
    if (interrupted.aborted) this.#stop(undefined)
    try {
      this.#start(this.#readNext())
      for (;;) {
        const now = this.#options.timers.now()
        this.mostFailed = limits.mostFailed()
        const step = decide(this, now)
        if (step.do === 'end') break
        if (step.do === 'ask') this.#begin(step.line)
        else if (step.do === 'finish') this.#stop(step.because)
        else if (step.do === 'cut') this.#cut()
        else await this.#somethingEnds(now, step.until)
      }
    } finally {
      interrupted.removeEventListener('abort', onInterrupt)
      // Not waited for: a pipe may be silent for ever.
      this.#lines.return?.().catch(() => {})
    }
    return { stop: this.#reason, failure: this.#firstToPass ?? this.#first }
  }

  /** Has the wait for the next step ended by the end of this work. It handles its own failures: others are bugs. */
  #start(work: Promise<void>): void {
    this.#underWay++
    void work
      .catch((error: unknown) => this.#stop(error))
      .then(() => {
        this.#underWay--
        this.#wake()
      })
  }

  /** Resolves once something under way has ended, or at `until` or the deadline. To wait for nothing would be for ever. */
  async #somethingEnds(now: number, until: number): Promise<void> {
    if (this.#underWay === 0 && until === Infinity) throw new Error('a batch waits for nothing')
    const at = Math.min(until, this.deadline)
    let forget = () => {}
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      if (at !== Infinity) forget = callAfter(this.#options.timers, at - now, resolve)
    })
    forget()
  }

  /** Nothing more is begun. */
  #stop(because: unknown): void {
    this.#reason ??= because
    this.course = 'finishing'
  }

  /** Every request that is under way has failed. */
  #cut(): void {
    const deadline = true
    const isPaused = this.waiting.length > 0 && this.#refusal
    const because = isPaused ? `; before that, ${isPaused.message}` : ''
    this.#stop(new CliError('stopped', `the deadline passed${because}`, { deadline }))
    this.deadline = Infinity
    const error = new CliError('unknown', 'the deadline passed', {
      sent: 'unknown',
      retry: 'later',
      deadline,
    })
    for (const line of this.#asked) {
      this.#asked.delete(line)
      // The request that is cut off has not counted itself.
      if (!line.failure) line.spent.attempts++
      this.#start(this.#end(line, line.failure ?? error))
    }
  }

  /** One line is read ahead. */
  async #readNext(): Promise<void> {
    this.next = 'awaited'
    try {
      const { done, value } = await this.#lines.next()
      this.next = done ? 'none' : value
    } catch (error) {
      // The lines that were read before are asked.
      this.next = 'none'
      this.#reason ??= error
    }
  }

  #begin(line: BatchLine<C>): void {
    if (line === this.next) this.#start(this.#readNext())
    else this.waiting.shift()
    if (this.gate.outage) line.triedIn = this.gate.outage.number
    this.gate = begin(this.gate)
    this.#start(this.#askUntilOver(line))
  }

  /** Asks one line until it has its result, or has to wait with all others. */
  async #askUntilOver(line: BatchLine<C>): Promise<void> {
    for (;;) {
      const ticket = this.gate.pause.number
      this.#asked.add(line)
      const came = await this.#ask(line).catch((error: unknown) => ({ error }))
      // The deadline may have cut it meanwhile.
      if (!this.#asked.delete(line)) return
      this.#count(line)
      if (!('error' in came)) {
        this.gate = answer(this.gate, ticket, { isOk: true, now: this.#options.timers.now() })
        return this.#end(line, came)
      }
      const next = this.#judge(line, ticket, came.error)
      if (next instanceof CliError) return this.#end(line, next)
      if (next !== 'wait') {
        this.#asked.add(line)
        await this.#options.timers.wait(next)
        if (!this.#asked.delete(line)) return
        line.failure = undefined
      }
      const isPaused = this.gate.outage !== undefined || this.#options.timers.now() < this.gate.pause.until
      if (next === 'wait' || isPaused) break
    }
    this.waiting.push(line)
    this.gate = leave(this.gate)
  }

  /** What becomes of a line whose request failed: its failure, or it waits with all others, or for so many milliseconds. */
  #judge(line: BatchLine<C>, ticket: number, error: unknown): CliError | 'wait' | number {
    const effect = error instanceof CliError ? effectOf(error) : 'not asked'
    if (!(error instanceof CliError) || effect === 'not asked') {
      this.#stop(error)
      return 'wait'
    }
    const { retry } = this.#options.limits
    const [now, random] = [this.#options.timers.now(), this.#options.timers.random()]
    const failed = { error, index: line.index, now, deadline: retry.deadline, random }
    const before = this.gate
    try {
      if (effect === 'refused') this.gate = refuse(before, ticket, failed)
      else if (effect === 'outage') this.gate = fail(before, ticket, failed)
      else this.gate = answer(before, ticket, { isOk: false, now })
    } catch (reason) {
      this.#stop(reason)
      return effect === 'refused' ? 'wait' : error
    }
    this.#tellPause(before, error)
    if (effect === 'refused') return 'wait'
    if (effect === 'all') this.#stop(error)
    if (this.gate.outage) return mayRepeat(retry, error) ? 'wait' : error
    const decision = decideRetry(retry, error, { attempt: ++line.failures, now, random })
    if (!decision.again) return decision.because === undefined ? error : explain(error, decision)
    this.#options.report.onRetry(line.index, error, decision.wait)
    line.failure = error
    return decision.wait
  }

  #tellPause({ pause: before }: Gate, error: CliError): void {
    const { pause, places, outage } = this.gate
    if (pause === before) return
    this.#refusal = error
    const isNews = pause.number !== before.number || pause.until - before.until >= worthTelling
    if (isNews) this.#options.report.onPause(error, pause.until, outage ? 1 : places)
  }

  /** Adds what a line has spent since the last count. */
  #count({ index, spent }: BatchLine<C>): void {
    this.#tally.tokens += spent.tokens - spent.counted
    spent.counted = spent.tokens
    if (spent.unmetered === 0 || this.#isUnmeteredTold) return
    this.#isUnmeteredTold = true
    this.#tally.isPartial = true
    this.#options.report.note(
      `line ${index}: the answer does not say how many tokens it took; it counts as none`,
    )
  }

  /** Writes the result of a line; only then its place is free. */
  async #end(line: BatchLine<C>, came: LineAnswer | CliError): Promise<void> {
    const { index, spent } = line
    try {
      const error =
        came instanceof CliError ? came.with({ attempts: Math.max(1, spent.attempts) }) : undefined
      const text = error
        ? formatFailure(line, this.#options.report.describe(error))
        : formatAnswer(line, came as LineAnswer)
      this.#tally.isAnswered ||= spent.answers > 0
      if (error) this.#noteFailure({ index, error })
      const isKept = await this.#write(text)
      if (isKept && error) this.#countFailure(error.kind)
      else if (isKept) this.#tally.ok++
      this.#options.report.onResult(index)
    } finally {
      this.gate = leave(this.gate)
    }
  }

  #noteFailure(failure: LineFailure): void {
    const earlier = (one: LineFailure | undefined) => (!one || failure.index < one.index ? failure : one)
    this.#first = earlier(this.#first)
    if (failure.error.details.retry === 'later') this.#firstToPass = earlier(this.#firstToPass)
  }

  #countFailure(kind: string): void {
    const { failures } = this.#tally
    this.#tally.failed++
    failures[kind] = (failures[kind] ?? 0) + 1
  }

  /** Returns whether the result is where the next run or a reader looks for it. */
  async #write(text: string): Promise<boolean> {
    const { results, report } = this.#options
    try {
      await results?.write(text)
      if (results) return true
    } catch (error) {
      this.#stop(error instanceof CliError ? error.with({ consequence: onStdout }) : error)
    }
    // The answer was paid for, so it is printed instead.
    try {
      await report.write(text)
      return results === undefined
    } catch (error) {
      const failure =
        error instanceof OutputClosed ? new CliError('file', 'stdout: its reader has gone') : asStop(error)
      this.#stop(failure instanceof CliError ? failure.with({ consequence: notPrinted }) : failure)
      return false
    }
  }
}

const onStdout = 'the results that it did not take are on stdout, and do not count'

const notPrinted = 'the results that it did not take are lost, and do not count'

const explain = (error: CliError, { because, deadline }: { because?: string; deadline?: boolean }) =>
  new CliError(error.kind, `${error.message} (${because})`, {
    ...error.details,
    deadline: error.details.deadline ?? deadline,
  })
