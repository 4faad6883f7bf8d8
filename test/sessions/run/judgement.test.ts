import { expect, test } from 'vitest'
import { createRule, type Policy } from '../../../src/sessions/policy/policy.ts'
import { type ParsedToolUse, parseToolUse } from '../../../src/sessions/policy/tool-use.ts'
import {
  describeDecider,
  describeJudgement,
  describeToolUse,
  formatReason,
  getToolUseExecutor,
  judgeToolUse,
  readToolFlags,
} from '../../../src/sessions/running/judgement.ts'

const custom = 'agent.custom_tool_use'
const builtIn = 'agent.tool_use'
const mcp = 'agent.mcp_tool_use'

/** Reads a tool use whose event has these fields as source text. */
const read = (fields: string, type = builtIn, isContradicted?: boolean) =>
  parseToolUse(`{"id":"u1","type":"${type}",${fields}}`, { isContradicted })

test('a tool use has all fields of its event, and the source text of its input', () => {
  const fields = '"name":"x", "mcp_server_name":"s", "input": {"a": 1.0}, "evaluated_permission":"ask"'
  expect(read(fields, mcp)).toEqual({
    id: 'u1',
    type: mcp,
    text: `{"id":"u1","type":"${mcp}",${fields}}`,
    name: 'x',
    input: { a: 1 },
    inputText: '{"a": 1.0}',
    server: 's',
    isContradicted: false,
    isUnclear: false,
    permission: 'ask',
  })
})

const longest = `"${'x'.repeat(99_998)}"`
const plain = { name: 'bash', input: {}, inputText: '{}', isUnclear: false }
test.each<[rule: string, fields: string, expected: Partial<ParsedToolUse>]>([
  ['has an empty input if its event has no input', '"name":"bash"', plain],
  ['is unclear if it has no name', '"input":{}', { name: '', isUnclear: true }],
  ['has no server if mcp_server_name is empty', '"name":"x","mcp_server_name":""', { server: undefined }],
  ['has no server if mcp_server_name is 5', '"name":"x","mcp_server_name":5', { server: undefined }],
  ['is unclear if its input has a key twice', '"name":"x","input":{"a":1,"a":2}', { isUnclear: true }],
  ['may have an input of 100,000 characters', `"name":"x","input":${longest}`, { isUnclear: false }],
  ['is unclear if it is longer', `"name":"x","input":${longest.replace('x', 'xx')}`, { isUnclear: true }],
])('a tool use %s', (_, fields, expected) => {
  // In toMatchObject, an expected {} would equal every value.
  expect(read(fields)).toEqual(expect.objectContaining(expected))
})

test('a tool use is unclear if the service sent it with two inputs', () => {
  expect(read('"name":"bash"', builtIn, true)).toMatchObject({ isContradicted: true, isUnclear: true })
})

test('a value of --tool has the form NAME=COMMAND, and each name has one command', () => {
  expect(readToolFlags()).toEqual(new Map())
  const commands = new Map([
    ['x', 'a=b\nc'],
    ['y z', ' d '],
  ])
  expect(readToolFlags(['x=a=b\nc', 'y z= d '])).toEqual(commands)
  for (const text of ['x', '=a', 'x= \n'])
    expect(() => readToolFlags([text])).toThrow(`--tool ${text}: must have the form NAME=COMMAND`)
  expect(() => readToolFlags(['x=a', 'x=a'])).toThrow('--tool: there are two commands for x; give one')
})

const createPolicy = (rules: Policy['rules'], decision: 'allow' | 'ask' | 'deny' = 'ask') => ({
  rules,
  fallback: { decision, reason: 'who knows' },
  toolCommands: new Map([['x', 'echo']]),
})

const [bash, x] = [read('"name":"bash"'), read('"name":"x"', custom)]
const unclear = read('"name":"x","input":{"a":1,"a":2}', custom)
const guarded = read('"name":"x","evaluated_permission":"ask"')
const deny = (tool: string, reason?: string) => createRule({ tool, decision: 'deny', reason })
const allowOnServer = createRule({ tool: 'bash', server: 's', decision: 'allow' })
const byDefault = { decision: 'ask', by: 'default', reason: 'who knows' }
const withReason = { ...byDefault, mismatchReason: expect.stringMatching(/^rules\[0\] does not/) }
test.each<[what: string, use: ParsedToolUse, rules: Policy['rules'], expected: object]>([
  ['a rule', bash, [deny('y'), deny('bash', 'no')], { decision: 'deny', by: 'rule', rule: 1, reason: 'no' }],
  ['the default', bash, [], byDefault],
  ['the default, with the reason why an allow rule does not match', bash, [allowOnServer], withReason],
  ['a command for the tool', x, [], { decision: 'allow', by: 'tool' }],
  ['a rule, not the command', x, [deny('x')], { decision: 'deny', by: 'rule', rule: 0 }],
  ['the default, not the command, if the input is unclear', unclear, [], byDefault],
  ['the default, not the command, if the service asks for permission', guarded, [], byDefault],
])('events run decides about a tool use by %s', async (_, use, rules, expected) => {
  expect(await judgeToolUse(use, createPolicy(rules))).toEqual({ use, ...expected })
})

test('a tool use that the default allows has no reason why an allow rule does not match', async () => {
  expect((await judgeToolUse(bash, createPolicy([allowOnServer], 'allow'))).mismatchReason).toBe(undefined)
})

test.each([
  [builtIn, 'without a --tool command', 'allow', 'other-client'],
  [builtIn, 'with a --tool command', 'deny', 'tool-command'],
  [builtIn, 'with a --tool command', 'ask', 'service'],
  [mcp, 'with a --tool command', 'allow', 'service'],
])('the executor of %s %s and with permission %s is %j', (type, command, permission, executor) => {
  const { toolCommands, ...policy } = createPolicy([])
  const use = read(`"name":"x","evaluated_permission":${JSON.stringify(permission)}`, type)
  const commands = command === 'with a --tool command' ? { toolCommands } : {}
  expect(getToolUseExecutor(use, { ...policy, ...commands })).toBe(executor)
})

test('the description of a policy decision has its source and reason, and shortens a long input', () => {
  const use = read('"name":"bash","input":{"a":1}')
  expect(describeJudgement({ use, decision: 'deny', by: 'rule', rule: 2, reason: 'no' })).toBe(
    'deny bash {"a":1} u1 (rules[2]: no)',
  )
  expect(describeJudgement({ use, decision: 'allow', by: 'person' })).toBe('allow bash {"a":1} u1 (you)')
  const others = ['default', 'tool'] as const
  expect(others.map((by) => describeDecider({ use, decision: 'ask', by }))).toEqual(['default', '--tool'])
  expect([undefined, 'no\nway'].map(formatReason)).toEqual(['', ': no way'])
  expect(describeToolUse({ ...use, id: '' })).toBe('bash {"a":1}')
  const longest = `"${'x'.repeat(393)}"`
  expect(describeToolUse(read(`"name":"bash","input":${longest}`))).toBe(`bash ${longest} u1`)
  expect(describeToolUse(read(`"name":"bash","input":"x${longest.slice(1)}`))).toBe(
    `bash "${'x'.repeat(394)}… u1`,
  )
})
