import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { realTimers } from '../../../src/timers.ts'
import type { RunOptions } from '../../harness/run.ts'
import { answering, message, ownerOnlyMode, readText, run, temporaryFolder } from '../../harness/run.ts'

const native = (...parts: object[]) =>
  JSON.stringify({ candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }] })

const call = { functionCall: { name: 'look', args: { at: 'a' } } }
const picture = { inlineData: { mimeType: 'image/png', data: 'aGVsbG8=' } }

/** Runs chat with a new temporary folder and returns its saved files. */
async function chat(flags: string[], body: string, world: RunOptions = {}) {
  const folder = temporaryFolder()
  const headers = { 'content-type': body.startsWith('data:') ? 'text/event-stream' : 'application/json' }
  const exchange = answering(body, { headers })
  const ended = await run(['chat', 'x', ...flags], { exchange, ...world, env: { TMPDIR: folder } })
  const saved = readdirSync(folder)
    .filter((name) => /^parley-[\w-]{36}\.\w+$/.test(name))
    .map((name) => join(folder, name))
  return { ...ended, saved }
}

const blocks = (...content: object[]) => message('', { content })

test.each([
  ['a native answer', 'a function call', native(call)],
  ['a message', 'a function call', blocks({ type: 'tool_use', id: 't', name: 'look', input: {} })],
  ['a native answer', 'an image and a function call', native(picture, call, call)],
  ['a message', 'thoughts', blocks({ type: 'thinking', thinking: 'hm' })],
  ['a native answer', 'something else', native({ anything: { a: 1 } })],
])('chat exits with 8 and saves %s with no text, only %s', async (_, what, body) => {
  const { code, out, err, saved } = await chat([], body)
  expect({ code, out }).toEqual({ code: 8, out: '' })
  expect(err).toContain(`the answer has no text, only ${what}; the received data is saved as`)
  expect(readFileSync(saved[0] as string, 'utf8')).toBe(body)
})

test.each([
  ['an image', picture],
  ['a function call', call],
])('chat saves %s of a stream if an error event follows', async (_, part) => {
  const body = `data: ${native(part)}\n\nevent: error\ndata: {"error":{"message":"late"}}\n\n`
  for (const flags of [[], ['--stream']]) {
    const { code, out, err, saved } = await chat(flags, body)
    expect([code, out, saved.map((path) => readFileSync(path, 'utf8'))]).toEqual([8, '', [body]])
    expect(err).toContain('the stream ended with an error')
  }
  const batch = await run(['chat', '--batch', '-'], { exchange: answering(body), stdin: '"x"\n' })
  expect(JSON.parse(batch.out)).toMatchObject({ ok: false, error: { body } })
})

test('--schema-retries does not repeat a request whose answer has no text', async () => {
  const cwd = temporaryFolder({ 'schema.json': '{"type":"object"}' })
  const flags = ['--schema', 'schema.json', '--schema-retries', '2']
  const ended = await chat(flags, native(call), { cwd, timers: realTimers })
  expect(ended).toMatchObject({ code: 8, out: '', requests: [{}], saved: [expect.anything()] })
  expect(ended.err).toContain('no text, only a function call;')
  const world = { cwd, stdin: '"x"\n', timers: realTimers }
  const batch = await chat([...flags, '--batch', '-'], native(call), world)
  expect(batch).toMatchObject({ code: 8, requests: [{}] })
  expect(batch.out).toContain('"message":"the answer has no text, only a function call"')
})

test('chat --raw --fail-on-cut rejects a cut answer, but not an answer without text', async () => {
  const cut = native(call).replace('"STOP"', '"MAX_TOKENS"')
  const raw = ['--raw', '--fail-on-cut']
  expect(await chat(raw, native(call))).toMatchObject({ code: 0, out: native(call), err: '' })
  expect(await chat(raw, cut)).toMatchObject({ code: 8, out: cut })
  const batch = [...raw, '--batch', '-']
  expect(await chat(batch, native(call), { stdin: '"x"\n' })).toMatchObject({ code: 0 })
  expect(await chat(batch, cut, { stdin: '"x"\n' })).toMatchObject({ code: 8 })
})

test('chat changes neither the file of --thread nor the file of -o if the answer has no text', async () => {
  const cwd = temporaryFolder({ 't.json': '{"contents":[]}', 'a.txt': 'before' })
  const ended = await chat(['--thread', 't.json', '-o', 'a.txt'], native(call), { cwd })
  expect(ended).toMatchObject({ code: 8, out: '', err: expect.stringContaining('t.json is unchanged') })
  expect(readdirSync(cwd).sort()).toEqual(['a.txt', 'a.txt.part', 't.json'])
  const texts = ['a.txt', 'a.txt.part', 't.json'].map((name) => readText(cwd, name))
  expect(texts).toEqual(['before', native(call), '{"contents":[]}'])
})

const blocked = '{"promptFeedback":{"blockReason":"SAFETY"}}'
const stopped = '{"candidates":[{"finishReason":"SPII"}]}'

test.each([
  ['an empty text', message('')],
  ['only blanks', message(' \n')],
  ['no parts', native()],
  ['a blocked prompt', blocked, 'the prompt was blocked: SAFETY; '],
  ['a stop after a block', `[${blocked},${stopped}]`, 'the answer was stopped: SPII; '],
])('R53: chat exits with 8 and saves nothing if the answer has %s', async (_, body, reason = '') => {
  const { code, out, err, saved } = await chat(['-q'], body)
  expect({ code, out, saved }).toEqual({ code: 8, out: '', saved: [] })
  expect(err).toBe(`parley: ${reason}the answer has no text\n`)
})

const deep = `{"content":${'['.repeat(1500)}${']'.repeat(1500)}}`
test.each([
  ['JSON of an unknown form', '{"result":{"words":"paid for"}}', 'json'],
  ['JSON with a text as candidates', '{"candidates":"paid for"}', 'json'],
  ['JSON nested too deep', deep, 'json'],
  ['incomplete JSON', '{"content":"paid for', 'json'],
  ['plain text', 'paid for', 'txt'],
  ['a stream of an unknown form', 'data: {"choices":[{"text":"paid for"}]}\n\ndata: [DONE]\n\n', 'txt'],
  ['a stream nested too deep', `data: ${deep}\n\n`, 'txt'],
])('chat exits with 8 and saves an answer that it cannot read: %s', async (_, body, extension) => {
  for (const flags of [[], ['-q', '--stream']]) {
    const { code, out, err, saved } = await chat(flags, body)
    expect([code, out, saved]).toEqual([8, '', [expect.stringMatching(`\\.${extension}$`)]])
    const [path = ''] = saved
    expect(readFileSync(path, 'utf8')).toBe(body)
    expect(statSync(path).mode & 0o777).toBe(ownerOnlyMode)
    expect(err).toContain(`the received data is saved as ${path}`)
  }
})

test('chat prints the text of an answer with an unreadable part, saves the part and exits with 8', async () => {
  const body = native({ text: 'paid' }, 5 as unknown as object)
  const ended = await chat(['-q'], body)
  expect(ended).toMatchObject({ code: 8, out: 'paid\n' })
  expect(ended.err).toContain('a part of the answer cannot be read; the received data is saved as')
  expect(ended.saved.map((path) => readFileSync(path, 'utf8'))).toEqual([body])
  expect(await chat(['--raw'], body)).toMatchObject({ code: 0, out: body, err: '' })
})

test('chat does not save an error response, a web page or an empty body', async () => {
  for (const body of ['{"error":{"message":"no"}}', '<html><title>Sign in</title>', '', ' \n']) {
    expect((await chat([], body)).saved).toEqual([])
  }
})
