import { usage, usageProblems } from '../../errors.ts'
import { readFieldPath } from '../../wire/json/edit.ts'
import { describeIssues, describeJsonError, parseJson } from '../../wire/json/parse.ts'
import { findRepeatedKey } from '../../wire/json/scanner.ts'
import { DenyMessage } from '../../wire/sessions/send-events.ts'
import * as z from '../../wire/zod.ts'
import { longestPattern, mostStars } from './pattern.ts'
import { createRule, type Decision, matches, type Policy, type Rule } from './policy.ts'

const decisions = ['allow', 'ask', 'deny'] as const satisfies Decision[]

const Pattern = z.lazily(() => z.string().check(z.maxLength(longestPattern)))

const Example = z.lazily(() =>
  z.strictObject({ name: z.string(), server: z.optional(z.string()), input: z.optional(z.unknown()) }),
)

const PolicyFile = z.lazily(() =>
  z.strictObject({
    rules: z.array(
      z.strictObject({
        tool: Pattern(),
        server: z.optional(Pattern()),
        input: z.optional(z.record(Pattern())),
        decision: z.enum(decisions),
        reason: z.optional(DenyMessage()),
        examples: z.optional(
          z.strictObject({ match: z.optional(z.array(Example())), miss: z.optional(z.array(Example())) }),
        ),
      }),
    ),
    default: z.optional(z.strictObject({ decision: z.enum(decisions), reason: z.optional(DenyMessage()) })),
  }),
)
type PolicyFile = z.infer<ReturnType<typeof PolicyFile>>

/** Reads a policy from its JSON; `name` is what messages call it. Throws a usage error that names every problem. */
export async function readPolicy(text: string, name: string): Promise<Policy> {
  let value: unknown
  try {
    value = parseJson(text)
  } catch {
    throw usage(`${name}: not valid JSON: ${await describeJsonError(text)}`)
  }
  const repeated = findRepeatedKey(text)
  if (repeated !== undefined) throw usage(`${name}: the key '${repeated}' is there twice in one object`)
  const parsed = PolicyFile().safeParse(value)
  if (!parsed.success) throw usageProblems(name, describeIssues(parsed.error))
  const rules = parsed.data.rules.map(toRule)
  const problems = [
    ...rules.flatMap((rule, index) => problemsOf(rule).map((problem) => `rules[${index}].${problem}`)),
    ...parsed.data.rules.flatMap(({ examples }, index) =>
      failingExamples(rules[index] as Rule, examples, index),
    ),
  ]
  if (problems.length > 0) throw usageProblems(name, problems)
  return { rules, fallback: parsed.data.default ?? { decision: 'ask' } }
}

function toRule({ tool, server, input, decision, reason }: PolicyFile['rules'][number]): Rule {
  const fields = input && Object.entries(input).map(([source, pattern]) => ({ ...toField(source), pattern }))
  return createRule({ tool, server, fields, decision, reason })
}

/** A path that cannot be read is left empty. */
function toField(source: string): { path: (string | number)[]; source: string } {
  const { path, end } = readFieldPath(source)
  return { path: end === source.length ? path : [], source }
}

function problemsOf({ tool, server, fields = [] }: Rule): string[] {
  const patterns = [
    { place: 'tool', pattern: tool },
    ...(server === undefined ? [] : [{ place: 'server', pattern: server }]),
    ...fields.map(({ source, pattern }) => ({ place: `input[${JSON.stringify(source)}]`, pattern })),
  ]
  const unreadable = fields.filter(({ path }) => path.length === 0)
  return [
    ...unreadable.map(({ source }) => `input: '${source}' is not a path such as a.b, a[0] or a["x.y"]`),
    ...patterns
      .filter(({ pattern }) => pattern.split(/\*+/).length - 1 > mostStars)
      .map(({ place }) => `${place}: has more than ${mostStars} stars`),
  ]
}

type Examples = PolicyFile['rules'][number]['examples']

/** The examples of a rule that do not hold. */
function failingExamples(
  rule: Rule,
  { match = [], miss = [] }: NonNullable<Examples> = {},
  index: number,
): string[] {
  const check = (examples: typeof match, isWanted: boolean, list: string) =>
    examples.flatMap(({ name, server, input }, place) => {
      const inputText = JSON.stringify(input) ?? '{}'
      const call = { name, input, inputText, server, isMcp: server !== undefined, isUnclear: false }
      const what = isWanted ? 'does not match' : 'matches'
      return matches(rule, call) === isWanted
        ? []
        : [`rules[${index}].examples.${list}[${place}]: the rule ${what} it`]
    })
  return [...check(match, true, 'match'), ...check(miss, false, 'miss')]
}
