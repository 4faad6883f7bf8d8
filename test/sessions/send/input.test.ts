import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { answering, type RunOptions, run, temporaryFolder } from '../../harness/run.ts'

const env = { PARLEY_SESSION: 'sesn_1' }
const given = '{"type":"user.interrupt","x":1.10}'

async function send(argv: string[], world: RunOptions = {}) {
  const exchange = answering('{"data":[]}')
  const ended = await run(['events', 'send', ...argv], { env, exchange, ...world })
  const body = ended.requests[0]?.text
  return { ...ended, body, types: body && JSON.parse(body).events.map(({ type }: { type: string }) => type) }
}

test.each([
  ['one event', given, ['user.interrupt']],
  ['one line with an event', `${given}\n`, ['user.interrupt']],
  ['no content', '', []],
])('Q20: events send puts events on stdin before events of flags: %s', async (_, stdin, first) => {
  const { code, body, types } = await send(['--tool-result', 't1=ok', '--system', 's'], { stdin })
  expect({ code, types }).toEqual({ code: 0, types: [...first, 'user.tool_result', 'system.message'] })
  expect(body?.includes(given)).toBe(first.length > 0)
})

test.each([
  ['text', 'the log'],
  ['a line that is not JSON', `${given}\n{`],
])('Q21: events send with an event flag exits with 2 if stdin contains %s', async (_, stdin) => {
  const { code, err, requests } = await send(['--message', 'hi'], { stdin })
  expect({ code, requests }).toEqual({ code: 2, requests: [] })
  expect(err).toContain('stdin: ')
})

test.each([
  ['--no-stdin', ['--no-stdin']],
  ['-i FILE', ['-i', 'events.json']],
])('Q23: events send does not read stdin with %s', async (_, flags) => {
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, 'events.json'), given)
  const stdin = '{"type":"user.message","content":[]}'
  const { code, body } = await send(['--message', 'hi', ...flags], { stdin, cwd })
  expect(code).toBe(0)
  expect(body).not.toContain('"content":[]')
})

test('Q26: events send sends stdin next to words as text, and prints a note if it looks like events', async () => {
  for (const stdin of [given, `[${given}]`, `${given}\n${given}`, `{"events":[]}`]) {
    const { code, body, err } = await send(['what is this?'], { stdin })
    expect(code).toBe(0)
    expect(err).toContain("stdin looks like events, but is sent as text; to send events, use '-i -'\n")
    const content = ['what is this?', stdin].map((text) => ({ type: 'text', text }))
    expect(JSON.parse(body ?? '').events).toEqual([{ type: 'user.message', content }])
  }
})

test.each(['{"type":"error","text":"x"}', '"events": [', '[1]', 'events'])(
  'events send with words prints no note if stdin does not look like events: %s',
  async (stdin) => {
    expect((await send(['what is this?'], { stdin })).err).not.toContain('looks like events')
  },
)

test('Q27: events send with words prints a note if stdin is empty, but not with --no-stdin', async () => {
  expect((await send(['hi'], { stdin: '' })).err).toContain('stdin is empty')
  expect((await send(['hi'])).err).not.toContain('stdin is empty')
  expect((await send(['hi', '--no-stdin'], { stdin: '' })).err).not.toContain('stdin is empty')
})

const cwd = temporaryFolder()
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg==',
  'base64',
)
const pdf = Buffer.from('%PDF-1.4\n\xe9\n', 'latin1')
writeFileSync(join(cwd, 'notes.md'), '# Notes\n')
writeFileSync(join(cwd, 'fox.png'), png)
writeFileSync(join(cwd, 'paper.pdf'), pdf)
writeFileSync(join(cwd, 'none.txt'), '')
writeFileSync(join(cwd, 'tune.mp3'), Buffer.from('ID3\x03\0\0\0\0\0\0', 'latin1'))
writeFileSync(join(cwd, 'latin1.txt'), Buffer.from('caf\xe9', 'latin1'))

const notes = { type: 'text', text: 'notes.md:\n# Notes\n' }
const source = (media_type: string, bytes: Buffer) => ({
  type: 'base64',
  media_type,
  data: bytes.toString('base64'),
})
const image = { type: 'image', source: source('image/png', png) }
const document = { type: 'document', source: source('application/pdf', pdf) }
const words = { type: 'text', text: 'What is this?' }

const contents = async (argv: string[], world: RunOptions = {}) => {
  const { code, body, err } = await send(argv, { cwd, ...world })
  expect({ code, err }).toEqual({ code: 0, err: expect.any(String) })
  return JSON.parse(body ?? '{}').events
}

test('Q28: events send puts the files of -f before the words, in the given order', async () => {
  const argv = ['-f', 'notes.md', 'What is', 'this?', '--file', 'fox.png', '-f', 'paper.pdf']
  expect(await contents(argv)).toEqual([{ type: 'user.message', content: [notes, image, document, words] }])
})

test('Q28: events send puts piped text after the words, and -f - reads stdin as a file', async () => {
  expect(await contents(['What is this?', '-f', 'notes.md'], { stdin: 'a log' })).toEqual([
    { type: 'user.message', content: [notes, words, { type: 'text', text: 'a log' }] },
  ])
  expect(await contents(['What is this?', '-f', '-'], { stdin: png })).toEqual([
    { type: 'user.message', content: [image, words] },
  ])
  expect(await contents(['-f', '-'], { stdin: 'a log' })).toEqual([
    { type: 'user.message', content: [{ type: 'text', text: 'a log' }] },
  ])
})

test('Q28: without words, events send -f sends the file as a message, after flag events and before --system', async () => {
  const argv = ['-f', 'fox.png', '--system', 'Be brief', '--interrupt']
  expect(await contents(argv, { stdin: given })).toEqual([
    JSON.parse(given),
    { type: 'user.interrupt' },
    { type: 'user.message', content: [image] },
    { type: 'system.message', content: [{ type: 'text', text: 'Be brief' }] },
  ])
})

test.each([
  ['a file of an unsupported type', ['tune.mp3'], 2, 'tune.mp3: neither UTF-8 text nor an image'],
  ['an empty file', ['none.txt'], 2, 'none.txt: the file is empty'],
  ['a missing file', ['away.txt'], 11, 'away.txt: no such file or folder'],
  ['a file that is not UTF-8', ['latin1.txt'], 2, 'latin1.txt: not UTF-8 text on line 1'],
  ['stdin next to --no-stdin', ['-', '--no-stdin'], 2, '--no-stdin forbids'],
  ['stdin, which another flag reads too', ['-', '--message', '@-'], 2, 'stdin can be read only once'],
])('Q29: events send sends nothing if -f names %s', async (_, argv, code, said) => {
  const ended = await send(['hi', '-f', ...argv], { cwd, stdin: 'x' })
  expect(ended).toMatchObject({ code, out: '', requests: [], err: expect.stringContaining(said) })
})

test.each([
  ['-s', ['-s', ' sesn_2\n'], 'sesn_2'],
  ['PARLEY_SESSION', [], 'sesn_1'],
])('events send removes blanks and line ends around the session id in %s', async (_, flags, id) => {
  const { requests } = await send(['hi', ...flags], { env: { PARLEY_SESSION: ' sesn_1 ' } })
  expect(requests.map(({ url }) => new URL(url).pathname)).toEqual([`/v1/sessions/${id}/events`])
})
