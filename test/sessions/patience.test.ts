import { expect, test } from 'vitest'
import { CliError, type FailureDetails, type Kind } from '../../src/errors.ts'
import {
  afterFailure,
  afterResponse,
  endure,
  freshPatience,
  type Patient,
  patiently,
  requireTime,
  waitPatiently,
} from '../../src/sessions/patience.ts'

const minutes = 60_000
const failure = (kind: Kind, details: FailureDetails = {}) => new CliError(kind, 'x', details)

/** What is left of patience after so many failures one after the other, the last of them at a time. */
function left(error: CliError, { times = 1, now = 0, repeat = 'always' as 'always' | 'not-taken' } = {}) {
  let patience: ReturnType<typeof afterFailure> = freshPatience(0)
  for (let i = 0; patience && i < times; i++)
    patience = afterFailure(patience, error, { now, repeat, forgetSecrets: () => true })
  return patience
}

test.each<[string, CliError, Parameters<typeof left>[1], boolean]>([
  ['a service that cannot be reached', failure('not-sent'), { now: 5 * minutes - 1 }, true],
  ['the same, for five minutes', failure('not-sent'), { now: 5 * minutes }, false],
  ['an unknown name, as the network may be back', failure('not-sent', { isPermanent: true }), {}, true],
  ['no answer', failure('unknown'), {}, true],
  ['no answer to what may not be repeated', failure('unknown'), { repeat: 'not-taken' }, false],
  ['a 503', failure('service', { status: 503 }), {}, true],
  ['a 503 to what may not be repeated', failure('service', { status: 503 }), { repeat: 'not-taken' }, false],
  ['a 429', failure('rate-limited', { status: 429, retryAfter: 300 }), { repeat: 'not-taken' }, true],
  [
    'a 429 that asks for longer than is worth it',
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
  ['five answers that are not understood', failure('response'), { times: 5 }, true],
  ['six', failure('response'), { times: 6 }, false],
  ['one that will never be', failure('response', { isPermanent: true }), {}, false],
  ['a 401, if there are new secrets', failure('credentials', { status: 401 }), {}, true],
  ['a second 401', failure('credentials', { status: 401 }), { times: 2 }, false],
  ['a 403', failure('credentials', { status: 403 }), {}, false],
  ['a 404', failure('refused', { status: 404 }), {}, false],
])('patience with %s', (_, error, circumstances, isLeft) => {
  expect(left(error, circumstances) !== undefined).toBe(isLeft)
})

test('each response is a beginning of five minutes', () => {
  const patience = afterResponse(freshPatience(0), 4 * minutes)
  const options = { now: 8 * minutes, repeat: 'always', forgetSecrets: () => false } as const
  expect(afterFailure(patience, failure('not-sent'), options)).toBeDefined()
})

const start = Date.UTC(2026, 0, 1)
const tooLate = {
  kind: 'stopped',
  message: 'the deadline passed while the session was followed',
  details: { sent: 'yes', retry: 'later', deadline: true },
}

/** Someone who is patient until a deadline, by a clock that only waits move; with what was waited and told. */
function patientUntil(deadline: number, hasNewSecrets = false) {
  const waited: number[] = []
  const told: string[] = []
  let now = start
  const wait = async (milliseconds: number) => {
    waited.push(milliseconds)
    now += milliseconds
  }
  const timers = { now: () => now, date: () => now, wait, random: () => 1 }
  const patient: Patient = {
    context: { timers, note: (line) => void told.push(line) },
    caller: { deadline, forgetSecrets: () => hasNewSecrets },
    repeat: 'always',
  }
  return { patient, waited, told }
}

test.each<[string, CliError, object]>([
  ['a service that cannot be reached', failure('not-sent'), { askedWait: 0 }],
  [
    'a 429 that asks for a wait',
    failure('rate-limited', { status: 429, retryAfter: 1.5 }),
    { askedWait: 1500 },
  ],
  ['an answer that is not understood', failure('response'), { failures: 1 }],
  ['a 401, if there are new secrets', failure('credentials', { status: 401 }), { hasNewSecrets: true }],
])('%s is told, and takes only its own part of the patience', (_, error, changes) => {
  const patience = { ...freshPatience(start), waited: 3 }
  const { patient, told } = patientUntil(start + 1, true)
  expect(endure(patient, patience, error)).toEqual({ ...patience, ...changes })
  expect(told).toEqual(['x; trying again'])
})

test('what the service says of a failure is told on one line', () => {
  const { patient, told } = patientUntil(Infinity)
  endure(patient, freshPatience(start), failure('service', { status: 503, serviceMessage: 'a\nb\u001b' }))
  expect(told).toEqual(['x: a b^[; trying again'])
})

test.each<[string, unknown]>([
  ['a bug', new TypeError('x')],
  ['what does not pass by waiting', failure('refused', { status: 404 })],
  ['a 401 without new secrets', failure('credentials', { status: 401 })],
  ['a failure at a deadline that was not cut by it', failure('refused', { deadline: true })],
  ['one that is for good', failure('refused', { isPermanent: true })],
])('%s is thrown as it is', (_, error) => {
  const { patient, told } = patientUntil(start + 1)
  expect(() => endure(patient, freshPatience(start), error)).toThrow(error as Error)
  expect(told).toEqual([])
})

test('after the deadline it is the deadline that ends it, but for a bug', () => {
  const passing = failure('not-sent')
  const cut = failure('not-sent', { deadline: true, isPermanent: true })
  for (const [deadline, error] of [
    [start, passing],
    [start - 1, passing],
    [start + 1, cut],
    [Infinity, cut],
  ] as const) {
    const { patient, told } = patientUntil(deadline)
    expect(() => endure(patient, freshPatience(start), error)).toThrow(expect.objectContaining(tooLate))
    expect(told).toEqual([])
  }
  const { patient } = patientUntil(start)
  expect(() => endure(patient, freshPatience(start), new TypeError('a bug'))).toThrow('a bug')
})

test.each([
  [start + 1, false],
  [start, true],
  [start - 1, true],
  [Infinity, false],
])('the deadline %f is over: %j', (deadline, isOver) => {
  const check = expect(() => requireTime(patientUntil(deadline).patient))
  if (isOver) check.toThrow(expect.objectContaining(tooLate))
  else check.not.toThrow()
})

test('the waits double up to 8 s, unless the service asks for more', async () => {
  const { patient, waited } = patientUntil(Infinity)
  let patience = { ...freshPatience(start), failures: 2 }
  for (let i = 0; i < 7; i++) patience = await waitPatiently(patient, patience)
  patience = await waitPatiently(patient, { ...patience, askedWait: 20_000 })
  expect(waited).toEqual([250, 500, 1000, 2000, 4000, 8000, 8000, 20_000])
  expect(patience).toEqual({ ...freshPatience(start), failures: 2, waited: 8 })
})

test.each([
  [9999, [9999], true],
  [10_000, [10_000], false],
  [10_001, [10_000], false],
])('a wait of %i ms of the last 10 s: %j', async (askedWait, wait, isInTime) => {
  const { patient, waited } = patientUntil(start + 10_000)
  const left = waitPatiently(patient, { ...freshPatience(start), askedWait })
  if (isInTime) await left
  else await expect(left).rejects.toMatchObject(tooLate)
  expect(waited).toEqual(wait)
})

test('after the deadline nothing is waited', async () => {
  const { patient, waited } = patientUntil(start - 5)
  await expect(waitPatiently(patient, freshPatience(start))).rejects.toMatchObject(tooLate)
  expect(waited).toEqual([0])
})

test('an attempt is made again as long as its failure may pass, and somebody wants it', async () => {
  const { patient, waited } = patientUntil(Infinity)
  const failing =
    (...errors: CliError[]) =>
    async () => {
      const error = errors.shift()
      if (error) throw error
      return 'done'
    }
  expect(await patiently(patient, failing(failure('not-sent'), failure('unknown')))).toBe('done')
  expect(waited).toEqual([250, 500])
  await expect(patiently(patient, failing(failure('refused')))).rejects.toThrow('x')
  await expect(patiently(patient, failing(failure('not-sent')), AbortSignal.abort())).rejects.toThrow('x')
  expect(waited).toEqual([250, 500])
})
