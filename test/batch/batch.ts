import type { BatchLimits } from '../../src/batch/gate.ts'
import type { BatchLine, BatchLineAnswer } from '../../src/batch/input.ts'
import { BatchTally, readBatchInput, recordAnswerUsage } from '../../src/batch/input.ts'
import { BatchLineRegistry } from '../../src/batch/line-registry.ts'
import { type ResultsFile, readEarlierResults } from '../../src/batch/results-file.ts'
import { type BatchOutcome, BatchRun, type BatchRunOptions } from '../../src/batch/run.ts'
import type { CliError, FailureDetails, FailureKind } from '../../src/errors.ts'
import type { Timers } from '../../src/timers.ts'
import { createClock } from '../harness/clock.ts'
import type { Ask, Result } from './pieces.ts'
import { failure, parseResults, preparing, sourceOf, streamOf, upTo } from './pieces.ts'

/** Results file that a test can remove during a run. */
export interface TestFile {
  text: string
  isGone?: boolean
}

interface PlayOptions extends Partial<Omit<BatchLimits, 'retry'>> {
  interrupted?: AbortSignal
  timers?: Timers
  stdout?: Pick<BatchRunOptions['reporter'], 'write'>
  deadline?: number
  retries?: number
  retryUnknown?: boolean
  /** Results file of an earlier run. If omitted, results go to stdout. */
  file?: TestFile
  results?: Pick<ResultsFile, 'write'>
  describe?: BatchRunOptions['reporter']['describe']
}

interface Played extends BatchOutcome {
  tally: BatchTally
  /** Results on stdout. */
  out: Result[]
  /** Results that stdout rejected. */
  saved: string[]
  /** Content of the results file. */
  file: string
  pauses: { until: number; slots: number }[]
  /** Numbers of the lines with a reported retry. */
  retried: number[]
}

export function answerOf(line: BatchLine, totalTokens?: number): BatchLineAnswer {
  line.attempts++
  recordAnswerUsage(line, { totalTokens })
  return { content: { text: `answer to ${line.call.body}` } }
}

/** Counts a failed request of a line and returns its failure. */
export function failureOf(line: BatchLine, kind: FailureKind, details: FailureDetails = {}): CliError {
  line.attempts += details.attempts ?? 1
  return failure(kind, { attempts: 1, ...details })
}

/** Creates this number of lines, each with an id. */
export const linesOf = (count: number): string =>
  upTo(count)
    .map((at) => `${JSON.stringify({ id: `id ${at}`, prompt: `p${at}` })}\n`)
    .join('')

/** Runs a batch against a fake service, on a clock that advances only while everything waits. */
export async function play(
  input: string | AsyncIterable<Uint8Array>,
  ask: Ask,
  { file, stdout, results, describe, deadline = Infinity, retries = 0, ...options }: PlayOptions = {},
): Promise<Played> {
  const timers = options.timers ?? createClock()
  const concurrency = options.concurrency ?? 8
  const registry = new BatchLineRegistry()
  const tally = new BatchTally()
  const earlier = await readEarlierResults(streamOf(file?.text ?? ''), { registry, tally })
  const prepare = preparing((line, requireNext) => {
    line.getDeliveryState = () => 'sent'
    return ask(line, requireNext)
  })
  const lines = await readBatchInput({ source: sourceOf(input), prepare, registry, tally })
  let out = ''
  // Removes an incomplete result at the end, as `openResultsFile` does.
  if (file) file.text = Buffer.from(file.text).subarray(0, earlier.incompleteResultOffset).toString()
  const pauses: Played['pauses'] = []
  const retried: number[] = []
  const saved: string[] = []
  const print: Pick<BatchRunOptions['reporter'], 'write'> = stdout ?? {
    async write(text) {
      out += `${text}\n`
    },
  }
  const written = results ?? (file && appendTo(file))
  const run = new BatchRun({
    lines,
    tally,
    limits: {
      maxTokens: Infinity,
      getMaxFailed: () => Infinity,
      retry: { repeat: 'failed', retries, retryUnknown: options.retryUnknown ?? false },
      deadlineMs: deadline,
      ...options,
      concurrency,
    },
    results: written && { write: (line) => written.write(line), requireOwned() {} },
    reporter: {
      write: (line) => print.write(line),
      save: (line) => void saved.push(line),
      describe: describe ?? (({ kind, details: { attempts } }) => ({ kind, attempts })),
      onResult() {},
      onRetry: (index) => void retried.push(index),
      onPause: (_, until, slots) => void pauses.push({ until, slots }),
    },
    timers: { ...timers, random: () => 0.5 },
  })
  const { interrupted } = options
  if (interrupted?.aborted) run.finish()
  interrupted?.addEventListener('abort', () => run.finish())
  const outcome = await run.runToEnd()
  return { ...outcome, tally, out: parseResults(out), saved, file: file?.text ?? '', pauses, retried }
}

const appendTo = (file: TestFile) => ({
  write(line: string) {
    if (!file.isGone) file.text += `${line}\n`
  },
})
