import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { realTimers } from '../../../src/timers.ts'
import { answering, message, ownerOnly, run, temporaryFolder } from '../../harness/run.ts'

const native = (...parts: object[]) =>
  JSON.stringify({ candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }] })

const call = { functionCall: { name: 'look', args: { at: 'a' } } }
const picture = { inlineData: { mimeType: 'image/png', data: 'aGVsbG8=' } }

/** Runs chat with a new temporary folder and returns its files. */
async function chat(flags: string[], body: string, world: Parameters<typeof run>[1] = {}) {
  const folder = temporaryFolder()
  const headers = { 'content-type': body.startsWith('data:') ? 'text/event-stream' : 'application/json' }
  const exchange = answering(body, { headers })
  const own = { env: { TMPDIR: folder } }
  const ended = await run(['chat', 'x', ...flags], { exchange, ...world, ...own })
  const kept = readdirSync(folder)
    .filter((name) => /^parley-[\w-]{36}\.\w+$/.test(name))
    .map((name) => join(folder, name))
  return { ...ended, kept }
}

const message2 = (...content: object[]) => message('', { content })

describe.each([
  ['a function call', native(call)],
  ['a function call', message2({ type: 'tool_use', id: 't', name: 'look', input: {} })],
  ['a picture', native(picture)],
  ['a picture and a function call', native(picture, call, call)],
  ['a picture', message2({ type: 'image', source: { type: 'base64', data: 'aGVsbG8=' } })],
  ['thoughts', native({ text: 'hm', thought: true })],
  ['thoughts', message2({ type: 'thinking', thinking: 'hm' })],
  ['code', native({ executableCode: { language: 'PYTHON', code: '1' } })],
  ['something else', native({ anything: { a: 1 } })],
])('an answer with %s and no text: %s', (what, body) => {
  test.each([
    ['in a pipe', [], {}],
    ['on a terminal', [], { tty: ['stdout' as const, 'stderr' as const] }],
    ['quietly', ['-q'], {}],
    ['as a stream', ['--stream'], {}],
  ])('%s exits with 8, is named and saved', async (_, flags, world) => {
    const { code, out, err, kept } = await chat(flags, body, world)
    expect({ code, out }).toEqual({ code: 8, out: '' })
    expect(err.replace(/\s+/g, ' ')).toContain(
      `the answer has no text, only ${what}; the received data is saved as`,
    )
    expect(kept).toHaveLength(1)
    expect(readFileSync(kept[0] as string, 'utf8')).toBe(body)
    expect(statSync(kept[0] as string).mode & 0o777).toBe(ownerOnly)
  })

  test('saves a streamed answer without text as it was received', async () => {
    const stream = `data: ${body}\n\ndata: [DONE]\n\n`
    const { code, err, kept } = await chat(['--stream'], stream)
    expect(code).toBe(8)
    expect(err).toContain(`only ${what};`)
    expect(readFileSync(kept[0] as string, 'utf8')).toBe(stream)
  })

  test('--raw prints an answer without text and exits with 0', async () => {
    expect(await chat(['--raw'], body)).toMatchObject({ code: 0, out: body, kept: [] })
  })

  test('--errors json has the path of the saved answer', async () => {
    const { err, kept } = await chat(['--errors', 'json'], body)
    expect(JSON.parse(err).error).toMatchObject({
      kind: 'response',
      sent: 'yes',
      retry: 'never',
      kept: kept[0],
    })
  })

  test('an answer without text is not requested again for a schema', async () => {
    const cwd = temporaryFolder()
    writeFileSync(join(cwd, 'schema.json'), '{"type":"object"}')
    const ended = await chat(['--schema', 'schema.json', '--schema-retries', '2'], body, {
      cwd,
      timers: realTimers,
    })
    expect(ended).toMatchObject({ code: 8, out: '' })
    expect(ended.requests).toHaveLength(1)
    expect(ended.kept).toHaveLength(1)
    expect(ended.err).toContain(`no text, only ${what};`)
  })
})

test('an answer without text changes neither the thread nor the file of -o', async () => {
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, 't.json'), '{"contents":[]}')
  writeFileSync(join(cwd, 'a.txt'), 'before')
  const ended = await chat(['--thread', 't.json', '-o', 'a.txt'], native(call), { cwd })
  expect(ended).toMatchObject({ code: 8, out: '' })
  expect(ended.err).toContain('t.json is unchanged')
  expect(readFileSync(join(cwd, 't.json'), 'utf8')).toBe('{"contents":[]}')
  expect(readFileSync(join(cwd, 'a.txt'), 'utf8')).toBe('before')
  expect(readdirSync(cwd).sort()).toEqual(['a.txt', 't.json'])
})

test.each([
  ['nothing at all', message('')],
  ['blanks', message(' \n')],
  ['no parts', native()],
])('an answer with %s exits with 8 and saves nothing', async (_, body) => {
  const { code, out, err, kept } = await chat([], body)
  expect({ code, kept }).toEqual({ code: 8, kept: [] })
  expect(out.trim()).toBe('')
  expect(err).toBe('parley: the answer has no text\n')
})

test.each(['MAX_TOKENS', 'SAFETY'])('the message starts with the stop reason: %s', async (reason) => {
  const body = native(call).replace('STOP', reason)
  const { code, err } = await chat([], body)
  expect(code).toBe(8)
  expect(err).toMatch(
    /^parley: the answer was (cut|stopped).*; the answer has no text, only a function call;/,
  )
})

describe('saves an unreadable answer', () => {
  const deep = `{"content":${'['.repeat(1500)}${']'.repeat(1500)}}`
  test.each([
    ['of another shape', '{"result":{"words":"paid for"}}', 'json'],
    ['of another shape in a known place', '{"candidates":"paid for"}', 'json'],
    ['nested too deep', deep, 'json'],
    ['not JSON', '{"content":"paid for', 'json'],
    ['words', 'paid for', 'txt'],
    ['a stream of another shape', 'data: {"choices":[{"text":"paid for"}]}\n\ndata: [DONE]\n\n', 'txt'],
    ['a stream nested too deep', `data: ${deep}\n\n`, 'txt'],
  ])('saves an unreadable answer: %s', async (_, body, extension) => {
    for (const flags of [[], ['-q', '--stream']]) {
      const { code, out, err, kept } = await chat(flags, body)
      expect({ code, out }).toEqual({ code: 8, out: '' })
      expect(kept).toHaveLength(1)
      const [path = ''] = kept
      expect(path).toMatch(new RegExp(`\\.${extension}$`))
      expect(readFileSync(path, 'utf8')).toBe(body)
      expect(statSync(path).mode & 0o777).toBe(ownerOnly)
      expect(err).toContain(`the received data is saved as ${path}`)
    }
  })

  test('does not save an error response, a web page or an empty body', async () => {
    for (const body of ['{"error":{"message":"no"}}', '<html><title>Sign in</title>', '', ' \n']) {
      expect((await chat([], body)).kept).toEqual([])
    }
  })

  test('--raw prints an unreadable answer instead of saving it', async () => {
    expect(await chat(['--raw'], deep)).toMatchObject({ code: 8, out: deep, kept: [] })
  })

  test('an unreadable answer does not change the file of -o', async () => {
    const cwd = temporaryFolder()
    const { code, kept } = await chat(['-o', 'a.txt'], '{"a":{"text":"b"}}', { cwd })
    expect({ code, kept: kept.length, files: readdirSync(cwd) }).toEqual({ code: 8, kept: 1, files: [] })
  })
})
