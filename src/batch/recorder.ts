import type { CliError } from '../errors.ts'
import type { Pause } from './flights.ts'
import { createPrinter, type LineOutput, type PrinterOptions } from './printer.ts'
import { type Answer, formatAnswer, formatFailure, type Subject } from './result-line.ts'
import type { Tally } from './tally.ts'
import type { Window } from './window.ts'

/** Where results go. */
export interface Sinks {
  output: LineOutput
  /** Decides when a result goes to the output. */
  window: Window
  /** Takes each result as it comes. Throws a `CliError` where it cannot. */
  results?: {
    append(line: string): void
    requireWhole?(): void
  }
  /** What a result says of a failure, secrets redacted. */
  describe(error: CliError): object
  note(message: string): void
  /** Called after each result. */
  onProgress?(tally: Tally): void
  /** Called when a pause begins or becomes longer. */
  onPause?(pause: Pause): void
}

/** A line whose request is or was under way. */
interface Finished {
  job: Subject
  /** In the window. */
  place: number
}

/** Writes down what comes of each line. */
export interface Recorder {
  readonly tally: Tally
  /** Of the failed line with the lowest index. */
  readonly failure: CliError | undefined
  /** What was given out has been taken. */
  readonly isIdle: boolean
  addAnswer(finished: Finished, answer: Answer): void
  addFailure(finished: Finished, error: CliError): void
  /** Called after each request of a line, whatever came of it. */
  addSpent(finished: Finished): void
  /** Gives out what waits for its turn. Resolves when all is taken. */
  end(): Promise<void>
}

export interface RecorderOptions extends PrinterOptions {
  /** What an earlier run's answers took. */
  tokens: number
  /** How many lines it has done, as far as that is known. */
  skipped: number
}

export function createRecorder(sinks: Sinks, { tokens, skipped, ...events }: RecorderOptions): Recorder {
  const { window, results, describe, note, onProgress } = sinks
  const printer = createPrinter(sinks.output, events)
  const tally: Tally = { ok: 0, failed: 0, skipped, tokens }
  let first: { index: number; error: CliError } | undefined
  const counted = new WeakMap<Subject, number>()
  let isUnmeteredTold = false

  function record(line: string, place: number): void {
    try {
      results?.append(line)
    } catch (error) {
      events.onError(error)
    }
    for (const ready of window.finish(place, line)) printer.print(ready)
    onProgress?.(tally)
  }

  return {
    tally,
    get failure() {
      return first?.error
    },
    get isIdle() {
      return printer.isIdle
    },
    addAnswer({ job, place }, answer) {
      tally.ok++
      record(formatAnswer(job, answer), place)
    },
    addFailure({ job, place }, error) {
      tally.failed++
      if (!first || job.index < first.index) first = { index: job.index, error }
      record(formatFailure(job, describe(error)), place)
    },
    addSpent({ job }) {
      const { usage, unmetered } = job.spent
      const { totalTokens = 0 } = usage
      tally.tokens += totalTokens - (counted.get(job) ?? 0)
      counted.set(job, totalTokens)
      if (unmetered === 0 || isUnmeteredTold) return
      isUnmeteredTold = true
      note(`line ${job.index}: the answer does not say how many tokens it took; it counts as none`)
    },
    async end() {
      for (const line of window.takeHeld()) printer.print(line)
      await printer.end()
      try {
        results?.requireWhole?.()
      } catch (error) {
        events.onError(error)
      }
    },
  }
}
