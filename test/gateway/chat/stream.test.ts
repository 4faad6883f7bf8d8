import { expect, test } from 'vitest'
import { breaking } from '../../harness/responses.ts'
import { answering, run, temporaryFolder } from '../../harness/run.ts'
import { createSignal } from '../../harness/session-service.ts'
import { createStdout } from '../../harness/stdout.ts'
import { piece, whole } from '../parts.ts'

const delta = (text: string) =>
  JSON.stringify({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })

const first = 'Héllo wör'

test.each([
  ['a chunk', piece(first)],
  ['a chunk inside a field response', `{"response":${piece(first)}}`],
])('E46: chat --stream accepts %s without a finish reason only as application/json', async (_, body) => {
  const headers = { 'content-type': 'text/plain' }
  const exchange = answering(body, { headers })
  const cut = await run(['chat', 'x', '--stream'], { exchange })
  expect({ code: cut.code, out: cut.out }).toEqual({ code: 8, out: `${first}\n` })
  expect(cut.err).toContain('the stream ended early')
  expect(await run(['chat', 'x'], { exchange })).toMatchObject({ code: 0, out: `${first}\n` })
  const whole = answering(body.replace('"content"', '"finishReason":"STOP","content"'), { headers })
  expect(await run(['chat', 'x', '--stream'], { exchange: whole })).toMatchObject({ code: 0 })
  const document = answering(body, { headers: { 'content-type': 'application/json; charset=utf-8' } })
  expect(await run(['chat', 'x', '--stream'], { exchange: document })).toMatchObject({ code: 0 })
})

test.each([
  ['query', '/alpha_cli/v1beta/models/alpha-2.5-pro:generateContent?alt=sse', undefined],
  ['path', '/alpha_cli/v1beta/models/alpha-2.5-pro:streamGenerateContent?alt=sse', undefined],
  ['body', '/alpha_cli/v1beta/models/alpha-2.5-pro:generateContent', true],
])('with --stream-via %s, chat --stream sends its request to %s', async (via, path, field) => {
  const { requests, code } = await run(['chat', 'x', '--stream', '--stream-via', via])
  expect(code).toBe(0)
  expect(requests[0]?.url).toBe(`https://gateway.test${path}`)
  expect(requests[0]?.headers.Accept).toBe('text/event-stream, application/json')
  expect(JSON.parse(requests[0]?.text ?? '').stream).toBe(field)
})

test("--no-stream overrides the profile's stream setting", async () => {
  const env = { PARLEY_STREAM: 'true' }
  expect((await run(['chat', 'x'], { env })).requests[0]?.url).toContain('alt=sse')
  expect((await run(['chat', 'x', '--no-stream'], { env })).requests[0]?.url).not.toContain('alt=sse')
})

test('chat prints the first words of a stream while the service still sends', async () => {
  let out = ''
  const printed = createSignal()
  const stdout = createStdout((bytes, done) => {
    out += bytes
    done()
    printed.trigger()
  })
  // The answer ends only after its first words were printed.
  const body = asEvents(piece('Hello'), piece('', whole))
  const exchange = breaking(body, () => printed.triggered, 'text/event-stream')
  const { code } = await run(['chat', 'x', '--stream'], { exchange, stdout })
  expect([code, out]).toEqual([0, 'Hello\n'])
})

const startOf = (id: string) => JSON.stringify({ type: 'message_start', message: { id } })
const stop = '{"type":"message_stop"}'
const chat = (body: string, ...flags: string[]) =>
  run(['chat', 'x', '-q', ...flags], { exchange: answering(body), env: { TMPDIR: temporaryFolder() } })
const asEvents = (...values: string[]) => values.map((value) => `data: ${value}\n\n`).join('')

test.each([
  ['a second message', asEvents(startOf('m1'), delta('one'), stop, startOf('m2'), delta('two'), stop)],
  ['a chunk after [DONE]', asEvents(piece('one', whole), '[DONE]', 'ping', piece('two'), '[DONE]')],
  ['an error', asEvents(startOf('m1'), delta('one'), stop, '{"error":{"message":"late"}}')],
])('chat ignores %s after the end of the answer', async (_, body) => {
  for (const flags of [[], ['--stream']])
    expect(await chat(body, ...flags)).toMatchObject({ code: 0, out: 'one\n', err: '' })
})

test('chat exits with 8 and prints the whole text if a message with another id begins inside a message', async () => {
  const twice = (id: string) => asEvents(startOf('m1'), delta('one'), startOf(id), delta('two'), stop)
  for (const flags of [[], ['--stream']])
    expect(await chat(twice('m2'), ...flags)).toMatchObject({
      code: 8,
      out: 'onetwo\n',
      err: 'parley: the service sent a second answer after the first\n',
    })
  expect(await chat(twice('m1'), '--stream')).toMatchObject({ code: 0, out: 'onetwo\n', err: '' })
})
