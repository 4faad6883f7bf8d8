import { readdirSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { CliError } from '../../src/errors.ts'
import type { Exchange } from '../../src/wire/exchange.ts'
import { createIdleClock } from '../harness/clock.ts'
import { answerInOrder, breaking, unanswered } from '../harness/responses.ts'
import { answering, message, type RunOptions, run, temporaryFolder } from '../harness/run.ts'
import { envFor, response, serve } from '../harness/server.ts'
import { createFailingStdout } from '../harness/stdout.ts'

const envelope = (type: string, text: string) =>
  JSON.stringify({ type: 'error', error: { type, message: text } })

test('--raw -o prints the body of a failure on stdout and writes no file', async () => {
  const cwd = temporaryFolder()
  const exchange = answering('{"error":"no"}', { status: 400 })
  const ended = await run(['chat', 'x', '--raw', '-o', 'a.json'], { cwd, exchange })
  expect(ended).toMatchObject({ code: 4, out: '{"error":"no"}' })
  expect(ended.err).toContain('the service says: no')
  expect(readdirSync(cwd)).toEqual([])
})

const failure = async (argv: string[], world: RunOptions = {}) => {
  const ended = await run([...argv, '--errors', 'json'], world)
  expect(ended.err).toMatch(/^\{[^\n]*\}\n$/)
  return { ...JSON.parse(ended.err).error, code: ended.code }
}

const status = (code: number) => answering('{}', { status: code })
test('--errors json prints all fields of a failure on one line', async () => {
  const body = envelope('rate_limit_error', 'slow\u001b down')
  const exchange = answering(body, { status: 429, headers: { 'retry-after': '90', 'request-id': 'req_7' } })
  expect(await failure(['chat', 'x'], { exchange })).toEqual({
    format: 1,
    kind: 'rate-limited',
    exit: 6,
    code: 6,
    status: 429,
    message: expect.stringContaining('slow^[ down'),
    retryAfter: 90,
    requestId: 'req_7',
    sent: 'yes',
    safeToRetry: true,
    retry: 'later',
    attempts: 1,
    body: JSON.parse(body),
  })
})

test('"safeToRetry" is false after a chat without an answer or with a mismatching one, and true after a list', async () => {
  const fail = (line: string, ...answers: Exchange[]) => {
    const cwd = temporaryFolder({ s: '{"required":["n"]}' })
    const exchange = answerInOrder(...answers)
    return failure(`${line} --retries 0`.split(' '), { cwd, exchange, timers: createIdleClock() })
  }
  const unsafe = { retry: 'later', safeToRetry: false }
  expect(await fail('chat x', unanswered)).toMatchObject({ exit: 10, ...unsafe })
  const mismatch = await fail('chat x --schema s --schema-retries 1', answering(message('{}')), status(429))
  expect(mismatch).toMatchObject({ exit: 6, ...unsafe })
  expect(await fail('events list -s s', status(502))).toMatchObject({ safeToRetry: true })
})

const once = { safeToRetry: false, retry: 'look-first' }
const limited = envelope('rate_limit_error', 'no')
test.each<[string, string, string, object]>([
  ['a cut chat', 'chat x', '{"content":[{"ty', { kind: 'response', safeToRetry: false, retry: 'later' }],
  ['a full disk (needs /dev/full)', 'chat x -o /dev/full', message('Hi'), { kind: 'file', retry: 'never' }],
  ['a cut receipt', 'events send x -s s', '{', { kind: 'response', ...once, sent: 'unknown' }],
  ['a POST with a rate limit', 'api agents /v1/x --set a=1', limited, { kind: 'rate-limited', ...once }],
])('--errors json reports a failure after a response with status 200: %s', async (_, line, body, known) => {
  const exchange = answering(body, { headers: { 'retry-after': '9', 'request-id': 'req_7' } })
  const common = { status: 200, retryAfter: 9, requestId: 'req_7', attempts: 1, sent: 'yes' }
  expect(await failure(line.split(' '), { exchange })).toMatchObject({ ...common, ...known })
})

test.each([
  ['events list -s s', 'yes'],
  ['api agents /v1/x --paginate', 'yes'],
  ['api agents /v1/x', 'yes'],
  ['chat x --dry-run', 'no'],
])('if the disk of stdout is full, the JSON error of "%s" contains "sent": "%s"', async (argv, sent) => {
  const use = { type: 'agent.tool_use', id: 'toolu_1', name: 'bash', input: {} }
  const exchange = answering(JSON.stringify({ data: [use] }))
  const ended = await failure(argv.split(' '), { exchange, stdout: createFailingStdout(0, 'ENOSPC') })
  expect(ended).toMatchObject({ code: 11, kind: 'file', sent, safeToRetry: false, retry: 'never' })
})

test("--raw prints the received part of a failure's body", async () => {
  const cut = new CliError('response', 'the answer broke off', { isCutOff: true })
  const exchange = breaking('{"error":', () => cut, 'application/json', 400)
  expect(await run(['chat', 'x', '--raw'], { exchange })).toMatchObject({ code: 4, out: '{"error":' })
})

test('if the connection of a retry is refused, the message also names the 500 of the earlier attempt', async () => {
  const server = await serve((socket) => {
    server.stop()
    socket.end(response('{"error":{"message":"no room"}}', '500 Oops'))
  })
  onTestFinished(() => server.close())
  const argv = ['chat', 'x', '--retry-unknown', '--retries', '1', '--errors', 'json']
  const { code, err } = await run(argv, { exchange: 'network', env: envFor(server) })
  const expected = {
    kind: 'service',
    sent: 'yes',
    status: 500,
    attempts: 2,
    body: { error: { message: 'no room' } },
  }
  expect([code, JSON.parse(err).error]).toMatchObject([7, expected])
  expect(err).toMatch(/connection refused; before that, .*answered 500 Oops/)
  expect(err).not.toContain('nothing was sent')
})
