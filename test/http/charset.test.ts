import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { answering, message, run, temporaryFolder } from '../harness/run.ts'

const hello = Buffer.from('c4e3bac3', 'hex')
/** Encodes a body in GBK, with `你好` for `TEXT`. */
const gbk = (text: string) =>
  Buffer.concat(text.split('TEXT').flatMap((part, index) => [...(index ? [hello] : []), Buffer.from(part)]))
const latin1 = (text: string) => Buffer.from(text.replaceAll('TEXT', 'schön'), 'latin1')
const utf16le = (text: string) => Buffer.from(text.replaceAll('TEXT', 'schön 狐'), 'utf16le')

const charsets: [charset: string, encode: (text: string) => Buffer, text: string][] = [
  ['gbk', gbk, '你好'],
  ['utf-16le', utf16le, 'schön 狐'],
]

describe.each(charsets)('answers in the charset %s', (charset, encode, text) => {
  const world = (body: string, type = 'application/json', status = 200) => ({
    exchange: answering(bytewise(encode(body)), {
      status,
      headers: { 'content-type': `${type}; charset=${charset}` },
    }),
  })

  test('chat decodes the charset of an answer', async () => {
    for (const flags of [[], ['--stream']])
      expect(await run(['chat', 'x', ...flags], world(message('TEXT')))).toMatchObject({
        code: 0,
        out: `${text}\n`,
        err: '',
      })
  })

  test('chat decodes the charset of streamed events and of streamed chunks', async () => {
    const events = `data: {"content":"a "}\n\ndata: {"content":"TEXT"}\n\ndata: [DONE]\n\n`
    const chunks = '[{"content":"a "},{"content":"TEXT"}]'
    const cases = [
      [events, 'text/event-stream'],
      [chunks, 'application/json'],
    ]
    for (const [body = '', type] of cases) {
      const ended = await run(['chat', 'x', '--stream'], world(body, type))
      expect(ended).toMatchObject({ code: 0, out: `a ${text}\n`, err: '' })
    }
  })

  test('--raw and api print the bytes of an answer without decoding its charset', async () => {
    const body = message('TEXT')
    for (const argv of [
      ['chat', 'x', '--raw'],
      ['chat', 'x', '--raw', '--stream'],
      ['image', 'x', '-m', 'm', '--raw'],
      ['api', 'gateway', '/x'],
    ]) {
      const ended = await run(argv, world(body))
      expect(ended.code).toBe(0)
      expect(Buffer.from(ended.outBytes).equals(encode(body)), argv.join(' ')).toBe(true)
    }
  })

  test('image decodes the charset of an answer and its text', async () => {
    const data = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(100_000)]).toString(
      'base64',
    )
    const parts = [{ text: 'TEXT' }, { inlineData: { mimeType: 'image/png', data } }]
    const cwd = temporaryFolder()
    const body = JSON.stringify({ candidates: [{ content: { parts }, finishReason: 'STOP' }] })
    const ended = await run(['image', 'x', '-m', 'm'], { ...world(body), cwd })
    expect(ended).toMatchObject({ code: 0, out: 'x.png\n' })
    expect(ended.err).toContain(`| ${text}\n`)
    expect(readFileSync(join(cwd, 'x.png')).toString('base64')).toBe(data)
  })

  test('events list decodes the charset of an event list', async () => {
    const event = '{"type":"agent.message","content":"TEXT"}'
    const list = ['events', 'list', '-s', 's', '--raw']
    const whole = await run(list, world(`{"data":[${event}]}`))
    expect(whole).toMatchObject({ code: 0, out: `${event.replace('TEXT', text)}\n` })
  })
})

test('chat exits with 8 for an answer in an unknown charset unless the answer is valid UTF-8', async () => {
  const headers = { 'content-type': 'application/json; charset=klingon' }
  const utf8 = await run(['chat', 'x'], { exchange: answering(message('é'), { headers }) })
  expect(utf8).toMatchObject({ code: 0, out: 'é\n' })
  const other = await run(['chat', 'x'], { exchange: answering(latin1(message('é')), { headers }) })
  expect(other).toMatchObject({ code: 8, out: '' })
  expect(other.err).toContain('the answer is encoded in klingon, not in UTF-8')
})

/** Splits a short body into single bytes. */
function bytewise(bytes: Uint8Array): Uint8Array | string[] {
  return bytes.length > 10_000 ? bytes : (Array.from(bytes, (byte) => Buffer.of(byte)) as unknown as string[])
}
