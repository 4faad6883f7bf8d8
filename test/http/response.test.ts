import { expect, onTestFinished, test } from 'vitest'
import { CliError } from '../../src/errors.ts'
import type { Exchange, HttpResponse } from '../../src/wire/exchange.ts'
import { createClock } from '../harness/clock.ts'
import { breaking } from '../harness/responses.ts'
import { answering, message, run } from '../harness/run.ts'

const now = Date.UTC(2026, 0, 1)
const timers = { now: () => now, wallTime: () => now, wait: async () => {}, random: () => 0 }

/** Returns the JSON failure for a response. */
async function fetchFailure(exchange: Exchange, argv = ['chat', 'x']) {
  const { err } = await run([...argv, '--retries', '0', '--errors', 'json'], { exchange, timers })
  return JSON.parse(err).error
}

/** Answers with `{}`, except for these parts of the response. */
const answeringWith =
  (status: number, parts: Partial<HttpResponse>): Exchange =>
  async (request) => ({ ...(await answering('{}', { status })(request)), ...parts })

const fetchFailureOf = (
  status: number,
  headers: Record<string, string> = {},
  body: string | Uint8Array = '{}',
) => fetchFailure(answering(body, { status, headers }))

type Headers = Record<string, string>
const inThirtySeconds = '{"error":{"message":"m","details":[{"retryDelay":"30s"}]}}'
const nine = 'Thu, 01 Jan 2026 09:00:00 GMT'

test.each<[headers: Headers, body: string, seconds: number | undefined]>([
  [{}, '{}', undefined],
  [{ 'retry-after': '7' }, '{}', 7],
  [{ 'retry-after': '9'.repeat(400) }, '{}', Number.MAX_SAFE_INTEGER],
  ...['', '1.5', '-1', '7 s', 'soon', 'Invalid Date', 'Mon, 01 Jan 2026 00:01:30 GMT'].map(
    (value): [Headers, string, undefined] => [{ 'retry-after': value }, '{}', undefined],
  ),
  ...['Thursday, 01-Jan-26 00:01:30 GMT', 'Thu Jan  1 00:01:30 2026'].map(
    (value): [Headers, string, number] => [{ 'retry-after': value }, '{}', 90],
  ),
  [{ 'retry-after': 'Wed, 31 Dec 2025 23:59:59 GMT' }, '{}', 0],
  [{ date: nine, 'retry-after': 'Thu, 01 Jan 2026 09:00:20 GMT' }, '{}', 20],
  [{ date: nine, 'retry-after': 'Thu, 01 Jan 2026 08:59:59 GMT' }, '{}', 0],
  ...['soon', ''].map((date): [Headers, string, number] => [
    { date, 'retry-after': 'Thu, 01 Jan 2026 00:01:30 GMT' },
    '{}',
    90,
  ]),
  [{}, inThirtySeconds, 30],
  [{ 'retry-after': '0' }, inThirtySeconds, 0],
])('T02, T03: `retryAfter` of a 429 with the headers %j and the body %s is %s', async (...row) => {
  const [headers, body, seconds] = row
  // A date without a zone is in GMT, not in the zone of this machine.
  process.env.TZ = 'America/New_York'
  onTestFinished(() => {
    process.env.TZ = 'UTC'
  })
  expect((await fetchFailureOf(429, headers, body)).retryAfter).toBe(seconds)
})

test.each<[headers: Headers, body: string, id: string | undefined]>([
  ...['request-id', 'x-request-id', 'x-amzn-requestid', 'x-goog-request-id', 'x-correlation-id'].map(
    (name): [Headers, string, string] => [{ [name]: 'r1' }, '{}', 'r1'],
  ),
  [{ 'request-id': '', 'x-correlation-id': 'r2' }, '{}', 'r2'],
  [{ 'x-correlation-id': 'r2', 'request-id': 'r1' }, '{}', 'r1'],
  [{ id: 'r1' }, '{}', undefined],
  [{}, '{"error":"x","request_id":"r3"}', 'r3'],
  [{ 'request-id': 'r1' }, '{"error":"x","request_id":"r3"}', 'r1'],
])('the request id of a response with the headers %j and the body %s is %s', async (headers, body, id) => {
  expect((await fetchFailureOf(400, headers, body)).requestId).toBe(id)
})

test('a 503 is a rate limit only if its Retry-After is valid', async () => {
  expect((await fetchFailureOf(503, { 'retry-after': '0' })).kind).toBe('rate-limited')
  expect((await fetchFailureOf(503, { 'retry-after': 'soon' })).kind).toBe('service')
})

const cut = message('paid for').slice(0, -20)
test.each([
  ['an HTML page', 'later', '<!doctype html><title>Wait</title>'],
  ['an empty body', 'later', ''],
  ['JSON that is cut off', 'later', cut],
  ['XML with a transient error', 'later', '<Error><Code>SlowDown</Code><Message>m</Message></Error>'],
  ['XML with a permanent error', 'never', '<Error><Code>AccessDenied</Code><Message>m</Message></Error>'],
  ['JSON of an unknown form', 'never', '{"a":1}'],
])('parley does not retry a 200 with %s, and its error has "retry": "%s"', async (_, retry, body) => {
  for (const line of ['chat x', 'chat x --stream', 'chat x --raw', 'image x -m i']) {
    const argv = [...line.split(' '), '--retries', '2', '--errors', 'json']
    const { code, err, requests } = await run(argv, { exchange: answering(body) })
    expect(requests).toHaveLength(1)
    if (code !== 0) expect(JSON.parse(err).error, line).toMatchObject({ retry })
  }
})

test.each([
  ['chat', []],
  ['image', ['-m', 'i']],
])('%s --batch does not retry an answer that is cut off, and `retry` is "later"', async (command, flags) => {
  const ended = await run([command, ...flags, '--batch', '-'], { stdin: '"x"\n', exchange: answering(cut) })
  expect(ended).toMatchObject({ code: 8, requests: [{}] })
  expect(JSON.parse(ended.out).error).toMatchObject({ kind: 'response', retry: 'later' })
})

test('an event list that is cut off has "retry": "later"', async () => {
  expect((await fetchFailure(answering('{"data":['), ['events', 'list', '-s', 's'])).retry).toBe('later')
})

test.each<[location: string | undefined, target: string]>([
  [undefined, ':'],
  ['', ':'],
  ['https://user:secret@h.test/a/b?c=d#e', ', to https://h.test/a/b?c=d#e:'],
  ['//user:se@cret@h.test\\x@y/z', ', to //h.test\\y/z:'],
  ['/a', ', to /a:'],
])('parley reports a 302 with the Location %j as "redirect not followed%s"', async (location, target) => {
  const { message, status } = await fetchFailureOf(302, location === undefined ? {} : { location })
  expect({ message, status }).toEqual({ message: `redirect not followed${target} 302`, status: 302 })
})

test.each<[argv: string[], status: number, statusText: string, message: string]>([
  [['chat', 'x'], 400, 'Bad Request', 'the gateway answered 400 Bad Request'],
  [['events', 'list', '-s', 's'], 399, '', 'redirect not followed: 399'],
  [['events', 'list', '-s', 's'], 404, '', 'the session service answered 404'],
])('parley with %j reports the response "%i %s" as "%s"', async (argv, status, statusText, message) => {
  expect((await fetchFailure(answeringWith(status, { statusText }), argv)).message).toBe(message)
})

test.each([
  ['False', 1],
  ['no', 2],
])('T14: after a 429 with x-should-retry: %s and --retries 1, parley sends %i', async (value, count) => {
  const exchange = answering('{}', { status: 429, headers: { 'x-should-retry': value } })
  expect((await run(['chat', 'x', '--retries', '1'], { exchange })).requests).toHaveLength(count)
})

test.each<[body: string | Uint8Array, shown: unknown]>([
  ['{"a":1}', { a: 1 }],
  ['false', false],
  ['', ''],
  [Buffer.from('sch\xf6n', 'latin1'), 'sch\ufffdn'],
])('--errors json shows the error body %s as %j', async (body, shown) => {
  expect((await fetchFailureOf(400, {}, body)).body).toEqual(shown)
})

test.each([0, 1])('parley reads only 1 MiB of an error in pieces of 512 KiB + %i bytes', async (more) => {
  const mebibyte = 1024 * 1024
  const piece = mebibyte / 2 + more
  let given = 0
  async function* body() {
    for (; given < 3 * mebibyte; given += piece) yield Buffer.alloc(piece, 'x')
  }
  const exchange = answeringWith(400, { body: body() })
  const { code, out } = await run(['api', 'agents', '/v1/x'], { exchange })
  expect({ code, length: out.length, given }).toEqual({ code: 4, length: mebibyte, given: piece })
})

test('parley stops reading an endless error body after 10 s', async () => {
  const clock = createClock()
  let isClosed = false
  async function* body() {
    for (; !isClosed; await clock.wait(300)) yield Buffer.from('x')
  }
  const close = () => {
    isClosed = true
  }
  const exchange = answeringWith(400, { body: body(), close })
  const { err } = await run(['chat', 'x', '--errors', 'json'], { exchange, timers: clock })
  expect(JSON.parse(err).error).toMatchObject({ status: 400, body: 'x'.repeat(34) })
})

test('parley closes no connection after it has read the whole error body', async () => {
  let closed = 0
  const headers = { 'retry-after': '20' }
  const exchange = answeringWith(429, { headers, close: () => void closed++ })
  const { requests } = await run(['chat', 'x', '--retries', '1'], { exchange, timers: createClock() })
  expect({ requests: requests.length, closed }).toEqual({ requests: 2, closed: 0 })
})

test('a 429 with an incomplete body is still reported as a rate limit, with the received part', async () => {
  const broken = (error: Error) => breaking('half of it', () => error, 'text/plain', 429)
  const reset = broken(new CliError('response', 'the connection was reset'))
  expect(await fetchFailure(reset)).toMatchObject({ kind: 'rate-limited', status: 429, body: 'half of it' })
  expect(await fetchFailure(broken(new TypeError('a bug')))).toMatchObject({ kind: 'unexpected' })
})
