import { CliError } from '../errors.ts'

/** How many requests may be under way, and when: a value that each event makes a new one of. */
export interface Schedule {
  /** The most places there can be. */
  readonly concurrency: number
  readonly places: number
  readonly inFlight: number
  /** Those to requests of this pause since the number of places last changed. */
  readonly answers: number
  /** The pause that is, or the last one that was. Milliseconds since the epoch. */
  readonly pause: { readonly number: number; readonly from: number; readonly until: number }
  /** The pauses since the last success. Milliseconds. */
  readonly barren: { readonly pauses: number; readonly time: number }
}

/** A request that is under way: the pause after which it was begun. */
export type Ticket = number

/** The service, or the way to it, is not ready for a request: its line is asked again after a pause. */
export interface Refusal {
  error: CliError
  /** When it came. Milliseconds since the epoch. */
  now: number
  /** Milliseconds since the epoch; Infinity for none. */
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

/** A request is begun; its ticket is the number of the last pause. */
export const begin = (schedule: Schedule): Schedule => ({ ...schedule, inFlight: schedule.inFlight + 1 })

/** A request is over, and its place is free. */
export const leave = (schedule: Schedule): Schedule => ({ ...schedule, inFlight: schedule.inFlight - 1 })

/** A request that is over was answered, well or not. Places grow by one after as many answers as there are places. */
export function answer(
  schedule: Schedule,
  ticket: Ticket,
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
 * makes a new pause and halves the places; others can only make it longer. Throws a `CliError` where waiting has no
 * end.
 */
export function refuse(schedule: Schedule, ticket: Ticket, refusal: Refusal): Schedule {
  const { now, random } = refusal
  const { pause, places, barren } = schedule
  const asked = (refusal.error.details.retryAfter ?? 0) * 1000
  // One that comes while a pause is still on was begun before it, or before it was made longer.
  const isNew = ticket === pause.number && now >= pause.until
  requireEnd(refusal, asked, isNew ? barren.time : 0)
  if (!isNew) return prolong(schedule, now, asked)
  const backoff = Math.min(500 * 2 ** barren.pauses, 8000) * (0.5 + random / 2)
  const length = Math.max(asked, backoff)
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
  const until = now + asked
  if (until <= pause.until) return schedule
  const added = until - Math.max(pause.until, now)
  return { ...schedule, pause: { ...pause, until }, barren: { ...barren, time: barren.time + added } }
}

function requireEnd({ error, now, deadline }: Refusal, asked: number, barren: number): void {
  const because =
    barren >= longestBarren
      ? 'nothing else came in 5 minutes of pauses'
      : asked > longestPause
        ? `the service asks to wait ${Math.ceil(asked / 1000)} s, more than an hour`
        : now + asked > deadline
          ? `the service asks to wait ${Math.ceil(asked / 1000)} s, past the deadline`
          : undefined
  if (because) throw new CliError(error.kind, `${error.message}; ${because}`, error.details)
}
