import { describe, expect, test } from 'vitest'
import { createRule, type Decision, type PolicyRule } from '../../../src/sessions/policy/policy.ts'
import {
  describeDecider,
  describeJudgement,
  describeToolUse,
  getToolUseExecutor,
  judgeToolUse,
  type ParsedToolUse,
  readToolUse,
} from '../../../src/sessions/running/judgement.ts'

const custom = 'agent.custom_tool_use'
const own = 'agent.tool_use'
const mcp = 'agent.mcp_tool_use'

/** Reads a tool use whose event has these fields as source text. */
const read = (fields: string, type = own, isContradicted?: boolean) =>
  readToolUse({ text: `{"id":"u1","type":"${type}",${fields}}`, isContradicted }) as ParsedToolUse

describe('tool use from the JSON of its event', () => {
  test('a tool use is read with all its fields', () => {
    expect(
      read('"name":"x", "mcp_server_name":"s", "input": {"a": 1.0}, "evaluated_permission":"ask"', mcp),
    ).toEqual({
      id: 'u1',
      type: mcp,
      text: `{"id":"u1","type":"${mcp}","name":"x", "mcp_server_name":"s", "input": {"a": 1.0}, "evaluated_permission":"ask"}`,
      name: 'x',
      input: { a: 1 },
      inputText: '{"a": 1.0}',
      isMcp: true,
      server: 's',
      isContradicted: false,
      isUnclear: false,
      permission: 'ask',
    })
  })

  test('a tool use without an input has an empty input', () => {
    expect(read('"name":"bash"').input).toEqual({})
  })

  test('a tool use is not read if the JSON of its event is missing', () => {
    expect(readToolUse({ text: undefined })).toBeUndefined()
  })

  test.each<[fields: string, expected: Partial<ParsedToolUse>]>([
    ['"name":"bash"', { name: 'bash', inputText: '{}', isMcp: false, isUnclear: false }],
    ['"input":{}', { name: '', isUnclear: true }],
    ['"name":"x","mcp_server_name":""', { server: undefined }],
    ['"name":"x","mcp_server_name":5', { server: undefined }],
    ['"name":"x","input":{"a":1,"a":2}', { isUnclear: true }],
  ])('a tool use is read from the fields %s', (fields, expected) => {
    expect(read(fields)).toMatchObject(expected)
  })

  test('a tool use that was sent with two inputs counts as unclear', () => {
    expect(read('"name":"bash"', own, true)).toMatchObject({ isContradicted: true, isUnclear: true })
  })
})

const createRules = (rules: PolicyRule[], fallback: Decision = 'ask') => ({
  policy: { rules, fallback: { decision: fallback, reason: 'who knows' } },
  tools: new Map([['x', 'echo']]),
})

test.each<[what: string, use: ParsedToolUse, rules: PolicyRule[], expected: object]>([
  [
    'a rule',
    read('"name":"bash"'),
    [
      createRule({ tool: 'y', decision: 'deny' }),
      createRule({ tool: 'bash', decision: 'deny', reason: 'no' }),
    ],
    { decision: 'deny', by: 'rule', rule: 1, reason: 'no' },
  ],
  ['the default', read('"name":"bash"'), [], { decision: 'ask', by: 'default', reason: 'who knows' }],
  ['a command for the tool', read('"name":"x"', custom), [], { decision: 'allow', by: 'tool' }],
  [
    'a rule before a command',
    read('"name":"x"', custom),
    [createRule({ tool: 'x', decision: 'deny' })],
    { decision: 'deny', by: 'rule', rule: 0 },
  ],
  [
    'the default, not the command, if the input is unclear',
    read('"name":"x","input":{"a":1,"a":2}', custom),
    [],
    { decision: 'ask', by: 'default', reason: 'who knows' },
  ],
  [
    'the default, not the command, if the service asks for permission',
    read('"name":"x","evaluated_permission":"ask"'),
    [],
    { decision: 'ask', by: 'default', reason: 'who knows' },
  ],
])('events run decides about a tool use by %s', async (_, use, rules, expected) => {
  expect(await judgeToolUse(use, createRules(rules))).toEqual({ use, ...expected })
})

test.each<[type: string, name: string, permission: string | undefined, executor: string]>([
  [own, 'y', 'allow', 'other'],
  [own, 'x', 'deny', 'command'],
  [own, 'x', 'ask', 'service'],
  [mcp, 'x', undefined, 'service'],
])(
  'a tool use of type %s and tool %s, with permission %s, is executed by: %s',
  (type, name, permission, executor) => {
    const use = read(`"name":"${name}","evaluated_permission":${JSON.stringify(permission ?? null)}`, type)
    expect(getToolUseExecutor(use, new Map([['x', 'echo']]))).toBe(executor)
  },
)

test('the line about a decision shows who decided and why, and cuts a long input', () => {
  const use = read('"name":"bash","input":{"a":1}')
  expect(describeJudgement({ use, decision: 'deny', by: 'rule', rule: 2, reason: 'no' })).toBe(
    'deny bash {"a":1} u1 (rules[2]: no)',
  )
  expect(describeJudgement({ use, decision: 'allow', by: 'person' })).toBe('allow bash {"a":1} u1 (you)')
  const others = ['default', 'tool'] as const
  expect(others.map((by) => describeDecider({ use, decision: 'ask', by }))).toEqual(['default', '--tool'])
  const longest = `"${'x'.repeat(398)}"`
  expect(describeToolUse(read(`"name":"bash","input":${longest}`))).toBe(`bash ${longest} u1`)
  expect(describeToolUse(read(`"name":"bash","input":"x${longest.slice(1)}`))).toBe(
    `bash "${'x'.repeat(399)}… u1`,
  )
})
