import { readEarlier } from '../../src/batch/earlier-results.ts'
import type { Pause } from '../../src/batch/flights.ts'
import { readJobs } from '../../src/batch/jobs.ts'
import { createLedger } from '../../src/batch/ledger.ts'
import { readLines } from '../../src/batch/lines.ts'
import type { Sinks } from '../../src/batch/recorder.ts'
import type { Answer } from '../../src/batch/result-line.ts'
import { type Outcome, type RunOptions, runBatch } from '../../src/batch/run.ts'
import type { Ask } from '../../src/batch/sender.ts'
import { createOpenWindow, createWindow } from '../../src/batch/window.ts'
import type { CliError, FailureDetails, Kind } from '../../src/errors.ts'
import { createClock } from '../harness/clock.ts'
import { failure, prepare, streamOf, type TestCall, type TestJob } from './pieces.ts'

export interface Result {
  index: number
  id?: string
  hash: string
  ok: boolean
  text?: string
  attempts?: number
  error?: { kind: string; attempts: number }
}

/** A file that a test can take away from a run. */
export interface TestFile {
  text: string
  isGone?: boolean
}

interface World extends Partial<RunOptions> {
  isOrdered?: boolean
  /** The file of results, with what an earlier run left there. */
  file?: TestFile
  output?: Sinks['output']
  results?: Sinks['results']
  describe?: Sinks['describe']
}

interface Played extends Outcome {
  /** stdout. */
  out: Result[]
  /** The file of results. */
  file: string
  notes: string[]
  pauses: Pause[]
}

export function answerOf({ call, spent }: TestJob, tokens?: number): Answer {
  spent.attempts++
  spent.answers++
  if (tokens === undefined) spent.unmetered++
  else spent.usage.totalTokens = (spent.usage.totalTokens ?? 0) + tokens
  return { content: { text: `answer to ${Buffer.from(call.body).toString()}` }, seconds: 1 }
}

/** A request of a line that came to this. */
export function failureOf({ spent }: TestJob, kind: Kind, details: FailureDetails = {}): CliError {
  spent.attempts += details.attempts ?? 1
  return failure(kind, { attempts: 1, ...details })
}

/** So many lines, each with an id. */
export const linesOf = (count: number): string =>
  Array.from(
    { length: count },
    (_, at) => `${JSON.stringify({ id: `id ${at + 1}`, prompt: `p${at + 1}` })}\n`,
  ).join('')

export const parse = (text: string): Result[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))

/** Runs a batch over a made-up service, in time that passes only while everybody waits. */
export async function play(
  input: string | AsyncIterable<Uint8Array>,
  ask: Ask<TestCall>,
  { isOrdered = true, file = { text: '' }, output, results, describe, ...options }: World = {},
): Promise<Played> {
  const timers = options.timers ?? createClock()
  const concurrency = options.concurrency ?? 8
  const ledger = createLedger()
  const { tokens, end, tail } = await readEarlier(streamOf(file.text), ledger, () => undefined)
  const lines = readLines(typeof input === 'string' ? streamOf(input) : input)
  let out = ''
  // As `openResults` does.
  if (tail === 'torn') file.text = Buffer.from(file.text).subarray(0, end).toString()
  const notes: string[] = []
  const pauses: Pause[] = []
  const sinks: Sinks = {
    window: isOrdered ? createWindow(4 * concurrency) : createOpenWindow(),
    output: output ?? {
      async write(text) {
        out += text
      },
      async flush() {},
    },
    results: results ?? {
      append(line) {
        if (!file.isGone) file.text += `${line}\n`
      },
    },
    describe: describe ?? (({ kind, details: { attempts } }) => ({ kind, attempts })),
    note: (message) => notes.push(message),
    onPause: (pause) => pauses.push(pause),
  }
  const outcome = await runBatch(readJobs(lines, prepare, ledger), ask, sinks, {
    name: 'prompts.ndjson',
    deadline: Infinity,
    mostTokens: Infinity,
    earlierTokens: tokens,
    interrupted: new AbortController().signal,
    random: () => 0.5,
    ...options,
    concurrency,
    timers,
  })
  return { ...outcome, out: parse(out), file: file.text, notes, pauses }
}
