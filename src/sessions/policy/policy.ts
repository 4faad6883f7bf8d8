import { formatPath } from '../../wire/json/parse.ts'
import { createMatcher, stopsIn } from './pattern.ts'

export type Decision = 'allow' | 'ask' | 'deny'

/** A pattern for a field of the input. */
interface FieldText {
  /** The path as the file spells it. */
  source: string
  path: readonly (string | number)[]
  pattern: string
}

/** A rule as its file has it. */
interface RuleText {
  tool: string
  server?: string | undefined
  fields?: FieldText[] | undefined
  decision: Decision
  reason?: string | undefined
}

type Matcher = (text: string) => boolean

interface InputField extends FieldText {
  matches: Matcher
}

/** What a policy says of tool uses that match. */
export interface Rule extends RuleText {
  fields?: InputField[] | undefined
  isTool: Matcher
  isServer: Matcher
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
  /** The input as it is spelled. */
  inputText: string
  isMcp: boolean
  /** Of an MCP tool, as far as it is known. */
  server?: string
  /** What the tool would read is not certain: see `unclear`. */
  isUnclear: boolean
}

export interface Ruling {
  decision: Decision
  reason?: string
  /** The number of the rule from 0; absent if none matched. */
  rule?: number
}

/** An input that is longer is never allowed by a rule. In characters, as it is spelled. */
export const longestInput = 100_000

const unclear =
  'the input has a key twice, is nested too deep, is longer than 100,000 characters, or is one of two'

/** An allow matches as little as it can, any other rule as much. */
export function createRule(text: RuleText): Rule {
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

/** How many characters are compared without a pause. */
const longestStep = 2 ** 22

/**
 * Called before a tool use is compared with a rule. Returns a pause if one is due: during it signals, timers and what comes
 * in are dealt with.
 */
export type Pace = (call: ToolCall) => Promise<void> | undefined

/** `pause` throws if the work is to end. */
export function createPace(pause: () => Promise<void>): Pace {
  let done = 0
  return ({ name, inputText }) => {
    done += name.length + inputText.length + 100
    if (done < longestStep) return undefined
    done = 0
    return pause()
  }
}

/**
 * Decides about a tool use: of all rules that match, the strictest counts, in whatever order they are. The work is linear
 * in the input.
 */
export async function decide({ rules, fallback }: Policy, call: ToolCall, pace?: Pace): Promise<Ruling> {
  if (call.name === '') return { decision: 'ask', reason: 'its tool has no name' }
  for (const decision of strictness) {
    // By index: entries() makes a list for each rule and tool use.
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
  if (decision === 'allow') return misfitOf(rule, call) === undefined
  // A server that is not known may be any.
  const isAnyServer = call.isMcp && call.server === undefined
  return (isAnyServer || isOfServer(rule, call)) && fields.every((field) => touches(field, call.input))
}

const isOfServer = ({ server, isServer }: Rule, call: ToolCall): boolean =>
  server === undefined || (call.server !== undefined && isServer(call.server))

/** Why an allow rule that names the tool does not match, as what makes words of it; nothing if it does. */
function misfitOf(rule: Rule, call: ToolCall): (() => string) | undefined {
  const { fields, server } = rule
  if (call.isUnclear) return () => unclear
  if (call.isMcp && server === undefined) return () => 'it names no server'
  if (!isOfServer(rule, call)) return () => `the server is ${JSON.stringify(call.server) ?? 'not known'}`
  if (fields === undefined) return undefined
  for (const field of fields) {
    const value = valueAt(call.input, field.path)
    const isCovered =
      typeof value === 'string' ? field.matches(value) : value !== undefined && field.pattern === '**'
    if (!isCovered) return () => whyNotField(field, value)
  }
  const other = findOther(call.input, [], fields)
  if (other?.length === 0) return () => 'the input is not an object'
  return other && (() => `it does not name ${JSON.stringify(formatPath(other))}`)
}

function whyNotField({ source, pattern }: InputField, value: unknown): string {
  if (value === undefined) return `the input has no '${source}'`
  if (typeof value !== 'string') return `'${source}' is not a text`
  if (!createMatcher(pattern, 'any')(value)) return `'${source}' is not '${pattern}'`
  const found = stopsIn(value).filter((stop) => !pattern.includes(stop))
  const shown = found.slice(0, mostStops).map((stop) => JSON.stringify(stop))
  return `* does not stand for ${shown.join(' or ') || 'that'} in '${source}'`
}

/** How many characters that no star stands for are named. */
const mostStops = 5

/**
 * Why no rule allows a tool use that allow rules name: of the rules that come nearest, the first. Nothing if a rule
 * decides, or none names the tool.
 */
export function explain({ rules }: Policy, call: ToolCall): string | undefined {
  const named = [...rules.entries()]
    .filter(([, { decision, isTool }]) => decision === 'allow' && isTool(call.name))
    .slice(0, mostExplained)
    .map(([index, rule]) => ({ index, why: misfitOf(rule, call)?.() ?? '' }))
  const nearest = named.find(({ why }) => why.startsWith('*')) ?? named[0]
  return nearest && `rules[${nearest.index}] does not match: ${nearest.why}`
}

/** How many rules are looked at for a reason. */
const mostExplained = 20

/**
 * Of a rule that is wide: a field that is not a text counts, whatever it is, and so does one that cannot be there, because
 * something on the way to it is of another kind.
 */
function touches({ path, matches }: InputField, input: unknown): boolean {
  let inner = input
  for (const step of path) {
    if (!hasKindFor(inner, step)) return inner !== undefined
    if (!Object.hasOwn(inner, step)) return false
    inner = (inner as Record<string | number, unknown>)[step]
  }
  return typeof inner !== 'string' || matches(inner)
}

/** Whether a value can have such a field: a list by number, an object by name. */
const hasKindFor = (value: unknown, step: string | number): value is object =>
  typeof value === 'object' && value !== null && Array.isArray(value) === (typeof step === 'number')

/** The place of something in a value that no field names. What is inside of a field that is named is not looked at. */
function findOther(
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
    const other = findOther(inner, [...place, Array.isArray(value) ? Number(key) : key], inside)
    if (other) return other
  }
  return undefined
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
