import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  answer,
  begin,
  createSchedule,
  decide,
  effectOf,
  leave,
  mayBegin,
  refuse,
  type Schedule,
  type State,
} from '../../src/batch/schedule.ts'
import type { CliError } from '../../src/errors.ts'
import { failure } from './pieces.ts'

const base = { deadline: Infinity, random: 1 }
const limited = (retryAfter?: number) =>
  failure('rate-limited', retryAfter === undefined ? {} : { retryAfter })

/** What happens to a schedule of 8 places, in words: `b` begins, `+` and `-` answer, a number refuses. */
function play(events: ['b' | '+' | '-' | number | undefined, ticket: number, now: number][]): Schedule {
  return events.reduce((schedule, [what, ticket, now]) => {
    if (what === 'b') return begin(schedule)
    if (what === '+' || what === '-') return answer(schedule, ticket, { isOk: what === '+', now })
    return refuse(schedule, ticket, { ...base, error: limited(what), now })
  }, createSchedule(8))
}

describe('a schedule', () => {
  test('has as many places as it is given', () => {
    const full = play(Array.from({ length: 8 }, () => ['b', 0, 0]))
    expect(mayBegin(play([['b', 0, 0]]), 0)).toBe(true)
    expect(mayBegin(full, 0)).toBe(false)
    expect(mayBegin(leave(full), 0)).toBe(true)
  })

  test.each<[name: string, events: Parameters<typeof play>[0], expected: [places: number, until: number]]>([
    ['a refusal halves', [[5, 0, 1000]], [4, 6000]],
    [
      'further ones of before change nothing',
      [
        [5, 0, 1000],
        [2, 0, 1100],
        [undefined, 0, 1200],
      ],
      [4, 6000],
    ],
    [
      'but the longest counts',
      [
        [5, 0, 1000],
        [9, 0, 2000],
      ],
      [4, 11_000],
    ],
    [
      'also one that comes late',
      [
        [1, 0, 1000],
        [2, 0, 5000],
      ],
      [4, 7000],
    ],
    [
      'nor one into a pause made longer',
      [
        [1, 0, 1000],
        [8, 0, 3000],
        [1, 1, 4000],
      ],
      [4, 11_000],
    ],
    [
      'one of after halves again',
      [
        [5, 0, 1000],
        [5, 1, 7000],
      ],
      [2, 12_000],
    ],
    [
      'down to one',
      [
        [1, 0, 0],
        [1, 1, 1000],
        [1, 2, 2000],
        [1, 3, 3000],
      ],
      [1, 4000],
    ],
    ['nothing asked for: half a second', [[undefined, 0, 0]], [4, 500]],
    [
      'and twice that',
      [
        [undefined, 0, 0],
        [undefined, 1, 500],
      ],
      [2, 1500],
    ],
    [
      'a success begins anew',
      [
        [undefined, 0, 0],
        ['+', 1, 500],
        [undefined, 1, 500],
      ],
      [2, 1000],
    ],
    [
      'a failure does not',
      [
        [undefined, 0, 0],
        ['-', 1, 500],
        [undefined, 1, 500],
      ],
      [2, 1500],
    ],
    ['a date that has passed: half a second', [[0, 0, 0]], [4, 500]],
  ])('%s', (_, events, [places, until]) => {
    const { places: are, pause } = play(events)
    expect([are, pause.until]).toEqual([places, until])
  })

  test('without anything asked for, pauses grow to 8 s and vary by half', () => {
    let schedule = createSchedule(8)
    const lengths: number[] = []
    for (let now = 0; lengths.length < 7; now = schedule.pause.until) {
      const random = lengths.length % 2
      schedule = refuse(schedule, schedule.pause.number, {
        error: limited(),
        now,
        deadline: Infinity,
        random,
      })
      lengths.push(schedule.pause.until - now)
    }
    expect(lengths).toEqual([250, 1000, 1000, 4000, 4000, 8000, 4000])
  })

  test('grows by one after as many answers as there are places, to what it was', () => {
    let schedule = play([
      [1, 0, 0],
      [1, 1, 1000],
    ])
    const growth: number[] = []
    for (let count = 0; count < 35; count++) {
      schedule = answer(schedule, 2, { isOk: true, now: 3000 })
      growth.push(schedule.places)
    }
    const expected = [2, 3, 4, 5, 6, 7].flatMap((places) => Array<number>(places).fill(places))
    expect(growth).toEqual([...expected.slice(1), ...Array(35 - expected.length + 1).fill(8)])
  })

  test.each([
    ['not by answers to requests of before the pause', 2, 0, 9000, 4],
    ['not soon after it', 2, 1, 3999, 4],
    ['but once it has been as long as the pause', 2, 1, 4000, 5],
    ['or a minute: not yet', 1000, 1, 1_059_999, 4],
    ['or a minute', 1000, 1, 1_060_000, 5],
  ])('grows %s', (_, asked, ticket, now, places) => {
    expect(play([[asked, 0, 0], ...Array(4).fill(['+', ticket, now])]).places).toBe(places)
  })
})

describe('a schedule ends', () => {
  const end =
    (asked: number, refusal: object = {}) =>
    () =>
      refuse(createSchedule(8), 0, { ...base, now: 0, error: limited(asked), ...refusal })

  test('where more than an hour is asked for, or a time past the deadline', () => {
    expect(end(3600)).not.toThrow()
    expect(end(3601)).toThrow(
      'it ended with rate-limited; the service asks to wait 3601 s, more than an hour',
    )
    expect(end(10, { deadline: 10_000 })).not.toThrow()
    expect(end(10, { deadline: 9999 })).toThrow('the service asks to wait 10 s, past the deadline')
  })

  test('with what the refusal said, and whether it is because of the deadline', () => {
    const detailsOf = (asked: number, deadline: number) => {
      try {
        end(asked, { deadline })()
      } catch (error) {
        return (error as CliError).details
      }
      return undefined
    }
    expect(detailsOf(3601, Infinity)).toEqual({ retryAfter: 3601 })
    expect(detailsOf(10, 9999)).toEqual({ retryAfter: 10, deadline: true })
  })

  test.each(['rate-limited', 'not-sent'] as const)(
    'after 5 minutes of pauses without a success: %s',
    (kind) => {
      const suffer = (isAnswered: boolean) => {
        let schedule = createSchedule(8)
        let now = 0
        for (let round = 0; round < 60; round++) {
          const ticket = schedule.pause.number
          schedule = answer(schedule, ticket, { isOk: isAnswered && round % 10 === 0, now })
          schedule = refuse(schedule, ticket, {
            ...base,
            error: failure(kind, { retryAfter: 20 }),
            now,
          })
          now = schedule.pause.until
        }
        return now
      }
      expect(() => suffer(false)).toThrow('nothing else came in 5 minutes of pauses')
      expect(suffer(true)).toBe(60 * 20_000)
    },
  )

  test('where one pause was made so long, but not where a late refusal began it again', () => {
    const prolonged = (by: number) =>
      play([
        [1, 0, 0],
        [by, 0, 500],
      ])
    const further = (schedule: Schedule) =>
      refuse(schedule, 1, { ...base, error: limited(1), now: schedule.pause.until })
    // The pause lasts for 300 s, and for a millisecond less.
    expect(() => further(prolonged(299.5))).toThrow('5 minutes')
    expect(further(prolonged(299.499)).pause.until).toBe(300_999)
    const again = play([
      [1, 0, 0],
      [1, 0, 400_000],
    ])
    expect(refuse(again, 1, { ...base, error: limited(1), now: 401_000 }).pause.until).toBe(402_000)
  })

  test('not by one long pause that many were sent into', () => {
    const many = play([
      [600, 0, 0],
      [600, 0, 10],
      [600, 0, 20],
    ])
    expect(many.pause.until).toBe(600_020)
    expect(() => refuse(many, 1, { ...base, error: limited(1), now: 600_020 })).toThrow('5 minutes')
  })
})

test('whatever comes: never more than places, never in a pause, always an end', () => {
  const outcome = fc.record({
    kind: fc.constantFrom('ok', 'failed', 'refused'),
    asked: fc.option(fc.integer({ min: 0, max: 4000 }), { nil: undefined }),
    time: fc.integer({ min: 0, max: 20_000 }),
  })
  const service = fc.infiniteStream(outcome)
  fc.assert(
    fc.property(service, fc.integer({ min: 1, max: 20 }), fc.nat(60), (outcomes, concurrency, lines) => {
      let schedule = createSchedule(concurrency)
      let now = 0
      let left = lines
      let steps = 0
      type Flight = { at: number; ticket: number; what: { kind: string; asked: number | undefined } }
      const flights: Flight[] = []
      try {
        while (left > 0 || flights.length > 0) {
          expect(++steps).toBeLessThan(10_000)
          while (left > 0 && mayBegin(schedule, now)) {
            const { time, ...what } = outcomes.next().value
            left--
            schedule = begin(schedule)
            flights.push({ at: now + time, ticket: schedule.pause.number, what })
            expect(schedule.inFlight).toBeLessThanOrEqual(schedule.places)
            expect(schedule.places).toBeLessThanOrEqual(concurrency)
            expect(now).toBeGreaterThanOrEqual(schedule.pause.until)
          }
          flights.sort((one, other) => one.at - other.at)
          const first = flights.shift()
          now = first ? Math.max(now, first.at) : schedule.pause.until
          if (!first) continue
          const { ticket, what } = first
          schedule = leave(schedule)
          if (what.kind === 'refused') {
            left++
            const before = schedule
            schedule = refuse(schedule, ticket, { ...base, error: limited(what.asked), now })
            expect(schedule.places).toBeGreaterThanOrEqual(1)
            expect(schedule.pause.until).toBeGreaterThanOrEqual(before.pause.until)
            expect(schedule.pause.until).toBeGreaterThanOrEqual(now + (what.asked ?? 0) * 1000)
            if (ticket < before.pause.number) expect(schedule.places).toBe(before.places)
          } else schedule = answer(schedule, ticket, { isOk: what.kind === 'ok', now })
          expect(schedule.inFlight).toBe(flights.length)
        }
      } catch (error) {
        if (!/more than an hour|5 minutes/.test(String(error))) throw error
      }
    }),
    { numRuns: 300 },
  )
})

/** A limiter that refills, with as many requests at once as it has in a second. */
function meet(rate: number, latency: number, concurrency: number, lines: number) {
  let schedule = createSchedule(concurrency)
  let tokens = rate
  let now = 0
  let answered = 0
  const flights: { at: number; ticket: number; isOk: boolean }[] = []
  const late = { requests: 0, refused: 0 }
  while (answered < lines) {
    if (answered + flights.length < lines && mayBegin(schedule, now)) {
      const isOk = tokens >= 1
      if (isOk) tokens--
      if (now > 10_000) {
        late.requests++
        if (!isOk) late.refused++
      }
      schedule = begin(schedule)
      flights.push({ at: now + latency, ticket: schedule.pause.number, isOk })
      continue
    }
    const next = Math.min(
      ...flights.map(({ at }) => at),
      now < schedule.pause.until ? schedule.pause.until : Infinity,
    )
    tokens = Math.min(rate, tokens + ((next - now) * rate) / 1000)
    now = next
    for (const flight of flights.filter(({ at }) => at <= now)) {
      flights.splice(flights.indexOf(flight), 1)
      if (flight.isOk) answered++
      const { ticket } = flight
      schedule = leave(schedule)
      schedule = flight.isOk
        ? answer(schedule, ticket, { isOk: true, now })
        : refuse(schedule, ticket, { ...base, error: limited(1), now })
    }
  }
  return { seconds: now / 1000, refused: late.refused / late.requests }
}

test.each([
  [50, 1, 8],
  [50, 1, 64],
  [50, 5, 8],
  [50, 15, 8],
  [50, 25, 8],
  [50, 100, 8],
  [50, 300, 16],
  [10, 500, 8],
])(
  '%i a second, %i ms for each, %i at a time: little is refused, and little time lost',
  (rate, latency, places) => {
    const { seconds, refused } = meet(rate, latency, places, rate * 40)
    expect(refused).toBeLessThan(0.05)
    expect(seconds).toBeLessThan(80)
  },
)

describe('what a batch does next', () => {
  interface TestLine {
    name: string
  }
  const first = { name: 'first' }
  const refused = { name: 'refused' }
  const pausedTo5000 = refuse(createSchedule(2), 0, { ...base, error: limited(4), now: 1000 })
  const inFlight = (count: number, schedule = createSchedule(2)) => ({ ...schedule, inFlight: count })
  const state = (changes: Partial<State<TestLine>>): State<TestLine> => ({
    schedule: createSchedule(2),
    refused: [],
    next: first,
    hasRoom: true,
    course: 'going on',
    tokens: 0,
    mostTokens: Infinity,
    failed: 0,
    mostFailed: Infinity,
    deadline: Infinity,
    ...changes,
  })
  const wait = (until: number) => ({ do: 'wait', until })
  const forOthers = wait(Infinity)
  const finish = {
    do: 'finish',
    because: expect.objectContaining({
      kind: 'stopped',
      message: 'the answers took 10 tokens, and --max-total-tokens is 10',
    }),
  }

  test.each<[name: string, Partial<State<TestLine>>, now: number, expected: object]>([
    ['a line is there, and a place is free', {}, 0, { do: 'ask', line: first }],
    ['a refused line goes first', { refused: [refused] }, 0, { do: 'ask', line: refused }],
    ['every place is taken', { schedule: inFlight(2) }, 0, forOthers],
    ['the next line has not come', { next: 'awaited' }, 0, forOthers],
    [
      'it has not come, but a refused one is there',
      { next: 'awaited', refused: [refused] },
      0,
      { do: 'ask', line: refused },
    ],
    ['its result would have no place to wait', { hasRoom: false }, 0, forOthers],
    [
      'but a refused one has its place already',
      { hasRoom: false, refused: [refused] },
      0,
      { do: 'ask', line: refused },
    ],
    ['a pause is on', { schedule: pausedTo5000 }, 4999, wait(5000)],
    ['a pause ends now', { schedule: pausedTo5000 }, 5000, { do: 'ask', line: first }],
    ['a pause was over long ago', { schedule: pausedTo5000 }, 9000, { do: 'ask', line: first }],
    ['a pause is on, and every place is taken', { schedule: inFlight(1, pausedTo5000) }, 4000, forOthers],
    [
      'a pause is on, and there is nothing to ask',
      { schedule: inFlight(1, pausedTo5000), next: 'none' },
      4000,
      forOthers,
    ],
    ['nothing is left, but some is under way', { schedule: inFlight(1), next: 'none' }, 0, forOthers],
    ['nothing is left', { next: 'none' }, 0, { do: 'end' }],
    [
      'nothing is left but a refused line',
      { next: 'none', refused: [refused] },
      0,
      { do: 'ask', line: refused },
    ],
    ['the limit of tokens is reached', { tokens: 10, mostTokens: 10 }, 0, finish],
    ['it is reached in a pause', { tokens: 10, mostTokens: 10, schedule: pausedTo5000 }, 4000, finish],
    [
      'it is reached while the next line is awaited',
      { tokens: 10, mostTokens: 10, next: 'awaited' },
      0,
      forOthers,
    ],
    ['it is reached by the last answer', { tokens: 10, mostTokens: 10, next: 'none' }, 0, { do: 'end' }],
    ['it is not reached', { tokens: 9, mostTokens: 10 }, 0, { do: 'ask', line: first }],
    ['no more may fail', { failed: 3, mostFailed: 3 }, 0, { do: 'ask', line: first }],
    ['more failed than may', { failed: 4, mostFailed: 3 }, 0, { do: 'finish' }],
    [
      'more failed than may, and a silent pipe is waited for',
      { failed: 1, mostFailed: 0, next: 'awaited' },
      0,
      { do: 'finish' },
    ],
    [
      'more failed than may, and nothing is left',
      { failed: 1, mostFailed: 0, next: 'none' },
      0,
      { do: 'end' },
    ],
    ['it finishes, and some is under way', { course: 'finishing', schedule: inFlight(1) }, 0, forOthers],
    ['it finishes, and nothing is under way', { course: 'finishing', refused: [refused] }, 0, { do: 'end' }],
    ['the deadline comes', { deadline: 7000 }, 7000, { do: 'cut' }],
    ['the deadline comes in a pause', { deadline: 4000, schedule: pausedTo5000 }, 4000, { do: 'cut' }],
    [
      'the deadline comes while it finishes',
      { deadline: 7000, course: 'finishing', schedule: inFlight(1) },
      7000,
      { do: 'cut' },
    ],
    ['the deadline comes when all is done', { deadline: 7000, next: 'none' }, 7000, { do: 'end' }],
    ['the deadline is yet to come', { deadline: 7000 }, 6999, { do: 'ask', line: first }],
    // Here only printing or reading can be under way; if nothing is, the race of what is under way throws.
    ['nothing under way, nothing to wait for, not at the end', { hasRoom: false }, 0, forOthers],
  ])('%s', (_, changes, now, expected) => {
    expect(decide(state(changes), now)).toEqual(expected)
  })

  test('a wait that is given a time is never overdue', () => {
    for (let now = 0; now < 7000; now += 7) {
      const step = decide(state({ schedule: pausedTo5000, deadline: 6000 }), now)
      if (step.do === 'wait') expect(step.until).toBeGreaterThan(now)
    }
  })
})

test.each([
  ['again', 'not-sent', {}],
  ['again', 'rate-limited', { sent: 'yes', status: 429 }],
  ['again', 'rate-limited', { sent: 'yes', status: 503 }],
  ['line', 'rate-limited', { sent: 'yes', status: 429, isPermanent: true }],
  ['line', 'rate-limited', { sent: 'yes', status: 200 }],
  ['line', 'refused', { sent: 'yes', status: 400 }],
  ['line', 'service', { sent: 'yes', status: 500 }],
  ['line', 'response', { sent: 'yes', status: 200 }],
  ['line', 'unknown', { sent: 'unknown' }],
  ['all', 'credentials', { sent: 'yes', status: 401 }],
  ['all', 'payment', { sent: 'yes', status: 402 }],
  ['all', 'file', { sent: 'yes', status: 200 }],
  ['not asked', 'credentials', {}],
  ['not asked', 'usage', {}],
  ['not asked', 'file', {}],
] as const)('%s: what a failure does to a batch: %s %o', (effect, kind, details) => {
  expect(effectOf(failure(kind, details))).toBe(effect)
})
