import { createMatcher, type Reach } from './pattern.ts'

export type Decision = 'allow' | 'ask' | 'deny'

/** What a policy says of tool uses that match. */
export interface Rule {
  tool: string
  server?: string
  /** Patterns of the input's fields, by path. */
  fields?: InputField[]
  decision: Decision
  reason?: string
}

interface InputField {
  /** The path as the file spells it. */
  source: string
  path: readonly (string | number)[]
  pattern: string
}

export interface Policy {
  rules: readonly Rule[]
  /** Applies if no rule matches. */
  fallback: { decision: Decision; reason?: string }
}

/** A tool use as a policy sees it. */
export interface ToolCall {
  name: string
  input: unknown
  isMcp: boolean
  /** Of an MCP tool, as far as it is known. */
  server?: string
  /** The input has a key twice, is nested too deep, or is one of two: what the tool would read is not certain. */
  isUnclear: boolean
}

export interface Ruling {
  decision: Decision
  reason?: string
  /** The number of the rule from 0; absent if none matched. */
  rule?: number
}

const strictness = ['deny', 'ask', 'allow'] as const

/** Decides about a tool use: of all rules that match, the strictest counts, in whatever order they are. */
export function decide({ rules, fallback }: Policy, call: ToolCall): Ruling {
  for (const decision of strictness) {
    const rule = rules.findIndex((each) => each.decision === decision && matches(each, call))
    const found = rules[rule]
    if (found) return { decision, reason: found.reason, rule }
  }
  return fallback.decision === 'allow' && call.isUnclear
    ? { decision: 'ask', reason: 'the input has a key twice, is nested too deep, or is one of two' }
    : fallback
}

/** An allow matches as little as it can, any other rule as much. */
export function matches(rule: Rule, call: ToolCall): boolean {
  const reach = rule.decision === 'allow' ? 'narrow' : 'any'
  if (!createMatcher(rule.tool, reach)(call.name)) return false
  if (rule.server !== undefined && !isOfServer(call, rule.server, reach)) return false
  if (reach === 'any') return (rule.fields ?? []).every((field) => touches(field, call.input))
  if (call.isUnclear || (call.isMcp && rule.server === undefined)) return false
  return rule.fields === undefined || covers(rule.fields, call.input)
}

const isMatch = (text: unknown, pattern: string, reach: Reach): boolean =>
  typeof text === 'string' && createMatcher(pattern, reach)(text)

/** A server that is not known may be any, so that a rule that is wide matches it. */
const isOfServer = ({ isMcp, server }: ToolCall, pattern: string, reach: Reach): boolean =>
  isMcp && server === undefined ? reach === 'any' : isMatch(server, pattern, reach)

/**
 * Of a rule that is wide: a field that is not a text counts, whatever it is, and so does one that cannot be there, because
 * something on the way to it is of another kind.
 */
function touches({ path, pattern }: InputField, input: unknown): boolean {
  let inner = input
  for (const step of path) {
    if (!hasKindFor(inner, step)) return inner !== undefined
    if (!Object.hasOwn(inner, step)) return false
    inner = (inner as Record<string | number, unknown>)[step]
  }
  return typeof inner !== 'string' || isMatch(inner, pattern, 'any')
}

/** Whether a value can have such a field: a list by number, an object by name. */
const hasKindFor = (value: unknown, step: string | number): value is object =>
  typeof value === 'object' && value !== null && Array.isArray(value) === (typeof step === 'number')

/** Whether every field of the rule matches, and the input has no other. */
function covers(fields: readonly InputField[], input: unknown): boolean {
  const isEach = fields.every(({ path, pattern }) => {
    const value = valueAt(input, path)
    return value !== undefined && (pattern === '**' || isMatch(value, pattern, 'narrow'))
  })
  return isEach && !hasOther(input, [], fields)
}

/** Whether a value has something in it that no field names. What is inside of a field that is named is not looked at. */
function hasOther(
  value: unknown,
  place: readonly (string | number)[],
  fields: readonly InputField[],
): boolean {
  if (fields.some(({ path }) => path.every((step, index) => step === place[index]))) return false
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : []
  if (entries.length === 0) return place.length > 0 || typeof value !== 'object' || value === null
  return entries.some(([key, inner]) =>
    hasOther(inner, [...place, Array.isArray(value) ? Number(key) : key], fields),
  )
}

/** By own properties only. */
function valueAt(value: unknown, path: readonly (string | number)[]): unknown {
  let inner = value
  for (const step of path) {
    if (!hasKindFor(inner, step) || !Object.hasOwn(inner, step)) return undefined
    inner = (inner as Record<string | number, unknown>)[step]
  }
  return inner
}
