import { tokensInWords } from '../content/tokens.ts'
import { CliError } from '../errors.ts'
import { backoff, outlookOf } from '../http/retry.ts'

/** All that the next step of a batch depends on. */
export interface State<Line extends object> {
  schedule: Schedule
  /** Lines that were refused for now; they go before all others. */
  refused: readonly Line[]
  /** The next line of the input. */
  next: Line | 'awaited' | 'none'
  /** One more result could wait for its turn, and stdout has taken all that it was given. */
  readonly hasRoom: boolean
  /** `finishing`: nothing more is begun. */
  course: 'going on' | 'finishing'
  /** The tokens of all answers. */
  readonly tokens: number
  /** The limit of that, or Infinity. */
  mostTokens: number
  /** How many lines have failed. */
  readonly failed: number
  /** How many may, or Infinity. */
  readonly mostFailed: number
  /** By the forward clock, or Infinity. */
  deadline: number
}

export type Step<Line extends object> =
  | { do: 'ask'; line: Line }
  /** Until this time (by the forward clock, or Infinity), or until anything under way has ended. */
  | { do: 'wait'; until: number }
  /** Begin nothing more. Without a reason it is the lines that failed. */
  | { do: 'finish'; because: CliError | undefined }
  /** The deadline has passed: every request that is under way has failed. */
  | { do: 'cut' }
  | { do: 'end' }

/** Decides the next step of a batch. */
export function decide<Line extends object>(state: State<Line>, now: number): Step<Line> {
  const { schedule, refused, next, course, tokens, mostTokens, failed, mostFailed, deadline } = state
  const isOver = course === 'finishing' || (refused.length === 0 && next === 'none')
  if (isOver && schedule.inFlight === 0) return { do: 'end' }
  if (now >= deadline) return { do: 'cut' }
  if (!isOver && failed > mostFailed) return { do: 'finish', because: undefined }
  const line = refused[0] ?? (typeof next === 'object' && state.hasRoom ? next : undefined)
  if (isOver || line === undefined) return { do: 'wait', until: Infinity }
  // With nothing left to ask, a limit that is reached is not a reason to stop: so this comes late.
  if (tokens >= mostTokens) return { do: 'finish', because: limitReached(tokens, mostTokens) }
  if (mayBegin(schedule, now)) return { do: 'ask', line }
  const isFull = schedule.inFlight >= schedule.places
  return { do: 'wait', until: isFull ? Infinity : schedule.pause.until }
}

const limitReached = (tokens: number, most: number) =>
  new CliError('stopped', `the answers took ${tokensInWords(tokens)}, and --max-total-tokens is ${most}`)

/**
 * What a failure does to a batch:
 * - `again`: the line is asked again, after a pause of all;
 * - `line`: the line has failed;
 * - `all`: the line has failed, and every other one would;
 * - `not asked`: a setting is missing or wrong, so that neither this line nor any other can be asked.
 */
export function effectOf(failure: CliError): 'again' | 'line' | 'all' | 'not asked' {
  const { kind, details } = failure
  const outlook = outlookOf(failure)
  if (outlook === 'wait') return 'again'
  if ((details.sent ?? 'no') === 'no' && ['credentials', 'usage', 'file'].includes(kind)) return 'not asked'
  return outlook === 'end' ? 'all' : 'line'
}

/** How many requests may be under way, and when: a value that each event makes a new one of. */
export interface Schedule {
  /** The most places there can be. */
  readonly concurrency: number
  readonly places: number
  readonly inFlight: number
  /** Those to requests of this pause since the number of places last changed. */
  readonly answers: number
  /** The pause that is, or the last one that was. By the forward clock. */
  readonly pause: { readonly number: number; readonly from: number; readonly until: number }
  /** The pauses since the last success. Milliseconds. */
  readonly barren: { readonly pauses: number; readonly time: number }
}

/** The service, or the way to it, is not ready for a request: its line is asked again after a pause. */
export interface Refusal {
  error: CliError
  /** When it came. By the forward clock. */
  now: number
  /** By the forward clock; Infinity for none. */
  deadline: number
  /** Between 0 and 1. */
  random: number
}

const longestPause = 3_600_000
const longestBarren = 300_000
const longestCaution = 60_000

export const createSchedule = (concurrency: number): Schedule => ({
  concurrency,
  places: concurrency,
  inFlight: 0,
  answers: 0,
  pause: { number: 0, from: 0, until: 0 },
  barren: { pauses: 0, time: 0 },
})

export const mayBegin = ({ inFlight, places, pause }: Schedule, now: number): boolean =>
  inFlight < places && now >= pause.until

/** A request is begun. */
export const begin = (schedule: Schedule): Schedule => ({ ...schedule, inFlight: schedule.inFlight + 1 })

/** A request is over, and its place is free. */
export const leave = (schedule: Schedule): Schedule => ({ ...schedule, inFlight: schedule.inFlight - 1 })

/**
 * A request that is over was answered, well or not; its ticket is the pause after which it was begun. Places grow by one after
 * as many answers as there are places.
 */
export function answer(
  schedule: Schedule,
  ticket: number,
  { isOk, now }: { isOk: boolean; now: number },
): Schedule {
  const { pause, places, concurrency, barren } = schedule
  const next = { ...schedule, barren: isOk ? { pauses: 0, time: 0 } : barren }
  if (ticket !== pause.number || places === concurrency) return next
  const answers = schedule.answers + 1
  // What a limiter lets through at once after a pause says nothing about the time after it.
  const isSteady = now - pause.until >= Math.min(pause.until - pause.from, longestCaution)
  if (answers < places || !isSteady) return { ...next, answers }
  return { ...next, answers: 0, places: places + 1 }
}

/**
 * A request that is over was refused for now: everybody pauses. The first one that was begun after the last pause
 * makes a new pause and halves the places; others can only make it longer. Throws a `CliError` if waiting has no
 * end.
 */
export function refuse(schedule: Schedule, ticket: number, refusal: Refusal): Schedule {
  const { now, random } = refusal
  const { pause, places, barren } = schedule
  const asked = (refusal.error.details.retryAfter ?? 0) * 1000
  // One that comes while a pause is still on was begun before it, or before it was made longer.
  const isNew = ticket === pause.number && now >= pause.until
  requireEnd(refusal, asked, isNew ? barren.time : 0)
  if (!isNew) return prolong(schedule, now, asked)
  const length = Math.max(asked, backoff({ first: 500, longest: 8000 }, barren.pauses, random))
  return {
    ...schedule,
    places: Math.max(1, Math.floor(places / 2)),
    answers: 0,
    pause: { number: pause.number + 1, from: now, until: now + length },
    barren: { pauses: barren.pauses + 1, time: barren.time + length },
  }
}

function prolong(schedule: Schedule, now: number, asked: number): Schedule {
  const { pause, barren } = schedule
  const until = Math.max(pause.until, now + asked)
  const added = until - Math.max(pause.until, now)
  return { ...schedule, pause: { ...pause, until }, barren: { ...barren, time: barren.time + added } }
}

function requireEnd({ error, now, deadline }: Refusal, asked: number, barren: number): void {
  const isLate = now + asked > deadline
  const because =
    barren >= longestBarren
      ? 'nothing else came in 5 minutes of pauses'
      : asked > longestPause
        ? `the service asks to wait ${Math.ceil(asked / 1000)} s, more than an hour`
        : isLate
          ? `the service asks to wait ${Math.ceil(asked / 1000)} s, past the deadline`
          : undefined
  if (because)
    throw new CliError(error.kind, `${error.message}; ${because}`, {
      ...error.details,
      deadline: isLate || undefined,
    })
}
