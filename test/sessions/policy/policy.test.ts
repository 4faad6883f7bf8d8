import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  createPatternMatcher,
  maxPatternLength,
  maxPatternStars,
} from '../../../src/sessions/policy/pattern.ts'
import { decideByPolicy, type ToolCall } from '../../../src/sessions/policy/policy.ts'
import { readPolicy } from '../../../src/sessions/policy/policy-file.ts'

const read = (policy: unknown) => readPolicy(JSON.stringify(policy), 'policy.json')

const call = (name: string, input: unknown = {}, more: Partial<ToolCall> = {}): ToolCall => ({
  name,
  input,
  inputText: JSON.stringify(input),
  isMcp: false,
  isUnclear: false,
  ...more,
})

const bash = (command: unknown) => call('bash', { command })

/** Returns whether a policy with one allow rule, which denies by default, allows a call. */
async function isAllowed(rule: object, about: ToolCall): Promise<boolean> {
  const policy = await read({ rules: [{ ...rule, decision: 'allow' }], default: { decision: 'deny' } })
  return (await decideByPolicy(policy, about)).decision === 'allow'
}

/** Creates the field `examples` of a rule, with one tool use that the rule must match, or must not match. */
const createExample = ({ name, input, server }: ToolCall, isMatch: boolean) => ({
  examples: { [isMatch ? 'match' : 'miss']: [{ name, input, server }] },
})

test.each([
  ['a tool by its name', { tool: 'read' }, call('read', { path: 'a' })],
  ['a tool name by *', { tool: 'read_*' }, call('read_file')],
  ['a whole command', { tool: 'bash', input: { command: 'git status' } }, bash('git status')],
  ['a part of a command by *', { tool: 'bash', input: { command: 'cat *.md' } }, bash('cat a/b c.md')],
  ['any command by **', { tool: 'bash', input: { command: '**' } }, bash('rm -rf / ; x')],
  ['a number by **', { tool: 'x', input: { n: '**' } }, call('x', { n: 5 })],
  ['a whole object by **', { tool: 'x', input: { o: '**' } }, call('x', { o: { a: [1] } })],
  [
    'nested fields by their paths',
    { tool: 'x', input: { 'a.b': 'c', 'a.l[0]': 'd' } },
    call('x', { a: { b: 'c', l: ['d'] } }),
  ],
  ['an empty input if the rule has no fields', { tool: 'x', input: {} }, call('x', {})],
  [
    'a field of any name',
    { tool: 'x', input: JSON.parse('{"__proto__":"a*","constructor":"b"}') },
    call('x', JSON.parse('{"__proto__":"ab","constructor":"b"}')),
  ],
  [
    'dots that are not a parent folder where the rule has a *',
    { tool: 'x', input: { p: 'a/*' } },
    call('x', { p: 'a/b..c/...' }),
  ],
  ['a .. that the rule itself contains', { tool: 'x', input: { p: '../*' } }, call('x', { p: '../a' })],
  [
    'an MCP tool of its server',
    { tool: 'x', server: 'git*' },
    call('x', {}, { isMcp: true, server: 'github' }),
  ],
])('an allow rule matches %s', async (_, rule, about) => {
  expect(await isAllowed({ ...rule, ...createExample(about, true) }, about)).toBe(true)
})

type Row = [what: string, rule: object, about: ToolCall]

test.each<Row>([
  ['a tool name in another case', { tool: 'Read' }, call('read')],
  ['a tool name of which it has only a part', { tool: 'read' }, call('read_file')],
  ...[...';|&$()<>`\\!{}%^\'"#~*?[]'].map(
    (char) =>
      [
        `a command that has the character ${char} where the rule has a *`,
        { tool: 'bash', input: { command: 'git *' } },
        bash(`git a${char}b`),
      ] as Row,
  ),
  ...['\n', '\r', '\u2028', '\u0000', '\u001b', '\u202e', '\u200b'].map(
    (char) =>
      [
        `a command that has the character U+${char.charCodeAt(0).toString(16)} where the rule has a *`,
        { tool: 'bash', input: { command: 'git *' } },
        bash(`git a${char}b`),
      ] as Row,
  ),
  ...[
    '..',
    '../x',
    'a/..',
    'a/../b',
    'a ../b',
    '--to=../b',
    '"../b"',
    'a:..',
    '-I../x',
    'a/x..',
    'a/..x',
  ].map(
    (path) =>
      [
        `the path ${path} where the rule has a *`,
        { tool: 'x', input: { p: '*' } },
        call('x', { p: path }),
      ] as Row,
  ),
  [
    'a .. that starts in the rule and ends in the text',
    { tool: 'x', input: { p: 'a/.*' } },
    call('x', { p: 'a/../b' }),
  ],
  [
    'an input with one more field',
    { tool: 'bash', input: { command: '**' } },
    call('bash', { command: 'a', cwd: '/' }),
  ],
  [
    'an input with one more nested field',
    { tool: 'x', input: { 'a.b': '**' } },
    call('x', { a: { b: 1, c: 2 } }),
  ],
  ['an input without the field of the rule', { tool: 'x', input: { a: '**' } }, call('x', {})],
  ['an input with one more empty field', { tool: 'x', input: { a: '**' } }, call('x', { a: 1, b: {} })],
  ['a value that is not text where the rule has a *', { tool: 'x', input: { n: '*' } }, call('x', { n: 5 })],
  ['an input that is not an object', { tool: 'x', input: {} }, call('x', 'text')],
  ['an input that is null', { tool: 'x', input: {} }, call('x', null)],
  ['a field of the JavaScript prototype', { tool: 'x', input: { 'constructor.name': '**' } }, call('x', {})],
  [
    'an input without the field __proto__',
    { tool: 'x', input: JSON.parse('{"a":"b","__proto__":"**"}') },
    call('x', { a: 'b' }),
  ],
  ['an MCP tool if the rule has no server', { tool: '*' }, call('x', {}, { isMcp: true, server: 'github' })],
  ['an MCP tool of an unknown server', { tool: '*', server: '**' }, call('x', {}, { isMcp: true })],
  ['an input marked as unclear', { tool: '**' }, call('x', {}, { isUnclear: true })],
])('an allow rule does not match %s', async (_, rule, about) => {
  // An example has no unclear input, and only a server makes it an MCP call. Other calls cannot be examples.
  const isExample = !about.isUnclear && about.isMcp === (about.server !== undefined)
  expect(await isAllowed(isExample ? { ...rule, ...createExample(about, false) } : rule, about)).toBe(false)
})

test.each([
  [
    'with a star matches any text, including line breaks and ".."',
    { tool: 'bash', input: { command: '*rm *' } },
    bash('a;\n../rm -r'),
    true,
  ],
  [
    'matches a field among others',
    { tool: 'bash', input: { command: '*rm*' } },
    call('bash', { command: 'rm', cwd: '/' }),
    true,
  ],
  ['matches a field that is not text', { tool: 'bash', input: { command: 'rm' } }, bash(['rm']), true],
  ['without a server matches an MCP tool', { tool: 'x' }, call('x', {}, { isMcp: true }), true],
  ['matches an input marked as unclear', { tool: 'x' }, call('x', {}, { isUnclear: true }), true],
  [
    'for args[0] also matches if args is a text, not a list',
    { tool: 'run', input: { 'args[0]': 'rm*' } },
    call('run', { args: 'rm -rf' }),
    true,
  ],
  [
    'for args.name also matches if args is a text, not an object',
    { tool: 'run', input: { 'args.name': 'rm*' } },
    call('run', { args: 'rm -rf' }),
    true,
  ],
  [
    'for a server matches an MCP tool of an unknown server',
    { tool: '*', server: 'github' },
    call('x', {}, { isMcp: true }),
    true,
  ],
  [
    'with a star does not match a missing field',
    { tool: 'bash', input: { command: '*' } },
    call('bash', {}),
    false,
  ],
  [
    'for a server does not match another server',
    { tool: 'x', server: 'a' },
    call('x', {}, { isMcp: true, server: 'b' }),
    false,
  ],
])('a deny rule %s', async (_, rule, about, isDenied) => {
  const policy = await read({ rules: [{ ...rule, decision: 'deny' }], default: { decision: 'allow' } })
  expect((await decideByPolicy(policy, about)).decision === 'deny').toBe(isDenied)
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

test('a policy with the default deny denies an input marked as unclear', async () => {
  const policy = await read({ rules: [], default: { decision: 'deny', reason: 'not here' } })
  expect(await decideByPolicy(policy, call('x', {}, { isUnclear: true }))).toEqual({
    decision: 'deny',
    reason: 'not here',
  })
})

test('a decision of a policy contains the index and the reason of the deciding rule', async () => {
  const rules = [
    { tool: 'y', decision: 'deny' },
    { tool: 'x', decision: 'deny', reason: 'no' },
  ]
  expect(await decideByPolicy(await read({ rules }), call('x'))).toEqual({
    decision: 'deny',
    reason: 'no',
    rule: 1,
  })
})

test('a policy without a default decides "ask", and so does any policy about a tool use without a name', async () => {
  expect(await decideByPolicy(await read({ rules: [] }), call('x'))).toEqual({ decision: 'ask' })
  const allowing = await read({ rules: [{ tool: '*', decision: 'allow' }] })
  expect(await decideByPolicy(allowing, call(''))).toMatchObject({ decision: 'ask' })
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
  ['ask', 'allow, ask'],
  ['ask', 'ask, allow'],
  ['deny', 'deny, allow'],
])('a policy decides "%s" if the matching rules are, in this order: %s', async (expected, decisions) => {
  const policy = await read({ rules: decisions.split(', ').map((decision) => ({ tool: 'x', decision })) })
  expect((await decideByPolicy(policy, call('x'))).decision).toBe(expected)
})

test.each([
  ['invalid JSON', '{"rules":', 'policy.json: not valid JSON'],
  [
    'an unknown key',
    '{"rules":[{"tool":"x","decision":"allow","imput":{}}]}',
    'rules[0]: has an unknown key: imput',
  ],
  [
    'a duplicate key',
    '{"rules":[{"tool":"x","decision":"deny","decision":"allow"}]}',
    "the key 'decision' appears twice",
  ],
  [
    'an input field that is not a path',
    '{"rules":[{"tool":"x","decision":"deny","input":{"a[":"b"}}]}',
    "rules[0].input: 'a[' is not a path",
  ],
  [
    'a pattern that is not text',
    '{"rules":[{"tool":"x","decision":"allow","input":{"__proto__":5}}]}',
    'rules[0].input.__proto__: must be text',
  ],
  [
    'a pattern of more than 20 stars',
    `{"rules":[{"tool":"${'*a'.repeat(21)}","decision":"deny"}]}`,
    'rules[0].tool: has more than 20 stars',
  ],
  [
    'a pattern of more than 20 stars for an input field',
    `{"rules":[{"tool":"x","input":{"a.b":"${'*a'.repeat(21)}"},"decision":"deny"}]}`,
    'rules[0].input.a.b: has more than 20 stars',
  ],
  [
    'a pattern of more than 1,000 characters',
    `{"rules":[{"tool":"${'x'.repeat(1001)}","decision":"deny"}]}`,
    'rules[0].tool: must be at most 1000 characters long',
  ],
  [
    'a reason of more than 10,000 characters',
    `{"rules":[],"default":{"decision":"deny","reason":"${'x'.repeat(10_001)}"}}`,
    'default.reason: must be at most 10000 characters long',
  ],
  ['a default that is a text', '{"rules":[],"default":"deny"}', 'default: must be like {"decision":"deny"}'],
  [
    'an example that its rule does not match',
    '{"rules":[{"tool":"x","decision":"allow","examples":{"match":[{"name":"y"}]}}]}',
    'rules[0].examples.match[0]: the rule does not match this example',
  ],
  [
    'a counterexample that its rule matches',
    '{"rules":[{"tool":"x*","decision":"allow","examples":{"miss":[{"name":"xy"}]}}]}',
    'rules[0].examples.miss[0]: the rule matches this example',
  ],
])('parley refuses a policy with %s', async (_, text, problem) => {
  await expect(readPolicy(text, 'policy.json')).rejects.toMatchObject({ kind: 'usage' })
  const failure = await readPolicy(text, 'policy.json').catch((error) => error)
  expect([failure.message, ...(failure.details.problems ?? [])].join('\n')).toContain(problem)
})

test('a pattern may have the maximum length and number of stars, and ** counts as one star', async () => {
  const stars = 'a**'.repeat(maxPatternStars)
  const tool = stars + 'x'.repeat(maxPatternLength - stars.length)
  expect(await isAllowed({ tool, server: tool }, call(tool, {}, { isMcp: true, server: tool }))).toBe(true)
})
