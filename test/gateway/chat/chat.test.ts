import { execFile } from 'node:child_process'
import { chmodSync, lstatSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { realTimers } from '../../../src/timers.ts'
import { messageStop, sseEvent, textDelta } from '../../faults/answers.ts'
import { childEnvironment } from '../../harness/environment.ts'
import {
  answering,
  createFastClock,
  credentials,
  message,
  ownerOnlyMode,
  type RunOptions,
  readJson,
  readText,
  rejected,
  run,
  temporaryFolder,
} from '../../harness/run.ts'
import { envFor, response, serve } from '../../harness/server.ts'
import { createFailingStdout } from '../../harness/stdout.ts'
import { inline, png } from '../image/image.ts'

const stream = { headers: { 'content-type': 'text/event-stream' } }

/** Returns the request body that a run sent. */
const sent = (ended: Awaited<ReturnType<typeof run>>) => JSON.parse(ended.requests[0]?.text ?? '')

describe('chat sends a prompt and prints the answer', () => {
  test('chat sends the prompt words as one user turn, and ends the answer with a newline', async () => {
    const ended = await run(['chat', 'Say', 'hello'], { exchange: answering(message('Hello!')) })
    const request = {
      method: 'POST',
      url: 'https://gateway.test/alpha_cli/v1beta/models/alpha-2.5-pro:generateContent',
      headers: { Authorization: 'Bearer canary-token-0123456789', 'Content-Type': 'application/json' },
      text: '{"contents":[{"role":"user","parts":[{"text":"Say hello"}]}]}',
    }
    expect(ended).toMatchObject({ code: 0, out: 'Hello!\n', err: '', requests: [request] })
  })

  test('chat uses the model of -m or else of the profile, and encodes it as one path segment', async () => {
    const urlOf = async (flags: string[], env = {}) =>
      (await run(['chat', 'x', ...flags], { env })).requests[0]?.url
    expect(await urlOf(['-m', 'a/b c'])).toContain('/models/a%2Fb%20c:generateContent')
    expect(await urlOf([], { PARLEY_CHAT_MODEL: 'alpha-3-pro-preview' })).toContain('/alpha-3-pro-preview:')
    expect(await urlOf(['--family', 'beta'])).toContain('/beta_cli/v1beta/models/beta-2.5-pro:')
  })

  test('chat --max-output-tokens and --set change fields of the body', async () => {
    const flags = [
      'generationConfig.temperature=0.20',
      'tools[]={"a":12345678901234567890}',
      'labels["x.y"]=plain text',
      'contents[0].role=model',
    ].flatMap((assignment) => ['--set', assignment])
    const ended = await run(['chat', 'x', '--max-output-tokens', '7', ...flags])
    expect(ended.requests[0]?.text).toMatch(/"temperature": ?0\.20/)
    expect(ended.requests[0]?.text).toContain('12345678901234567890')
    expect(sent(ended)).toMatchObject({
      contents: [{ role: 'model' }],
      generationConfig: { maxOutputTokens: 7, temperature: 0.2 },
      labels: { 'x.y': 'plain text' },
    })
  })

  test('chat prints model, tokens and seconds on stderr if it is a terminal, or with --usage', async () => {
    const footerOf = async (flags: string[], world: RunOptions = {}) =>
      (await run(['chat', 'x', ...flags], { exchange: answering(message('Hi')), ...world })).err
    expect(await footerOf([])).toBe('')
    const footer = /^— alpha-2\.5-pro · end_turn · 3 tokens in · 5 out · \d+\.\d s\n$/
    expect(await footerOf(['--usage'])).toMatch(footer)
    expect(await footerOf([], { tty: ['stdout', 'stderr'] })).toMatch(/^\x1b\[2m— .*\x1b\[22m\n$/)
    expect(await footerOf([], { tty: ['stderr'], env: { NO_COLOR: '1' } })).toMatch(footer)
    expect(await footerOf(['-q', '--usage'])).toBe('')
  })

  test('chat counts the seconds from its request, without the wait for stdin', async () => {
    let now = 0
    async function* typeSlowly() {
      now += 60_000
      yield 'Hi'
    }
    const ended = await run(['chat', '--usage'], {
      stdin: typeSlowly(),
      timers: { ...createFastClock(), now: () => now },
      async exchange(...request) {
        now += 2000
        return answering(message('Hi'))(...request)
      },
    })
    expect(ended.err).toMatch(/ · 2\.0 s\n$/)
  })

  test.each([
    ['max_tokens', 'cut at the output limit'],
    ['refusal', 'stopped: refusal'],
    ['constructor', 'stopped: constructor'],
  ])('chat warns about the stop reason %s, and fails with --fail-on-cut', async (reason, expectedText) => {
    const exchange = answering(message('Well', { stop_reason: reason }))
    const ended = await run(['chat', 'x'], { exchange })
    expect(ended).toMatchObject({ code: 0, out: 'Well\n', err: expect.stringContaining(expectedText) })
    expect(await run(['chat', 'x', '--fail-on-cut'], { exchange })).toMatchObject({ code: 8, out: 'Well\n' })
  })

  const callBlock = { type: 'tool_use', id: 't', name: 'look', input: {} }
  const functionCall = { functionCall: { name: 'look', args: {} } }
  const code = { executableCode: { language: 'PYTHON', code: '1 + 1' } }
  const text = { text: 'A fox' }
  const textBlock = { type: 'text', ...text }
  const toCandidate = (part: object) => ({ content: { parts: [part] }, finishReason: 'STOP' })
  const native = (parts: unknown[], finishReason?: string) =>
    JSON.stringify({ candidates: [{ content: { parts }, finishReason }] })
  const nativeChunks = [native([{ text: 'A ' }]), native([inline(png())]), native([{ text: 'fox' }], 'STOP')]
  const nativeEvents = nativeChunks.map((chunk) => `data: ${chunk}\n\n`).join('')
  const callEvents =
    sseEvent({ type: 'content_block_start', index: 1, content_block: callBlock }) +
    sseEvent({ type: 'message_delta', delta: { stop_reason: 'tool_use' } })

  const data = png().toString('base64')
  const pictureBlock = { type: 'image', source: { type: 'base64', media_type: 'image/png', data } }

  const other = (what: string) => `the answer also has ${what}, which parley does not print`
  const [call, image] = [other('a function call'), other('an image')]

  test.each([
    ['a function call', 'a message', message('', { content: [textBlock, callBlock] }), {}, call, '"look"'],
    ['a function call', 'a native answer', native([text, functionCall], 'STOP'), {}, call, '"look"'],
    ['a function call', 'a stream', textDelta('A fox') + callEvents + messageStop, stream, call, '"look"'],
    ['code', 'a native answer', native([text, code], 'STOP'), {}, other('code'), '1 + 1'],
    ['an image', 'a message', message('', { content: [textBlock, pictureBlock] }), {}, image, data],
    ['an image', 'a native stream', nativeEvents, stream, image, data],
    [
      'another candidate',
      'a native answer',
      JSON.stringify({ candidates: [text, { text: 'A dog' }].map(toCandidate) }),
      {},
      'the answer also has another candidate, which parley does not print',
      'A dog',
    ],
  ])('if %s is in %s with a text, chat prints the text, saves the rest and warns', async (...of) => {
    const [, , body, head, unprinted, saved] = of
    const exchange = answering(body, head)
    for (const flags of [[], ['--stream'], ['-o', 'a.md'], ['--fail-on-cut'], ['--thread', 't.json']]) {
      const TMPDIR = temporaryFolder()
      const cwd = temporaryFolder()
      const argv = ['chat', 'x', '-q', '--report', 'r.json', ...flags]
      const ended = await run(argv, { exchange, cwd, env: { TMPDIR } })
      const [name = ''] = readdirSync(TMPDIR)
      expect(readText(TMPDIR, name)).toContain(saved)
      const written = flags[0] === '-o' ? ['a.md'] : []
      expect(readJson(cwd, 'r.json').files).toEqual([...written, join(TMPDIR, name)])
      expect(ended).toMatchObject({
        code: 0,
        out: flags[0] === '-o' ? '' : 'A fox\n',
        err: `parley: ${unprinted}; its JSON is saved as ${join(TMPDIR, name)}\n`,
      })
    }
    const TMPDIR = temporaryFolder()
    const raw = await run(['chat', 'x', '--raw'], { exchange, env: { TMPDIR } })
    expect(raw).toMatchObject({ code: 0, err: '' })
    const batch = (...flags: string[]) =>
      run(['chat', '--batch', '-', ...flags], { exchange, stdin: '"x"\n', env: { TMPDIR } })
    const result = JSON.parse((await batch()).out)
    const warning = `${unprinted}; its JSON is in "response"`
    expect(result).toMatchObject({ ok: true, text: 'A fox', warning })
    expect(JSON.stringify(result.response)).toContain(saved)
    if (head === stream) return
    expect(result.response).toEqual(JSON.parse(body))
    const bare = JSON.parse((await batch('--raw')).out)
    expect([bare.response, bare.warning]).toEqual([result.response, undefined])
    expect(readdirSync(TMPDIR)).toEqual([])
  })

  test('chat saves the image of an answer that does not match the schema', async () => {
    const [TMPDIR, cwd] = [temporaryFolder(), temporaryFolder()]
    writeFileSync(join(cwd, 's.json'), '{"type":"object"}')
    const exchange = answering(message('', { content: [{ type: 'text', text: '1' }, pictureBlock] }))
    const argv = ['chat', 'x', '--schema', 's.json', '--report', 'r.json']
    const { code, err } = await run(argv, { exchange, cwd, env: { TMPDIR } })
    const name = readdirSync(TMPDIR).find((each) => readText(TMPDIR, each).includes(data)) ?? ''
    const image = join(TMPDIR, name)
    expect(code).toBe(8)
    expect(err).toContain(`the answer also has content that is not text: its JSON is saved as ${image}\n`)
    expect(readJson(cwd, 'r.json').files).toContain(image)
  })
})

describe('--dry-run, --curl and -v show the request', () => {
  test('--dry-run prints the request with redacted secrets and needs no credential', async () => {
    const bare = { PARLEY_BASE_URL: '', PARLEY_ACCESS_TOKEN: '' }
    const ended = await run(['chat', 'x', '--dry-run', '--set', 'seed=10000000000000000001'], { env: bare })
    expect(ended).toMatchObject({ code: 0, err: '', requests: [] })
    expect(ended.out).toContain('10000000000000000001')
    expect(JSON.parse(ended.out)).toMatchObject({
      method: 'POST',
      url: '{base_url}/alpha_cli/v1beta/models/alpha-2.5-pro:generateContent',
      headers: { Authorization: 'Bearer [redacted]', 'Content-Type': 'application/json' },
      body: { contents: [{ role: 'user', parts: [{ text: 'x' }] }] },
    })
  })

  test('the command of --curl passes the secret to curl on stdin, not as an argument', async () => {
    const ended = await run(['chat', "it's", '--curl', '-H', 'X-Trace: 1'])
    expect(ended).toMatchObject({ code: 0, requests: [] })
    expect(ended.out).not.toContain('canary')
    expect(ended.out).toMatch(/^printf '%s\\n' "Authorization: Bearer \$PARLEY_ACCESS_TOKEN" \| curl /)
    expect(ended.out).toContain("--header 'X-Trace: 1'")
    expect(ended.out).toContain(`it'\\''s`)
  })

  describe('a command of --curl runs in sh (needs sh and curl)', () => {
    /** Returns a request with sorted headers, whose order may differ. */
    const normalized = (request: string) => {
      const [head = '', body] = request.split(/\r\n\r\n(.*)/s)
      const [line, ...headers] = head.split('\r\n')
      const names = headers.map((header) => header.trim().replace(/^[^:]+/, (name) => name.toLowerCase()))
      return { line, headers: names.filter((header) => !header.startsWith('connection:')).sort(), body }
    }

    const headers = ['X-Empty:', 'Cookie: $COOKIE', 'X-A: b c'].flatMap((header) => ['-H', header])

    test.each([
      ['all kinds of headers', 'chat', `it's $HOME \`x\` "y" \\ %s\n`, ...headers],
      ['a long body', 'chat', '字'.repeat(60_000)],
      ['a body of 2 MB', 'chat', `${'x'.repeat(2_000_000)}'\n\n`, '-H', 'Authorization: $AUTHORIZATION'],
      ['no body', 'events', 'list', '-s', 'a[1-2]', '--no-beta'],
    ])('the command of --curl sends the same request as parley with %s', async (_, ...argv) => {
      const server = await serve((socket) => socket.end(response('{"content":[]}', '400 No')))
      const env = { ...credentials, ...envFor(server), COOKIE: 'a=b', AUTHORIZATION: 'Basic YTpi' }
      const words = argv.map((word) => word.replace('$COOKIE', 'a=b').replace('$AUTHORIZATION', 'Basic YTpi'))
      const { out } = await run([...words, '--curl'], { env })
      await run(words, { env, exchange: 'network' })
      const script = join(temporaryFolder(), 'request.sh')
      writeFileSync(script, out)
      await promisify(execFile)('sh', [script], { env: { ...childEnvironment, ...env } })
      await server.close()
      const [byParley, byCurl] = server.requests.map(normalized)
      expect(byCurl).toEqual(byParley)
      expect(out).not.toMatch(/canary|a=b|YTpi/)
    })
  })
})

describe('chat reads and writes files', () => {
  test('chat -f sends the name and the text of a text file, and a known binary file as inline data', async () => {
    const cwd = temporaryFolder({ 'a.png': png(), 'a.txt': 'BM begins this text, not a bitmap' })
    const ended = await run(['chat', 'look', '-f', 'a.png', '-f', 'a.txt'], { cwd })
    expect(sent(ended).contents[0].parts).toEqual([
      { text: 'look' },
      inline(png()),
      { text: 'a.txt:\n' },
      { text: 'BM begins this text, not a bitmap' },
    ])
  })

  test('chat -f sends nothing for an unknown binary file (exit 2) or a missing file (exit 11)', async () => {
    const cwd = temporaryFolder({ blob: Buffer.from([0, 1, 2, 255]) })
    expect(await run(['chat', 'x', '-f', 'blob'], { cwd })).toMatchObject({ code: 2, out: '', requests: [] })
    const missing = await run(['chat', 'x', '-f', 'nowhere'], { cwd })
    expect(missing).toMatchObject(rejected(11, 'parley: nowhere: no such file or folder\n'))
    expect((await run(['chat', 'x', '-f', '.'], { cwd })).code).toBe(11)
  })

  test('chat -o writes only a complete answer to its file, and a broken stream to FILE.part', async () => {
    const cwd = temporaryFolder()
    const whole = await run(['chat', 'x', '-o', 'a.txt'], { cwd, exchange: answering(message('Hi')) })
    expect(whole).toMatchObject({ code: 0, out: '' })
    expect(readText(cwd, 'a.txt')).toBe('Hi\n')
    expect(readdirSync(cwd)).toEqual(['a.txt'])
    const half = 'data: {"candidates":[{"content":{"parts":[{"text":"Half"}]}}]}\n\n'
    const broken = await run(['chat', 'x', '--stream', '-o', 'a.txt'], { cwd, exchange: answering(half) })
    expect(broken.code).toBe(8)
    expect(readText(cwd, 'a.txt')).toBe('Hi\n')
    expect(readText(cwd, 'a.txt.part')).toBe('Half')
  })

  test.each([
    ['-o', 'no/a.txt', 11],
    ['-o', '.', 11],
    ['-o', 'new/', 11],
    ['-o', '', 2],
    ['--thread', 'no/t.json', 11],
    ['--thread', '.', 11],
    ['--thread', 'a'.repeat(250), 11],
  ])('chat %s %j, which cannot be written, sends nothing and exits with %i', async (flag, name, code) => {
    const ended = await run(['chat', 'x', flag, name])
    expect(ended).toMatchObject({ code, out: '', requests: [] })
    if (code === 11) expect(ended.err).toMatch(/^parley: .*\n {2}nothing was sent\n$/)
  })

  test('chat -o keeps the mode of the file that it replaces, and --thread creates its file with mode 0600', async () => {
    const cwd = temporaryFolder()
    const modeOf = (name: string) => lstatSync(join(cwd, name)).mode & 0o777
    writeFileSync(join(cwd, 'a.txt'), '', { mode: 0o600 })
    writeFileSync(join(cwd, 'empty.json'), '')
    chmodSync(join(cwd, 'empty.json'), 0o666)
    expect((await run(['chat', 'x', '-o', 'a.txt', '--thread', 'empty.json'], { cwd })).code).toBe(0)
    expect(modeOf('a.txt')).toBe(ownerOnlyMode)
    expect(modeOf('empty.json')).toBe(0o666)
    expect((await run(['chat', 'x', '--thread', 'new.json'], { cwd })).code).toBe(0)
    expect(modeOf('new.json')).toBe(ownerOnlyMode)
  })

  test('--thread keeps the turns, number formats and unknown fields of its file', async () => {
    const cwd = temporaryFolder()
    const exchange = answering(message('Uno'))
    const first = await run(['chat', 'One', '--thread', 't.json'], { cwd, exchange })
    expect(first).toMatchObject({ code: 0, out: 'Uno\n' })
    writeFileSync(join(cwd, 't.json'), readText(cwd, 't.json').replace('{', '{ "seed": 1.50, '))
    const streamed = ['--stream', '--stream-via', 'body']
    expect(sent(await run(['chat', 'Two', '--thread', 't.json', ...streamed], { cwd }))).toMatchObject({
      seed: 1.5,
      stream: true,
      contents: [{}, { role: 'model' }, { parts: [{ text: 'Two' }] }],
    })
    const saved = readText(cwd, 't.json')
    expect(saved).toContain('"seed": 1.50')
    expect(JSON.parse(saved).stream).toBeUndefined()
    expect(JSON.parse(saved).contents).toHaveLength(4)
  })

  test.each([
    ['chat', []],
    ['chat --stream', ['--stream']],
  ])('O10: %s writes the files of --thread and --report although stdout is closed', async (_, more) => {
    const cwd = temporaryFolder()
    const stdout = createFailingStdout(0, 'EPIPE')
    const exchange = more.includes('--stream') ? undefined : answering(message('Uno'))
    const ask = (...flags: string[]) => run(['chat', 'One', ...more, ...flags], { cwd, stdout, exchange })
    expect(await ask('--thread', 't.json', '--report', 'r.json')).toMatchObject({ code: 0, err: '' })
    expect(readJson(cwd, 't.json').contents).toHaveLength(2)
    const reported = () => readJson(cwd, 'r.json')
    expect(reported()).toMatchObject({ exit: 0, sent: 'yes', usage: { outputTokens: expect.any(Number) } })
    expect(await ask('--report', 'r.json')).toMatchObject({ code: 0, err: '' })
    expect(reported().usage.outputTokens).toEqual(expect.any(Number))
  })

  test.each([
    ['{"name":"x"}', 'it has no "contents"'],
    ['{"Contents":[]}', 'it has no "contents"'],
    ['{"model":{"name":"x"},"contents":[]}', 'its "model" is not a text'],
  ])('--thread exits with 11 if the file is JSON of another kind: %s', async (text, why) => {
    const cwd = temporaryFolder({ 'package.json': text })
    const ended = await run(['chat', 'x', '--thread', 'package.json'], { cwd })
    expect(ended).toMatchObject(rejected(11, `package.json: it is not a conversation, because ${why}\n`))
    expect(readText(cwd, 'package.json')).toBe(text)
  })

  test('after a failed or refused turn, --thread leaves its file unchanged, and a message names the unchanged file', async () => {
    const before = '{"contents":[{"role":"user","parts":[]},{"role":"model","parts":[{"text":"b"}]}]}'
    const cwd = temporaryFolder({ 't.json': before, 's.json': '{"type":"object"}' })
    const argv = ['chat', 'x', '--thread', 't.json', '--system', 'Be brief']
    for (const [more, exchange, code] of [
      [['--stream'], answering('data: {"type":"message_start"}\n\n'), 8],
      [['--schema', 's.json'], answering(message('no')), 8],
      [['--fail-on-cut'], answering(message('half', { stop_reason: 'max_tokens' })), 8],
      [[], answering('{}', { status: 400 }), 4],
    ] as const) {
      // The schema check runs in a thread, so a fast test clock could exceed its time limit.
      const ended = await run([...argv, ...more], { cwd, exchange, timers: realTimers })
      expect(ended.code).toBe(code)
      expect(ended.err).toMatch(/^parley: .*; t\.json is unchanged$/m)
      expect(readText(cwd, 't.json')).toBe(before)
    }
    expect((await run([...argv, '-m', '..'], { cwd })).err).not.toContain('is unchanged')
  })

  test('--thread stores the text of --system until another --system replaces it', async () => {
    const cwd = temporaryFolder()
    const systemOf = (ended: Awaited<ReturnType<typeof run>>) => sent(ended).systemInstruction
    const ask = (...flags: string[]) => run(['chat', 'x', '--thread', 't.json', ...flags], { cwd })
    const brief = { parts: [{ text: 'Be brief' }] }
    for (const flags of [['--system', 'Be brief'], ['--system', 'Be brief'], []]) {
      const ended = await ask(...flags)
      expect({ sent: systemOf(ended), err: ended.err }).toEqual({ sent: brief, err: '' })
    }
    expect((await ask('--system', 'Be long')).err).toBe('')
    expect(systemOf(await ask())).toEqual({ parts: [{ text: 'Be long' }] })
    const saved = readJson(cwd, 't.json')
    expect(Object.keys(saved)).toEqual(['model', 'contents', 'systemInstruction'])
    expect(saved.contents).toHaveLength(10)
  })

  test('--thread uses the model of the last turn, and never sends it as a field of the body', async () => {
    const cwd = temporaryFolder()
    await run(['chat', 'x', '--thread', 't.json', '-m', 'alpha-9'], { cwd })
    const next = await run(['chat', 'y', '--thread', 't.json'], { cwd })
    expect(next.err).toBe("parley: t.json: using alpha-9, the thread's model. -m changes it\n")
    expect(next.requests[0]?.url).toContain('/alpha-9:')
    expect(Object.keys(sent(next))).toEqual(['contents'])
    const last = await run(['chat', 'z', '--thread', 't.json', '-m', 'alpha-8'], { cwd })
    expect([last.requests[0]?.url, last.err]).toEqual([expect.stringContaining('/alpha-8:'), ''])
    expect(readJson(cwd, 't.json')).toMatchObject({ model: 'alpha-8' })
  })

  const model = '"model":"alpha-2.5-pro"'
  test.each([
    ['\n { "a": [{"b":1.0}], "contents":[] }\n', `\n { "a": [{"b":1.0}], "contents":[…],${model} }\n`],
    ['{"model":null,"contents":[],"x":1e2}', `{${model},"contents":[…],"x":1e2}\n`],
    ['{\n  "contents": [],\n  "model": "m"\n}', '{\n  "contents": […],\n  "model": "m"\n}\n'],
  ])('--thread adds a turn and a line break to a file with the body %j, and keeps it', async (...row) => {
    const [body, after] = row
    const cwd = temporaryFolder({ 't.json': body })
    const ended = await run(['chat', 'x', '--thread', 't.json'], { cwd })
    expect(ended.code).toBe(0)
    expect(sent(ended)).not.toHaveProperty('model')
    const saved = readText(cwd, 't.json')
    expect(JSON.parse(saved).contents).toHaveLength(2)
    expect(saved.replace(/("contents": ?\[).*\]}\]/, '$1…]')).toBe(after)
  })

  test('chat -o prints the name of its file, and keeps FILE.part of an earlier answer', async () => {
    const cwd = temporaryFolder()
    const ask = async (...flags: string[]) => (await run(['chat', 'x', '-o', 'a.md', ...flags], { cwd })).err
    writeFileSync(join(cwd, 'a.md.part'), 'half')
    expect(await ask()).toBe('parley: the answer is in a.md\n')
    expect(readText(cwd, 'a.md.part')).toBe('half')
    expect([await ask('-q'), await ask('--dry-run')]).toEqual(['', ''])
  })
})

test.each(['', '\n'])('chat exits with 8 if the body has two answers, separated by %j', async (gap) => {
  const exchange = answering(message('one') + gap + message('two'))
  const TMPDIR = temporaryFolder()
  const { code, out, err } = await run(['chat', 'x'], { exchange, env: { TMPDIR } })
  const [name = ''] = readdirSync(TMPDIR)
  expect([code, out, readText(TMPDIR, name)]).toEqual([8, '', 'onetwo'])
  const path = join(TMPDIR, name)
  expect(err).toContain(`sent a second answer after the first; the received data is saved as ${path}\n`)
})

const noStopReason = /^— alpha-2.5-pro · no stop reason · [\d.]+ s\n$/

test.each([
  '{"type":"message","content":[{"type":"text","text":"whole"}],"stop_reason":null}',
  '{"candidates":[{"content":{"parts":[{"text":"whole"}]}}]}',
])('without a stop reason, chat fails only with --fail-on-cut, and the footer shows it: %s', async (body) => {
  const ask = (...flags: string[]) => run(['chat', 'x', ...flags], { exchange: answering(body) })
  expect(await ask()).toMatchObject({ code: 0, out: 'whole\n', err: '' })
  expect((await ask('--usage')).err).toMatch(noStopReason)
  const err = expect.stringMatching(/^parley: the answer may be cut, because it has no stop reason\n/)
  expect(await ask('--fail-on-cut')).toMatchObject({ code: 8, out: 'whole\n', err })
})

test('the footer of a streamed answer shows "no stop reason", too', async () => {
  const exchange = answering(`${textDelta('x')}data: [DONE]\n\n`, stream)
  const { code, err } = await run(['chat', 'x', '--stream', '--usage'], { exchange })
  expect([code, err]).toEqual([0, expect.stringMatching(noStopReason)])
})

const other = '{"messages": [{"role":"user"}], "n": 1.10}'

test('chat sends a body with messages unchanged except for edits by --set and flags', async () => {
  for (const flags of [[], ['--set', 'n=1.10'], ['--temperature', '1']]) {
    const { requests } = await run(['chat', '-i', '-', ...flags], { stdin: other })
    expect(requests.map(({ text }) => text)).toEqual([expect.stringContaining(other.slice(0, -1))])
  }
})
