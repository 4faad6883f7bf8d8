import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CliError } from '../../src/errors.ts'
import type { Exchange } from '../../src/wire/exchange.ts'
import { createIdleClock } from '../harness/clock.ts'
import { run, temporaryFolder } from '../harness/run.ts'
import { inline, png } from './image/image.ts'

const json = JSON.stringify
const event = (value: object) => `data: ${json(value)}\n\n`
const usageMetadata = { promptTokenCount: 900, candidatesTokenCount: 70 }
const chunk = (part: object, finishReason?: string) => ({
  candidates: [{ content: { parts: [part] }, finishReason }],
  usageMetadata,
})
const sse = 'text/event-stream'

/**
 * Runs parley against a service that sends these chunks and then keeps the connection open for ten minutes.
 * Before each SSE comment, the service waits for 3 s.
 */
async function runAgainst(argv: string[], pieces: (string | Uint8Array)[], type = sse) {
  const cwd = temporaryFolder({ 'in.ndjson': '"one"\n' })
  const timers = createIdleClock()
  let isClosed = false
  const exchange: Exchange = async () => {
    const closed = new AbortController()
    async function* body() {
      for (const piece of pieces) {
        if (String(piece).startsWith(':')) await timers.wait(3000, closed.signal)
        if (closed.signal.aborted) return
        yield Buffer.from(piece as string)
      }
      await timers.wait(600_000, closed.signal)
      if (!closed.signal.aborted)
        throw new CliError('response', 'the answer broke off: no byte arrived for 600 s', { isCutOff: true })
    }
    const close = () => {
      isClosed = true
      closed.abort()
    }
    return { status: 200, statusText: '', headers: { 'content-type': type }, body: body(), close }
  }
  const env = { PARLEY_IMAGE_MODEL: 'alpha-image', TMPDIR: temporaryFolder() }
  const words = [...argv, '--report', 'report.json']
  const ended = await run(words, { cwd, env, timers, exchange, stdinKind: 'none' })
  const read = (name: string) => readFileSync(join(cwd, name))
  return { ...ended, isClosed, read, report: JSON.parse(read('report.json').toString()) }
}

const alive = Array<string>(100).fill(': alive\n\n')
const stream = ['chat', 'x', '--stream']
const batch = ['--batch', 'in.ndjson', '--retries', '0']
const message = [
  event({ type: 'message_start', message: { usage: { input_tokens: 900 } } }),
  event({ type: 'content_block_delta', delta: { type: 'text_delta', text: 'Hi' } }),
  event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 70 } }),
  event({ type: 'message_stop' }),
]
const ends: [string, string[], string][] = [
  ['message_stop', message, sse],
  ['[DONE]', [event(chunk({ text: 'Hi' }, 'STOP')), 'data: [DONE]\n\n'], sse],
  ['the closing bracket of an array', [`[${json(chunk({ text: 'Hi' }, 'STOP'))}`, ']'], 'application/json'],
]

test.each(ends)('chat stops reading an answer on an open connection after %s', async (_, pieces, type) => {
  expect(await runAgainst(['chat', 'x'], pieces, type)).toMatchObject({ code: 0, out: 'Hi\n', err: '' })
})

test('a stream without an end marker counts as complete 15 s after a finish reason, with a warning', async () => {
  const warning = 'the service did not end the stream: parley stopped reading after 15 s of silence'
  const text = [event(chunk({ text: 'Hi' }, 'STOP'))]
  const plain = await runAgainst([...stream, '-q'], [event(chunk({ text: 'Hi' })), ...text])
  expect(plain).toMatchObject({ code: 0, out: 'HiHi\n', err: `parley: ${warning}\n`, isClosed: true })
  expect(Math.round(plain.report.seconds)).toBe(15)
  const json = await runAgainst([...stream, '--errors', 'json'], text)
  expect(json).toMatchObject({ code: 0, out: 'Hi\n', err: `{"warning":"${warning}"}\n` })
  const strict = await runAgainst([...stream, '--fail-on-cut'], text)
  expect(strict).toMatchObject({ code: 8, out: 'Hi\n', err: `parley: ${warning}\n` })
  const line = await runAgainst(['chat', ...batch], text)
  expect(line.out).toContain(`"text":"Hi","stopReason":null,"warning":"${warning}"`)
  const failed = await runAgainst(['chat', ...batch, '--fail-on-cut'], text)
  expect([line.code, failed.code, failed.out]).toEqual([0, 8, expect.stringContaining('"body":"Hi"')])
  const picture = [event(chunk(inline(png()), 'STOP'))]
  const one = await runAgainst(['image', 'fox'], picture)
  expect(one).toMatchObject({ code: 0, out: 'fox.png\n', err: `parley: ${warning}\n` })
  const many = await runAgainst(['image', ...batch], picture)
  expect(many.code).toBe(0)
  expect(JSON.parse(many.out)).toMatchObject({ ok: true, warning })
})

const stop = chunk({ text: 'Hi' }, 'STOP')

test('chat counts the keep-alive comments of a stream as silence', async () => {
  const late = [event(stop), ...alive, event(chunk({ text: ' lost' }))]
  expect(await runAgainst(stream, late)).toMatchObject({ code: 0, out: 'Hi\n' })
})

test.each([
  ['two chunks have a finish reason', [event(stop), event(stop)]],
  ['text follows the finish reason', [event(stop), event(chunk({ text: '!' }))]],
  ['no chunk has a finish reason', [event(chunk({ text: 'Hi' }))]],
  ['there is a function call', [event(chunk({ functionCall: { name: 'f' } })), event(stop)]],
  ['there is no text', [event(chunk({ text: '' }, 'STOP'))]],
  ['the chunks are in an array', [`[${json(stop)}`]],
  ['the last event is incomplete', [event(stop), 'data: {']],
])('chat does not treat silence as the end of a stream if %s', async (_, pieces) => {
  const { code, err } = await runAgainst(stream, pieces)
  expect(code).toBe(8)
  expect(err).toContain('the answer broke off: no byte arrived for 600 s')
})

const bad = 'data: {"candidates":[{\n\n'

test.each([
  ['the stream ends', [event(chunk({ text: '!' }, 'STOP')), 'data: [DONE]\n\n'], 1],
  ['the stream stays open', [event(chunk({ text: '!' })), ...alive], 15],
])('chat prints the text after an unreadable event, and exits with 8, if %s', async (_, rest, seconds) => {
  const ended = await runAgainst(stream, [event(chunk({ text: 'Hi' })), bad, ...rest])
  expect(ended).toMatchObject({ code: 8, out: 'Hi!\n', err: 'parley: an event of the stream is not JSON\n' })
  expect(Math.round(ended.report.seconds)).toBe(seconds)
})

test('a batch saves the received part of an answer that is cut off, and counts its tokens', async () => {
  const ended = await runAgainst(['chat', ...batch], message.slice(0, 3))
  expect(ended).toMatchObject({ code: 8, report: { usage: { totalTokens: 970 } } })
  const error = { kind: 'response', retry: 'later', body: 'Hi' }
  expect(JSON.parse(ended.out)).toMatchObject({ ok: false, error, usage: { totalTokens: 970 } })
})

test('image saves the complete images of an answer that is cut off', async () => {
  const some = [event(chunk(inline(png()))), event(chunk(inline(png(9)))).slice(0, -20)]
  const ended = await runAgainst(['image', 'fox'], some)
  expect(ended).toMatchObject({ code: 8, out: 'fox.png\n', report: { usage: { totalTokens: 970 } } })
  expect(ended.read('fox.png')).toEqual(png())
  expect(ended.err).toMatch(/the answer broke off: no byte arrived for 600 s; the received data is saved as /)
})
