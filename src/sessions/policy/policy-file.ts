import { createUsageErrorFromProblems, usageError } from '../../errors.ts'
import { readFieldPath } from '../../wire/json/edit.ts'
import { describeSchemaIssues, parseInputJson } from '../../wire/json/parse.ts'
import { findRepeatedJsonKey } from '../../wire/json/scanner.ts'
import { DenyMessage } from '../../wire/sessions/send-events.ts'
import * as z from '../../wire/zod.ts'
import { maxPatternLength, maxPatternStars } from './pattern.ts'
import { createRule, matchesRule, type Policy } from './policy.ts'
import { parseToolUse } from './tool-use.ts'

const decisions = ['allow', 'ask', 'deny'] as const

const Pattern = z.buildOnFirstUse(() =>
  z.string().check(
    z.maxLength(maxPatternLength),
    z.refine(
      (text) => text.split(/\*+/).length - 1 <= maxPatternStars,
      `has more than ${maxPatternStars} stars`,
    ),
  ),
)

const Example = z.buildOnFirstUse(() =>
  z.strictObject({ name: z.string(), server: z.optional(z.string()), input: z.optional(z.unknown()) }),
)

const RuleForm = z.buildOnFirstUse(() =>
  z
    .strictObject({
      tool: Pattern(),
      server: z.optional(Pattern()),
      input: z.optional(z.record(Pattern())),
      decision: z.enum(decisions),
      reason: z.optional(DenyMessage()),
      examples: z.optional(
        z.strictObject({ match: z.optional(z.array(Example())), miss: z.optional(z.array(Example())) }),
      ),
    })
    .check(
      z.check(({ value: { input = {} }, issues }) => {
        for (const source of Object.keys(input)) {
          const { path, end } = readFieldPath(source)
          const message = `'${source}' is not a path such as a.b, a[0] or a["x.y"]`
          if (path.length === 0 || end < source.length)
            issues.push({ code: 'custom', path: ['input'], input, message })
        }
      }),
    ),
)
type RuleForm = z.infer<ReturnType<typeof RuleForm>>

const PolicyFile = z.buildOnFirstUse(() =>
  z
    .strictObject({
      rules: z.optional(z.array(RuleForm())),
      default: z.optional(
        z.strictObject(
          { decision: z.enum(decisions), reason: z.optional(DenyMessage()) },
          { error: ({ code }) => (code === 'invalid_type' ? 'must be like {"decision":"deny"}' : undefined) },
        ),
      ),
    })
    .check(
      z.check(({ value, issues }) => {
        const message = 'must have "rules" or "default"'
        if (!value.rules && !value.default) issues.push({ code: 'custom', path: [], input: value, message })
      }),
    ),
)

/**
 * Parses a policy file and checks the examples of its rules. `name` is the file's name in messages. Throws a
 * usage error that lists all problems.
 */
export async function readPolicy(text: string, name: string): Promise<Policy> {
  const value = parseInputJson(text, name)
  const repeated = findRepeatedJsonKey(text)
  if (repeated !== undefined) throw usageError(`${name}: the key '${repeated}' appears twice in one object`)
  const parsed = PolicyFile().safeParse(value)
  if (!parsed.success) throw createUsageErrorFromProblems(name, describeSchemaIssues(parsed.error))
  const { rules: forms = [], default: fallback = { decision: 'ask' } } = parsed.data
  const rules = forms.map((rule) => createRule(rule))
  const problems = rules.flatMap((rule, index) =>
    findWrongExamples(rule, forms[index]?.examples).map((problem) => `rules[${index}].examples.${problem}`),
  )
  if (problems.length > 0) throw createUsageErrorFromProblems(name, problems)
  return { rules, fallback }
}

function findWrongExamples(
  rule: Policy['rules'][number],
  { match = [], miss = [] }: RuleForm['examples'] = {},
): string[] {
  const check = (examples: typeof match, isWanted: boolean, describe: (index: number) => string) =>
    examples.flatMap(({ name, server, input }, index) => {
      const type = server === undefined ? 'agent.tool_use' : 'agent.mcp_tool_use'
      const text = JSON.stringify({ type, name, mcp_server_name: server, input })
      return matchesRule(rule, parseToolUse(text)) === isWanted ? [] : [describe(index)]
    })
  return [
    ...check(match, true, (index) => `match[${index}]: the rule does not match this example`),
    ...check(miss, false, (index) => `miss[${index}]: the rule matches this example`),
  ]
}
