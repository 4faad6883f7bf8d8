import { describe, expect, test } from 'vitest'
import {
  type DeliveryRules,
  type DeliveryState,
  describeDelivery,
  type RepeatRule,
  type RetryAdvice,
} from '../../src/delivery-state.ts'
import { CliError, type FailureDetails, type FailureKind } from '../../src/errors.ts'
import {
  computeBackoffMs,
  decideRetry,
  findKindOfStatus,
  getBatchConsequence,
  getDeliveryState,
  getRetryAdvice,
  isTransient,
  type RetryPolicy,
  refusesSecret,
} from '../../src/http/retry.ts'
import { endpoints } from '../../src/wire/endpoints.ts'

const reading = endpoints.listEvents
const asking = endpoints.chat
const event = endpoints.sendEvents

const policy: Omit<RetryPolicy, 'repeat'> = { retries: 1, retryUnknown: false, deadline: Infinity }
const moment = { attempt: 1, now: 0, random: 0 }

/** Meaning of each status: kind, delivery state, who retries, and consequence for other calls. */
describe('status', () => {
  test.each([
    [300, 'refused', 'refused', 'nobody', 'go on'],
    [301, 'refused', 'refused', 'nobody', 'go on'],
    [400, 'refused', 'refused', 'nobody', 'go on'],
    [401, 'credentials', 'refused', 'nobody', 'end'],
    [402, 'payment', 'refused', 'nobody', 'end'],
    [403, 'credentials', 'refused', 'nobody', 'end'],
    [404, 'refused', 'refused', 'nobody', 'go on'],
    [407, 'credentials', 'refused', 'nobody', 'end'],
    [408, 'service', 'failed', 'a chat', 'go on'],
    [425, 'service', 'failed', 'a chat', 'go on'],
    [429, 'rate-limited', 'refused', 'everybody', 'wait'],
    [499, 'refused', 'refused', 'nobody', 'go on'],
    [500, 'service', 'failed', 'a chat', 'go on'],
    [501, 'service', 'failed', 'nobody', 'go on'],
    [502, 'service', 'failed', 'a chat', 'go on'],
    [503, 'service', 'failed', 'a chat', 'go on'],
    [504, 'service', 'failed', 'a chat', 'go on'],
    [529, 'service', 'failed', 'a chat', 'go on'],
    [599, 'service', 'failed', 'nobody', 'go on'],
  ])('%i is %s, %s, tried again by %s, and others %s', (status, kind, fate, who, others) => {
    const error = new CliError(findKindOfStatus(status, false), 'x', { status })
    const triesAgain = ({ repeat }: DeliveryRules) =>
      decideRetry({ ...policy, repeat }, error, moment) !== error
    const all = triesAgain(event) ? 'everybody' : triesAgain(asking) ? 'a chat' : 'nobody'
    expect([error.kind, getDeliveryState(error), all, getBatchConsequence(error)]).toEqual([
      kind,
      fate,
      who,
      others,
    ])
  })

  test.each([
    ['not-sent', 'not-sent', 'everybody', 'wait'],
    ['unknown', 'sent', 'who reads', 'go on'],
    ['response', 'sent', 'nobody', 'go on'],
    ['credentials', 'not-sent', 'nobody', 'end'],
    ['file', 'answered', 'nobody', 'end'],
  ] as const)('without a status: %s is %s, tried again by %s, and others %s', (...row) => {
    const [kind, fate, who, others] = row
    const error = new CliError(kind, 'x')
    const triesAgain = ({ repeat }: DeliveryRules) =>
      decideRetry({ ...policy, repeat }, error, moment) !== error
    const all = triesAgain(event) ? 'everybody' : triesAgain(reading) ? 'who reads' : 'nobody'
    expect([getDeliveryState(error), all, getBatchConsequence(error)]).toEqual([fate, who, others])
  })

  test('503 with Retry-After is a limit, no other status is one by it, and one of success is no failure', () => {
    expect([503, 500, 599, 404, 200].map((status) => findKindOfStatus(status, true))).toEqual([
      'rate-limited',
      'service',
      'service',
      'refused',
      'response',
    ])
    const error = new CliError('rate-limited', 'x', { status: 503 })
    expect([getDeliveryState(error), getBatchConsequence(error)]).toEqual(['refused', 'wait'])
    expect(decideRetry({ ...policy, repeat: 'not-taken' }, error, moment)).toBeTypeOf('number')
  })

  test.each<[FailureKind, number, chat: RetryAdvice, event: RetryAdvice, others: string]>([
    ['rate-limited', 200, 'later', 'look-first', 'go on'],
    ['rate-limited', 299, 'later', 'look-first', 'go on'],
    ['service', 200, 'later', 'look-first', 'go on'],
    ['refused', 200, 'never', 'never', 'go on'],
    ['credentials', 200, 'never', 'never', 'end'],
    ['payment', 200, 'never', 'never', 'end'],
    ['response', 200, 'never', 'look-first', 'go on'],
  ])('an error in a 2xx proves no refusal, makes nobody wait, and is not tried again: %s, %i', (...row) => {
    const [kind, status, chat, send, others] = row
    const error = new CliError(kind, 'x', { status, isErrorInSuccess: true })
    const fate = getDeliveryState(error)
    expect(fate).toBe('answered')
    expect(describeDelivery(fate, event)).toMatchObject({ sent: 'unknown', safeToRetry: false })
    expect(describeDelivery(fate, asking)).toMatchObject({ sent: 'yes', safeToRetry: true })
    const retries = [asking, event].map((stakes) => getRetryAdvice(error, describeDelivery(fate, stakes)))
    expect([...retries, getBatchConsequence(error)]).toEqual([chat, send, others])
    expect(decideRetry({ ...policy, repeat: 'always' }, error, moment)).toBe(error)
  })

  test('what a service says itself is permanent is neither tried again nor waited for', () => {
    const error = new CliError('rate-limited', 'x', { status: 429, isPermanent: true })
    expect(getBatchConsequence(error)).toBe('go on')
    expect(decideRetry({ ...policy, repeat: 'always' }, error, moment)).toBe(error)
    const unreachable = new CliError('not-sent', 'x', { isPermanent: true })
    expect(getBatchConsequence(unreachable)).toBe('wait')
    expect(decideRetry({ ...policy, repeat: 'always' }, unreachable, moment)).toBe(unreachable)
  })

  test('a status of a redirect is no answer', () => {
    expect(getBatchConsequence(new CliError('rate-limited', 'x', { status: 300 }))).toBe('wait')
  })

  test('a failure that no request is the cause of stops no other call, and is not tried again', () => {
    const error = new CliError('usage', 'x')
    expect([getDeliveryState(error), getBatchConsequence(error)]).toEqual(['answered', 'go on'])
    expect(decideRetry({ ...policy, repeat: 'always' }, error, moment)).toBe(error)
  })
})

/** Advice after a failure, by delivery state. */
test.each<[what: string, error: CliError, fate: DeliveryState, asking: RetryAdvice, sending: RetryAdvice]>([
  ['nothing left', new CliError('not-sent', 'x'), 'not-sent', 'later', 'later'],
  ['an unknown name', new CliError('not-sent', 'x', { isPermanent: true }), 'not-sent', 'never', 'never'],
  [
    'a deadline while connecting',
    new CliError('not-sent', 'x', { isPermanent: true, deadline: true }),
    'not-sent',
    'later',
    'later',
  ],
  ['a proxy that refuses', new CliError('credentials', 'x'), 'not-sent', 'never', 'never'],
  ['401', new CliError('credentials', 'x', { status: 401 }), 'refused', 'never', 'never'],
  ['402', new CliError('payment', 'x', { status: 402 }), 'refused', 'never', 'never'],
  ['400', new CliError('refused', 'x', { status: 400 }), 'refused', 'never', 'never'],
  ['429', new CliError('rate-limited', 'x', { status: 429 }), 'refused', 'later', 'later'],
  ['429, after a 500', new CliError('rate-limited', 'x', { status: 429 }), 'failed', 'later', 'look-first'],
  ['408', new CliError('service', 'x', { status: 408 }), 'failed', 'later', 'look-first'],
  ['500', new CliError('service', 'x', { status: 500 }), 'failed', 'later', 'look-first'],
  ['501', new CliError('service', 'x', { status: 501 }), 'failed', 'later', 'look-first'],
  [
    '503 with Retry-After',
    new CliError('rate-limited', 'x', { status: 503 }),
    'failed',
    'later',
    'look-first',
  ],
  ['no answer', new CliError('unknown', 'x'), 'sent', 'later', 'look-first'],
  ['not understood', new CliError('response', 'x', { status: 200 }), 'answered', 'never', 'look-first'],
  ['broken off', new CliError('response', 'x', { isCutOff: true }), 'answered', 'later', 'look-first'],
  [
    'a receipt that breaks off',
    new CliError('response', 'x', { isCutOff: true }),
    'done',
    'later',
    'look-first',
  ],
  ['a file', new CliError('file', 'x'), 'done', 'never', 'never'],
])('%s', (_, error, fate, chat, send) => {
  expect([asking, event].map((stakes) => getRetryAdvice(error, describeDelivery(fate, stakes)))).toEqual([
    chat,
    send,
  ])
})

/** Who repeats a transient failure: readers, chats, senders. */
test.each<[FailureKind, FailureDetails, RepeatRule[]]>([
  ['not-sent', {}, ['always', 'failed', 'not-taken']],
  ['not-sent', { isPermanent: true }, ['always', 'failed', 'not-taken']],
  ['rate-limited', { status: 429 }, ['always', 'failed', 'not-taken']],
  ['rate-limited', { status: 429, isPermanent: true }, []],
  ['rate-limited', { status: 200, isErrorInSuccess: true }, ['always']],
  ['unknown', {}, ['always']],
  ['response', { isCutOff: true }, ['always']],
  ['service', { status: 408 }, ['always']],
  ['service', { status: 500 }, ['always']],
  ['service', { status: 501 }, ['always']],
  ['service', { status: 500, isPermanent: true }, []],
  ['response', {}, []],
  ['refused', { status: 400 }, []],
  ['credentials', { status: 401 }, []],
  ['usage', {}, []],
])('%s %j may pass, for requests whose repeat is one of %j', (kind, details, patient) => {
  const error = new CliError(kind, 'x', details)
  const all = ['always', 'failed', 'not-taken'] as const
  expect(all.filter((repeat) => isTransient(error, repeat))).toEqual(patient)
})

test('an answer that broke off came to no more than being sent', () => {
  expect(getDeliveryState(new CliError('response', 'x', { isCutOff: true }))).toBe('sent')
})

describe('another attempt', () => {
  const unanswered = new CliError('unknown', 'x')
  const limited = new CliError('rate-limited', 'x', { status: 429 })
  const unsent = new CliError('not-sent', 'x')
  const failed = new CliError('service', 'x', { status: 500 })

  test.each<[string, Partial<RetryPolicy>, CliError, boolean]>([
    ['--retry-unknown, of a chat', { repeat: 'failed', retryUnknown: true }, unanswered, true],
    ['--retry-unknown, of an event', { repeat: 'not-taken', retryUnknown: true }, unanswered, false],
    ['no answer to a chat', { repeat: 'failed' }, unanswered, false],
    ['no answer to a list', { repeat: 'always' }, unanswered, true],
    ['a limit, which says that nothing was done', {}, limited, true],
    ['what was not sent', {}, unsent, true],
    ['the last attempt', { retries: 0 }, failed, false],
  ])('%s', (_, more, error, again) => {
    expect(decideRetry({ ...policy, repeat: 'failed', ...more }, error, moment) !== error).toBe(again)
  })

  /** Returns the decision after a failed attempt. */
  const decide = (
    { attempt = 1, random = 1, now = 0 }: Partial<typeof moment>,
    { retryAfter, deadline = Infinity }: { retryAfter?: number; deadline?: number } = {},
  ) =>
    decideRetry(
      { ...policy, repeat: 'failed', retries: 9, deadline },
      limited.with(retryAfter === undefined ? {} : { retryAfter }),
      { attempt, random, now },
    )

  test('comes after a wait that doubles up to 8 s, of which chance takes up to a half', () => {
    const waits = [1, 2, 3, 4, 5, 6, 7].map((attempt) => decide({ attempt }))
    const lengths = [500, 1000, 2000, 4000, 8000, 8000, 8000]
    expect(waits).toEqual(lengths)
    expect([0, 0.5, 1].map((random) => decide({ random }))).toEqual([250, 375, 500])
    expect([0, 3].map((before) => computeBackoffMs({ first: 100, longest: 300 }, before))).toEqual([100, 300])
  })

  test('waits as long as the service asks, up to 60 s', () => {
    expect([0.1, 2, 60].map((retryAfter) => decide({}, { retryAfter }))).toEqual([500, 2000, 60_000])
    expect(decide({}, { retryAfter: 60.001 })).toMatchObject({
      message: `${limited.message} (the service asks to wait 61 s, more than 60 s)`,
      details: { ...limited.details, retryAfter: 60.001 },
    })
  })

  test('is not made at the deadline or after it', () => {
    expect(decide({ now: 1000 }, { deadline: 1501 })).toBe(500)
    expect(decide({ now: 1000 }, { deadline: 1500 })).toMatchObject({
      message: `${limited.message} (the next attempt, in 0.5 s, would be past the deadline)`,
      details: { ...limited.details, deadline: true },
    })
  })
})

test("a service refuses a secret by 401 and 403; a 407 is a proxy's", () => {
  expect([401, 403, 407, 402, undefined].map(refusesSecret)).toEqual([true, true, false, false, false])
})
