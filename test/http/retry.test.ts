import { expect, test } from 'vitest'
import type { DeliveryRules, DeliveryState, RetryAdvice } from '../../src/delivery-state.ts'
import { describeDelivery } from '../../src/delivery-state.ts'
import { CliError, type FailureDetails, type FailureKind } from '../../src/errors.ts'
import type { RetryPolicy } from '../../src/http/retry.ts'
import {
  canRetry,
  computeBackoffMs,
  decideRetry,
  findFailureKindOfStatus,
  getBatchConsequence,
  getDeliveryState,
  getRetryAdvice,
  isRefusedSecret,
  isTransientFailure,
} from '../../src/http/retry.ts'
import { endpoints } from '../../src/wire/endpoints.ts'

const listRules = endpoints.listEvents
const chatRules = endpoints.chat
const event = endpoints.sendEvents

const policy: Omit<RetryPolicy, 'repeat'> = { retries: 1, retryUnknown: false }
const moment = { attempt: 1, now: 0, deadlineMs: Infinity, random: 0 }

const isRetried = (error: CliError, { repeat }: DeliveryRules) =>
  decideRetry({ ...policy, repeat }, error, moment) !== error

const describeRetries = (error: CliError) => {
  if (isRetried(error, event)) return 'any request'
  if (isRetried(error, chatRules)) return 'a chat'
  return isRetried(error, listRules) ? 'a list' : 'no request'
}

test.each([
  [[300, 301, 400, 404, 499], 'refused', 'refused', 'no request', 'continue'],
  [[401, 403, 407], 'credentials', 'refused', 'no request', 'end'],
  [[402], 'payment', 'refused', 'no request', 'end'],
  [[408, 425, 500, 502, 503, 504, 529], 'service', 'failed', 'a chat', 'continue'],
  [[429], 'rate-limited', 'refused', 'any request', 'wait'],
  [[501, 599], 'service', 'failed', 'no request', 'continue'],
])('T10, T11, T12, T13: %j are "%s" and "%s": parley retries %s, a batch must %s', (statuses, ...row) => {
  for (const status of statuses) {
    const error = new CliError(findFailureKindOfStatus(status, false), 'x', { status })
    const { kind } = error
    const actual = [kind, getDeliveryState(error), describeRetries(error), getBatchConsequence(error)]
    expect(actual, `${status}`).toEqual(row)
  }
})

test.each([
  ['not-sent', 'not-sent', 'any request', 'wait'],
  ['unknown', 'sent', 'a list', 'continue'],
  ['response', 'sent', 'no request', 'continue'],
  ['credentials', 'not-sent', 'no request', 'end'],
  ['file', 'answered', 'no request', 'end'],
] as const)('"%s" has the delivery state "%s": parley retries %s, a batch must %s', (kind, ...row) => {
  const error = new CliError(kind, 'x')
  expect([getDeliveryState(error), describeRetries(error), getBatchConsequence(error)]).toEqual(row)
})

test('T09: a 503 with Retry-After is a rate limit and is retried for any request, unlike a 500 or 599', () => {
  const kinds = [503, 500, 599, 404, 200].map((status) => findFailureKindOfStatus(status, true))
  expect(kinds).toEqual(['rate-limited', 'service', 'service', 'refused', 'response'])
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
])('parley does not retry after an error of kind "%s" in a %i', (kind, status, ...row) => {
  const error = new CliError(kind, 'x', { status, errorIn: 'body' })
  const state = getDeliveryState(error)
  expect(state).toBe('answered')
  expect(describeDelivery(state, event)).toMatchObject({ sent: 'unknown', isRepeatable: false })
  expect(describeDelivery(state, chatRules)).toMatchObject({ sent: 'yes', isRepeatable: true })
  const retries = [chatRules, event].map((rules) => getRetryAdvice(error, describeDelivery(state, rules)))
  expect([...retries, getBatchConsequence(error)]).toEqual(row)
  expect(decideRetry({ ...policy, repeat: 'always' }, error, moment)).toBe(error)
})

test('parley does not retry a permanent failure, and a batch does not pause after a permanent rate limit', () => {
  const error = new CliError('rate-limited', 'x', { status: 429, isPermanent: true })
  expect(getBatchConsequence(error)).toBe('continue')
  expect(decideRetry({ ...policy, repeat: 'always' }, error, moment)).toBe(error)
  const unreachable = new CliError('not-sent', 'x', { isPermanent: true })
  expect(getBatchConsequence(unreachable)).toBe('wait')
  expect(decideRetry({ ...policy, repeat: 'always' }, unreachable, moment)).toBe(unreachable)
})

test('a rate limit error in a response with status 300 pauses a batch', () => {
  expect(getBatchConsequence(new CliError('rate-limited', 'x', { status: 300 }))).toBe('wait')
})

test('parley does not retry after a usage error, and a batch continues', () => {
  const error = new CliError('usage', 'x')
  expect([getDeliveryState(error), getBatchConsequence(error)]).toEqual(['answered', 'continue'])
  expect(decideRetry({ ...policy, repeat: 'always' }, error, moment)).toBe(error)
})

const failure = (kind: FailureKind, details: FailureDetails = {}) => new CliError(kind, 'x', details)
const forbidden = { status: 429, isPermanent: true }

test.each<[what: string, chat: RetryAdvice, event: RetryAdvice, error: CliError, state: DeliveryState]>([
  ['a failure before anything was sent', 'later', 'later', failure('not-sent'), 'not-sent'],
  ['an unknown host', 'never', 'never', failure('not-sent', { isPermanent: true }), 'not-sent'],
  ['a deadline while connecting', 'later', 'later', failure('not-sent', { deadline: true }), 'not-sent'],
  ['a refusal of the proxy', 'never', 'never', failure('credentials'), 'not-sent'],
  ['a 401', 'never', 'never', failure('credentials', { status: 401 }), 'refused'],
  ['a 402', 'never', 'never', failure('payment', { status: 402 }), 'refused'],
  ['a 400', 'never', 'never', failure('refused', { status: 400 }), 'refused'],
  ['a 429', 'later', 'later', failure('rate-limited', { status: 429 }), 'refused'],
  ['a 429 with x-should-retry: false', 'later', 'later', failure('rate-limited', forbidden), 'refused'],
  ['a 429 that followed a 500', 'later', 'look-first', failure('rate-limited', { status: 429 }), 'failed'],
  ['a 408', 'later', 'look-first', failure('service', { status: 408 }), 'failed'],
  ['a 500', 'later', 'look-first', failure('service', { status: 500 }), 'failed'],
  ['a 501', 'later', 'look-first', failure('service', { status: 501 }), 'failed'],
  ['a 503 that followed a 500', 'later', 'look-first', failure('rate-limited', { status: 503 }), 'failed'],
  ['a missing answer', 'later', 'look-first', failure('unknown'), 'sent'],
  ['an unreadable answer', 'never', 'look-first', failure('response', { status: 200 }), 'answered'],
  ['an answer that is cut off', 'later', 'look-first', failure('response', { isCutOff: true }), 'answered'],
  [
    'a cut receipt of accepted events',
    'later',
    'look-first',
    failure('response', { isCutOff: true }),
    'done',
  ],
  ['a file that cannot be written', 'never', 'never', failure('file'), 'done'],
])('after %s, `retry` is "%s" for a chat and "%s" for an event', (_, chat, send, error, state) => {
  const advice = [chatRules, event].map((rules) => getRetryAdvice(error, describeDelivery(state, rules)))
  expect(advice).toEqual([chat, send])
})

test.each([
  ...[failure('not-sent'), failure('not-sent', { isPermanent: true }), failure('unknown')],
  ...[failure('rate-limited', { status: 429 }), failure('rate-limited', { status: 200, errorIn: 'body' })],
  ...[408, 500, 501].map((status) => failure('service', { status })),
  failure('response', { isCutOff: true }),
])('a command that follows a session retries a failure of kind $kind with the details $details', (error) =>
  expect(isTransientFailure(error)).toBe(true),
)

test.each([
  ...[failure('rate-limited', forbidden), failure('service', { status: 500, isPermanent: true })],
  ...[failure('refused', { status: 400 }), failure('credentials', { status: 401 })],
  ...[failure('response'), failure('usage')],
])('a command that follows a session ends after a failure of kind $kind with the details $details', (error) =>
  expect(isTransientFailure(error)).toBe(false),
)

test('--retry-unknown repeats a chat without an answer, but not a chat whose answer has begun', () => {
  const policy = { repeat: 'failed', retryUnknown: true } as const
  const failures = [failure('unknown'), failure('response', { status: 200, isCutOff: true })]
  expect(failures.map((each) => canRetry(policy, each))).toEqual([true, false])
})

test('an answer that is cut off proves only that the request was sent', () =>
  expect(getDeliveryState(failure('response', { isCutOff: true }))).toBe('sent'))

const unanswered = new CliError('unknown', 'x')
const limited = new CliError('rate-limited', 'x', { status: 429 })
const failed = new CliError('service', 'x', { status: 500 })

test.each<[string, Partial<RetryPolicy>, CliError]>([
  ['an event without a response', { repeat: 'unaccepted', retryUnknown: true }, unanswered],
  ['a chat without an answer', { repeat: 'failed' }, unanswered],
  ['a chat after the last attempt that --retries allows', { retries: 0 }, failed],
])('parley does not retry %s', (_, more, error) => {
  expect(decideRetry({ ...policy, repeat: 'failed', ...more }, error, moment)).toBe(error)
})

const decide = (changes: Partial<typeof moment>, retryAfter?: number) =>
  decideRetry(
    { ...policy, repeat: 'failed', retries: 9 },
    limited.with(retryAfter === undefined ? {} : { retryAfterSeconds: retryAfter }),
    { ...moment, random: 1, ...changes },
  )

test('T07: the wait before a retry doubles up to 8 s, and up to a half of it is random', () => {
  const waits = [1, 2, 3, 4, 5, 6, 7].map((attempt) => decide({ attempt }))
  expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 8000, 8000])
  expect([0, 0.5, 1].map((random) => decide({ random }))).toEqual([250, 375, 500])
  expect([0, 3].map((before) => computeBackoffMs({ first: 100, longest: 300 }, before))).toEqual([100, 300])
})

test('T05: parley waits at least as long as Retry-After before a retry, and fails at once if Retry-After is over 60 s', () => {
  expect([0.1, 2, 60].map((retryAfter) => decide({}, retryAfter))).toEqual([500, 2000, 60_000])
  expect(decide({}, 60.001)).toMatchObject({
    message: `${limited.message} (the service asks to wait 61 s; parley waits at most 60 s)`,
    details: { ...limited.details, retryAfterSeconds: 60.001 },
  })
})

test('parley does not retry at the deadline or after it', () => {
  expect(decide({ now: 1000, deadlineMs: 1501 })).toBe(500)
  expect(decide({ now: 1000, deadlineMs: 1500 })).toMatchObject({
    message: `${limited.message} (the next attempt, in 0.5 s, would be past the deadline)`,
    details: { ...limited.details, deadline: true },
  })
})

test('a 401, a 403 or such an error in a 200 means that the service rejected the secret, but a 407 does not', () => {
  const refuses = (details: CliError['details']) => isRefusedSecret(new CliError('credentials', '', details))
  expect([401, 403, 407, 402, undefined].filter((status) => refuses({ status }))).toEqual([401, 403])
  expect(refuses({ status: 200, errorIn: 'body' })).toBe(true)
})
