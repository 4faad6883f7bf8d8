import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  createPatternMatcher,
  maxPatternLength,
  maxPatternStars,
} from '../../../src/sessions/policy/pattern.ts'
import { decideByPolicy, explainUnmatchedAllowRule, readPolicy } from '../../../src/sessions/policy/policy.ts'
import { type ParsedToolUse, parseToolUse } from '../../../src/sessions/policy/tool-use.ts'

const read = (policy: unknown) => readPolicy(JSON.stringify(policy), 'policy.json')

const call = (name: string, input: unknown = {}, more: Partial<ParsedToolUse> = {}): ParsedToolUse => ({
  ...parseToolUse(JSON.stringify({ type: 'agent.tool_use', name, input })),
  ...more,
})

const bash = (command: unknown) => call('bash', { command })
const mcp = 'agent.mcp_tool_use'
const onServer = (server?: string) => call('x', {}, { type: mcp, server })

/** Returns the decision of a policy with one rule. */
async function decide(rule: object, about: ParsedToolUse, fallback = 'deny'): Promise<string> {
  const policy = await read({ rules: [rule], default: { decision: fallback } })
  return (await decideByPolicy(policy, about)).decision
}

/**
 * Expects that an allow rule matches a call, or does not match it. If the call can be an example of the rule,
 * the policy also has the example. An example has no unclear input, and is an MCP call if it has a server.
 */
async function expectAllowed(rule: object, about: ParsedToolUse, isMatch: boolean): Promise<void> {
  const { name, input, server, type, isUnclear } = about
  const isExample = !isUnclear && (type === mcp) === (server !== undefined)
  const examples = isExample ? { [isMatch ? 'match' : 'miss']: [{ name, input, server }] } : {}
  expect(await decide({ ...rule, decision: 'allow', examples }, about)).toBe(isMatch ? 'allow' : 'deny')
}

test.each<[what: string, rule: object, about: ParsedToolUse]>([
  ['a tool name by *', { tool: 'read_*' }, call('read_file')],
  ['an empty input if the rule has no fields', { tool: 'x', input: {} }, call('x', {})],
  ['an MCP tool of its server', { tool: 'x', server: 'git*' }, onServer('github')],
])('an allow rule matches %s', (_, rule, about) => expectAllowed(rule, about, true))

const odd = '{"__proto__":"ab","constructor":"b"}'
test.each<[what: string, patterns: object, input: object]>([
  ['a part of a command by *', { command: 'cat *.md' }, { command: 'cat a/b c.md' }],
  ['a number by **', { n: '**' }, { n: 5 }],
  ['a whole object by **', { o: '**' }, { o: { a: [1] } }],
  ['nested fields by their paths', { 'a.b': 'c', 'a.l[0]': 'd' }, { a: { b: 'c', l: ['d'] } }],
  ['a field of any name', JSON.parse(odd.replace('ab', 'a*')), JSON.parse(odd)],
  ['dots that are not a parent folder where the rule has a *', { p: 'a/*' }, { p: 'a/b..c/...' }],
  ['a .. that the rule itself contains', { p: '../*' }, { p: '../a' }],
])('the input patterns of an allow rule match %s', (_, input, given) =>
  expectAllowed({ tool: 'x', input }, call('x', given), true),
)

test.each<[what: string, rule: object, about: ParsedToolUse]>([
  ['a tool name in another case', { tool: 'Read' }, call('read')],
  ['a tool name that only starts with the name in the rule', { tool: 'read' }, call('read_file')],
  ['an input that is not an object', { tool: 'x', input: {} }, call('x', 'text')],
  ['an input that is null', { tool: 'x', input: {} }, call('x', null)],
  ['an MCP tool if the rule has no server', { tool: '*' }, onServer('github')],
  ['an MCP tool of an unknown server', { tool: '*', server: '**' }, onServer()],
  ['an input marked as unclear', { tool: '**' }, call('x', {}, { isUnclear: true })],
])('an allow rule does not match %s', (_, rule, about) => expectAllowed(rule, about, false))

test.each<[what: string, patterns: object, input: object]>([
  ['one more field', { command: '**' }, { command: 'a', cwd: '/' }],
  ['one more nested field', { 'a.b': '**' }, { a: { b: 1, c: 2 } }],
  ['one more empty field', { a: '**' }, { a: 1, b: {} }],
  ['no field of this name', { a: '**' }, {}],
  ['a value that is not text where the rule has a *', { n: '*' }, { n: 5 }],
  ['a field of the JavaScript prototype', { 'constructor.name': '**' }, {}],
  ['no field __proto__', JSON.parse('{"a":"b","__proto__":"**"}'), { a: 'b' }],
  ['a .. that starts in the text of the rule', { p: 'a/.*' }, { p: 'a/../b' }],
])('the input patterns of an allow rule do not match an input with %s', (_, input, given) =>
  expectAllowed({ tool: 'x', input }, call('x', given), false),
)

const special = ';|&$()<>`\\!{}%^\'"#~*?[]\n\r\u2028\u0000\u001b\u202e\u200b'
test.each([...special].map((char) => [`U+${char.charCodeAt(0).toString(16)}`, char] as const))(
  'the * of an allow rule does not match the character %s',
  (_, char) => expectAllowed({ tool: 'bash', input: { command: 'git *' } }, bash(`git a${char}b`), false),
)

const parents = '.. ../x a/.. a/../b --to=../b "../b" a:.. -I../x a/x.. a/..x'.split(' ')
test.each([...parents, 'a ../b'])('the * of an allow rule does not match the path %s', (p) =>
  expectAllowed({ tool: 'x', input: { p: '*' } }, call('x', { p }), false),
)

test.each<[what: string, rule: object, about: ParsedToolUse]>([
  ['any text by *, with line breaks and ".."', { input: { command: '*rm *' } }, bash('a;\n../rm -r')],
  ['a field that is not text', { input: { command: 'rm' } }, bash(['rm'])],
  ['an MCP tool if the rule has no server', { tool: 'x' }, onServer()],
  ['an MCP tool of an unknown server', { tool: '*', server: 'github' }, onServer()],
  ['an input marked as unclear', { tool: 'x' }, call('x', {}, { isUnclear: true })],
  ['args by args[0] if args is a text', { input: { 'args[0]': 'rm*' } }, call('bash', { args: 'rm -rf' })],
  ['args by args.name if args is a text', { input: { 'args.name': 'rm*' } }, call('bash', { args: 'rm' })],
  ['args by args.name if args is null', { input: { 'args.name': 'rm*' } }, call('bash', { args: null })],
  ['args by args[0] if it is an object', { input: { 'args[0]': 'rm*' } }, call('bash', { args: { 0: '' } })],
])('a deny rule matches %s', async (_, rule, about) => {
  expect(await decide({ tool: 'bash', ...rule, decision: 'deny' }, about, 'allow')).toBe('deny')
})

test.each<[what: string, rule: object, about: ParsedToolUse]>([
  ['a missing field by *', { tool: 'bash', input: { command: '*' } }, call('bash', {})],
  ['a missing input by *', { tool: 'x', input: { command: '*' } }, call('x', {}, { input: undefined })],
  ['another text', { tool: 'bash', input: { command: 'rm *' } }, bash('ls')],
  ['another server', { tool: 'x', server: 'a' }, onServer('b')],
])('a deny rule does not match %s', async (_, rule, about) => {
  expect(await decide({ ...rule, decision: 'deny' }, about, 'allow')).toBe('allow')
})

test.each<[why: string, rule: object, about: ParsedToolUse]>([
  ['the input repeats a key, is nested too deep', {}, call('x', {}, { isUnclear: true })],
  ['an allow rule must name the server of an MCP tool', {}, onServer('git')],
  ['the tool use has no server name', { server: 'git' }, onServer()],
  ['the server is "hub"', { server: 'git' }, onServer('hub')],
  ["the input has no field 'a', which the rule checks", { input: { a: '**' } }, call('x')],
  ["'a' is not a string", { input: { a: '*' } }, call('x', { a: 5 })],
  ["'a' is not 'b*'", { input: { a: 'b*' } }, call('x', { a: 'c' })],
  [`the * in '*;*' does not match "|" or "&" in 'a'`, { input: { a: '*;*' } }, call('x', { a: ';|&' })],
  ["the * in 'a*;' does not match this text in 'a'", { input: { a: 'a*;' } }, call('x', { a: 'a;;' })],
  ['the input is not an object', { input: {} }, call('x', 'text')],
  ['the rule has no pattern for the input field "b"', { input: { a: '*' } }, call('x', { a: '', b: '' })],
])('an allow rule that does not match has the reason: %s', async (why, rule, about) => {
  const policy = await read({ rules: [{ tool: 'x', ...rule, decision: 'allow' }] })
  expect(explainUnmatchedAllowRule(policy, about)).toContain(`rules[0] does not match: ${why}`)
})

test('a policy with the default allow decides "ask" about an input marked as unclear', async () => {
  const policy = await read({ rules: [], default: { decision: 'allow' } })
  expect(await decideByPolicy(policy, call('x'))).toEqual({ decision: 'allow' })
  expect(await decideByPolicy(policy, call('x', {}, { isUnclear: true }))).toEqual({
    decision: 'ask',
    reason:
      'the input repeats a key, is nested too deep, is longer than 100,000 characters, or differs between two events',
  })
})

test('a policy without a default decides "ask", and so does any policy about a tool use without a name', async () => {
  expect(await decideByPolicy(await read({ rules: [] }), call('x'))).toEqual({ decision: 'ask' })
  const allowing = await read({ rules: [{ tool: '*', decision: 'allow' }] })
  const reason = 'its tool has no name'
  expect(await decideByPolicy(allowing, call(''))).toEqual({ decision: 'ask', reason })
})

/** Reference implementation of a pattern by a regular expression, which may be slow. */
function isPlainMatch(pattern: string, text: string, isNarrow: boolean): boolean {
  const expression = pattern
    .split(/(\*+)/)
    .map((piece) => {
      if (!piece.startsWith('*')) return piece.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
      return isNarrow && piece === '*' ? '[^;\\n]*' : '[\\s\\S]*'
    })
    .join('')
  return new RegExp(`^${expression}$`).test(text)
}

/**
 * Creates a pattern and a text that matches it or almost matches it. The text is the pattern with each star
 * replaced, and perhaps with one more character.
 */
const nearly = fc
  .tuple(
    fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 4 }), { maxLength: 4 }),
    fc.infiniteStream(fc.constantFrom('', 'a', 'ab', 'ba', 'aab', ';')),
    fc.constantFrom('', '', 'a', 'b', ';'),
    fc.nat(12),
  )
  .map(([pieces, stars, put, place]) => {
    const pattern = pieces.join('')
    const text = pattern.replace(/\*+/g, () => stars.next().value)
    return { pattern, text: text.slice(0, place) + put + text.slice(place) }
  })

test.each([
  ['any text', 'any'],
  ['text without special characters', 'narrow'],
] as const)('a pattern whose stars match %s matches the same texts as its regular expression', (_, reach) => {
  fc.assert(
    fc.property(nearly, ({ pattern, text }) => {
      expect(createPatternMatcher(pattern, reach)(text)).toBe(isPlainMatch(pattern, text, reach === 'narrow'))
    }),
    // A wrong matcher that lets a narrow `*` match `;` would accept this text.
    { numRuns: 1000, examples: [[{ pattern: '**a*b*b', text: 'a;bab' }]] },
  )
})

test.each([
  ['deny', 'allow, ask, deny'],
  ['ask', 'ask, allow'],
])('a policy decides "%s" if the matching rules are, in this order: %s', async (expected, decisions) => {
  const policy = await read({ rules: decisions.split(', ').map((decision) => ({ tool: 'x', decision })) })
  expect((await decideByPolicy(policy, call('x'))).decision).toBe(expected)
})

async function expectRefusal(text: string, problem: string): Promise<void> {
  const failure = await readPolicy(text, 'policy.json').catch((error) => error)
  expect(failure).toMatchObject({ kind: 'usage' })
  expect([failure.message, ...(failure.details.problems ?? [])].join('\n')).toContain(problem)
}

const tooLong = 'x'.repeat(10_001)
test.each<[what: string, text: string, problem: string]>([
  ['invalid JSON', '{"rules":', 'policy.json: not valid JSON'],
  ['a duplicate key', '{"rules":[{"tool":"x","tool":"y"}]}', "the key 'tool' appears twice"],
  ['neither rules nor a default', '{}', 'must have "rules" or "default"'],
  ['a default that is a text', '{"rules":[],"default":"deny"}', 'default: must be like {"decision":"deny"}'],
  [
    'a reason of more than 10,000 characters',
    `{"rules":[],"default":{"decision":"deny","reason":"${tooLong}"}}`,
    'default.reason: must be at most 10000 characters long',
  ],
])('parley refuses a policy with %s', (_, text, problem) => expectRefusal(text, problem))

const stars = '*a'.repeat(21)
const example = { name: 'y' }
test.each<[what: string, rule: object, problem: string]>([
  ['an unknown key', { imput: {} }, 'rules[0]: has an unknown key: imput'],
  ['an input field that is not a path', { input: { 'a[': 'b' } }, "rules[0].input: 'a[' is not a path"],
  ['a pattern that is not text', { input: { ['__proto__']: 5 } }, 'rules[0].input.__proto__: must be text'],
  ['more than 20 stars', { tool: stars }, 'rules[0].tool: has more than 20 stars'],
  ['more than 20 stars in an input field', { input: { 'a.b': stars } }, 'input.a.b: has more than 20 stars'],
  ['more than 1,000 characters', { tool: 'x'.repeat(1001) }, 'tool: must be at most 1000 characters long'],
  ['an example that it does not match', { examples: { match: [example] } }, 'match[0]: the rule does not'],
  ['a counterexample it matches', { tool: 'y', examples: { miss: [example] } }, 'miss[0]: the rule match'],
])('parley refuses a policy rule with %s', (_, rule, problem) =>
  expectRefusal(JSON.stringify({ rules: [{ tool: 'x', decision: 'allow', ...rule }] }), problem),
)

test('a policy with a default needs no rules', async () => {
  const fallback = { decision: 'deny' }
  expect(await readPolicy('{"default":{"decision":"deny"}}', 'p.json')).toEqual({ rules: [], fallback })
})

test('a pattern may have the maximum length and number of stars, and ** counts as one star', async () => {
  const start = 'a**'.repeat(maxPatternStars)
  const tool = start + 'x'.repeat(maxPatternLength - start.length)
  await expectAllowed({ tool, server: tool }, call(tool, {}, { type: mcp, server: tool }), true)
})
