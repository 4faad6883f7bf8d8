import { usageError } from '../../errors.ts'
import { toOneLine } from '../../io/escape.ts'
import { decideByPolicy, explainUnmatchedAllowRule, type Policy } from '../policy/policy.ts'
import type { ParsedToolUse } from '../policy/tool-use.ts'
import { needsClientResult } from '../session-state.ts'
import { summarizeToolUse } from '../tool-use-summary.ts'

export function readToolFlags(given: readonly string[] = []): Map<string, string> {
  const tools = new Map<string, string>()
  for (const text of given) {
    const end = text.indexOf('=')
    const [name, command] = [text.slice(0, end), text.slice(end + 1)]
    if (end <= 0 || command.trim() === '') throw usageError(`--tool ${text}: must have the form NAME=COMMAND`)
    if (tools.has(name)) throw usageError(`--tool: there are two commands for ${name}; give one`)
    tools.set(name, command)
  }
  return tools
}

export interface Judgement {
  use: ParsedToolUse
  decision: 'allow' | 'ask' | 'deny'
  reason?: string
  rule?: number
  by: 'rule' | 'default' | 'tool' | 'person'
  /** `undefined` if there is no allow rule for this tool. */
  mismatchReason?: string | undefined
}

/** Decides about a tool use. A matching rule wins over a `--tool` command. */
export async function judgeToolUse(use: ParsedToolUse, policy: Policy): Promise<Judgement> {
  const { decision, reason, rule } = await decideByPolicy(policy, use)
  if (rule !== undefined) return { use, decision, by: 'rule', rule, reason }
  if (getToolUseExecutor(use, policy) === 'tool-command' && !use.isUnclear)
    return { use, decision: 'allow', by: 'tool' }
  const mismatchReason = decision === 'allow' ? undefined : explainUnmatchedAllowRule(policy, use)
  return { use, decision, by: 'default', reason, mismatchReason }
}

export function getToolUseExecutor(
  use: ParsedToolUse,
  { toolCommands }: Policy,
): 'service' | 'tool-command' | 'other-client' {
  const hasCommand = toolCommands?.has(use.name) === true
  if (needsClientResult(use)) return hasCommand ? 'tool-command' : 'other-client'
  return hasCommand && use.type === 'agent.tool_use' && use.permission !== 'ask' ? 'tool-command' : 'service'
}

export function describeJudgement(judgement: Judgement): string {
  const { use, decision, reason } = judgement
  const why = reason === undefined ? '' : `: ${reason}`
  return `${decision} ${describeToolUse(use)} (${describeDecider(judgement)}${why})`
}

export const describeDecider = ({ by, rule }: Judgement): string =>
  ({ rule: `rules[${rule}]`, default: 'default', tool: '--tool', person: 'you' })[by]

export const formatReason = (reason: string | undefined): string =>
  reason === undefined ? '' : `: ${toOneLine(reason, 200)}`

const maxPrintedLength = 400

export function describeToolUse(
  use: Pick<ParsedToolUse, 'id' | 'inputText'> & Parameters<typeof summarizeToolUse>[0],
): string {
  const text = summarizeToolUse(use, use.inputText)
  return `${text.length > maxPrintedLength ? `${text.slice(0, maxPrintedLength)}…` : text} ${use.id}`.trimEnd()
}
