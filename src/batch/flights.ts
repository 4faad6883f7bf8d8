import { CliError } from '../errors.ts'
import type { Timers } from '../timers.ts'
import type { Call, Job } from './jobs.ts'
import type { Answer } from './result-line.ts'
import { answer, begin, createSchedule, leave, refuse, type Schedule, type Ticket } from './schedule.ts'
import { type Ask, createSender } from './sender.ts'

/** A line that was begun. */
export interface Task<C extends Call> {
  job: Job<C>
  /** In the window. */
  place: number
}

/** The requests that are under way, and the lines that were refused, the first one first. */
export interface Flights<C extends Call> {
  readonly options: FlightsOptions<C>
  readonly send: Ask<C>
  readonly refused: Task<C>[]
  schedule: Schedule
}

/** Nothing is begun for a while, or for longer, because this was refused. */
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
  /** A request is over; called before what came of it is told. */
  onSpent(task: Task<C>): void
  onAnswer(task: Task<C>, answer: Answer): void
  onFailure(task: Task<C>, error: CliError): void
  onPause(pause: Pause): void
  /** Nothing can be asked any more. */
  onEnd(error: unknown): void
  /** Called last, whatever came of a request. */
  onChange(): void
}

export const createFlights = <C extends Call>(options: FlightsOptions<C>): Flights<C> => ({
  options,
  send: createSender(options.ask, options.signal),
  refused: [],
  schedule: createSchedule(options.concurrency),
})

/** A task that is under way. */
type Flight<C extends Call> = Task<C> & { ticket: Ticket }

/** Begins a line's request. */
export function fly<C extends Call>(flights: Flights<C>, task: Task<C>): void {
  flights.schedule = begin(flights.schedule)
  const flight = { ...task, ticket: flights.schedule.pause.number }
  flights.send(task.job).then(
    (came) => settle(flights, () => land(flights, flight, came)),
    (error) => settle(flights, () => fail(flights, flight, error)),
  )
}

/** All at once: nobody is to see a request that is over and has no result. */
function settle<C extends Call>(flights: Flights<C>, act: () => void): void {
  flights.schedule = leave(flights.schedule)
  try {
    act()
  } catch (error) {
    flights.options.onEnd(error)
  }
  flights.options.onChange()
}

function land<C extends Call>(flights: Flights<C>, flight: Flight<C>, came: Answer): void {
  const { timers, onSpent, onAnswer } = flights.options
  flights.schedule = answer(flights.schedule, flight.ticket, { isOk: true, now: timers.now() })
  onSpent(flight)
  onAnswer(flight, came)
}

function fail<C extends Call>(flights: Flights<C>, flight: Flight<C>, error: unknown): void {
  const { timers, onSpent, onFailure } = flights.options
  onSpent(flight)
  if (!(error instanceof CliError) || isOfAll(error)) throw error
  if (isRefusal(error)) takeBack(flights, flight, error)
  else {
    flights.schedule = answer(flights.schedule, flight.ticket, { isOk: false, now: timers.now() })
    // One that is cut off at the deadline has not counted itself.
    const { attempts } = flight.job.spent
    onFailure(
      flight,
      error.with({ attempts: error.details.attempts === undefined ? attempts + 1 : attempts }),
    )
  }
}

/** Answers that come together differ by some milliseconds. */
const worthTelling = 1000

function takeBack<C extends Call>(
  flights: Flights<C>,
  { job, place, ticket }: Flight<C>,
  error: CliError,
): void {
  const { deadline, timers, random, onPause } = flights.options
  flights.refused.push({ job, place })
  const before = flights.schedule.pause
  const refusal = { error, now: timers.now(), deadline, random: random() }
  flights.schedule = refuse(flights.schedule, ticket, refusal)
  const { pause, places } = flights.schedule
  const isNews = pause.number !== before.number || pause.until - before.until >= worthTelling
  if (isNews) onPause({ error, until: pause.until, places })
}

/** No line can be asked, and this one was not: a setting is missing or wrong. */
const isOfAll = ({ kind, details: { sent = 'no' } }: CliError): boolean =>
  sent === 'no' && ['credentials', 'usage', 'file'].includes(kind)

/** The line itself may well be answered, later. */
const isRefusal = ({ kind, details: { status = 0, isPermanent } }: CliError): boolean =>
  // An answer of status 200 that calls itself one was paid for, or will be again.
  kind === 'not-sent' || (kind === 'rate-limited' && !isPermanent && (status < 200 || status >= 300))
