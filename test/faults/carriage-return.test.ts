import { expect, test } from 'vitest'
import { answering, message, run, temporaryFolder } from '../harness/run.ts'

const spaced = (json: string) => `{\r"x":\r1,${json.slice(1)}`

/**
 * A stream with CRLF line ends, an escaped carriage return in its data, and a line that ends with CR alone.
 */
const stream = [
  ': a comment\r\n',
  'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"a\\rb"}}\r\n\r\n',
  'data: {"type":"message_stop"}\r\r',
]

const text = { headers: { 'content-type': 'text/plain' } }
const events = { headers: { 'content-type': 'text/event-stream' } }
const list = '{"data":[{"id":"sevt_1",\r"type":"user.message","content":"a\\rb"}]}'

const commands: [shown: string, argv: string[], exchange: ReturnType<typeof answering>][] = [
  ['chat', ['chat', 'hi'], answering(message('a\rb'))],
  ['chat --stream', ['chat', 'hi', '--stream', '--no-markdown'], answering(stream, events)],
  ['chat --raw', ['chat', 'hi', '--raw'], answering(spaced(message('a\rb')))],
  ['chat --stream --raw', ['chat', 'hi', '--stream', '--raw'], answering(stream, events)],
  ['chat --batch', ['chat', '--batch', 'lines'], answering(message('a\rb'))],
  ['api', ['api', 'gateway', '/v1/x'], answering('a\rb\r\nc', text)],
  ['api --paginate', ['api', 'gateway', '/v1/x', '--paginate'], answering('{"data":[{"a":\r1}]}')],
  ['events send', ['events', 'send', '-s', 's', 'hi'], answering(list)],
  ['events list --raw', ['events', 'list', '-s', 's', '--raw'], answering(list)],
]

test.each(commands)('V04: parley %s prints no carriage return on a terminal', async (_, argv, exchange) => {
  const cwd = temporaryFolder({ lines: '"hi"\n' })
  const ended = await run(argv, { exchange, cwd, tty: ['stdout', 'stderr'], env: { PARLEY_RETRIES: '0' } })
  expect(ended.code).toBe(0)
  // The text around the carriage return must arrive.
  expect(ended.out).toMatch(/a(\^M|\\r)b|a b\n|\\u000d|"a"/)
  expect(ended.out).not.toContain('\r')
  expect(ended.err.replaceAll('\r\x1b[2K', '')).not.toContain('\r')
})

test('V04: parley api prints carriage returns of a response unchanged into a pipe', async () => {
  const ended = await run(['api', 'gateway', '/v1/x'], { exchange: answering('a\rb\r\n', text) })
  expect(ended).toMatchObject({ code: 0, out: 'a\rb\r\n' })
})
