import { type Crowd, createCrowd } from '../crowd.ts'
import { CliError } from '../errors.ts'
import { callAfter, type Timers } from '../timers.ts'
import type { BatchInput, Line, LineRequest } from './input.ts'
import {
  createRecorder,
  type EarlierTokens,
  type LineAnswer,
  type LineFailure,
  type Recorder,
  type Sinks,
  type Tally,
} from './record.ts'
import { answer, begin, createSchedule, decide, effectOf, leave, refuse, type State } from './schedule.ts'

/** What a line is asked with, beside itself. */
export interface Asking {
  /** The line's number, as wide as that of every other line: in the names of files. */
  number: string
  /** Called before one of its requests is sent again, after so many milliseconds. */
  onRetry(failure: CliError, wait: number): void
}

/**
 * Asks for one line, and adds to what it has spent. Throws a `CliError`, at once if it is `rate-limited` or `not-sent`:
 * then all pause, and the line is asked again.
 */
export type Ask<C extends LineRequest> = (line: Line<C>) => Promise<LineAnswer>

/** Nothing is begun for a while, or for longer, because this was refused. */
export interface Pause {
  error: CliError
  /** By the forward clock. */
  until: number
  /** How many may be under way afterwards. */
  places: number
}

export interface BatchRunOptions {
  /** The most requests at a time. */
  concurrency: number
  /** By the forward clock; Infinity for none. */
  deadline: number
  /** Nothing is begun once the answers took so many; Infinity for no limit. */
  mostTokens: number
  /** Nothing is begun once more lines failed; Infinity for no limit. */
  mostFailed(): number
  earlier: EarlierTokens
  /** Given when nothing new is to be begun, and what is under way is to be finished. */
  interrupted: AbortSignal
  timers: Timers
  /** Called when a pause begins or becomes longer. */
  onPause(pause: Pause): void
}

export interface Outcome {
  tally: Tally
  /** Why it ended before all lines were asked. */
  stop: unknown
  /** Of the failed line with the lowest number. */
  failure: LineFailure | undefined
  /** One of the failed lines may be asked again. */
  mayPass: boolean
}

/** A batch that is under way. */
interface BatchRun<C extends LineRequest> extends State<Line<C>> {
  refused: Line<C>[]
  options: BatchRunOptions
  ask: Ask<C>
  recorder: Recorder
  race: Race
  /** Each makes one request that is under way fail at once. */
  cuts: Crowd<(error: CliError) => void>
  /** Why the last of them was refused. */
  refusal: CliError | undefined
  /** Why the batch stops: the first reason counts. */
  reason: unknown
}

/** Asks all lines of an input, several at a time, and records a result for each. */
export async function runBatch<C extends LineRequest>(
  input: BatchInput<C>,
  ask: Ask<C>,
  sinks: Sinks,
  options: BatchRunOptions,
): Promise<Outcome> {
  const { interrupted, timers } = options
  const run = createRun(input, ask, sinks, options)
  const { recorder, race } = run
  const source = input.lines[Symbol.asyncIterator]()
  const onInterrupt = () => {
    stop(run, undefined)
    race.wake()
  }
  interrupted.addEventListener('abort', onInterrupt)
  if (interrupted.aborted) onInterrupt()
  try {
    readNext(run, source)
    for (;;) {
      const now = timers.now()
      const step = decide(run, now)
      if (step.do === 'end') break
      if (step.do === 'ask') {
        if (step.line === run.next) readNext(run, source)
        else run.refused.shift()
        race.add(fly(run, step.line))
      } else if (step.do === 'finish') stop(run, step.because)
      else if (step.do === 'cut') cut(run)
      else await race.next({ now, until: step.until, alarm: run.deadline })
    }
  } finally {
    race.end()
    interrupted.removeEventListener('abort', onInterrupt)
    // Not waited for: a pipe may be silent for ever.
    source.return?.().catch(() => {})
  }
  await recorder.end()
  const { tally, failure, mayPass } = recorder
  return { tally, stop: run.reason, failure, mayPass }
}

function createRun<C extends LineRequest>(
  input: BatchInput<C>,
  ask: Ask<C>,
  sinks: Sinks,
  options: BatchRunOptions,
): BatchRun<C> {
  const { concurrency, mostTokens, deadline, earlier, timers } = options
  const recorder = createRecorder(sinks, {
    earlier,
    countSkipped: () => input.skipped,
    onError: (error) => stop(run, error),
  })
  const run: BatchRun<C> = {
    schedule: createSchedule(concurrency),
    refused: [],
    next: 'awaited',
    course: 'going on',
    mostTokens,
    deadline,
    get hasRoom() {
      return recorder.hasRoom
    },
    get tokens() {
      return recorder.tally.tokens
    },
    get failed() {
      return recorder.tally.failed
    },
    get mostFailed() {
      return options.mostFailed()
    },
    options,
    ask,
    recorder,
    race: createRace(timers),
    cuts: createCrowd(),
    refusal: undefined,
    reason: undefined,
  }
  return run
}

/** Nothing more is begun. */
function stop<C extends LineRequest>(run: BatchRun<C>, because: unknown): void {
  run.reason ??= because
  run.course = 'finishing'
}

function cut<C extends LineRequest>(run: BatchRun<C>): void {
  const deadline = true
  const because = run.refused.length > 0 && run.refusal ? `; before that, ${run.refusal.message}` : ''
  stop(run, new CliError('stopped', `the deadline passed${because}`, { deadline }))
  run.deadline = Infinity
  for (const fail of run.cuts)
    fail(new CliError('unknown', 'the deadline passed', { sent: 'unknown', retry: 'later', deadline }))
}

/** One line is read ahead. */
function readNext<C extends LineRequest>(run: BatchRun<C>, source: AsyncIterator<Line<C>>): void {
  run.next = 'awaited'
  const reading = source.next().then(
    ({ done, value }) => {
      run.next = done ? 'none' : value
    },
    (error) => {
      run.next = 'none'
      // The lines that were read before are asked.
      run.reason ??= error
    },
  )
  run.race.add(reading)
}

/** Asks one line, and records its result or takes it back. */
async function fly<C extends LineRequest>(run: BatchRun<C>, line: Line<C>): Promise<void> {
  const { recorder, options } = run
  run.schedule = begin(run.schedule)
  const ticket = run.schedule.pause.number
  if (line.place === undefined) recorder.begin(line)
  const came = await unlessCut(run, line).then(
    (answer) => ({ answer }),
    (error: unknown) => ({ error }),
  )
  const now = options.timers.now()
  run.schedule = leave(run.schedule)
  try {
    recorder.addSpent(line)
    if ('answer' in came) {
      run.schedule = answer(run.schedule, ticket, { isOk: true, now })
      recorder.addAnswer(line, came.answer)
    } else fail(run, { line, ticket, now }, came.error)
  } catch (error) {
    stop(run, error)
  }
  if (!recorder.hasRoom) run.race.add(recorder.printed())
}

const unlessCut = <C extends LineRequest>({ ask, cuts }: BatchRun<C>, line: Line<C>): Promise<LineAnswer> =>
  new Promise<LineAnswer>((resolve, reject) => {
    cuts.add(reject)
    ask(line)
      .then(resolve, reject)
      .finally(() => cuts.delete(reject))
  })

/** A request that is over. */
interface Landed<C extends LineRequest> {
  line: Line<C>
  /** The number of the pause after which it was begun. */
  ticket: number
  /** When it ended. */
  now: number
}

function fail<C extends LineRequest>(run: BatchRun<C>, landed: Landed<C>, error: unknown): void {
  if (!(error instanceof CliError)) throw error
  const effect = effectOf(error)
  if (effect === 'not asked') throw error
  if (effect === 'again') takeBack(run, landed, error)
  else {
    const { line, ticket, now } = landed
    run.schedule = answer(run.schedule, ticket, { isOk: false, now })
    // One that was cut off has not counted itself.
    const attempts = line.spent.attempts + (error.details.attempts === undefined ? 1 : 0)
    run.recorder.addFailure(line, error.with({ attempts }))
    if (effect === 'all') stop(run, error)
  }
}

/** Answers that come together differ by some milliseconds. */
const worthTelling = 1000

function takeBack<C extends LineRequest>(
  run: BatchRun<C>,
  { line, ticket, now }: Landed<C>,
  error: CliError,
): void {
  const { deadline, timers, onPause } = run.options
  run.refused.push(line)
  run.refusal = error
  const before = run.schedule.pause
  run.schedule = refuse(run.schedule, ticket, { error, now, deadline, random: timers.random() })
  const { pause, places } = run.schedule
  const isNews = pause.number !== before.number || pause.until - before.until >= worthTelling
  if (isNews) onPause({ error, until: pause.until, places })
}

/** Work that is under way, of which the first to end is waited for, again and again. */
interface Race {
  /** Work that changes something for whoever waits. */
  add(work: Promise<void>): void
  /**
   * Resolves once any of it has ended, at the earlier one of two times, or when it is woken. Only `until` is worth waiting
   * for: with no work and no such time it throws, for nothing would ever happen. All by the forward clock.
   */
  next(times: { now: number; until: number; alarm: number }): Promise<void>
  wake(): void
  /** Lets go of the clock. */
  end(): void
}

/** Unlike `Promise.race`, it leaves nothing behind in work that takes long while other work ends often. */
export function createRace(timers: Timers): Race {
  let underWay = 0
  let broken: { error: unknown } | undefined
  let wake = () => {}
  let alarm = { at: Infinity, forget() {} }

  function setAlarm(at: number, now: number): void {
    if (at === alarm.at) return
    alarm.forget()
    const ring = () => {
      alarm = { at: Infinity, forget() {} }
      wake()
    }
    alarm = { at, forget: at === Infinity ? () => {} : callAfter(timers, at - now, ring) }
  }

  return {
    add(work) {
      underWay++
      work
        .catch((error: unknown) => {
          broken ??= { error }
        })
        .then(() => {
          underWay--
          wake()
        })
    },
    async next({ now, until, alarm }) {
      if (broken) throw broken.error
      if (underWay === 0 && until === Infinity) throw new Error('a batch waits for nothing')
      await new Promise<void>((resolve) => {
        wake = resolve
        setAlarm(Math.min(until, alarm), now)
      })
    },
    wake: () => wake(),
    end: () => alarm.forget(),
  }
}
