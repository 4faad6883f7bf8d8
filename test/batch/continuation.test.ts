import { expect, test } from 'vitest'
import type { Exchange } from '../../src/wire/exchange.ts'
import { continued, events, piece, used, whole } from '../gateway/parts.ts'
import { createIdleClock } from '../harness/clock.ts'
import { answerInOrder, unanswered } from '../harness/responses.ts'
import { answering, createInterrupt, readJson, readText, run } from '../harness/run.ts'
import { batchFolder, parseResults } from './pieces.ts'

const batch = 'chat --batch in.ndjson --results r --concurrency 1 --report report'.split(' ')

/** Runs a batch of these prompts one after the other. */
async function runBatch(prompts: string[], flags: string[], exchange: Exchange) {
  const cwd = batchFolder(prompts.map((prompt) => JSON.stringify(prompt)))
  const ended = await run([...batch, ...flags], { cwd, exchange, timers: createIdleClock() })
  const tokens = ended.requests.map(({ text }) => JSON.parse(text).continuationToken)
  return { ...ended, cwd, results: parseResults(readText(cwd, 'r')), tokens, report: readJson(cwd, 'report') }
}

test('if the answer to a batch line comes in several parts, the result has the whole text, the total usage and the number of requests', async () => {
  const exchange = answerInOrder(
    piece('One, ', continued('t1'), used(10, 100)),
    events(piece('two, ', continued('t2'), used(10, 200))),
    piece('three.', whole, used(10, 3)),
  )
  const { code, results, tokens, report } = await runBatch(['count'], [], exchange)
  expect([code, tokens]).toEqual([0, [undefined, 't1', 't2']])
  const usage = { inputTokens: 30, outputTokens: 303, totalTokens: 333 }
  expect(results).toMatchObject([
    { ok: true, text: 'One, two, three.', stopReason: 'STOP', attempts: 3, usage },
  ])
  expect(report).toMatchObject({ attempts: 3, usage: { totalTokens: 333 } })
})

test('a result of --batch --raw has all responses of a continued answer, and the sum of their usage', async () => {
  const last = [piece('b', whole, used(10, 2)), piece('c', whole, used(1, 1))]
  const bodies = [piece('a', continued('t1'), used(10, 1)), ...last]
  const { code, results } = await runBatch(['x', 'y'], ['--raw'], answerInOrder(...bodies))
  const [first, second, third] = bodies.map((body) => JSON.parse(body))
  expect(code).toBe(0)
  expect(results).toMatchObject([
    { ok: true, response: [first, second], usage: { totalTokens: 23 }, attempts: 2 },
    { ok: true, response: third, attempts: 1 },
  ])
})

test.each<[what: string, answer: string | Exchange, code: number, body: string]>([
  ['gets no answer', unanswered, 10, 'Half'],
  ['is refused', answering('{"error":{"message":"no"}}', { status: 400 }), 4, 'Half'],
  ['is cut off', events(piece(' and more')), 8, 'Half and more'],
])('a batch line fails with the received text if its continuation %s', async (_, answer, code, body) => {
  const first = piece('Half', continued('t1'), used(10, 20))
  const ended = await runBatch(['x'], ['--retries', '0'], answerInOrder(first, answer))
  expect(ended.code).toBe(code)
  const error = { exit: code, attempts: 2, body }
  expect(ended.results).toMatchObject([{ ok: false, error, usage: { totalTokens: 30 } }])
})

test('--resume requests the whole answer again if an earlier batch received only its first half', async () => {
  const { cwd, code } = await runBatch(['x'], [], answerInOrder(piece('Half', continued('t1')), unanswered))
  expect(code).toBe(10)
  const ended = await run([...batch, '--resume'], { cwd, exchange: answerInOrder(piece('Whole', whole)) })
  expect([ended.code, ended.requests.length]).toEqual([0, 1])
  expect(JSON.parse(ended.requests[0]?.text ?? '')).not.toHaveProperty('continuationToken')
})

test('--max-total-tokens ends a batch in the middle of an answer with exit code 15', async () => {
  const [one, two] = ['1', '2'].map((token) => piece(`${token}, `, continued(token), used(10, 40)))
  const ended = await runBatch(['x', 'y'], ['--max-total-tokens', '100'], answerInOrder(one ?? '', two ?? ''))
  expect([ended.code, ended.requests.length]).toEqual([15, 2])
  const error = { exit: 15, body: '1, 2, ', attempts: 2 }
  expect(ended.results).toMatchObject([{ ok: false, error, usage: { totalTokens: 100 } }])
  expect(ended.err).toContain('the limit of 100 tokens (--max-total-tokens)')
})

test('the result of a batch line that the deadline cancels contains the received parts', async () => {
  const exchange = answerInOrder(piece('Half', continued('t1'), used(10, 20)), () => new Promise(() => {}))
  const ended = await runBatch(['x'], ['--deadline', '5'], exchange)
  expect(ended.code).toBe(15)
  const error = { exit: 10, deadline: true, body: 'Half' }
  expect(ended.results).toMatchObject([{ ok: false, error, usage: { totalTokens: 30 } }])
})

test('after a signal, a batch result contains the received parts of its answer, and --resume repeats the line', async () => {
  const cwd = batchFolder(['"x"', '"y"'])
  const { onSignal, interrupt } = createInterrupt()
  const err = await new Promise<string>((resolve) => {
    // Sends the signal at the second request, which is never answered.
    const never: Exchange = () => {
      resolve(interrupt(143))
      return new Promise(() => {})
    }
    const exchange = answerInOrder(piece('Half', continued('t1'), used(10, 20)), never)
    void run(batch, { cwd, exchange, onSignal })
  })
  const why = { kind: 'unknown', message: 'the run was interrupted', sent: 'unknown' }
  const result = { index: 1, error: { ...why, attempts: 2, body: 'Half' }, usage: { totalTokens: 30 } }
  expect(parseResults(readText(cwd, 'r'))).toMatchObject([result])
  expect(err).toMatch(
    /^parley: interrupted: 0 ok · 1 failed \(1 unknown\) · 1 not done · .*; 1 request without an answer may be billed; to resume: the same command with --resume\n$/,
  )
  const exchange = answerInOrder(piece('One', whole), piece('Two', whole))
  const again = await run([...batch, '--resume'], { cwd, exchange })
  expect([again.code, again.requests.length]).toEqual([0, 2])
})
