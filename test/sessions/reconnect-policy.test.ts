import { expect, test } from 'vitest'
import { Deadline } from '../../src/deadline.ts'
import { CliError, type FailureDetails, type FailureKind } from '../../src/errors.ts'
import { retry } from '../../src/http/retry.ts'
import { OutageNotes, ReconnectPolicy, requireTimeLeft } from '../../src/sessions/reconnect-policy.ts'
import type { SessionClient } from '../../src/sessions/session.ts'
import { createClock } from '../harness/clock.ts'

const minutes = 60_000
const failure = (kind: FailureKind, details: FailureDetails = {}) => new CliError(kind, 'x', details)

const start = Date.UTC(2026, 0, 1)
const tooLate = {
  kind: 'stopped',
  message: 'the deadline passed while parley followed the session',
  details: { retry: 'later', deadline: true },
}

/** Creates a policy with a deadline, and a clock that advances only during waits. Records waits and notes. */
function createPolicy(deadlineMs: number, { limitText = '' } = {}) {
  /** Times of the attempts, in milliseconds since the start. */
  const attempted: number[] = []
  const notes: string[] = []
  const clock = createClock()
  let passed = start - clock.now()
  const pass = (milliseconds: number) => {
    passed += milliseconds
  }
  const timers = { ...clock, now: () => clock.now() + passed, random: () => 1 }
  const deadline = new Deadline(timers, deadlineMs, { limitText: limitText || undefined })
  const access = {
    context: { host: { timers }, messages: { note: (line: string) => void notes.push(line) } },
    parts: { deadline },
  } as unknown as SessionClient
  const outageNotes = new OutageNotes(access.context)
  const createOther = () => new ReconnectPolicy(access, outageNotes)
  const policy = createOther()
  /** Repeats an attempt that fails with these failures before it succeeds. */
  const attempt = (...failures: unknown[]) =>
    retry(deadline, policy, async () => {
      attempted.push(timers.now() - start)
      const error = failures.shift()
      if (error) throw error
      return 'done'
    })
  return { policy, createOther, pass, attempted, notes, deadline, attempt }
}

/** Passes a failure to the policy `times` times, then again `later` milliseconds later. Returns that decision. */
function decide(error: CliError, { times = 0, later = 0 } = {}) {
  const { policy, pass } = createPolicy(Infinity)
  for (let i = 0; i < times; i++) policy.decide(error)
  pass(later)
  return policy.decide(error)
}

test.each<[string, CliError, Parameters<typeof decide>[1]]>([
  ['4:59 min without a connection', failure('not-sent'), { times: 1, later: 5 * minutes - 1 }],
  ['a missing response', failure('unknown'), {}],
  ['five unreadable responses', failure('response'), { times: 4 }],
])('parley tries to reconnect after %s', (_, error, circumstances) => {
  expect(decide(error, circumstances)).toEqual(expect.any(Number))
})

test.each<[string, CliError, Parameters<typeof decide>[1]]>([
  ['a 429 that forbids a retry', failure('rate-limited', { status: 429, isPermanent: true }), {}],
  ['a 401', failure('credentials', { status: 401 }), {}],
  ['a 404', failure('refused', { status: 404 }), {}],
])('parley does not reconnect after %s', (_, error, circumstances) => {
  expect(decide(error, circumstances)).toEqual(error)
})

test.each<[string, CliError]>([
  ['without a connection', failure('not-sent', { delivery: 'not-sent', sent: 'no', consequence: 'x' })],
  ['without a response', failure('unknown', { sent: 'unknown' })],
  ['of 502s', failure('service', { status: 502 })],
])('parley reports incomplete events after 5 min %s', (_, error) => {
  const { kind, message, details } = decide(error, { times: 1, later: 5 * minutes }) as CliError
  expect([kind, message]).toEqual(['response', 'x (parley tried for 5 min)'])
  expect(details).toEqual({ ...(error.details.status && { status: 502 }), sent: undefined, retry: 'later' })
})

test('parley does not reconnect if the service requests a wait of more than 60 s', () => {
  const error = failure('rate-limited', { status: 429, retryAfterSeconds: 61 })
  const message = 'x (the service asks to wait 61 s; parley waits at most 60 s)'
  expect(decide(error)).toMatchObject({ kind: 'response', message, details: { status: 429, retry: 'later' } })
})

test('parley prints the same cause of a reconnect only once until the service responds', () => {
  const { policy, notes } = createPolicy(Infinity)
  const refused = new CliError('not-sent', 'connection refused')
  for (const error of [refused, refused, failure('not-sent'), refused]) policy.decide(error)
  policy.recordResponse()
  policy.decide(refused)
  const [first, other] = ['connection refused; trying again', 'x; trying again']
  expect(notes).toEqual([first, other, first, first])
})

test('parley prints each minute that its requests still fail, until the service responds', () => {
  const { policy, notes, pass } = createPolicy(Infinity)
  const wait = (milliseconds: number) => {
    pass(milliseconds)
    policy.decide(failure('not-sent'))
  }
  for (const milliseconds of [0, 1 * minutes, 30_000, 30_000]) wait(milliseconds)
  policy.recordResponse()
  wait(1 * minutes)
  const still = (count: number) => `still failing after ${count} min; trying again`
  expect(notes).toEqual(['x; trying again', still(1), still(2), 'x; trying again'])
})

test('the reconnect policies of a run together print each note only once', () => {
  const { policy, createOther, notes, pass } = createPolicy(Infinity)
  const other = createOther()
  for (const milliseconds of [0, 30_000, 30_000, 10_000]) {
    pass(milliseconds)
    policy.decide(failure('not-sent'))
    other.decide(failure('not-sent'))
  }
  expect(notes).toEqual(['x; trying again', 'still failing after 1 min; trying again'])
})

test('neither readable responses nor failed connections reset the number of unreadable responses', () => {
  const { policy } = createPolicy(Infinity)
  const odd = failure('response')
  for (let i = 0; i < 5; i++) {
    policy.decide(odd)
    policy.decide(failure('not-sent'))
    policy.recordResponse()
  }
  expect(policy.decide(odd)).toEqual(odd)
})

test("the note before a reconnect has the service's message on one line", () => {
  const { policy, notes } = createPolicy(Infinity)
  policy.decide(failure('service', { status: 503, serviceMessage: 'a\nb\u001b' }))
  expect(notes).toEqual(['x: a b^[; trying again'])
})

test.each([
  ['at the current millisecond counts as passed', start, true],
  ['of Infinity does not count as passed', Infinity, false],
])('a deadline %s', (_, deadlineMs, isOver) => {
  const { deadline, policy, notes } = createPolicy(deadlineMs)
  const check = expect(() => requireTimeLeft(deadline))
  if (isOver) check.toThrow(expect.objectContaining(tooLate))
  else check.not.toThrow()
  if (isOver) expect(policy.decide(failure('not-sent'))).toMatchObject(tooLate)
  expect(notes).toHaveLength(0)
})

test('if a time limit passes that parley itself sets, parley reports the last failure, not the time limit', () => {
  const error = failure('not-sent')
  expect(createPolicy(start, { limitText: 'no response within 5 s' }).policy.decide(error)).toBe(error)
})

test('a deadline that has passed stays passed even if its timer fired a millisecond before the clock reached it', async () => {
  const { deadline } = createPolicy(Infinity)
  const fired = new Promise<Deadline>((resolve) => void deadline.onPass(resolve))
  deadline.moveTo(start + 2)
  expect(await fired).toBe(deadline)
  expect(deadline.hasPassed).toBe(true)
})

const busy = (seconds: number) => failure('rate-limited', { status: 429, retryAfterSeconds: seconds })

test('the wait before each further reconnect doubles up to 8 s, and Retry-After may extend it', () => {
  const { policy } = createPolicy(Infinity)
  const waits = Array.from({ length: 7 }, () => policy.nextWaitMs())
  waits.push(policy.decide(busy(20)) as number, policy.nextWaitMs())
  policy.decide(busy(20))
  policy.recordResponse()
  waits.push(policy.nextWaitMs())
  expect(waits).toEqual([250, 500, 1000, 2000, 4000, 8000, 8000, 20_000, 8000, 8000])
})

test('parley does not wait to reconnect if the wait ends at or after the deadline', async () => {
  const { attempt } = createPolicy(start + 10_000)
  await expect(attempt(busy(10))).rejects.toMatchObject(tooLate)
  await expect(createPolicy(start + 10_000).attempt(busy(9.999))).resolves.toBe('done')
})
