import { type Decision, decide, type Policy } from '../policy/policy.ts'
import type { Call } from './call.ts'

/** What decides about tool uses. */
export interface Rules {
  policy: Policy
  /** Commands that carry out tool uses here, by the tool's name. */
  tools: ReadonlyMap<string, string>
}

export interface Verdict {
  call: Call
  decision: Decision
  by: 'rule' | 'default' | 'tool' | 'person'
  /** From 0. */
  rule?: number
  reason?: string
}

/** A command for a tool is as good as a rule that allows it: any rule that is stricter counts more. */
export function judge(call: Call, { policy, tools }: Rules): Verdict {
  const { decision, reason, rule } = decide(policy, call)
  if (rule !== undefined) return { call, decision, by: 'rule', rule, reason }
  const hasCommand = tools.has(call.name) && waitsForResult(call, tools) && !call.isUnclear
  return hasCommand ? { call, decision: 'allow', by: 'tool' } : { call, decision, by: 'default', reason }
}

/** Whether it is answered by a result: nobody but the client carries it out, and nobody asks whether it may be. */
export function waitsForResult({ type, permission, name }: Call, tools: Rules['tools']): boolean {
  if (type === 'agent.custom_tool_use') return true
  if (type !== 'agent.tool_use') return false
  return permission === 'allow' || (permission !== 'ask' && tools.has(name))
}

/** A tool use and what was decided about it, for a person. */
export function describeVerdict({ call, decision, by, rule, reason }: Verdict): string {
  const who = { rule: `rules[${rule}]`, default: 'default', tool: '--tool', person: 'you' }[by]
  return `${decision} ${describeCall(call)} (${who}${reason === undefined ? '' : `: ${reason}`})`
}

/** What is shown of an input, in characters. */
const longestInput = 400

export const describeCall = ({ id, name, inputText }: Call): string =>
  `${name} ${inputText.length > longestInput ? `${inputText.slice(0, longestInput)}…` : inputText} ${id}`
