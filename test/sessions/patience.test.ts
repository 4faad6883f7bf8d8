import { expect, test } from 'vitest'
import { CliError, type FailureDetails, type FailureKind } from '../../src/errors.ts'
import { Patience, patiently, requireTime } from '../../src/sessions/patience.ts'

const minutes = 60_000
const failure = (kind: FailureKind, details: FailureDetails = {}) => new CliError(kind, 'x', details)

const start = Date.UTC(2026, 0, 1)
const tooLate = {
  kind: 'stopped',
  message: 'the deadline passed while the session was followed',
  details: { sent: 'yes', retry: 'later', deadline: true },
}

/** Creates a reconnect policy with a deadline, and records waits and notes. Only waits advance its clock. */
function patientUntil(deadline: number, hasNewSecrets = false) {
  const waited: number[] = []
  const notes: string[] = []
  let now = start
  const wait = async (milliseconds: number) => {
    waited.push(milliseconds)
    now += milliseconds
  }
  const pass = (milliseconds: number) => {
    now += milliseconds
  }
  const timers = { now: () => now, wallTime: () => now, wait, random: () => 1 }
  const patient = {
    context: { timers, note: (line: string) => void notes.push(line) },
    caller: { deadline, forgetSecrets: () => hasNewSecrets },
  }
  return { patient, patience: new Patience(patient, 'always'), pass, waited, notes }
}

/** Passes a failure to the policy several times, the last time at `now`. */
function passFailures(
  error: CliError,
  { times = 1, now = 0, repeat = 'always' as 'always' | 'not-taken' } = {},
) {
  const { patient, pass } = patientUntil(Infinity, true)
  const patience = new Patience(patient, repeat)
  pass(now)
  for (let i = 0; i < times; i++) patience.endure(error)
}

test.each<[string, CliError, Parameters<typeof passFailures>[1], boolean]>([
  ['a service that cannot be reached', failure('not-sent'), { now: 5 * minutes - 1 }, true],
  ['no connection for five minutes', failure('not-sent'), { now: 5 * minutes }, false],
  ['an unknown name, as the network may be back', failure('not-sent', { isPermanent: true }), {}, true],
  ['no response', failure('unknown'), {}, true],
  ['no response to a request that may not be repeated', failure('unknown'), { repeat: 'not-taken' }, false],
  ['a 503', failure('service', { status: 503 }), {}, true],
  [
    'a 503 to a request that may not be repeated',
    failure('service', { status: 503 }),
    { repeat: 'not-taken' },
    false,
  ],
  ['a 429', failure('rate-limited', { status: 429, retryAfter: 300 }), { repeat: 'not-taken' }, true],
  [
    'a 429 with a Retry-After over 300 s',
    failure('rate-limited', { status: 429, retryAfter: 301 }),
    {},
    false,
  ],
  [
    'a 429 that forbids another attempt',
    failure('rate-limited', { status: 429, isPermanent: true }),
    {},
    false,
  ],
  ['five invalid responses', failure('response'), { times: 5 }, true],
  ['six invalid responses', failure('response'), { times: 6 }, false],
  ['a permanent failure', failure('response', { isPermanent: true }), {}, false],
  ['a 401, if there are new secrets', failure('credentials', { status: 401 }), {}, true],
  ['a second 401', failure('credentials', { status: 401 }), { times: 2 }, false],
  ['a 403', failure('credentials', { status: 403 }), {}, false],
  ['a 404', failure('refused', { status: 404 }), {}, false],
])('waits for a service with %s', (_, error, circumstances, isLeft) => {
  const check = expect(() => passFailures(error, circumstances))
  if (isLeft) check.not.toThrow()
  else check.toThrow(error)
})

test('each response starts another five minutes of waiting', () => {
  const { patience, pass } = patientUntil(Infinity)
  pass(4 * minutes)
  patience.addResponse()
  pass(5 * minutes - 1)
  patience.endure(failure('not-sent'))
  pass(1)
  expect(() => patience.endure(failure('not-sent'))).toThrow('x')
})

test.each<[string, CliError]>([
  ['a service that cannot be reached', failure('not-sent')],
  ['a 429 with Retry-After', failure('rate-limited', { status: 429, retryAfter: 1.5 })],
  ['an invalid response', failure('response')],
  ['a 401, if there are new secrets', failure('credentials', { status: 401 })],
])('reports %s', (_, error) => {
  const { patience, notes } = patientUntil(start + 1, true)
  patience.endure(error)
  expect(notes).toEqual(['x; trying again'])
})

test('counts each kind of failure separately; waits and responses restore nothing', async () => {
  const { patience } = patientUntil(Infinity, true)
  patience.endure(failure('credentials', { status: 401 }))
  for (let i = 0; i < 5; i++) {
    patience.endure(failure('response'))
    patience.endure(failure('not-sent'))
    await patience.wait()
    patience.addResponse()
  }
  expect(() => patience.endure(failure('response'))).toThrow('x')
  expect(() => patience.endure(failure('credentials', { status: 401 }))).toThrow('x')
})

test("prints the service's message of a failure on one line", () => {
  const { patience, notes } = patientUntil(Infinity)
  patience.endure(failure('service', { status: 503, serviceMessage: 'a\nb\u001b' }))
  expect(notes).toEqual(['x: a b^[; trying again'])
})

test.each<[string, unknown]>([
  ['a bug', new TypeError('x')],
  ['a 404', failure('refused', { status: 404 })],
  ['a 401 without new secrets', failure('credentials', { status: 401 })],
  ['a refusal just before the deadline', failure('refused', { deadline: true })],
  ['a permanent failure', failure('refused', { isPermanent: true })],
])('rethrows %s unchanged', (_, error) => {
  const { patience, notes } = patientUntil(start + 1)
  expect(() => patience.endure(error)).toThrow(error as Error)
  expect(notes).toEqual([])
})

test('after the deadline, fails with the deadline unless there is a bug', () => {
  const passing = failure('not-sent')
  const cut = failure('not-sent', { deadline: true, isPermanent: true })
  for (const [deadline, error] of [
    [start, passing],
    [start - 1, passing],
    [start + 1, cut],
    [Infinity, cut],
  ] as const) {
    const { patience, notes } = patientUntil(deadline)
    expect(() => patience.endure(error)).toThrow(expect.objectContaining(tooLate))
    expect(notes).toEqual([])
  }
  const { patience } = patientUntil(start)
  expect(() => patience.endure(new TypeError('a bug'))).toThrow('a bug')
})

test.each([
  [start + 1, false],
  [start, true],
  [start - 1, true],
  [Infinity, false],
])('after the start, the deadline %f has passed: %j', (deadline, isOver) => {
  const check = expect(() => requireTime(patientUntil(deadline).patient))
  if (isOver) check.toThrow(expect.objectContaining(tooLate))
  else check.not.toThrow()
})

const busy = (seconds: number) => failure('rate-limited', { status: 429, retryAfter: seconds })

test('waits double up to 8 s, unless the service requests more', async () => {
  const { patience, waited } = patientUntil(Infinity)
  for (let i = 0; i < 7; i++) await patience.wait()
  patience.endure(busy(20))
  await patience.wait()
  await patience.wait()
  patience.endure(busy(20))
  patience.addResponse()
  await patience.wait()
  expect(waited).toEqual([250, 500, 1000, 2000, 4000, 8000, 8000, 20_000, 8000, 8000])
})

test.each([
  [9.999, [9999], true],
  [10, [10_000], false],
  [10.001, [10_000], false],
])('a wait of %f s in the last 10 s: %j', async (askedWait, wait, isInTime) => {
  const { patience, waited } = patientUntil(start + 10_000)
  patience.endure(busy(askedWait))
  if (isInTime) await patience.wait()
  else await expect(patience.wait()).rejects.toMatchObject(tooLate)
  expect(waited).toEqual(wait)
})

test('does not wait after the deadline', async () => {
  const { patience, waited } = patientUntil(start - 5)
  await expect(patience.wait()).rejects.toMatchObject(tooLate)
  expect(waited).toEqual([0])
})

test('repeats an attempt while its failure is transient and the run continues', async () => {
  const { patient, waited } = patientUntil(Infinity)
  const failing =
    (...errors: CliError[]) =>
    async () => {
      const error = errors.shift()
      if (error) throw error
      return 'done'
    }
  expect(await patiently(patient, 'always', failing(failure('not-sent'), failure('unknown')))).toBe('done')
  expect(waited).toEqual([250, 500])
  await expect(patiently(patient, 'always', failing(failure('refused')))).rejects.toThrow('x')
  await expect(
    patiently(patient, 'always', failing(failure('not-sent')), AbortSignal.abort()),
  ).rejects.toThrow('x')
  expect(waited).toEqual([250, 500])
})
