import type { Timers } from '../client/timer.ts'
import { CliError } from '../errors.ts'
import type { Call, Job } from './jobs.ts'
import type { Answer } from './result-line.ts'
import { answer, begin, createSchedule, leave, mayBegin, refuse, type Ticket } from './schedule.ts'

/**
 * Asks for one line. Throws a `CliError`, at once where it is `rate-limited` or `not-sent`: then all pause, and the
 * line is asked again. What comes after the signal is not waited for.
 */
export type Ask<C extends Call> = (job: Job<C>, signal: AbortSignal) => Promise<Answer>

/** A line that was begun. */
export interface Task<C extends Call> {
  job: Job<C>
  /** In the window. */
  place: number
  /** How often it was refused. */
  refusals: number
}

/** The requests that are under way. */
export interface Flights<C extends Call> {
  readonly count: number
  readonly mayBegin: boolean
  /** Nothing may begin until then. Milliseconds since the epoch. */
  readonly pausedUntil: number
  /** The line that was refused first. */
  takeRefused(): Task<C> | undefined
  readonly hasRefused: boolean
  begin(task: Task<C>): void
}

/** Nothing is begun for a while, because this was refused. */
export interface Pause {
  error: CliError
  /** Milliseconds since the epoch. */
  until: number
  /** How many may be under way afterwards. */
  places: number
}

export interface FlightsOptions<C extends Call> {
  ask: Ask<C>
  /** Given when nothing is waited for any longer. */
  signal: AbortSignal
  concurrency: number
  /** Milliseconds since the epoch; Infinity for none. */
  deadline: number
  timers: Timers
  /** From 0 to 1. */
  random(): number
  onAnswer(task: Task<C>, answer: Answer): void
  onFailure(task: Task<C>, error: CliError): void
  onPause(pause: Pause): void
  /** Nothing can be asked any more. */
  onEnd(error: unknown): void
  /** Called last, whatever came of a request. */
  onChange(): void
}

export function createFlights<C extends Call>(options: FlightsOptions<C>): Flights<C> {
  const { ask, signal, concurrency, deadline, timers, random } = options
  let schedule = createSchedule(concurrency)
  const refused: Task<C>[] = []

  /** All at once: nobody is to see a request that is over and has no result. */
  function settle(act: () => void): void {
    schedule = leave(schedule)
    try {
      act()
    } catch (error) {
      options.onEnd(error)
    }
    options.onChange()
  }

  function land(task: Task<C>, ticket: Ticket, came: Answer): void {
    schedule = answer(schedule, ticket, { isOk: true, now: timers.now() })
    options.onAnswer(task, { ...came, attempts: came.attempts + task.refusals })
  }

  function fail(task: Task<C>, ticket: Ticket, error: unknown): void {
    if (!(error instanceof CliError)) throw error
    if (isRefusal(error) && !signal.aborted) takeBack(task, ticket, error)
    else {
      schedule = answer(schedule, ticket, { isOk: false, now: timers.now() })
      options.onFailure(task, error.with({ attempts: (error.details.attempts ?? 1) + task.refusals }))
    }
  }

  function takeBack(task: Task<C>, ticket: Ticket, error: CliError): void {
    refused.push({ ...task, refusals: task.refusals + 1 })
    const { until } = schedule.pause
    schedule = refuse(schedule, ticket, { error, now: timers.now(), deadline, random: random() })
    const { pause, places } = schedule
    if (pause.until > until) options.onPause({ error, until: pause.until, places })
  }

  return {
    get count() {
      return schedule.inFlight
    },
    get mayBegin() {
      return mayBegin(schedule, timers.now())
    },
    get pausedUntil() {
      return schedule.pause.until
    },
    takeRefused: () => refused.shift(),
    get hasRefused() {
      return refused.length > 0
    },
    begin(task) {
      schedule = begin(schedule)
      const ticket = schedule.pause.number
      orCut(() => ask(task.job, signal), signal).then(
        (came) => settle(() => land(task, ticket, came)),
        (error) => settle(() => fail(task, ticket, error)),
      )
    },
  }
}

/** The line itself may well be answered, later. */
const isRefusal = ({ kind, details }: CliError): boolean =>
  kind === 'not-sent' || (kind === 'rate-limited' && !details.isPermanent)

/** Each listener is taken away again, or a batch would gather one for each line. */
function orCut<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const cut = () => reject(new CliError('unknown', 'the deadline passed', { sent: 'unknown' }))
    signal.addEventListener('abort', cut)
    work()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', cut))
  })
}
