import { expect, test } from 'vitest'
import { createEmulator } from '../../src/emulator/emulator.ts'
import { type RunOptions, run, temporaryFolder } from '../harness/run.ts'

const input = '{"command":"x","n":12345678901234567890,"f":1.10,"e":1e400}'
const use = `{"id":"t1","type":"agent.mcp_tool_use","name":"bash","mcp_server_name":"github","input":${input}}`
const waits = '{"type":"session.status_idle","stop_reason":{"type":"requires_action","event_ids":["t1"]}}'
const denial = '{"type":"user.tool_confirmation","tool_use_id":"t1","result":"deny"}'
const done = '{"id":"i2","type":"session.status_idle","stop_reason":{"type":"end_turn"}}'
const rule = { tool: 'bash', server: '*', decision: 'deny' }
const policy = { 'p.json': JSON.stringify({ rules: [rule], default: { decision: 'deny' } }) }

/** Replays a session whose tool use waits. After a denial, the session is done. */
const replay = (toolUse = use) => {
  const texts = [toolUse, waits, denial, done]
  return createEmulator({ record: texts.map((text) => ({ event: JSON.parse(text), text })) })
}

const runWith = (command: string, options: RunOptions = {}) =>
  run(command.split(' '), { exchange: replay(), env: { PARLEY_SESSION: 's1' }, ...options })

const wide: RunOptions = { tty: ['stdout', 'stderr'], columns: 200 }
const summary = `bash (MCP server github) ${input}`
test.each<[command: string, where: string, options: RunOptions, stream: 'out' | 'err', text: string]>([
  ['events list', 'in a line', {}, 'out', `\t${summary}\n`],
  ['events list', 'in a table', wide, 'out', summary],
  ['sessions show', 'in a line', {}, 'out', `waits for\tt1 ${summary}\n`],
  ['sessions show', 'on a terminal', wide, 'out', `waits for     t1 ${summary}\n`],
  ['events follow --history', 'in a line', {}, 'out', `\t${summary}\n`],
  ['events follow --history', 'on a terminal', wide, 'out', `· agent.mcp_tool_use ${summary}`],
  ['events follow', 'among the waiting tool uses', {}, 'err', `\n  t1: ${summary}\n  answer with:`],
  ['events run --no-stdin', 'among the waiting tool uses', {}, 'err', `\n  t1: ${summary}\n  answer with:`],
  ['policy check p.json -s s1', 'in a table', wide, 'out', `rules[0]  bash (MCP server github)  ${input}`],
  ['policy check p.json -s s1 --fail-on-deny', 'on failure', {}, 'err', `\n  deny ${summary} t1 (rules[0])`],
  ['events run --policy p.json', 'on failure', {}, 'err', `\n  deny ${summary} t1 (rules[0])`],
])('%s prints the server and the exact input of a tool use %s', async (command, _, options, stream, text) => {
  expect((await runWith(command, { cwd: temporaryFolder(policy), ...options }))[stream]).toContain(text)
})

test('events run prints the MCP server and the exact input of a denied tool use of the audit file', async () => {
  const options = { cwd: temporaryFolder(policy), exchange: replay() }
  const command = 'events run --policy p.json --audit a.ndjson'
  expect((await runWith(command, options)).code).toBe(14)
  const { code, err } = await runWith(command, options)
  expect([code, err]).toEqual([14, expect.stringContaining(`\n  deny ${summary} t1 (rules[0])`)])
})

test.each([
  ['a name with blanks', '"name":"bash (MCP server a)"', '"bash (MCP server a)" (MCP server not named) {}'],
  ['no name', '"mcp_server_name":"a b"', '(no name) (MCP server "a b") {}'],
  ['fields of other types', '"name":5,"mcp_server_name":["a"]', '(no name) (MCP server not named) {}'],
  ['two inputs', '"name":"bash","input":{"a":1},"input":{"a":2.0}', 'bash (MCP server not named) {"a":2.0}'],
])('events list prints a tool use with %s', async (_, fields, text) => {
  const exchange = replay(`{"id":"t1","type":"agent.mcp_tool_use",${fields}}`)
  const { out } = await runWith('events list', { exchange })
  expect(out.split('\n')[0]).toBe(`t1\tagent.mcp_tool_use\t\t${text}`)
})
