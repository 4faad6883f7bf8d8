import { CliError } from '../errors.ts'
import { callAfter, type Timers } from '../timers.ts'
import { type Bell, createBell } from './bell.ts'
import { type Extent, leftOf } from './check.ts'
import { createFlights, type Flights, fly, type Task } from './flights.ts'
import { createHalt, type Halt } from './halt.ts'
import { createIntake, type Intake } from './intake.ts'
import type { BadLine, Call, Job } from './jobs.ts'
import { createRecorder, type Recorder, type Sinks } from './recorder.ts'
import { mayBegin } from './schedule.ts'
import type { Ask } from './sender.ts'
import type { Tally } from './tally.ts'

export interface RunOptions {
  /** The input's, for messages. */
  name: string
  /** The most requests at a time. */
  concurrency: number
  /** Milliseconds since the epoch; Infinity for none. */
  deadline: number
  /** Nothing is begun once the answers took so many; Infinity for no limit. */
  mostTokens: number
  /** What an earlier run's answers took. */
  earlierTokens: number
  /** Of an input that was checked before. */
  extent?: Extent
  /** Given when nothing new is to be begun, and what is under way is to be finished. */
  interrupted: AbortSignal
  timers: Timers
  /** From 0 to 1. */
  random(): number
}

export interface Outcome {
  tally: Tally
  /** Why it ended before all lines were asked. */
  stop: unknown
  /** Of the failed line with the lowest number. */
  failure: CliError | undefined
}

interface Run<C extends Call> {
  options: RunOptions
  window: Sinks['window']
  recorder: Recorder
  intake: Intake<Job<C>>
  flights: Flights<C>
  halt: Halt
  bell: Bell
}

/** No line after such a failure could fare better. */
const halting = ['credentials', 'payment', 'file']

/** Asks for all lines that an earlier run has not done, several at a time, and writes down what comes of each. */
export async function runBatch<C extends Call>(
  jobs: AsyncIterable<Job<C> | BadLine>,
  ask: Ask<C>,
  sinks: Sinks,
  options: RunOptions,
): Promise<Outcome> {
  const run = createRun(jobs, ask, sinks, options)
  while (!isOver(run)) {
    const now = options.timers.now()
    const task = takeTask(run, now)
    if (task) fly(run.flights, task)
    else await change(run, now)
  }
  run.halt.forget()
  run.intake.stop()
  await run.recorder.end()
  return { tally: run.recorder.tally, stop: run.halt.reason, failure: run.recorder.failure }
}

function createRun<C extends Call>(
  jobs: AsyncIterable<Job<C> | BadLine>,
  ask: Ask<C>,
  sinks: Sinks,
  options: RunOptions,
): Run<C> {
  const bell = createBell()
  const halt = createHalt(options, bell.ring)
  const { extent } = options
  const recorder = createRecorder(sinks, {
    tokens: options.earlierTokens,
    skipped: extent ? extent.lines - extent.left : 0,
    onIdle: bell.ring,
    onError: halt.begin,
  })
  const flights = createFlights<C>({
    ...options,
    ask,
    signal: halt.cut,
    onSpent: recorder.addSpent,
    onAnswer: recorder.addAnswer,
    onFailure(task, error) {
      recorder.addFailure(task, error)
      if (halting.includes(error.kind)) halt.begin(error)
    },
    onPause: (pause) => sinks.onPause?.(pause),
    onEnd: halt.begin,
    onChange: bell.ring,
  })
  const onSkip = () => {
    if (!extent) recorder.tally.skipped++
  }
  const intake = createIntake(leftOf(jobs, options.name, onSkip), {
    onChange: bell.ring,
    onError: halt.endInput,
  })
  return { options, window: sinks.window, recorder, intake, flights, halt, bell }
}

const budgetSpent = (tokens: number, most: number) =>
  new CliError('stopped', `the answers took ${tokens} tokens, and --max-total-tokens is ${most}`, {
    sent: 'yes',
  })

const isOver = <C extends Call>({ flights, intake, halt }: Run<C>): boolean =>
  flights.schedule.inFlight === 0 && (halt.isOn || (intake.isEnded && flights.refused.length === 0))

/** The line that may be begun now, if there is one. */
function takeTask<C extends Call>(run: Run<C>, now: number): Task<C> | undefined {
  const { halt, flights, recorder, options } = run
  if (halt.isOn || !mayBegin(flights.schedule, now)) return undefined
  const task = flights.refused.shift() ?? takeNew(run)
  const { tokens } = recorder.tally
  if (!task || tokens < options.mostTokens) return task
  // Only now: with nothing left to ask, a budget that is spent is no reason to stop.
  halt.begin(budgetSpent(tokens, options.mostTokens))
  return undefined
}

function takeNew<C extends Call>({ window, recorder, intake }: Run<C>): Task<C> | undefined {
  const job = window.hasRoom && recorder.isIdle ? intake.take() : undefined
  return job && { job, place: window.open() }
}

/** `now` is the time at which nothing could be begun: a pause that ended since is still waited for. */
async function change<C extends Call>(
  { flights, options: { timers }, bell }: Run<C>,
  now: number,
): Promise<void> {
  const left = flights.schedule.pause.until - now
  const forget = left > 0 ? callAfter(timers, left, bell.ring) : () => {}
  await bell.rung()
  forget()
}
