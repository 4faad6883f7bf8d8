import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decide, type Policy, type ToolCall } from '../../../src/sessions/policy/policy.ts'
import { readPolicy } from '../../../src/sessions/policy/policy-file.ts'

const read = (policy: unknown) => readPolicy(JSON.stringify(policy), 'policy.json')

const call = (name: string, input: unknown = {}, more: Partial<ToolCall> = {}): ToolCall => ({
  name,
  input,
  isMcp: false,
  isUnclear: false,
  ...more,
})

const bash = (command: unknown) => call('bash', { command })

/** What a policy of one rule that allows, and whose default is to deny, says of a call. */
async function isAllowed(rule: object, about: ToolCall): Promise<boolean> {
  const policy = await read({ rules: [{ ...rule, decision: 'allow' }], default: { decision: 'deny' } })
  return decide(policy, about).decision === 'allow'
}

describe('an allow matches', () => {
  test.each([
    ['a tool by its name', { tool: 'read' }, call('read', { path: 'a' })],
    ['a tool by a star', { tool: 'read_*' }, call('read_file')],
    ['a whole command', { tool: 'bash', input: { command: 'git status' } }, bash('git status')],
    ['a star in a command', { tool: 'bash', input: { command: 'cat *.md' } }, bash('cat a/b c.md')],
    ['anything by **', { tool: 'bash', input: { command: '**' } }, bash('rm -rf / ; x')],
    ['a number by **', { tool: 'x', input: { n: '**' } }, call('x', { n: 5 })],
    ['a whole object by **', { tool: 'x', input: { o: '**' } }, call('x', { o: { a: [1] } })],
    [
      'deep fields by their paths',
      { tool: 'x', input: { 'a.b': 'c', 'a.l[0]': 'd' } },
      call('x', { a: { b: 'c', l: ['d'] } }),
    ],
    ['no input by no fields', { tool: 'x', input: {} }, call('x', {})],
    ['dots that are no parent folder', { tool: 'x', input: { p: 'a/*' } }, call('x', { p: 'a/b..c/...' })],
    ['a .. that the rule itself has', { tool: 'x', input: { p: '../*' } }, call('x', { p: '../a' })],
    [
      'an MCP tool of its server',
      { tool: 'x', server: 'git*' },
      call('x', {}, { isMcp: true, server: 'github' }),
    ],
  ])('%s', async (_, rule, about) => {
    expect(await isAllowed(rule, about)).toBe(true)
  })
})

type Row = [what: string, rule: object, about: ToolCall]

describe('an allow does not match', () => {
  test.each<Row>([
    ['another case', { tool: 'Read' }, call('read')],
    ['a part of a name', { tool: 'read' }, call('read_file')],
    ...[...';|&$()<>`\\!{}%^\'"#~*?[]'].map(
      (char) =>
        [`a star over ${char}`, { tool: 'bash', input: { command: 'git *' } }, bash(`git a${char}b`)] as Row,
    ),
    ...['\n', '\r', '\u2028', '\u0000', '\u001b', '\u202e', '\u200b'].map(
      (char) =>
        [
          `a star over U+${char.charCodeAt(0).toString(16)}`,
          { tool: 'bash', input: { command: 'git *' } },
          bash(`git a${char}b`),
        ] as Row,
    ),
    ...['..', '../x', 'a/..', 'a/../b', 'a ../b', '--to=../b', '"../b"', 'a:..', '-I../x', 'a/x..'].map(
      (path) => [`a star over ${path}`, { tool: 'x', input: { p: '*' } }, call('x', { p: path })] as Row,
    ),
    [
      'a .. that a dot of the rule and one of the text make',
      { tool: 'x', input: { p: 'a/.*' } },
      call('x', { p: 'a/../b' }),
    ],
    [
      'an input with one more field',
      { tool: 'bash', input: { command: '**' } },
      call('bash', { command: 'a', cwd: '/' }),
    ],
    [
      'an input with one more field deep inside',
      { tool: 'x', input: { 'a.b': '**' } },
      call('x', { a: { b: 1, c: 2 } }),
    ],
    ['an input without a field', { tool: 'x', input: { a: '**' } }, call('x', {})],
    ['what is no text, by *', { tool: 'x', input: { n: '*' } }, call('x', { n: 5 })],
    ['an input that is no object', { tool: 'x', input: {} }, call('x', 'text')],
    ['an inherited field', { tool: 'x', input: { 'constructor.name': '**' } }, call('x', {})],
    ['an MCP tool, without a server', { tool: '*' }, call('x', {}, { isMcp: true, server: 'github' })],
    ['an MCP tool of an unknown server', { tool: '*', server: '**' }, call('x', {}, { isMcp: true })],
    ['an unclear input', { tool: '**' }, call('x', {}, { isUnclear: true })],
  ])('%s', async (_, rule, about) => {
    expect(await isAllowed(rule, about)).toBe(false)
  })
})

describe('a deny is wide', () => {
  test.each([
    ['a star over everything', { tool: 'bash', input: { command: '*rm *' } }, bash('a;\n../rm -r'), true],
    [
      'a field among others',
      { tool: 'bash', input: { command: '*rm*' } },
      call('bash', { command: 'rm', cwd: '/' }),
      true,
    ],
    ['a field that is no text', { tool: 'bash', input: { command: 'rm' } }, bash(['rm']), true],
    ['an MCP tool, without a server', { tool: 'x' }, call('x', {}, { isMcp: true }), true],
    ['an unclear input', { tool: 'x' }, call('x', {}, { isUnclear: true }), true],
    [
      'a list that is a text here',
      { tool: 'run', input: { 'args[0]': 'rm*' } },
      call('run', { args: 'rm -rf' }),
      true,
    ],
    [
      'a list that is an object here',
      { tool: 'run', input: { 'args[0]': 'rm*' } },
      call('run', { args: { 0: 'rm' } }),
      true,
    ],
    [
      'an MCP tool of an unknown server',
      { tool: '*', server: 'github' },
      call('x', {}, { isMcp: true }),
      true,
    ],
    ['but not a field that is absent', { tool: 'bash', input: { command: '*' } }, call('bash', {}), false],
    ['nor another server', { tool: 'x', server: 'a' }, call('x', {}, { isMcp: true, server: 'b' }), false],
  ])('%s', async (_, rule, about, isDenied) => {
    const policy = await read({ rules: [{ ...rule, decision: 'deny' }], default: { decision: 'allow' } })
    expect(decide(policy, about).decision === 'deny').toBe(isDenied)
  })
})

test('a default that allows does not allow an unclear input', async () => {
  const policy = await read({ rules: [], default: { decision: 'allow' } })
  expect(decide(policy, call('x')).decision).toBe('allow')
  expect(decide(policy, call('x', {}, { isUnclear: true })).decision).toBe('ask')
})

test('without a default it asks', async () => {
  expect(decide(await read({ rules: [] }), call('x'))).toEqual({ decision: 'ask' })
})

/** Slow and plain: what a pattern means, as a regular expression. */
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

const letters = fc.string({ unit: fc.constantFrom('a', 'b', ';', '\n'), maxLength: 8 })
const patterns = fc.string({ unit: fc.constantFrom('a', 'b', ';', '*'), maxLength: 8 })
const rules = fc.record({
  tool: patterns,
  pattern: patterns,
  decision: fc.constantFrom('allow' as const, 'ask' as const, 'deny' as const),
})

test('the strictest rule that matches counts, in any order', () => {
  fc.assert(
    fc.property(fc.array(rules, { maxLength: 6 }), letters, letters, fc.nat(), (given, name, text, turn) => {
      const turned = [...given.slice(turn % 7), ...given.slice(0, turn % 7)]
      const policy: Policy = {
        rules: turned.map(({ tool, pattern, decision }) => ({
          tool,
          decision,
          fields: [{ path: ['t'], source: 't', pattern }],
        })),
        fallback: { decision: 'ask' },
      }
      const found = given
        .filter(({ tool, pattern, decision }) =>
          [
            [tool, name],
            [pattern, text],
          ].every(([one = '', other = '']) => isPlainMatch(one, other, decision === 'allow')),
        )
        .map(({ decision }) => decision)
      const [expected = 'ask'] = (['deny', 'ask', 'allow'] as const).filter((each) => found.includes(each))
      expect(decide(policy, call(name, { t: text })).decision).toBe(expected)
    }),
    { numRuns: 2000 },
  )
})

const anything = fc.string({
  unit: fc.constantFrom(...'ab/.-; |&$()<>`\\!{}%^\n\r\u2028\u202e\u0000'.split('')),
  maxLength: 12,
})

test('whatever the text, a star of an allow does not cross an operator, a control character or a ..', async () => {
  const policy = await read({ rules: [{ tool: 'x', input: { t: 'git *' }, decision: 'allow' }] })
  fc.assert(
    fc.property(anything, (text) => {
      const { decision } = decide(policy, call('x', { t: `git ${text}` }))
      const isUnsafe =
        /[;|&$()<>`\\!{}%^\n\r\u2028\u202e\u0000]/.test(text) || `/${text}/`.split(/[/ ]/).includes('..')
      expect(decision === 'allow' && isUnsafe).toBe(false)
    }),
    { numRuns: 5000 },
  )
})

const values = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom('a', 1, null),
    fc.array(tie('value'), { maxLength: 2 }),
    fc.dictionary(fc.constantFrom('a', 'b', '__proto__'), tie('value'), { maxKeys: 2 }),
  ),
})).value

/** The places of all that is in a value and has nothing in it, as paths of a rule. */
const leaves = (value: unknown, place: string): string[] => {
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : []
  if (entries.length === 0) return [place]
  return entries.flatMap(([key, inner]) =>
    leaves(inner, Array.isArray(value) ? `${place}[${key}]` : `${place}.${key}`),
  )
}

test('an allow matches where it names all that is in an input, and no more where it leaves one out', async () => {
  await fc.assert(
    fc.asyncProperty(values, fc.nat(), async (value, which) => {
      const named = leaves(value, 'o')
      const rule = (paths: string[]) => ({
        tool: 'x',
        input: Object.fromEntries(paths.map((path) => [path, '**'])),
      })
      expect(await isAllowed(rule(named), call('x', { o: value }))).toBe(true)
      const left = named.toSpliced(which % named.length, 1)
      expect(await isAllowed(rule(left), call('x', { o: value }))).toBe(false)
    }),
  )
})

test.each([
  ['no JSON', '{"rules":', 'policy.json: not valid JSON'],
  [
    'an unknown key',
    '{"rules":[{"tool":"x","decision":"allow","imput":{}}]}',
    'rules[0]: has an unknown key: imput',
  ],
  [
    'an unknown decision',
    '{"rules":[{"tool":"x","decision":"maybe"}]}',
    'rules[0].decision: must be allow or ask or deny',
  ],
  [
    'a key twice',
    '{"rules":[{"tool":"x","decision":"deny","decision":"allow"}]}',
    "the key 'decision' is there twice",
  ],
  [
    'a field that is no path',
    '{"rules":[{"tool":"x","decision":"deny","input":{"a[":"b"}}]}',
    "rules[0].input: 'a[' is not a path",
  ],
  [
    'too many stars',
    `{"rules":[{"tool":"${'*a'.repeat(21)}","decision":"deny"}]}`,
    'rules[0].tool: has more than 20 stars',
  ],
  [
    'an example that does not match',
    '{"rules":[{"tool":"x","decision":"allow","examples":{"match":[{"name":"y"}]}}]}',
    'rules[0].examples.match[0]: the rule does not match it',
  ],
  [
    'an example that must not match',
    '{"rules":[{"tool":"x*","decision":"allow","examples":{"miss":[{"name":"xy"}]}}]}',
    'rules[0].examples.miss[0]: the rule matches it',
  ],
])('%s in a policy is refused', async (_, text, problem) => {
  await expect(readPolicy(text, 'policy.json')).rejects.toMatchObject({ kind: 'usage' })
  const failure = await readPolicy(text, 'policy.json').catch((error) => error)
  expect([failure.message, ...(failure.details.problems ?? [])].join('\n')).toContain(problem)
})
