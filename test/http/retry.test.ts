import { describe, expect, test } from 'vitest'
import {
  type DeliveryRules,
  type DeliveryState,
  describeDelivery,
  type RetryAdvice,
} from '../../src/delivery-state.ts'
import { CliError, type FailureDetails, type FailureKind } from '../../src/errors.ts'
import {
  canRetry,
  computeBackoffMs,
  decideRetry,
  findKindOfStatus,
  getBatchConsequence,
  getDeliveryState,
  getRetryAdvice,
  isSecretRefusal,
  isTransientFailure,
  type RetryPolicy,
} from '../../src/http/retry.ts'
import { endpoints } from '../../src/wire/endpoints.ts'

const listRules = endpoints.listEvents
const chatRules = endpoints.chat
const event = endpoints.sendEvents

const policy: Omit<RetryPolicy, 'repeat'> = { retries: 1, retryUnknown: false, deadline: Infinity }
const moment = { attempt: 1, now: 0, random: 0 }

/**
 * Meaning of each status: kind, delivery state, the requests that are retried, and the consequence for a
 * batch.
 */
describe('consequences of a status', () => {
  test.each([
    [300, 'refused', 'refused', 'no request', 'continue'],
    [301, 'refused', 'refused', 'no request', 'continue'],
    [400, 'refused', 'refused', 'no request', 'continue'],
    [401, 'credentials', 'refused', 'no request', 'end'],
    [402, 'payment', 'refused', 'no request', 'end'],
    [403, 'credentials', 'refused', 'no request', 'end'],
    [404, 'refused', 'refused', 'no request', 'continue'],
    [407, 'credentials', 'refused', 'no request', 'end'],
    [408, 'service', 'failed', 'a chat', 'continue'],
    [425, 'service', 'failed', 'a chat', 'continue'],
    [429, 'rate-limited', 'refused', 'any request', 'wait'],
    [499, 'refused', 'refused', 'no request', 'continue'],
    [500, 'service', 'failed', 'a chat', 'continue'],
    [501, 'service', 'failed', 'no request', 'continue'],
    [502, 'service', 'failed', 'a chat', 'continue'],
    [503, 'service', 'failed', 'a chat', 'continue'],
    [504, 'service', 'failed', 'a chat', 'continue'],
    [529, 'service', 'failed', 'a chat', 'continue'],
    [599, 'service', 'failed', 'no request', 'continue'],
  ])(
    'T11, T12: the status %i means kind "%s", delivery state "%s", a retry of %s, and that a batch must %s',
    (status, kind, state, requests, others) => {
      const error = new CliError(findKindOfStatus(status, false), 'x', { status })
      const triesAgain = ({ repeat }: DeliveryRules) =>
        decideRetry({ ...policy, repeat }, error, moment) !== error
      const all = triesAgain(event) ? 'any request' : triesAgain(chatRules) ? 'a chat' : 'no request'
      expect([error.kind, getDeliveryState(error), all, getBatchConsequence(error)]).toEqual([
        kind,
        state,
        requests,
        others,
      ])
    },
  )

  test.each([
    ['not-sent', 'not-sent', 'any request', 'wait'],
    ['unknown', 'sent', 'a list', 'continue'],
    ['response', 'sent', 'no request', 'continue'],
    ['credentials', 'not-sent', 'no request', 'end'],
    ['file', 'answered', 'no request', 'end'],
  ] as const)(
    'a failure of kind "%s" means delivery state "%s", a retry of %s, and that a batch must %s',
    (...row) => {
      const [kind, state, requests, others] = row
      const error = new CliError(kind, 'x')
      const triesAgain = ({ repeat }: DeliveryRules) =>
        decideRetry({ ...policy, repeat }, error, moment) !== error
      const all = triesAgain(event) ? 'any request' : triesAgain(listRules) ? 'a list' : 'no request'
      expect([getDeliveryState(error), all, getBatchConsequence(error)]).toEqual([state, requests, others])
    },
  )

  test('T09: of the statuses 500, 503 and 599 with Retry-After, only 503 is a rate limit and is retried', () => {
    expect([503, 500, 599, 404, 200].map((status) => findKindOfStatus(status, true))).toEqual([
      'rate-limited',
      'service',
      'service',
      'refused',
      'response',
    ])
    const error = new CliError('rate-limited', 'x', { status: 503 })
    expect([getDeliveryState(error), getBatchConsequence(error)]).toEqual(['refused', 'wait'])
    expect(decideRetry({ ...policy, repeat: 'unaccepted' }, error, moment)).toBeTypeOf('number')
  })

  test.each<[FailureKind, number, chat: RetryAdvice, event: RetryAdvice, others: string]>([
    ['rate-limited', 200, 'later', 'look-first', 'continue'],
    ['rate-limited', 299, 'later', 'look-first', 'continue'],
    ['service', 200, 'later', 'look-first', 'continue'],
    ['refused', 200, 'never', 'look-first', 'continue'],
    ['credentials', 200, 'never', 'look-first', 'end'],
    ['payment', 200, 'never', 'look-first', 'end'],
    ['response', 200, 'never', 'look-first', 'continue'],
  ])(
    'an error of kind "%s" in a %i is not retried, does not pause a batch, and may hide an accepted event',
    (...row) => {
      const [kind, status, chat, send, others] = row
      const error = new CliError(kind, 'x', { status, errorIn: 'body' })
      const state = getDeliveryState(error)
      expect(state).toBe('answered')
      expect(describeDelivery(state, event)).toMatchObject({ sent: 'unknown', isRepeatable: false })
      expect(describeDelivery(state, chatRules)).toMatchObject({ sent: 'yes', isRepeatable: true })
      const retries = [chatRules, event].map((rules) => getRetryAdvice(error, describeDelivery(state, rules)))
      expect([...retries, getBatchConsequence(error)]).toEqual([chat, send, others])
      expect(decideRetry({ ...policy, repeat: 'always' }, error, moment)).toBe(error)
    },
  )

  test('parley neither retries nor waits after a failure that the service calls permanent', () => {
    const error = new CliError('rate-limited', 'x', { status: 429, isPermanent: true })
    expect(getBatchConsequence(error)).toBe('continue')
    expect(decideRetry({ ...policy, repeat: 'always' }, error, moment)).toBe(error)
    const unreachable = new CliError('not-sent', 'x', { isPermanent: true })
    expect(getBatchConsequence(unreachable)).toBe('wait')
    expect(decideRetry({ ...policy, repeat: 'always' }, unreachable, moment)).toBe(unreachable)
  })

  test('a 429 after a redirect pauses a batch', () => {
    expect(getBatchConsequence(new CliError('rate-limited', 'x', { status: 300 }))).toBe('wait')
  })

  test('a failure without a request does not end a batch and is not retried', () => {
    const error = new CliError('usage', 'x')
    expect([getDeliveryState(error), getBatchConsequence(error)]).toEqual(['answered', 'continue'])
    expect(decideRetry({ ...policy, repeat: 'always' }, error, moment)).toBe(error)
  })
})

/** Advice after a failure, by delivery state. */
test.each<
  [what: string, error: CliError, state: DeliveryState, chatRules: RetryAdvice, sending: RetryAdvice]
>([
  ['a request that was not sent', new CliError('not-sent', 'x'), 'not-sent', 'later', 'later'],
  ['an unknown host', new CliError('not-sent', 'x', { isPermanent: true }), 'not-sent', 'never', 'never'],
  [
    'a deadline while connecting',
    new CliError('not-sent', 'x', { deadline: true }),
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
  [
    'an answer that is not understood',
    new CliError('response', 'x', { status: 200 }),
    'answered',
    'never',
    'look-first',
  ],
  [
    'an answer that is cut off',
    new CliError('response', 'x', { isCutOff: true }),
    'answered',
    'later',
    'look-first',
  ],
  [
    'a receipt that is cut off',
    new CliError('response', 'x', { isCutOff: true }),
    'done',
    'later',
    'look-first',
  ],
  ['a file that cannot be written', new CliError('file', 'x'), 'done', 'never', 'never'],
])('`retry` of a chat and of an event follows from the failure: %s', (_, error, state, chat, send) => {
  expect([chatRules, event].map((rules) => getRetryAdvice(error, describeDelivery(state, rules)))).toEqual([
    chat,
    send,
  ])
})

test.each<[FailureKind, FailureDetails, boolean]>([
  ['not-sent', {}, true],
  ['not-sent', { isPermanent: true }, true],
  ['rate-limited', { status: 429 }, true],
  ['rate-limited', { status: 429, isPermanent: true }, false],
  ['rate-limited', { status: 200, errorIn: 'body' }, true],
  ['unknown', {}, true],
  ['response', { isCutOff: true }, true],
  ['service', { status: 408 }, true],
  ['service', { status: 500 }, true],
  ['service', { status: 501 }, true],
  ['service', { status: 500, isPermanent: true }, false],
  ['response', {}, false],
  ['refused', { status: 400 }, false],
  ['credentials', { status: 401 }, false],
  ['usage', {}, false],
])('a failure of kind "%s" with %j is transient: %s', (kind, details, expected) => {
  expect(isTransientFailure(new CliError(kind, 'x', details))).toBe(expected)
})

test('--retry-unknown repeats a chat that got no answer, but none whose answer has begun', () => {
  const policy = { repeat: 'failed', retryUnknown: true } as const
  const failures = [
    new CliError('unknown', 'x'),
    new CliError('response', 'x', { status: 200, isCutOff: true }),
  ]
  expect(failures.map((failure) => canRetry(policy, failure))).toEqual([true, false])
})

test('an answer that is cut off proves only that the request was sent', () => {
  expect(getDeliveryState(new CliError('response', 'x', { isCutOff: true }))).toBe('sent')
})

describe('decision about another attempt', () => {
  const unanswered = new CliError('unknown', 'x')
  const limited = new CliError('rate-limited', 'x', { status: 429 })
  const unsent = new CliError('not-sent', 'x')
  const failed = new CliError('service', 'x', { status: 500 })

  test.each<[string, Partial<RetryPolicy>, CliError, boolean]>([
    [
      'a chat without an answer is retried with --retry-unknown',
      { repeat: 'failed', retryUnknown: true },
      unanswered,
      true,
    ],
    [
      'an event without an answer is never retried',
      { repeat: 'unaccepted', retryUnknown: true },
      unanswered,
      false,
    ],
    ['a chat without an answer is not retried', { repeat: 'failed' }, unanswered, false],
    ['a list without an answer is retried', { repeat: 'always' }, unanswered, true],
    ['a rate-limited chat is retried', {}, limited, true],
    ['a chat that was not sent is retried', {}, unsent, true],
    ['a chat is not retried after the last attempt', { retries: 0 }, failed, false],
  ])('parley decides whether to retry: %s', (_, more, error, again) => {
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

  test('T07: the wait before a retry doubles up to 8 s, and up to a half of it is random', () => {
    const waits = [1, 2, 3, 4, 5, 6, 7].map((attempt) => decide({ attempt }))
    const lengths = [500, 1000, 2000, 4000, 8000, 8000, 8000]
    expect(waits).toEqual(lengths)
    expect([0, 0.5, 1].map((random) => decide({ random }))).toEqual([250, 375, 500])
    expect([0, 3].map((before) => computeBackoffMs({ first: 100, longest: 300 }, before))).toEqual([100, 300])
  })

  test('the wait before a retry is as long as Retry-After says, and more than 60 s fails at once', () => {
    expect([0.1, 2, 60].map((retryAfter) => decide({}, { retryAfter }))).toEqual([500, 2000, 60_000])
    expect(decide({}, { retryAfter: 60.001 })).toMatchObject({
      message: `${limited.message} (the service asks to wait 61 s, more than 60 s)`,
      details: { ...limited.details, retryAfter: 60.001 },
    })
  })

  test('parley does not retry at the deadline or after it', () => {
    expect(decide({ now: 1000 }, { deadline: 1501 })).toBe(500)
    expect(decide({ now: 1000 }, { deadline: 1500 })).toMatchObject({
      message: `${limited.message} (the next attempt, in 0.5 s, would be past the deadline)`,
      details: { ...limited.details, deadline: true },
    })
  })
})

test('401 and 403 reject the secret of the service, but 407 does not', () => {
  expect([401, 403, 407, 402, undefined].map(isSecretRefusal)).toEqual([true, true, false, false, false])
})
