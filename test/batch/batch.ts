import { readInput } from '../../src/batch/input.ts'
import { createLedger } from '../../src/batch/ledger.ts'
import { asTheyCome, inOrder, type LineAnswer, type Sinks } from '../../src/batch/record.ts'
import { readEarlier } from '../../src/batch/results-file.ts'
import { type Ask, type BatchRunOptions, type Outcome, type Pause, runBatch } from '../../src/batch/run.ts'
import type { CliError, FailureDetails, Kind } from '../../src/errors.ts'
import { createClock } from '../harness/clock.ts'
import { failure, prepare, sourceOf, streamOf, type TestCall, type TestLine } from './pieces.ts'

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

interface World extends Partial<BatchRunOptions> {
  isOrdered?: boolean
  /** The input is a file, and checked before anything is asked. */
  isChecked?: boolean
  /** The file of results, with what an earlier run left there. Without one they go to stdout. */
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

export function answerOf({ call, spent }: TestLine, tokens?: number): LineAnswer {
  spent.attempts++
  spent.answers++
  if (tokens === undefined) spent.unmetered++
  else {
    spent.tokens += tokens
    spent.usage.totalTokens = (spent.usage.totalTokens ?? 0) + tokens
  }
  return { content: { text: `answer to ${Buffer.from(call.body).toString()}` }, seconds: 1 }
}

/** A request of a line that came to this. */
export function failureOf({ spent }: TestLine, kind: Kind, details: FailureDetails = {}): CliError {
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
  { isOrdered = true, isChecked = false, file, output, results, describe, ...options }: World = {},
): Promise<Played> {
  const timers = options.timers ?? createClock()
  const concurrency = options.concurrency ?? 8
  const ledger = createLedger()
  const earlier = await readEarlier(streamOf(file?.text ?? ''), ledger, () => undefined)
  const lines = await readInput(sourceOf(input, { isRepeatable: isChecked }), prepare, ledger)
  let out = ''
  // As `openResults` does.
  if (file && earlier.tail === 'torn') file.text = Buffer.from(file.text).subarray(0, earlier.end).toString()
  const notes: string[] = []
  const pauses: Pause[] = []
  const sinks: Sinks = {
    turns: isOrdered ? inOrder(4 * concurrency) : asTheyCome(),
    output: output ?? {
      async write(text) {
        out += text
      },
      async flush() {},
    },
    results: results ?? (file && appendTo(file)),
    describe: describe ?? (({ kind, details: { attempts } }) => ({ kind, attempts })),
    note: (message) => notes.push(message),
  }
  const outcome = await runBatch(lines, ask, sinks, {
    deadline: Infinity,
    mostTokens: Infinity,
    mostFailed: () => Infinity,
    earlier,
    interrupted: new AbortController().signal,
    onPause: (pause) => pauses.push(pause),
    ...options,
    concurrency,
    timers: { ...timers, random: () => 0.5 },
  })
  return { ...outcome, out: parse(out), file: file?.text ?? '', notes, pauses }
}

const appendTo = (file: TestFile): Sinks['results'] => ({
  append(line) {
    if (!file.isGone) file.text += `${line}\n`
  },
})
