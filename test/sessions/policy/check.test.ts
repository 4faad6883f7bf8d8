import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { confirms, bash as createBash, type Event, waitsFor } from '../../harness/events.ts'
import { answering, type RunOptions, rejected, run, temporaryFolder } from '../../harness/run.ts'
import { createFailingStdout } from '../../harness/stdout.ts'

const rules = {
  rules: [
    { tool: 'read_*', decision: 'allow' },
    { tool: 'bash', input: { command: 'git status' }, decision: 'allow' },
    { tool: 'bash', input: { command: '*rm *' }, decision: 'deny', reason: 'no deleting' },
    { tool: 'create_issue', server: 'github', decision: 'allow' },
  ],
  default: { decision: 'deny', reason: 'not in CI' },
}

/** Returns a tool use without a permission. */
const bash = (id: string, command: string, more: object = {}): Event =>
  createBash(id, { input: { command }, evaluated_permission: undefined, ...more })

const issue = { mcp_server_name: 'github', name: 'create_issue', input: { n: 1, title: 'a\tb' } }
/** Events with tool uses that were allowed, denied or answered with a result, and with waiting tool uses. */
const session: Event[] = [
  bash('t1', 'git status'),
  confirms('t1'),
  { type: 'agent.tool_result', tool_use_id: 't1' },
  bash('t2', 'rm -rf x'),
  confirms('t2', 'deny', 'no'),
  bash('t3', 'ls', { evaluated_permission: 'allow' }),
  bash('t4', 'pwd'),
  { type: 'agent.tool_result', tool_use_id: 't4' },
  { id: 'c1', type: 'agent.custom_tool_use', name: 'read_log', input: {} },
  { type: 'user.custom_tool_result', custom_tool_use_id: 'c1', content: [] },
  bash('t5', 'x', { evaluated_permission: 'deny' }),
  bash('t6', 'y', { evaluated_permission: 'ask' }),
  waitsFor('m1'),
  { ...createBash('m1'), type: 'agent.mcp_tool_use', ...issue },
  waitsFor('m1'),
]
const lines = (events: object[]) => events.map((event) => `${JSON.stringify(event)}\n`).join('')

async function check(
  words: string[],
  world: RunOptions & { files?: Record<string, string | Uint8Array> } = {},
) {
  const cwd = world.cwd ?? temporaryFolder()
  const files = { 'p.json': JSON.stringify(rules), 'e.ndjson': lines(session), ...world.files }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text)
  return run(['policy', 'check', ...words], { cwd, ...world })
}

const verdicts = [
  ['allow', 'rules[1]', 't1'],
  ['deny', 'rules[2]', 't2'],
  ['deny', 'default', 't3'],
  ['deny', 'default', 't4'],
  ['allow', 'rules[0]', 'c1'],
  ['deny', 'default', 't5'],
  ['deny', 'default', 't6'],
  ['allow', 'rules[3]', 'm1'],
]
const readVerdicts = (out: string) =>
  out.match(/.+(?=\n)/g)?.map((line) => line.split('\t').slice(0, 3)) ?? []

test.each<[string, string]>([
  ['a file with one event per line', lines(session)],
  ['a page of events', JSON.stringify({ data: session, next_page: null })],
])('policy check prints the decision and the deciding rule for each tool use in %s', async (_, text) => {
  const { code, out, err, requests } = await check(['p.json', 'e.json'], { files: { 'e.json': text } })
  expect({ code, err, requests }).toEqual({ code: 0, err: '', requests: [] })
  expect(readVerdicts(out)).toEqual(verdicts)
  expect(out.split('\n')[1]).toBe('deny\trules[2]\tt2\tbash\t{"command":"rm -rf x"}\tno deleting')
  expect(out.split('\n')[7]).toContain('\t{"n":1,"title":"a\\\\tb"}\t')
  const piped = await check(['p.json', '-'], { stdin: text })
  expect(piped.out).toBe(out)
})

test.each([{ next_page: 'p2' }, { has_more: true }])(
  'policy check warns about a page with %j, and with --fail-on-deny exits with 2',
  async (next) => {
    const page = JSON.stringify({ data: [bash('t1', 'git status')], ...next })
    const last = JSON.stringify({ data: [bash('t2', 'git status')], next_page: null })
    const files = { 'one.json': page, 'all.ndjson': `${page}\n${last}\n` }
    const warned = await check(['p.json', 'one.json'], { files })
    const words = 'one.json: later pages of the list are missing'
    expect([warned.code, warned.err]).toEqual([0, expect.stringContaining(words)])
    const refused = await check(['p.json', 'one.json', '--fail-on-deny'], { files })
    expect([refused.code, refused.out, refused.err]).toEqual([2, '', expect.stringContaining(words)])
    const whole = await check(['p.json', 'all.ndjson', '--fail-on-deny'], { files })
    expect([whole.code, whole.err]).toEqual([0, ''])
  },
)

test('policy check --tool allows tool uses that events run would execute, unless a rule denies or asks', async () => {
  const files = {
    'p.json': '{"rules":[{"tool":"bash","decision":"deny"}],"default":{"decision":"ask"}}',
    'e.ndjson': lines([
      { id: 'c1', type: 'agent.custom_tool_use', name: 'deploy', input: {} },
      { id: 'c2', type: 'agent.custom_tool_use', name: 'other', input: {} },
      { id: 't1', type: 'agent.tool_use', name: 'deploy', input: {}, evaluated_permission: 'ask' },
      bash('t2', 'ls'),
    ]),
  }
  const cwd = temporaryFolder()
  const tools = ['--tool', 'deploy=touch ran', '--tool', 'bash=touch ran']
  const { out, requests } = await check(['p.json', 'e.ndjson', ...tools], { cwd, files })
  expect(readVerdicts(out)).toEqual([
    ['allow', '--tool', 'c1'],
    ['ask', 'default', 'c2'],
    ['ask', 'default', 't1'],
    ['deny', 'rules[0]', 't2'],
  ])
  expect([requests, existsSync(join(cwd, 'ran'))]).toEqual([[], false])
  const why = 'parley: --tool works only with EVENTS or --session\n'
  expect((await check(['p.json', ...tools], { files })).err).toBe(why)
  expect((await check(['p.json', 'e.ndjson', '--tool', 'deploy'], { files })).code).toBe(2)
})

test('policy check --raw prints a JSON line per tool use, with the source text of the input', async () => {
  const spelled = '{ "n" : 1.0e2, "long": 12345678901234567890 }'
  const text = `{"id":"t1","type":"agent.tool_use","name":"read_x","input":${spelled}}\n${lines([bash('t2', 'rm a')])}`
  const { out } = await check(['p.json', 'e.ndjson', '--raw'], { files: { 'e.ndjson': text } })
  expect(out).toBe(
    `{"toolUse":"t1","name":"read_x","input":${spelled},"decision":"allow","rule":0,"reason":null}\n` +
      '{"toolUse":"t2","name":"bash","input":{"command":"rm a"},"decision":"deny","rule":2,"reason":"no deleting"}\n',
  )
})

test("policy check prints a table and the totals on a terminal, and escapes the events' text", async () => {
  const uses = [bash('t1', 'git status'), bash('t2', 'rm \u001b[2J\u202e x'), bash('t3', 'z'.repeat(300))]
  const terminal: RunOptions = { tty: ['stdout', 'stderr'], columns: 70 }
  const world = { files: { 'e.ndjson': lines(uses) }, ...terminal }
  const { out, err } = await check(['p.json', 'e.ndjson', '--color', 'never'], world)
  const rows = out.split('\n')
  expect(rows.slice(0, 3)).toEqual([
    'DECISION  RULE      TOOL  INPUT',
    'allow     rules[1]  bash  {"command":"git status"}',
    expect.stringMatching(/^deny {6}rules\[2\] {2}bash {2}\{"command":"rm \\u001b\[2J\\u202e x"\} \(no/),
  ])
  expect(rows.filter((row) => row.length > 70)).toEqual([])
  const coloured = await check(['p.json', 'e.ndjson', '--color', 'always'], world)
  expect(stripVTControlCharacters(coloured.out)).toBe(out)
  expect(err).toContain('parley: tool uses: 1 allowed, 0 to ask about, 2 denied\n')
})

test('policy check --fail-on-deny exits with 14 and names each tool use for which the decision is deny or ask', async () => {
  const { code, out, err } = await check(['p.json', 'e.ndjson', '--fail-on-deny'])
  expect({ code, rows: readVerdicts(out).length }).toEqual({ code: 14, rows: 8 })
  expect(err).toContain('parley: p.json does not allow 5 of 8 tool uses\n')
  expect(err).toContain('  deny bash {"command":"rm -rf x"} t2 (rules[2]: no deleting)\n')
  const asking = { 'p.json': '{"rules":[]}' }
  expect((await check(['p.json', 'e.ndjson', '--fail-on-deny'], { files: asking })).code).toBe(14)
  const allowing = { 'p.json': '{"rules":[],"default":{"decision":"allow"}}' }
  expect((await check(['p.json', 'e.ndjson', '--fail-on-deny'], { files: allowing })).code).toBe(0)
})

test('policy check --fail-on-deny exits with 14 if the reader of stdout closes it', async () => {
  const stdout = createFailingStdout(0, 'EPIPE')
  const { code, err } = await check(['p.json', 'e.ndjson', '--fail-on-deny'], { stdout })
  expect({ code, err }).toMatchObject({ code: 14, err: expect.stringContaining('does not allow 5 of 8') })
  expect(await check(['p.json', 'e.ndjson'], { stdout })).toMatchObject({ code: 0, err: '' })
})

const parent = "rules[0] does not match: the * in 'git *' does not match \"..\" in 'command'"
const uncovered = 'rules[0] does not match: the rule has no pattern for the input field "cwd"'
const semicolon = "rules[1] does not match: the * in 'git *' does not match \";\" in 'command'"
test.each<[string, string[], object, string]>([
  ['a * does not match a parent folder', ['git *'], { command: 'git a/../b' }, parent],
  ['the input has another field', ['git *'], { command: 'git a', cwd: '/' }, uncovered],
  ['only its * keeps it from matching', ['npm test', 'git *'], { command: 'git a;b' }, semicolon],
])('policy check explains why an allow rule does not match: %s', async (_, commands, input, reason) => {
  const rules = commands.map((command) => ({ tool: 'bash', decision: 'allow', input: { command } }))
  const files = {
    'p.json': JSON.stringify({ rules }),
    'e.ndjson': lines([{ ...bash('t1', 'ls'), input }]),
  }
  const { out } = await check(['p.json', 'e.ndjson', '--raw'], { files })
  expect(JSON.parse(out)).toMatchObject({ decision: 'ask', rule: null, reason })
  const table = await check(['p.json', 'e.ndjson'], { files, tty: ['stdout'], columns: 200 })
  expect(table.out).toContain(reason)
})

test('policy check never allows a tool use id with two inputs, or an input with a duplicate key', async () => {
  const twice = lines([bash('t1', 'git status'), bash('t1', 'rm x'), bash('t1', 'git status')])
  const key =
    '{"id":"t2","type":"agent.tool_use","name":"bash","input":{"command":"git status","command":"git status"}}\n'
  const { out } = await check(['p.json', 'e.ndjson'], { files: { 'e.ndjson': twice + key } })
  expect(readVerdicts(out)).toEqual(['t1', 't2'].map((id) => ['deny', 'default', id]))
})

/** A recorded session of several chunks. */
const long = Array.from({ length: 1000 }, (_, index) => JSON.stringify(bash(`t${index}`, 'ls'.repeat(50))))

test.each([
  ['that is not JSON', Buffer.from('x'), 'line 1002: not valid JSON: column 1: value expected'],
  ['that is not an event', Buffer.from('{"a":1}'), 'line 1002: is not an event'],
  ['that is not UTF-8', Buffer.from([0xff]), 'not UTF-8 text on line 1002: '],
])('policy check exits with 2, names the line %s, and prints no decision', async (_, line, said) => {
  const events = Buffer.concat([Buffer.from(`${long.join('\n')}\n\n`), line, Buffer.from('\n')])
  expect(await check(['p.json', 'e.ndjson'], { files: { 'e.ndjson': events } })).toMatchObject(
    rejected(2, `parley: e.ndjson: ${said}`),
  )
  expect(await check(['p.json', '-'], { stdin: events })).toMatchObject(rejected(2, `parley: stdin: ${said}`))
})

test('policy check reads lines that are split over chunks of stdin', async () => {
  const events = Buffer.from(`${long.join('\r\n')}\n${JSON.stringify(bash('t\u00e9', 'ls'))}`)
  const whole = await check(['p.json', '-'], { stdin: events })
  const split = Array.from({ length: Math.ceil(events.length / 777) }, (_, index) =>
    events.subarray(index * 777, (index + 1) * 777),
  )
  expect(readVerdicts(whole.out).length).toBe(1001)
  expect(await check(['p.json', '-'], { stdin: split })).toEqual(whole)
})

test('policy check -s reads the events from the session, and sends nothing with --dry-run', async () => {
  const exchange = answering(JSON.stringify({ data: session, next_page: null }))
  const { code, out, requests } = await check(['p.json', '-s', 's1'], { exchange })
  expect({ code, rows: readVerdicts(out) }).toEqual({ code: 0, rows: verdicts })
  expect(requests.map(({ method }) => method)).toEqual(['GET'])
  expect(new URL(requests[0]?.url ?? '').pathname).toBe('/v1/sessions/s1/events')
  const shown = await check(['p.json', '-s', 's1', '--dry-run'], { exchange })
  expect({ code: shown.code, requests: shown.requests }).toEqual({ code: 0, requests: [] })
  expect(JSON.parse(shown.out).method).toBe('GET')
})

test('policy check without events checks only the policy file, and says that it does not read a pipe', async () => {
  const world = { stdin: 'no events', env: { PARLEY_SESSION: 's1' } }
  expect(await check(['p.json'], world)).toMatchObject({
    code: 0,
    out: '',
    err: "parley: p.json: 4 rules, and all examples pass; stdin is not read: add '-' to check its events\n",
    requests: [],
  })
  const rule = { tool: 'bash', decision: 'allow', examples: { miss: [{ name: 'sh' }] } }
  const files = { 'p.json': JSON.stringify({ rules: [rule] }) }
  const { err } = await check(['p.json', '--no-stdin'], { ...world, files })
  expect(err).toBe('parley: p.json: 1 rule, and all examples pass\n')
})

const example = { tool: 'bash', decision: 'allow', examples: { match: [{ name: 'sh' }] } }
const broken = { 'p.json': JSON.stringify({ rules: [example] }) }
const notMatched = 'rules[0].examples.match[0]: the rule does not match this example'
const noEvents = { 'e.ndjson': '[1]' }
test.each<[what: string, words: string, said: string, files?: Record<string, string>]>([
  ['an example that its rule does not match', 'p.json', notMatched, broken],
  ['a missing file name', '', 'the argument <file> is missing'],
  ['values that are not events', 'p.json e.ndjson', 'e.ndjson: events[0]: is not an event', noEvents],
  ['events and --session', 'p.json e.ndjson -s s1', '--session and EVENTS exclude each other'],
  ['--curl without a request', 'p.json --curl', '--curl works only with --session'],
  ['stdin as both the policy and the events', '- -', 'stdin'],
])('policy check exits with 2 for %s', async (_, words, said, files) => {
  const world = { files, stdin: '{"rules":[]}' }
  const { code, out, err, requests } = await check(words.split(' ').filter(Boolean), world)
  expect({ code, out, requests }).toEqual({ code: 2, out: '', requests: [] })
  expect(err).toContain(said)
})
