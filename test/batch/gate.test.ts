import { describe, expect, test } from 'vitest'
import type { BatchState, RequestGate } from '../../src/batch/gate.ts'
import {
  canStartRequest,
  classifyLineFailure,
  createRequestGate,
  decideBatchStep,
  recordAnswer,
  recordOutageFailure,
  recordRefusal,
  recordRequestEnd,
  recordRequestStart,
} from '../../src/batch/gate.ts'
import type { BatchLine } from '../../src/batch/input.ts'
import { catchFailure } from '../wire/decoding.ts'
import { failure } from './pieces.ts'

const base = { index: 1, deadlineMs: Infinity, random: 1 }
const retry = { repeat: 'failed', retries: 0, retryUnknown: false } as const
const limited = (retryAfter?: number) =>
  failure('rate-limited', retryAfter === undefined ? {} : { retryAfterSeconds: retryAfter })

/**
 * Records events in a gate of 8 slots. An event such as `5@7000` is a 429 with Retry-After 5 at 7000 ms, `none@0` a
 * 429 without Retry-After, `success@0` or `failure@0` an answer. The request of `5#2@7000` started after the second
 * pause.
 */
function play(events: string): RequestGate {
  return events.split(' ').reduce((gate, event) => {
    const [, what, pauseNumber = 0, now] = /^([\w.]+)(?:#(\d+))?@(\d+)$/.exec(event) ?? []
    const at = { now: Number(now) }
    if (what === 'success' || what === 'failure')
      return recordAnswer(gate, Number(pauseNumber), { isOk: what === 'success', ...at })
    const error = limited(what === 'none' ? undefined : Number(what))
    return recordRefusal(gate, Number(pauseNumber), { ...base, error, ...at })
  }, createRequestGate(8))
}

describe('concurrency of a batch', () => {
  test('a batch starts as many requests at once as --concurrency allows', () => {
    const started = (count: number) =>
      Array.from({ length: count }).reduce<RequestGate>(recordRequestStart, createRequestGate(8))
    const gates = [started(7), started(8), recordRequestEnd(started(8))]
    expect(gates.map((gate) => canStartRequest(gate, 0))).toEqual([true, false, true])
  })

  test.each<[name: string, events: string, expected: [slots: number, until: number]]>([
    ['a 429 halves the concurrency', '5@1000', [4, 6000]],
    ['further 429s for requests from before the pause change nothing', '5@1000 2@1100 none@1200', [4, 6000]],
    ['the longest Retry-After of all requests from before the pause counts', '5@1000 9@2000', [4, 11_000]],
    ['a late 429 for an earlier request starts a pause and keeps the slots', '1@1000 2@5000', [4, 7000]],
    ['a 429 in an extended pause changes nothing', '1@1000 8@3000 1#1@4000', [4, 11_000]],
    ['a 429 after the pause halves the concurrency again', '5@1000 5#1@7000', [2, 12_000]],
    ['429s halve the concurrency down to one', '1@0 1#1@1000 1#2@2000 1#3@3000', [1, 4000]],
    ['a 429 without Retry-After pauses for half a second', 'none@0', [4, 500]],
    ['a second 429 without Retry-After doubles the pause', 'none@0 none#1@500', [2, 1500]],
    ['a success resets the length of pauses', 'none@0 success#1@500 none#1@500', [2, 1000]],
    ['a failed answer does not reset the length of pauses', 'none@0 failure#1@500 none#1@500', [2, 1500]],
    ['a Retry-After of 0 pauses for half a second', '0@0', [4, 500]],
  ])('in a batch, %s', (_, events, [slots, until]) => {
    const { slots: actual, pause } = play(events)
    expect([actual, pause.until]).toEqual([slots, until])
  })

  test('without Retry-After, the pauses of a batch double up to 8 s, and up to half of each is random', () => {
    let gate = createRequestGate(8)
    const lengths: number[] = []
    for (let now = 0; lengths.length < 7; now = gate.pause.until) {
      const random = lengths.length % 2
      gate = recordRefusal(gate, gate.pause.number, { ...base, error: limited(), now, random })
      lengths.push(gate.pause.until - now)
    }
    expect(lengths).toEqual([250, 1000, 1000, 4000, 4000, 8000, 4000])
  })

  test('a batch with N slots adds a slot after N answers, up to --concurrency', () => {
    let gate = play('1@0 1#1@1000')
    const growth: number[] = []
    for (let count = 0; count < 35; count++) {
      gate = recordAnswer(gate, 2, { isOk: true, now: 3000 })
      growth.push(gate.slots)
    }
    const expected = [2, 3, 4, 5, 6, 7].flatMap((slots) => Array<number>(slots).fill(slots))
    expect(growth).toEqual([...expected.slice(1), ...Array(35 - expected.length + 1).fill(8)])
  })

  test('answers to requests that started before a pause do not raise the concurrency of a batch', () => {
    expect(play(`2@0${' success#0@9000'.repeat(4)}`).slots).toBe(4)
  })
})

describe('pauses that end a batch', () => {
  test('a Retry-After of more than an hour or beyond the deadline ends a batch, with the kind `stopped` at the deadline', () => {
    const refuse = (retryAfter: number, deadlineMs = Infinity) =>
      catchFailure(() =>
        recordRefusal(createRequestGate(8), 0, { ...base, now: 0, error: limited(retryAfter), deadlineMs }),
      )
    expect([refuse(3600), refuse(10, 10_000)]).toEqual([undefined, undefined])
    const tooLong = {
      kind: 'rate-limited',
      message: expect.stringMatching(
        /^it ended with rate-limited; the service asks to wait 3601 s, more than an/,
      ),
      details: { retryAfterSeconds: 3601, deadline: undefined },
    }
    expect([refuse(3601), refuse(3601, 9999)]).toMatchObject([tooLong, tooLong])
    const late = { kind: 'stopped', details: { retryAfterSeconds: 10, deadline: true } }
    const message = expect.stringContaining('the service asks to wait 10 s, past the deadline')
    expect(refuse(10, 9999)).toMatchObject({ ...late, message })
  })

  const kinds = ['rate-limited', 'not-sent'] as const
  test.each(kinds)('after %s, a batch ends after 5 minutes of pauses without a success', (kind) => {
    const error = failure(kind, { retryAfterSeconds: 20 })
    const pauseRepeatedly = (isAnswered: boolean) => {
      let gate = createRequestGate(8)
      let now = 0
      for (let round = 0; round < 60; round++) {
        const pauseNumber = gate.pause.number
        gate = recordAnswer(gate, pauseNumber, { isOk: isAnswered && round % 10 === 0, now })
        gate = recordRefusal(gate, pauseNumber, { ...base, error, now })
        now = gate.pause.until
      }
      return now
    }
    expect(() => pauseRepeatedly(false)).toThrow('5 minutes or more')
    expect(pauseRepeatedly(true)).toBe(60 * 20_000)
  })

  test('a refusal ends a batch after one pause of 5 minutes, but not after two shorter pauses that are far apart', () => {
    const createPause = (extensionSeconds: number) => play(`1@0 ${extensionSeconds}@500`)
    const refuseAgain = (gate: RequestGate) =>
      recordRefusal(gate, 1, { ...base, error: limited(1), now: gate.pause.until })
    // The second refusal comes 0.5 s after the first, so the pauses last 300 s and 299.999 s.
    expect(() => refuseAgain(createPause(299.5))).toThrow('5 minutes')
    expect(refuseAgain(createPause(299.499)).pause.until).toBe(300_999)
    const apart = play('1@0 1@400000')
    expect(recordRefusal(apart, 1, { ...base, error: limited(1), now: 401_000 }).pause.until).toBe(402_000)
  })

  test('a batch ends only at the next refusal if several refusals extended its pause beyond 5 minutes', () => {
    const many = play('600@0 600@10 600@20')
    expect(many.pause.until).toBe(600_020)
    expect(() => recordRefusal(many, 1, { ...base, error: limited(1), now: 600_020 })).toThrow('5 minutes')
  })
})

describe('the gate decides the next step of a batch', () => {
  const [first, refused] = [{ index: 1 } as BatchLine, { index: 2 } as BatchLine]
  const pausedTo5000 = recordRefusal(createRequestGate(2), 0, { ...base, error: limited(4), now: 1000 })
  const inFlight = (count: number, gate = createRequestGate(2)) => ({ ...gate, inFlight: count })
  type Numbers = Record<'tokens' | 'maxTokens' | 'failed' | 'getMaxFailed' | 'deadline' | 'now', number>
  type Changes = Partial<BatchState & Numbers>
  const state = ({
    tokens = 0,
    failed = 0,
    maxTokens = Infinity,
    getMaxFailed = Infinity,
    deadline = Infinity,
    ...changes
  }: Changes) => ({
    gate: createRequestGate(2),
    waitingForRetry: [],
    next: first,
    phase: 'running' as const,
    tally: { tokens, failed },
    limits: { concurrency: 2, retry, deadlineMs: deadline, maxTokens, getMaxFailed: () => getMaxFailed },
    ...changes,
  })
  const wait = (until: number) => ({ do: 'wait', until })
  const forOthers = wait(Infinity)
  const start = { do: 'start', line: first }
  const startRefused = { do: 'start', line: refused }
  const end = { do: 'end' }
  const cancel = { do: 'cancel' }
  const message = 'the answers reached the limit of 10 tokens (--max-total-tokens)'
  const finish = { do: 'finish', because: expect.objectContaining({ kind: 'stopped', message }) }
  const spent = { tokens: 10, maxTokens: 10 }
  const hasRefused = { waitingForRetry: [refused] }
  const paused = { gate: pausedTo5000 }
  const latePause = { deadline: 4000, ...paused, now: 4000 }
  const full = { gate: inFlight(1, pausedTo5000) }
  const testing = { ...inFlight(1), outage: 'testing' } as const
  const failedInPipe = { failed: 1, getMaxFailed: 0, next: 'awaited' } as const
  const finishing = { phase: 'finishing' } as const
  const late = { deadline: 7000, gate: inFlight(1), now: 7000 }

  test.each<[name: string, Changes, expected: object]>([
    ['starts a line that is ready if the concurrency allows it', {}, start],
    ['starts a refused line again before other lines', { waitingForRetry: [refused] }, startRefused],
    ['waits if as many requests run as the concurrency allows', { gate: inFlight(2) }, forOthers],
    ['waits if the next line is not read yet', { next: 'awaited' }, forOthers],
    ['starts a refused line if the next is not read yet', { next: 'awaited', ...hasRefused }, startRefused],
    ['waits for the end of a pause', { gate: pausedTo5000, now: 4999 }, wait(5000)],
    ['starts a line when a pause ends', { gate: pausedTo5000, now: 5000 }, start],
    ['waits for a running request if all slots are in use in a pause', { ...full, now: 4000 }, forOthers],
    ['waits for running requests in a pause without lines', { ...full, next: 'none', now: 4000 }, forOthers],
    ['waits for running requests if no line is left', { gate: inFlight(1), next: 'none' }, forOthers],
    ['waits for the request that tests the service in an outage', { gate: testing }, forOthers],
    ['ends if no line is left', { next: 'none' }, end],
    ['starts a refused line if no other line is left', { next: 'none', ...hasRefused }, startRefused],
    ['starts no more lines if its answers reach the token limit', spent, finish],
    ['starts no more lines at the token limit in a pause', { ...spent, ...paused, now: 4000 }, finish],
    ['waits for the next line although the token limit is reached', { ...spent, next: 'awaited' }, forOthers],
    ['ends without a failure if its last answer reaches the token limit', { ...spent, next: 'none' }, end],
    ['starts a line while the used tokens are just below the limit', { ...spent, tokens: 9 }, start],
    ['starts a line after exactly the maximum number of failures', { failed: 3, getMaxFailed: 3 }, start],
    ['starts no more lines if too many lines failed', { failed: 4, getMaxFailed: 3 }, { do: 'finish' }],
    ['starts no more lines if too many failed and the pipe is silent', failedInPipe, { do: 'finish' }],
    ['ends if too many lines failed and no line is left', { failed: 1, getMaxFailed: 0, next: 'none' }, end],
    ['that starts no more lines waits for running requests', { ...finishing, gate: inFlight(1) }, forOthers],
    ['that starts no more lines ends if no request is running', { ...finishing, ...hasRefused }, end],
    ['cancels its requests at the deadline', { deadline: 7000, now: 7000 }, cancel],
    ['cancels its requests if the deadline passes in a pause', latePause, cancel],
    ['that starts no more lines cancels its requests at the deadline', { ...late, ...finishing }, cancel],
    ['ends if the deadline passes after the last line', { deadline: 7000, next: 'none', now: 7000 }, end],
    ['waits for the result of a cancelled request', { ...late, phase: 'cancelled' }, forOthers],
    ['starts a line just before the deadline', { deadline: 7000, now: 6999 }, start],
  ])('a batch %s', (_, { now = 0, ...changes }, expected) => {
    expect(decideBatchStep(state(changes), now)).toEqual(expected)
  })
})

const classes = {
  'pauses and retries the line': 'pause',
  'pauses if such failures repeat': 'pause-if-repeated',
  continues: 'continue',
  'fails the line and stops': 'fail-and-stop',
  stops: 'stop',
} as const

test.each([
  ['a failed connection', 'pauses and retries the line', 'not-sent', {}],
  ['a 429', 'pauses and retries the line', 'rate-limited', { sent: 'yes', status: 429 }],
  ['a 503 with Retry-After', 'pauses and retries the line', 'rate-limited', { sent: 'yes', status: 503 }],
  ['a permanent 429', 'continues', 'rate-limited', { sent: 'yes', status: 429, isPermanent: true }],
  ['a rate_limit_error in a 200', 'continues', 'rate-limited', { sent: 'yes', status: 200 }],
  ['a 400', 'continues', 'refused', { sent: 'yes', status: 400 }],
  ['a 500', 'pauses if such failures repeat', 'service', { sent: 'yes', status: 500 }],
  ['an api_error in a 300', 'pauses if such failures repeat', 'service', { sent: 'yes', status: 300 }],
  ['a 408', 'pauses if such failures repeat', 'service', { sent: 'yes', status: 408 }],
  ['an api_error in a 200', 'continues', 'service', { sent: 'yes', status: 200 }],
  ['an unreadable answer', 'continues', 'response', { sent: 'yes', status: 200 }],
  ['a missing answer', 'pauses if such failures repeat', 'unknown', { sent: 'unknown' }],
  ['a bug in parley', 'fails the line and stops', 'unexpected', { sent: 'yes', status: 200 }],
  ['a 401', 'fails the line and stops', 'credentials', { sent: 'yes', status: 401 }],
  ['a 402', 'fails the line and stops', 'payment', { sent: 'yes', status: 402 }],
  ['an answer that cannot be saved', 'fails the line and stops', 'file', { sent: 'yes', status: 200 }],
  ['a missing credential', 'stops', 'credentials', {}],
  ['a wrong setting', 'stops', 'usage', {}],
  ['an unwritable file', 'stops', 'file', {}],
] as const)('B08: if the cause of a failure is %s, a batch %s', (_, effect, kind, details) => {
  expect(classifyLineFailure(failure(kind, details))).toBe(classes[effect])
})

describe('outage of the service during a batch', () => {
  const broken = (retryAfter?: number) => failure('service', { status: 502, retryAfterSeconds: retryAfter })
  const failing = (
    gate: RequestGate,
    index: number,
    { now = 0, pauseNumber = gate.pause.number, error = broken() } = {},
  ) => recordOutageFailure(gate, pauseNumber, { ...base, error, index, now })
  /** Returns a gate after these lines failed one after another. */
  const afterFailures = (slots: number, ...indexes: number[]) =>
    indexes.reduce((gate, index) => failing(gate, index), createRequestGate(slots))
  /** Returns the gate after one line tested the service and failed. */
  const afterTest = (gate: RequestGate, index = 1) =>
    failing(recordRequestEnd(recordRequestStart(gate)), index, { now: gate.pause.until })
  const hasOutage = (gate: RequestGate) => gate.outage !== undefined

  test.each<[what: string, slots: number, failedLines: number[]]>([
    ['an outage after as many failed lines in a row as run at once', 8, [1, 2, 3, 4, 5, 6, 7, 8]],
    ['no outage if fewer lines in a row fail than run at once', 8, [1, 2, 3, 4, 5, 6, 7]],
    ['an outage after four failed lines in a row with a concurrency of two', 2, [1, 2, 3, 4]],
    ['no outage after three failed lines in a row with a concurrency of two', 2, [1, 2, 3]],
    ['no outage if the same three lines fail twice', 4, [1, 2, 3, 3, 2, 1]],
    ['an outage if four different lines fail, some of them twice', 4, [1, 2, 2, 1, 3, 4]],
  ])('a batch detects %s', (what, slots, failedLines) => {
    expect(hasOutage(afterFailures(slots, ...failedLines))).toBe(what.startsWith('an outage'))
  })

  test.each([
    ['a success', (gate: RequestGate) => recordAnswer(gate, 0, { isOk: true, now: 0 })],
    ['a refused request', (gate: RequestGate) => recordAnswer(gate, 0, { isOk: false, now: 0 })],
    ['a rate limit', (gate: RequestGate) => recordRefusal(gate, 0, { ...base, error: limited(), now: 0 })],
  ])('a batch detects no outage if %s interrupts the failures', (_, between) => {
    const gate = between(afterFailures(4, 1, 2, 3))
    expect(hasOutage([4, 5, 6].reduce((later, index) => failing(later, index), gate))).toBe(false)
  })

  test('an outage pauses a batch for 1 s, doubling to 30 s, and after each pause one line tests the service', () => {
    let gate = afterFailures(4, 1, 2, 3, 4)
    const lengths: number[] = []
    let from = 0
    for (let number = 0; number < 7; number++) {
      const { until } = gate.pause
      lengths.push(until - from)
      from = until
      expect([canStartRequest(gate, until - 1), canStartRequest(gate, until)]).toEqual([false, true])
      expect(canStartRequest(recordRequestStart(gate), until)).toBe(false)
      gate = afterTest(gate, number)
    }
    expect(lengths).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
    expect(gate.slots).toBe(4)
  })

  test('an outage pauses a batch for the time of Retry-After', () => {
    expect(failing(afterFailures(4, 1, 2, 3), 4, { error: broken(20) }).pause.until).toBe(20_000)
    expect(() => failing(afterFailures(4, 1, 2, 3), 4, { error: broken(4000) })).toThrow('more than an hour')
  })

  test('in an outage, the failure of an earlier request does not extend the pause', () => {
    const gate = afterFailures(4, 1, 2, 3, 4)
    expect(failing(gate, 5, { pauseNumber: 0, now: 500 })).toEqual(gate)
  })

  test.each([
    ['an answer', true, 1, 1000],
    ['an answer that is an error', false, 1, 1000],
    ['an answer to an earlier request', true, 0, 10],
  ])('%s ends an outage, and the batch resumes all lines', (_, isOk, pauseNumber, now) => {
    const outage = recordRequestStart(afterFailures(4, 1, 2, 3, 4))
    const gate = recordRequestEnd(recordAnswer(outage, pauseNumber, { isOk, now }))
    expect([hasOutage(gate), gate.slots, canStartRequest(gate, now)]).toEqual([false, 4, true])
    expect(hasOutage(failing(gate, 9))).toBe(false)
  })

  test('a 429 turns the outage of a batch into an ordinary pause', () => {
    const outage = recordRequestStart(afterFailures(4, 1, 2, 3, 4))
    const gate = recordRefusal(outage, 1, { ...base, error: limited(7), now: 1000 })
    expect([hasOutage(gate), gate.slots, gate.pause.until]).toEqual([false, 2, 8000])
  })

  test('an outage ends a batch with the last failure after 5 minutes of pauses', () => {
    let gate = afterFailures(4, 1, 2, 3, 4)
    const pauseRepeatedly = () => {
      for (let number = 0; number < 100; number++) gate = afterTest(gate)
    }
    expect(pauseRepeatedly).toThrow('it ended with service; no request succeeded since the pauses began')
    expect(gate.pause.until).toBeGreaterThan(300_000)
    expect(gate.pause.until).toBeLessThan(331_000)
  })

  describe('line that tests the service in an outage', () => {
    const [waiting, fresh] = [{}, {}]
    const choose = (next: object | 'none', gate: RequestGate) => {
      const limits = { concurrency: 4, retry, maxTokens: Infinity, getMaxFailed: () => Infinity }
      const common = { phase: 'running', tally: { tokens: 0, failed: 0 }, limits }
      const state = { gate, waitingForRetry: [waiting], next, ...common } as unknown as BatchState
      const step = decideBatchStep(state, 5000)
      return step.do === 'start' ? step.line : step.do
    }
    const outage = afterFailures(4, 1, 2, 3, 4)
    test.each([
      ['a new line to test the service in an outage', choose(fresh, outage), fresh],
      ['a waiting line to test the service if no new line is left', choose('none', outage), waiting],
      ['a waiting line before a new line without an outage', choose(fresh, createRequestGate(4)), waiting],
    ])('a batch chooses %s', (_, chosen, line) => expect(chosen).toBe(line))
  })
})
