import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { createIdleClock } from '../../harness/clock.ts'
import { answerInOrder, unanswered, unreachable } from '../../harness/responses.ts'
import { answering, message, readText, run, temporaryFolder } from '../../harness/run.ts'
import { continued, events, piece, used, whole } from '../parts.ts'

const bodiesOf = (ended: { requests: { text: string }[] }) =>
  ended.requests.map(({ text }) => JSON.parse(text))

/** Runs parley in a new folder, which is also the temporary folder. */
async function runIn(argv: string[], exchange: Exchange, files: Record<string, string> = {}) {
  const cwd = temporaryFolder(files)
  const ended = await run(argv, { cwd, exchange, env: { TMPDIR: cwd }, timers: createIdleClock() })
  const saved = readdirSync(cwd).filter((name) => name.startsWith('parley-'))
  const read = (name: string) => readFileSync(resolve(cwd, name), 'utf8')
  return { ...ended, cwd, read, saved: saved.map(read), has: (name: string) => existsSync(join(cwd, name)) }
}

test('chat requests parts with their continuation tokens until the finish reason is not CONTINUATION', async () => {
  const parts = [piece('One, ', continued('t1')), piece('two, ', continued('t2')), piece('three.', whole)]
  const ended = await run(['chat', 'count'], { exchange: answerInOrder(...parts) })
  expect(ended).toMatchObject({ code: 0, out: 'One, two, three.\n', err: '' })
  const contents = [{ role: 'user', parts: [{ text: 'count' }] }]
  expect(bodiesOf(ended)).toEqual([
    { contents },
    { contents, continuationToken: 't1' },
    { contents, continuationToken: 't2' },
  ])
})

test('chat sums the usage of a continued answer and counts its requests as attempts', async () => {
  const exchange = answerInOrder(
    piece('a', continued('t1'), used(10, 100)),
    answering('{}', { status: 503 }),
    piece('b', continued('t2'), used(10, 200, 4)),
    piece('c', { finishReason: 'MAX_TOKENS' }, { ...used(10, 3), responseId: 'r3', modelVersion: 'm' }),
  )
  const ended = await runIn(['chat', 'x', '--usage', '--report', 'r'], exchange)
  expect(ended).toMatchObject({ code: 0, out: 'abc\n' })
  const footer = /cut at the output limit.*m · MAX_TOKENS · 30 tokens in · 303 out · 4 cached · [\d.]+ s\n$/s
  expect(ended.err).toMatch(footer)
  const usage = { inputTokens: 30, outputTokens: 303, totalTokens: 333, cacheReadInputTokens: 4 }
  const report = { attempts: 4, stopReason: 'MAX_TOKENS', id: 'r3', usage }
  expect(JSON.parse(ended.read('r'))).toMatchObject(report)
})

test.each([0, 1, 2])('the usage of a continued answer is null if part %i has no usage', async (lacking) => {
  const usage = (part: number) => (part === lacking ? {} : used(10, 100, part === 1 ? 4 : undefined))
  const exchange = answerInOrder(
    piece('a', continued('t1'), usage(0)),
    piece('b', continued('t2'), usage(1)),
    piece('c', whole, usage(2)),
  )
  const ended = await runIn(['chat', 'x', '--report', 'r'], exchange)
  expect([ended.code, ended.out]).toEqual([0, 'abc\n'])
  const names = ['inputTokens', 'outputTokens', 'cacheReadInputTokens', 'totalTokens']
  expect(names.map((name) => JSON.parse(ended.read('r')).usage[name])).toEqual([null, null, null, null])
})

test('chat --stream prints each part of a continued answer as it arrives', async () => {
  const exchange = answerInOrder(
    events(piece('**One'), piece(', ', continued('t1'))),
    events(piece('two**'), piece(' three.', whole)),
  )
  const laidOut = await run(['chat', 'x', '--stream', '--color', 'never'], { exchange, tty: ['stdout'] })
  expect(laidOut).toMatchObject({ code: 0, out: 'One, two three.\n', err: '' })
})

test('chat --raw prints the bytes of all parts of a continued answer in order', async () => {
  const [first, last] = [piece('a', continued('t1')), piece('b', whole)]
  const plain = await run(['chat', 'x', '--raw'], { exchange: answerInOrder(`${first}\n`, last) })
  expect(plain).toMatchObject({ code: 0, out: `${first}\n${last}` })
  const exchange = answerInOrder(events(first), events(last))
  const streamed = await run(['chat', 'x', '--raw', '--stream'], { exchange })
  expect(streamed).toMatchObject({ code: 0, out: `${first}\n${last}\n` })
})

test('--thread stores a continued answer as one answer and omits the continuation token', async () => {
  const exchange = answerInOrder(piece('One, ', continued('t1')), piece('two.', whole))
  const ended = await runIn(['chat', 'x', '--thread', 't'], exchange)
  expect(ended.code).toBe(0)
  expect(JSON.parse(ended.read('t')).contents).toEqual([
    { role: 'user', parts: [{ text: 'x' }] },
    { role: 'model', parts: [{ text: 'One, two.' }] },
  ])
  expect(ended.read('t')).not.toContain('t1')
})

test('--schema checks a continued answer as a whole, and --schema-retries sends no continuation token', async () => {
  const start = (token: string) => piece('{"n":', continued(token))
  const exchange = answerInOrder(start('t1'), piece('"1"}', whole), start('t2'), piece('1}', whole))
  const argv = ['chat', 'x', '--schema', 's', '--schema-retries', '1', '--report', 'r']
  const ended = await runIn(argv, exchange, { s: '{"properties":{"n":{"type":"number"}}}' })
  expect(ended).toMatchObject({ code: 0, out: '{"n":1}\n' })
  expect(bodiesOf(ended).map((body) => [body.continuationToken, body.contents.length])).toEqual([
    [undefined, 1],
    ['t1', 1],
    [undefined, 3],
    ['t2', 3],
  ])
  expect(JSON.parse(ended.read('r')).attempts).toBe(4)
})

const free = used(0, 0)
const noText = 'neither text nor a new token'
const failures: [what: string, answer: string | Exchange, code: number, words: string][] = [
  ['gets no answer', unanswered, 10, 'could not be continued: the connection was closed before an answer'],
  ['cannot be sent', unreachable, 8, 'could not be continued: the connection was refused'],
  ['is cut off', answering('{"candidates":'), 8, 'could not be continued'],
  ['gets an error body', answering('{"error":{"status":"INTERNAL"}}'), 7, 'could not be continued'],
  ['has the same token and no text', piece('', continued('t1'), free), 8, noText],
  ['has an earlier token and text', piece('more', continued('t1'), free), 8, 'without a new token'],
  [
    'is filtered',
    piece('', { finishReason: 'SAFETY' }, free),
    8,
    `${noText}; the answer was stopped: SAFETY`,
  ],
]

test.each(failures)('chat saves an answer if its continuation %s', async (what, answer, code, words) => {
  const first = piece('Half', continued('t1'), { ...used(10, 20), modelVersion: 'm', responseId: 'r1' })
  const printed = await runIn(['chat', 'x', '--retries', '0', '--report', 'r'], answerInOrder(first, answer))
  expect([printed.code, printed.out]).toEqual([code, ''])
  expect(printed.saved).toContain(what === 'has an earlier token and text' ? 'Halfmore' : 'Half')
  expect(printed.err).toContain(words)
  expect(printed.err).not.toContain('nothing was sent')
  const sent = code === 10 ? 'unknown' : 'yes'
  const usage = { inputTokens: 10, outputTokens: 20 }
  expect(JSON.parse(printed.read('r'))).toMatchObject({ attempts: 2, sent, model: 'm', usage })
})

test('chat keeps all text of a continued stream that is cut off, on stdout or in FILE.part', async () => {
  const exchange = () => answerInOrder(events(piece('One, ', continued('t1'))), events(piece('two')))
  expect(await runIn(['chat', 'x', '--stream'], exchange())).toMatchObject({ code: 8, out: 'One, two\n' })
  const written = await runIn(['chat', 'x', '--stream', '-o', 'out'], exchange())
  expect([written.code, written.read('out.part')]).toEqual([8, 'One, two'])
})

test.each([
  ['a native answer', piece('Half', continued())],
  ['a message', message('Half', { stop_reason: 'CONTINUATION' })],
])('chat saves the text of %s with the finish reason CONTINUATION and no token', async (_, body) => {
  const ended = await runIn(['chat', 'x'], answerInOrder(body))
  expect([ended.code, ended.out, ended.saved]).toEqual([8, '', ['Half']])
  expect(ended.err).toContain('the service sent CONTINUATION without a new token for the next part')
})

test('chat repeats an unanswered request for the next part only with --retry-unknown', async () => {
  const exchange = () => answerInOrder(piece('One, ', continued('t1')), unanswered, piece('two.', whole))
  const tokensOf = (...of: Parameters<typeof bodiesOf>) =>
    bodiesOf(...of).map((body) => body.continuationToken)
  const failed = await runIn(['chat', 'x'], exchange())
  expect([failed.code, tokensOf(failed)]).toEqual([10, [undefined, 't1']])
  const repeated = await runIn(['chat', 'x', '--retry-unknown'], exchange())
  expect([repeated.code, repeated.out]).toEqual([0, 'One, two.\n'])
  expect(tokensOf(repeated)).toEqual([undefined, 't1', 't1'])
})

test('chat exits with 8 if an answer has not ended after 64 requests', async () => {
  let count = 0
  const exchange: Exchange = (...call) => answering(piece('x', continued(`t${++count}`)))(...call)
  const ended = await runIn(['chat', 'x'], exchange)
  expect([ended.code, ended.out, ended.saved, ended.requests.length]).toEqual([8, '', ['x'.repeat(64)], 64])
  expect(ended.err).toContain('the service announces another part even after 64 requests')
})

test('chat does not continue an answer after the deadline', async () => {
  let now = 0
  const timers = { now: () => now, wallTime: () => now, random: () => 0, wait: async () => {} }
  const exchange: Exchange = (...call) => {
    now += 700
    return answering(piece('x', continued(`t${now}`)))(...call)
  }
  const cwd = temporaryFolder()
  const argv = ['chat', 'x', '--deadline', '2', '--errors', 'json', '-o', 'out']
  const ended = await run(argv, { cwd, exchange, timers: timers as never })
  expect([ended.code, ended.requests.length]).toEqual([8, 3])
  expect(JSON.parse(ended.err).error).toMatchObject({ deadline: true, retry: 'later', kept: 'out.part' })
  expect(readText(cwd, 'out.part')).toBe('xxx')
})
