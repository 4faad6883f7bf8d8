import { expect, test } from 'vitest'
import { CliError, type FailureDetails, type Kind } from '../../src/errors.ts'
import { afterFailure, afterResponse, freshPatience, waitPatiently } from '../../src/sessions/patience.ts'

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

test('the waits double up to 8 s, unless the service asks for more, and the deadline ends them', async () => {
  const waited: number[] = []
  const timers = {
    now: () => 0,
    wait: async (milliseconds: number) => void waited.push(milliseconds),
    random: () => 1,
  }
  const patient = { context: { timers, note() {} }, caller: { deadline: 30_000, forgetSecrets: () => false } }
  let patience = freshPatience(0)
  for (let i = 0; i < 7; i++) patience = await waitPatiently({ ...patient, repeat: 'always' }, patience)
  await waitPatiently({ ...patient, repeat: 'always' }, { ...patience, askedWait: 20_000 })
  const late = waitPatiently({ ...patient, repeat: 'always' }, { ...patience, askedWait: 40_000 })
  await expect(late).rejects.toMatchObject({ kind: 'stopped', details: { deadline: true } })
  expect(waited).toEqual([250, 500, 1000, 2000, 4000, 8000, 8000, 20_000, 30_000])
})
