import { formatPath } from '../../wire/json/parse.ts'
import { createMatcher, findUnmatchedTexts } from './pattern.ts'

export type Decision = 'allow' | 'ask' | 'deny'

/** A pattern for an input field. */
interface FieldPattern {
  /** Source text of the path. */
  source: string
  path: readonly (string | number)[]
  pattern: string
}

/** A rule as written in the file. */
interface RuleSource {
  tool: string
  server?: string | undefined
  fields?: FieldPattern[] | undefined
  decision: Decision
  reason?: string | undefined
}

type Matcher = (text: string) => boolean

interface InputField extends FieldPattern {
  matches: Matcher
}

/** A rule with compiled patterns. */
export interface Rule extends RuleSource {
  fields?: InputField[] | undefined
  isTool: Matcher
  isServer: Matcher
}

export interface Policy {
  rules: readonly Rule[]
  /** Applies if no rule matches. */
  fallback: { decision: Decision; reason?: string }
}

/** The parts of a tool use to which a policy applies. */
export interface ToolCall {
  name: string
  input: unknown
  /** Source text of the input. */
  inputText: string
  isMcp: boolean
  /** Name of the MCP server that provides the tool, if the name is known. */
  server?: string
  /** The tool may interpret the input differently than parley does, for the reasons in `unclear`. */
  isUnclear: boolean
}

export interface PolicyDecision {
  decision: Decision
  reason?: string
  /** Index of the deciding rule. Absent if none matched. */
  rule?: number
}

/** Maximum length of an input that a rule can allow, in characters of its source text. */
export const maxInputLength = 100_000

const unclear =
  'the input has a key twice, is nested too deep, is longer than 100,000 characters, or exists in two versions'

/** Compiles a rule. Allow rules match as little as possible, other rules as much as possible. */
export function createRule(text: RuleSource): Rule {
  const { tool, server, fields, decision } = text
  const reach = decision === 'allow' ? 'narrow' : 'any'
  return {
    ...text,
    isTool: createMatcher(tool, reach),
    isServer: createMatcher(server ?? '**', reach),
    fields: fields?.map((field) => ({ ...field, matches: createMatcher(field.pattern, reach) })),
  }
}

const strictness = ['deny', 'ask', 'allow'] as const

/** Number of characters compared between two pauses. */
const pauseAfterCharacters = 2 ** 22

/**
 * Called before a tool use is compared with a rule. Returns a promise if it is time for a pause, in which
 * signals, timers and input are handled.
 */
export type Pauser = (call: ToolCall) => Promise<void> | undefined

/** Creates a `Pauser` that calls `pause` at intervals. `pause` may throw to end the work. */
export function createPauser(pause: () => Promise<void>): Pauser {
  let done = 0
  return ({ name, inputText }) => {
    done += name.length + inputText.length + 100
    if (done < pauseAfterCharacters) return undefined
    done = 0
    return pause()
  }
}

/**
 * Decides about a tool use. The strictest matching rule counts, in any order. Takes time linear in the input.
 */
export async function decideByPolicy(
  { rules, fallback }: Policy,
  call: ToolCall,
  pace?: Pauser,
): Promise<PolicyDecision> {
  if (call.name === '') return { decision: 'ask', reason: 'its tool has no name' }
  for (const decision of strictness) {
    // Loops by index, because `entries()` creates a list per rule and tool use.
    for (let rule = 0; rule < rules.length; rule++) {
      const each = rules[rule] as Rule
      if (each.decision !== decision) continue
      const pause = pace?.(call)
      if (pause) await pause
      if (matches(each, call)) return { decision, reason: each.reason, rule }
    }
  }
  return fallback.decision === 'allow' && call.isUnclear ? { decision: 'ask', reason: unclear } : fallback
}

export function matches(rule: Rule, call: ToolCall): boolean {
  const { isTool, fields = [], decision } = rule
  if (!isTool(call.name)) return false
  if (decision === 'allow') return findMismatch(rule, call) === undefined
  // An MCP tool without a server name may belong to any server.
  const isAnyServer = call.isMcp && call.server === undefined
  return (isAnyServer || isOfServer(rule, call)) && fields.every((field) => appliesToField(field, call.input))
}

const isOfServer = ({ server, isServer }: Rule, call: ToolCall): boolean =>
  server === undefined || (call.server !== undefined && isServer(call.server))

/**
 * For an allow rule whose tool matches: returns a function that explains why the rule does not match, or
 * `undefined` if it does.
 */
function findMismatch(rule: Rule, call: ToolCall): (() => string) | undefined {
  const { fields, server } = rule
  if (call.isUnclear) return () => unclear
  if (call.isMcp && server === undefined) return () => 'the rule names no server'
  if (!isOfServer(rule, call))
    return () =>
      call.server === undefined
        ? 'the tool use has no server name'
        : `the server is ${JSON.stringify(call.server)}`
  if (fields === undefined) return undefined
  for (const field of fields) {
    const value = getValue(call.input, field.path)
    const isCovered =
      typeof value === 'string' ? field.matches(value) : value !== undefined && field.pattern === '**'
    if (!isCovered) return () => describeFieldMismatch(field, value)
  }
  const other = findUnnamedPart(call.input, [], fields)
  if (other?.length === 0) return () => 'the input is not an object'
  return other && (() => `the rule has no pattern for the input field ${JSON.stringify(formatPath(other))}`)
}

function describeFieldMismatch({ source, pattern }: InputField, value: unknown): string {
  if (value === undefined) return `the rule's input field '${source}' is missing in the input`
  if (typeof value !== 'string') return `'${source}' is not a text`
  if (!createMatcher(pattern, 'any')(value)) return `'${source}' is not '${pattern}'`
  const found = findUnmatchedTexts(value).filter((stop) => !pattern.includes(stop))
  const shown = found.slice(0, maxListedStops).map((stop) => JSON.stringify(stop))
  return `* does not match ${shown.join(' or ') || 'this text'} in '${source}'`
}

/** Maximum number of stop characters in an explanation. */
const maxListedStops = 5

/**
 * Explains why the allow rules for a tool do not match. Prefers the first rule in which only a `*` does not
 * match. Returns `undefined` if there is no allow rule for the tool.
 */
export function explainMismatch({ rules }: Policy, call: ToolCall): string | undefined {
  const named = [...rules.entries()]
    .filter(([, { decision, isTool }]) => decision === 'allow' && isTool(call.name))
    .slice(0, maxExaminedRules)
    .map(([index, rule]) => ({ index, why: findMismatch(rule, call)?.() ?? '' }))
  const nearest = named.find(({ why }) => why.startsWith('*')) ?? named[0]
  return nearest && `rules[${nearest.index}] does not match: ${nearest.why}`
}

/** Maximum number of rules examined for an explanation. */
const maxExaminedRules = 20

/**
 * Returns whether a deny or ask rule applies to a field. It also applies to a field that is not text, and to
 * a missing field whose parent has an unexpected type.
 */
function appliesToField({ path, matches }: InputField, input: unknown): boolean {
  let inner = input
  for (const step of path) {
    if (!canHaveField(inner, step)) return inner !== undefined
    if (!Object.hasOwn(inner, step)) return false
    inner = (inner as Record<string | number, unknown>)[step]
  }
  return typeof inner !== 'string' || matches(inner)
}

/** Returns whether a value can have a field: a list by number, an object by name. */
const canHaveField = (value: unknown, step: string | number): value is object =>
  typeof value === 'object' && value !== null && Array.isArray(value) === (typeof step === 'number')

/** Returns the path of an input part that no pattern of the rule covers. */
function findUnnamedPart(
  value: unknown,
  place: (string | number)[],
  fields: readonly InputField[],
): (string | number)[] | undefined {
  const inside = fields.filter(({ path }) => place.every((step, index) => step === path[index]))
  if (inside.some(({ path }) => path.length <= place.length)) return undefined
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : []
  if (entries.length === 0)
    return place.length > 0 || typeof value !== 'object' || value === null ? place : undefined
  for (const [key, inner] of entries) {
    const other = findUnnamedPart(inner, [...place, Array.isArray(value) ? Number(key) : key], inside)
    if (other) return other
  }
  return undefined
}

/** Returns the value at a path. Reads own properties only. */
function getValue(value: unknown, path: readonly (string | number)[]): unknown {
  let inner = value
  for (const step of path) {
    if (!canHaveField(inner, step) || !Object.hasOwn(inner, step)) return undefined
    inner = (inner as Record<string | number, unknown>)[step]
  }
  return inner
}
