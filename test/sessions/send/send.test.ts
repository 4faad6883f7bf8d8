import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { confirms } from '../../harness/events.ts'
import { answering, type RunOptions, run, temporaryFolder } from '../../harness/run.ts'

const given = '{"type":"user.interrupt","x":1.10}'

async function send(argv: string[], world: RunOptions = {}) {
  const env = { PARLEY_SESSION: 'sesn_1', ...world.env }
  const options = { exchange: answering('{"data":[]}'), ...world, env }
  const ended = await run(['events', 'send', ...argv], options)
  const body = ended.requests[0]?.text ?? ''
  const events: Record<string, unknown>[] = body === '' ? [] : JSON.parse(body).events
  return { ...ended, body, events, types: events.map(({ type }) => type) }
}

const text = (text: string) => [{ type: 'text', text }]

test('events send joins its words to one message, and sends the key, version and beta headers', async () => {
  const ended = await send(['Hello', 'agent'])
  expect(ended.code).toBe(0)
  expect(ended.requests[0]).toMatchObject({
    method: 'POST',
    url: 'https://agents.test/v1/sessions/sesn_1/events',
    headers: {
      'x-api-key': 'canary-key-0123456789',
      'Content-Type': 'application/json',
      'vendor-version': '2023-06-01',
      'vendor-beta': 'managed-agents-2026-04-01',
    },
    text: '{"events":[{"type":"user.message","content":[{"type":"text","text":"Hello agent"}]}]}',
  })
  expect(ended.requests[0]?.headers).not.toHaveProperty('vendor-workspace-id')
})

test('events send sends the events of flags in the given order, then the words, then --system', async () => {
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, 'out.txt'), 'from a file')
  const argv = [
    ['--system', 'be brief'],
    ['--tool-error', 'toolu_2=no=way'],
    ['--message', '@@literal'],
    ['--interrupt-thread', 't1'],
    ['--outcome', 'works', '--rubric', 'runs', '--max-iterations', '5'],
    ['--tool-result', 'toolu_1=@out.txt'],
    ['--custom-tool-result', 'c1='],
    ['--interrupt'],
    ['--event', '{"type":"user.interrupt", "n": 1.0}'],
    ['the', 'words'],
  ].flat()
  const ended = await send(argv, { cwd })
  expect(ended.code).toBe(0)
  const rubric = { type: 'text', content: 'runs' }
  expect(ended.events).toEqual([
    { type: 'user.tool_result', tool_use_id: 'toolu_2', content: text('no=way'), is_error: true },
    { type: 'user.message', content: text('@literal') },
    { type: 'user.interrupt', session_thread_id: 't1' },
    { type: 'user.define_outcome', description: 'works', rubric, max_iterations: 5 },
    { type: 'user.tool_result', tool_use_id: 'toolu_1', content: text('from a file') },
    { type: 'user.custom_tool_result', custom_tool_use_id: 'c1', content: [] },
    { type: 'user.interrupt' },
    { type: 'user.interrupt', n: 1 },
    { type: 'user.message', content: text('the words') },
    { type: 'system.message', content: text('be brief') },
  ])
  expect(ended.body).toContain('"n": 1.0}')
})

test.each([
  ['a body', '{ "events" : [{"type":"user.interrupt","x":1.10}], "more": 12345678901234567890 }', ''],
  ['a list', ' [{"type":"user.interrupt","x":1.10}]\n', '{"events":[{"type":"user.interrupt","x":1.10}]}'],
  ['one event', '{"type":"user.interrupt",\n"x":1}\n', '{"events":[{"type":"user.interrupt",\n"x":1}]}'],
  ['one event per line', `${given}\r\n\n${given}\n`, `{"events":[${given},${given}]}`],
])('events send sends %s on stdin unchanged', async (_, stdin, sent) => {
  const ended = await send([], { stdin })
  expect(ended.code).toBe(0)
  expect(ended.body).toBe(sent || stdin)
})

test('events send sends the events of -i first, then flags and words', async () => {
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, 'e.json'), '{"events":[{"type":"user.interrupt","x":1.10}],"more":1.0}')
  const ended = await send(['hello', '-i', 'e.json', '--system', 's'], { cwd, stdin: 'not read' })
  expect(ended.types).toEqual(['user.interrupt', 'user.message', 'system.message'])
  expect(ended.body).toContain('"x":1.10')
  expect(ended.body).toContain('"more":1.0')
})

test('events send sends each beta once, and the vendor, version and workspace from the settings', async () => {
  const env = {
    PARLEY_VENDOR: 'acme',
    PARLEY_AGENTS_VERSION: '2024-01-01',
    PARLEY_WORKSPACE_ID: 'wrk_1',
    PARLEY_BETAS: 'managed-agents-2026-04-01, skills-2025-10-02',
  }
  const argv = ['x', '--beta', 'compact-2026-01-12', '--beta', 'skills-2025-10-02']
  expect((await send(argv, { env })).requests[0]?.headers).toMatchObject({
    'acme-version': '2024-01-01',
    'acme-beta': 'managed-agents-2026-04-01,skills-2025-10-02,compact-2026-01-12',
    'acme-workspace-id': 'wrk_1',
  })
  expect((await send(['x', '--no-beta'])).requests[0]?.headers).not.toHaveProperty('vendor-beta')
})

const denial = confirms('toolu_1', 'deny')
const confirmation = (fields: object) => ({ ...denial, ...fields })
const withContent = (type: string, ...content: object[]) => ({ type, content })
const message = { type: 'user.message', content: text('x') }
const system = { type: 'system.message', content: text('x') }
const [toolResult, interrupt] = [{ type: 'user.tool_result' }, { type: 'user.interrupt' }]

test.each<[string, object[]]>([
  ['a tool use id of 1 character', [confirmation({ tool_use_id: 'a' })]],
  ['a tool use id of 128 characters', [confirmation({ tool_use_id: '👍'.repeat(128) })]],
  ['a deny message of 10,000 characters', [confirmation({ deny_message: '👍'.repeat(10000) })]],
  ['unknown fields', [{ ...message, extra: [1] }]],
  ['unknown content blocks', [withContent('user.message', { type: 'image', source: 5 })]],
  ['a tool result without an id', [toolResult]],
  ['an undocumented content of a custom tool result', [{ type: 'user.custom_tool_result', content: 5 }]],
  ['a system message after a message', [message, system]],
  ['a system message after a tool result', [toolResult, system]],
])('events send accepts %s', async (_, events) => {
  const ended = await send([], { stdin: JSON.stringify(events) })
  expect(ended).toMatchObject({ code: 0 })
  expect(ended.events).toEqual(events)
})

async function expectRefusal(events: unknown, problem: string): Promise<void> {
  const ended = await send([], { stdin: JSON.stringify(events) })
  expect(ended).toMatchObject({ code: 2, out: '', requests: [], err: expect.stringContaining(problem) })
}

test.each<[string, object, string]>([
  ['with an empty tool use id', { tool_use_id: '' }, 'tool_use_id: must not be empty'],
  ['with an id of 129 characters', { tool_use_id: '👍'.repeat(129) }, 'tool_use_id: must be at most 128'],
  ['without a tool use id', { tool_use_id: undefined }, 'tool_use_id: is missing'],
  ['with a result other than allow and deny', { result: 'maybe' }, 'result: must be allow or deny'],
  ['with a long message', { deny_message: 'a'.repeat(10001) }, 'deny_message: must be at most 10000'],
  ['that allows with a message', { result: 'allow', deny_message: 'no' }, 'deny_message: is allowed only'],
])('events send exits with 2 and sends nothing for a confirmation %s', async (_, fields, problem) => {
  await expectRefusal([message, confirmation(fields)], `events[1].${problem}`)
})

const misplaced = 'a system.message must come right after'
const systemWith = (block: object) => [message, withContent('system.message', block)]
test.each<[string, unknown, string]>([
  ['an empty list', [], 'events: must have at least one event'],
  ['a text block without text', [withContent('user.message', { type: 'text' })], '[0].text: is missing'],
  ['a system message as the first event', [system], `events[0]: ${misplaced}`],
  ['two system messages', [message, system, system], 'events[1]: only one system.message is allowed'],
  ['a system message after an interrupt', [interrupt, system], `events[1]: ${misplaced}`],
  ['an unknown event type', [{ type: 'user.mesage' }], "'user.mesage' (did you mean user.message?)"],
  ['an event without a type', [{}], 'events[0].type: is missing'],
  ['an event that is not an object', [5], 'events[0]: must be an object'],
  ['events that are not a list', { events: {} }, 'events: must be a list'],
  ['an empty system message', systemWith({ type: 'text', text: '' }), '.text: must not be empty'],
  ['a system message with an image', systemWith({ type: 'image' }), '.type: must be text blocks only'],
])('events send exits with 2 and sends nothing for %s', (_, events, problem) =>
  expectRefusal(events, problem),
)

test('events send reports all problems of the events together', async () => {
  const events = [{ type: 'x' }, confirmation({ tool_use_id: '' }), system]
  const ended = await send([], { stdin: JSON.stringify(events) })
  expect(ended.err.split('\n')).toHaveLength(5)
  expect(ended.err).toMatch(
    /^parley: stdin: 3 problems\n {2}events\[0\]\.type.*\n {2}events\[1\]\.tool_use_id.*\n {2}events\[2\]/,
  )
})

test('events send names an invalid event by its line on stdin, or by its index if a flag added it', async () => {
  const stdin = '{"type":"user.interrupt"}\n\n{"type":"user.message"}\n'
  const { code, err } = await send(['--event', '{"type":"user.message"}'], { stdin })
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('  line 3: content: ') })
  expect(err).toContain('  events[2].content: ')
})

test('events send advises --no-validate for an unknown event type, but not for a type that is not text', async () => {
  const { code, err } = await send(['--event', '{"type":"user.future"}'])
  expect(code).toBe(2)
  expect(err).toBe(
    "parley: the events: events[0].type: unknown event type 'user.future': 'parley help event-types' lists the types that you can send; --no-validate sends it\n",
  )
  expect((await send(['--event', '{"type":5}'])).err).not.toContain('--no-validate')
})

const rubric = 'é'.repeat(262_145)
const tooLong = 'rubric.content: must be at most 262144 characters long'
test.each([
  ['--max-iterations 21', ['--max-iterations', '21'], 'max_iterations: must be at most 20'],
  ['a rubric of 262,145 characters', ['--rubric', rubric], tooLong],
])('events send sends %s and warns about it, also with --quiet', async (_, argv, said) => {
  const { code, err, requests } = await send(['--outcome', 'x', ...argv, '-q'], { exchange: undefined })
  expect({ code, count: requests.length }).toEqual({ code: 0, count: 1 })
  expect(err).toBe(`parley: the events: events[0].${said}; parley sends it, but the service may refuse it\n`)
  expect((await send(['--outcome', 'x', ...argv, '--no-validate'], { exchange: undefined })).err).toBe('')
})

test.each([
  ['--message', ['--message', '']],
  ['--outcome', ['--outcome', ' ']],
  ['--rubric', ['--outcome', 'x', '--rubric', '@-']],
  ['--interrupt-thread', ['--interrupt-thread', '']],
])('events send refuses an empty value of %s', async (flag, argv) => {
  const ended = await send(argv, { stdin: '' })
  expect(ended).toMatchObject({ code: 2, requests: [] })
  expect(ended.err).toContain(`parley: ${flag} is empty\n`)
})

test('events send refuses an undocumented beta, and advises the nearest one or --no-validate', async () => {
  const ended = await send(['x', '--beta', 'skils-2025-10-02'])
  expect(ended).toMatchObject({ code: 2, requests: [] })
  expect(ended.err).toBe(
    "parley: --beta: undocumented beta 'skils-2025-10-02' (did you mean skills-2025-10-02?); --no-validate accepts it\n",
  )
  const undated = await send(['x', '--beta', 'computer-use'])
  expect(undated.err).toContain("'computer-use' (did you mean computer-use-2025-11-24?)")
  const env = { PARLEY_BETAS: 'nope' }
  const refused = await send(['x'], { env })
  expect(refused).toMatchObject({ code: 3, requests: [] })
  expect(refused.err).toBe("parley: PARLEY_BETAS: undocumented beta 'nope'; --no-validate accepts it\n")
  expect(await send(['x', '--betas', 'nope'])).toMatchObject({ code: 2, requests: [] })
  expect(await send(['x', '--no-beta'], { env })).toMatchObject({ code: 0, requests: [{}] })
  expect((await run(['chat', 'x'], { env })).code).toBe(0)
})

test('events send --no-validate sends an undocumented beta', async () => {
  const betas = ['--beta', 'new-2027-01-01', '--beta', 'skills-2025-10-02', '--no-validate']
  const { requests } = await send(['x', ...betas])
  const sent = 'managed-agents-2026-04-01,new-2027-01-01,skills-2025-10-02'
  expect(requests[0]?.headers).toMatchObject({ 'vendor-beta': sent })
})

test.each([
  ['a beta with a comma', ['x', '--no-validate', '--beta', 'new-1,new-2'], "--beta 'new-1,new-2': must"],
  ['--beta after --no-beta', ['x', '--no-beta', '--beta', 'skills-2025-10-02'], 'exclude'],
  ['a rubric without an outcome', ['--rubric', 'x'], '--rubric must follow'],
  ['a tool result without an id', ['--tool-result', 'x'], 'ID=TEXT'],
  ['broken JSON even with --no-validate', ['--no-validate', '--event', '{'], '--event: not valid JSON'],
  ['a list in --event', ['--event', '[]'], 'repeat the flag, or give a list by -i FILE or a pipe'],
  ['a flag as the value of --message', ['--message', '--version'], "--message='--version'"],
])('events send refuses %s, and sends nothing', async (_, argv, said) => {
  const ended = await send(argv)
  expect(ended).toMatchObject({ code: 2, out: '', requests: [], err: expect.stringContaining(said) })
})

test('events send sends 2,000 lines of events; if line 1,999 is invalid, it names the line and sends nothing', async () => {
  const formatLine = (text: string) => `{"type":"user.message","content":[{"type":"text"${text}}]}`
  const lines = Array.from({ length: 2000 }, (_, i) => formatLine(`,"text":"${i}"`))
  const ended = await send(['--ids'], { stdin: lines.join('\n'), exchange: undefined })
  expect(ended.code).toBe(0)
  expect(ended.out.trim().split('\n')).toHaveLength(2000)
  expect(ended.events[1998]?.content).toEqual(text('1998'))

  const lineProblems = [
    [formatLine(''), 'content[0].text: is missing'],
    ['{"type":', 'not valid JSON: column 9'],
    [`\u00a0${lines[1998]}`, 'not valid JSON: column 1'],
  ] as const
  for (const [line, problem] of lineProblems) {
    const { code, err, requests } = await send([], { stdin: lines.with(1998, line).join('\n') })
    expect([code, requests, err]).toEqual([2, [], expect.stringContaining(`stdin: line 1999: ${problem}`)])
  }
})

const data = [
  { id: 'sevt_1', type: 'user.message', content: text('a\tb\nc\\'), processed_at: '2026-01-01T00:00:00Z' },
  { id: 'sevt_2', type: 'user.interrupt', processed_at: null },
]
const exchange = answering(JSON.stringify({ data }))

test('events send prints the accepted events as tab-separated lines, as a table on a terminal, or as ids', async () => {
  const pipe = await send(['x'], { exchange })
  const row = 'sevt_1\tuser.message\t2026-01-01T00:00:00Z\ta\\tb\\nc\\\\\n'
  expect(pipe.out).toBe(`${row}sevt_2\tuser.interrupt\t\t\n`)
  const terminal = await send(['x'], { exchange, tty: ['stdout'] })
  const [head, first, second] = terminal.out.split('\n')
  expect(head).toBe('ID      TYPE            TIME                 TEXT')
  expect(first).toMatch(/^sevt_1 {2}user\.message {4}202\d-\d\d-\d\d \d\d:\d\d:00 {2}a b c\\$/)
  expect(second).toBe('sevt_2  user.interrupt')
  expect((await send(['x', '--ids'], { exchange })).out).toBe('sevt_1\nsevt_2\n')
  expect((await send(['x', '--raw'], { exchange })).out).toBe(JSON.stringify({ data }))
})

test('events send on a terminal escapes control characters of the response, also with --raw', async () => {
  const evil = '{"data":[{"id":"\\u001b[2J\u009b\u202e","type":"t"}]}'
  const world: RunOptions = { exchange: answering(evil), tty: ['stdout'] }
  expect((await send(['x', '--ids'], world)).out).toBe('^[[2J\\u009b\\u202e\n')
  const { out } = await send(['x', '--raw'], world)
  expect(out).toBe('{"data":[{"id":"\\u001b[2J\\u009b\\u202e","type":"t"}]}\n')
})

test('events send does not accept --retry-unknown, because it must not send events twice', async () => {
  expect(await send(['x', '--retry-unknown'])).toMatchObject({ code: 2, requests: [] })
})

test.each([
  ['one event', given, ['user.interrupt']],
  ['one line with an event', `${given}\n`, ['user.interrupt']],
  ['no content', '', []],
])('Q20: events send puts events on stdin before events of flags: %s', async (_, stdin, first) => {
  const { code, body, types } = await send(['--tool-result', 't1=ok', '--system', 's'], { stdin })
  expect({ code, types }).toEqual({ code: 0, types: [...first, 'user.tool_result', 'system.message'] })
  expect(body.includes(given)).toBe(first.length > 0)
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
    const { code, events, err } = await send(['what is this?'], { stdin })
    expect(code).toBe(0)
    expect(err).toContain("stdin looks like events, but is sent as text; to send events, use '-i -'\n")
    const content = ['what is this?', stdin].map((text) => ({ type: 'text', text }))
    expect(events).toEqual([{ type: 'user.message', content }])
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
const inBase64 = (media_type: string, data: string) => ({ type: 'base64', media_type, data })
const source = (media_type: string, bytes: Buffer) => inBase64(media_type, bytes.toString('base64'))
const image = { type: 'image', source: source('image/png', png) }
const document = { type: 'document', source: source('application/pdf', pdf) }
const words = { type: 'text', text: 'What is this?' }

const contents = async (argv: string[], world: RunOptions = {}) => {
  const { code, err, events } = await send(argv, { cwd, ...world })
  expect(code, err).toBe(0)
  return events
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
