import { createUsageErrorFromProblems, usageError } from '../../errors.ts'
import { yieldToSignals } from '../../timers.ts'
import { readFieldPath } from '../../wire/json/edit.ts'
import { describeSchemaIssues, formatFieldPath, parseInputJson } from '../../wire/json/parse.ts'
import { findRepeatedJsonKey } from '../../wire/json/scanner.ts'
import { DenyMessage } from '../../wire/sessions/send-events.ts'
import * as z from '../../wire/zod.ts'
import { createPatternMatcher, findStarStops, maxPatternLength, maxPatternStars } from './pattern.ts'
import { type ParsedToolUse, parseToolUse } from './tool-use.ts'

const decisionsFromStrictest = ['deny', 'ask', 'allow'] as const

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
      decision: z.enum(decisionsFromStrictest),
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
          { decision: z.enum(decisionsFromStrictest), reason: z.optional(DenyMessage()) },
          { error: ({ code }) => (code === 'invalid_type' ? 'must be like {"decision":"deny"}' : undefined) },
        ),
      ),
    })
    .check(z.refine((value) => Boolean(value.rules ?? value.default), 'must have "rules" or "default"')),
)

type PolicyRule = ReturnType<typeof createRule>

type InputFieldPattern = NonNullable<PolicyRule['fields']>[number]

export interface Policy {
  rules: readonly PolicyRule[]
  fallback: { decision: (typeof decisionsFromStrictest)[number]; reason?: string }
  pauser?: Pauser
  /** Commands of `--tool`, by tool name. parley allows these tools unless a rule matches. */
  toolCommands?: ReadonlyMap<string, string>
}

const unclearText =
  'the input repeats a key, is nested too deep, is longer than 100,000 characters, or differs between two events'

/**
 * Creates a rule. If it is unclear whether a tool use matches, an allow rule does not match, and a deny or
 * ask rule matches.
 */
export function createRule({ tool, server, input, decision, reason }: RuleForm) {
  const reach = decision === 'allow' ? 'narrow' : 'any'
  const createField = ([source, pattern]: [string, string]) => {
    const { path } = readFieldPath(source)
    return { source, path, pattern, matches: createPatternMatcher(pattern, reach) }
  }
  return {
    server,
    decision,
    reason,
    isTool: createPatternMatcher(tool, reach),
    isServer: createPatternMatcher(server ?? '**', reach),
    fields: input && Object.entries(input).map(createField),
  }
}

const pauseAfterCharacters = 2 ** 22

/**
 * Called before parley compares a tool use with a rule. If Node needs a pause to handle signals, timers and
 * input, returns a promise for the end of the pause.
 */
type Pauser = (use: ParsedToolUse) => Promise<void> | undefined

/** `check` is called after each pause and throws a `CliError` if the deadline has passed. */
export function createPolicyPauser(check: () => void): Pauser {
  let characters = 0
  return ({ name, inputText }) => {
    characters += name.length + inputText.length + 100
    if (characters < pauseAfterCharacters) return undefined
    characters = 0
    return yieldToSignals().then(check)
  }
}

/**
 * Decides about a tool use by the strictest matching rule: deny, then ask, then allow. Takes time linear in
 * the input.
 */
export async function decideByPolicy(
  { rules, fallback, pauser }: Policy,
  use: ParsedToolUse,
): Promise<Policy['fallback'] & { rule?: number }> {
  if (use.name === '') return { decision: 'ask', reason: 'its tool has no name' }
  for (const decision of decisionsFromStrictest) {
    // Loops by index, because `entries()` would create an array for each rule and tool use.
    for (let rule = 0; rule < rules.length; rule++) {
      const each = rules[rule] as PolicyRule
      if (each.decision !== decision) continue
      const pause = pauser?.(use)
      if (pause) await pause
      if (matchesRule(each, use)) return { decision, reason: each.reason, rule }
    }
  }
  return fallback.decision === 'allow' && use.isUnclear ? { decision: 'ask', reason: unclearText } : fallback
}

function matchesRule(rule: PolicyRule, use: ParsedToolUse): boolean {
  const { isTool, fields = [], decision } = rule
  if (!isTool(use.name)) return false
  if (decision === 'allow') return findMismatch(rule, use) === undefined
  // An MCP tool without a server name may belong to any server, so every server's deny and ask rules apply.
  const isAnyServer = isMcp(use) && use.server === undefined
  return (
    (isAnyServer || matchesServer(rule, use)) && fields.every((field) => appliesToField(field, use.input))
  )
}

const isMcp = ({ type }: ParsedToolUse): boolean => type === 'agent.mcp_tool_use'

const matchesServer = ({ server, isServer }: PolicyRule, use: ParsedToolUse): boolean =>
  server === undefined || (use.server !== undefined && isServer(use.server))

/**
 * Compares a tool use with an allow rule for its tool. Returns `undefined` if the rule matches, otherwise a
 * function that returns the reason.
 */
function findMismatch(rule: PolicyRule, use: ParsedToolUse): (() => string) | undefined {
  const { fields, server } = rule
  if (use.isUnclear) return () => unclearText
  if (isMcp(use) && server === undefined) return () => 'an allow rule must name the server of an MCP tool'
  if (!matchesServer(rule, use))
    return () =>
      use.server === undefined
        ? 'the tool use has no server name'
        : `the server is ${JSON.stringify(use.server)}`
  if (fields === undefined) return undefined
  for (const field of fields) {
    const { value: found, isComplete } = findField(use.input, field.path)
    const value = isComplete ? found : undefined
    const isCovered =
      typeof value === 'string' ? field.matches(value) : value !== undefined && field.pattern === '**'
    if (!isCovered) return () => describeFieldMismatch(field, value)
  }
  const other = findUncoveredField(use.input, [], fields)
  if (other?.length === 0) return () => 'the input is not an object'
  return (
    other && (() => `the rule has no pattern for the input field ${JSON.stringify(formatFieldPath(other))}`)
  )
}

function describeFieldMismatch({ source, pattern }: InputFieldPattern, value: unknown): string {
  if (value === undefined) return `the input has no field '${source}', which the rule checks`
  if (typeof value !== 'string') return `'${source}' is not a string`
  if (!createPatternMatcher(pattern, 'any')(value)) return `'${source}' is not '${pattern}'`
  const found = findStarStops(value).filter((stop) => !pattern.includes(stop))
  const shown = found.slice(0, maxListedStops).map((stop) => JSON.stringify(stop))
  return `the * in '${pattern}' does not match ${shown.join(' or ') || 'this text'} in '${source}'`
}

const maxListedStops = 5

/**
 * Returns the reason why an allow rule for a tool does not match. Prefers a rule that fails only because a
 * `*` does not match. Returns `undefined` if there is no allow rule for the tool.
 */
export function explainUnmatchedAllowRule({ rules }: Policy, use: ParsedToolUse): string | undefined {
  const named = [...rules.entries()]
    .filter(([, { decision, isTool }]) => decision === 'allow' && isTool(use.name))
    .slice(0, maxExaminedRules)
    .map(([index, rule]) => ({ index, why: findMismatch(rule, use)?.() ?? '' }))
  const nearest = named.find(({ why }) => why.startsWith('the *')) ?? named[0]
  return nearest && `rules[${nearest.index}] does not match: ${nearest.why}`
}

const maxExaminedRules = 20

/**
 * Returns whether the pattern of a deny or ask rule matches a field. The pattern also matches a field that is
 * not text, and a missing field whose parent has an unexpected type.
 */
function appliesToField({ path, matches }: InputFieldPattern, input: unknown): boolean {
  const { value, isComplete } = findField(input, path)
  return isComplete && typeof value === 'string' ? matches(value) : value !== undefined
}

/** Finds a field. If a value on the path cannot have the next field, returns that value as incomplete. */
function findField(input: unknown, path: readonly (string | number)[]) {
  let value = input
  for (const step of path) {
    if (!canHaveField(value, step)) return { value, isComplete: false }
    if (!Object.hasOwn(value, step)) return { value: undefined, isComplete: false }
    value = (value as Record<string | number, unknown>)[step]
  }
  return { value, isComplete: true }
}

const canHaveField = (value: unknown, step: string | number): value is object =>
  typeof value === 'object' && value !== null && Array.isArray(value) === (typeof step === 'number')

function findUncoveredField(
  value: unknown,
  at: (string | number)[],
  fields: readonly InputFieldPattern[],
): (string | number)[] | undefined {
  const inside = fields.filter(({ path }) => at.every((step, index) => step === path[index]))
  if (inside.some(({ path }) => path.length <= at.length)) return undefined
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : []
  if (entries.length === 0)
    return at.length > 0 || typeof value !== 'object' || value === null ? at : undefined
  for (const [key, inner] of entries) {
    const other = findUncoveredField(inner, [...at, Array.isArray(value) ? Number(key) : key], inside)
    if (other) return other
  }
  return undefined
}

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
  const rules = forms.map(createRule)
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
