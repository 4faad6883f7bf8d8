import { usageError } from '../../errors.ts'
import { findJsonField, findRepeatedJsonKey, isJsonDeeperThan } from '../../wire/json/scanner.ts'
import { SessionEvent } from '../../wire/sessions/session-event.ts'
import { formatBriefName } from '../plain-name.ts'
import {
  type Decision,
  decideByPolicy,
  explainUnmatchedAllowRule,
  maxAllowedInputLength,
  type Policy,
  type ToolCall,
} from '../policy/policy.ts'
import { maxToolInputDepth, needsClientResult, type ToolUse } from '../session-state.ts'

export interface ParsedToolUse extends ToolCall {
  id: string
  type: string
  text: string
  isContradicted: boolean
  permission?: unknown
}

type ListedToolUse = Pick<ToolUse, 'text' | 'isContradicted' | 'wantsResult' | 'permission'>

/** Returns `undefined` if parley no longer has the text of the tool use's event. */
export function parseToolUse(toolUse: ListedToolUse | undefined): ParsedToolUse | undefined {
  if (toolUse?.text === undefined) return undefined
  const { text, isContradicted = false } = toolUse
  const event = SessionEvent.parse(JSON.parse(text))
  const { id = '', type, name, mcp_server_name: server } = event
  const inputText = findJsonField(text, 'input') ?? '{}'
  return {
    id,
    type,
    text,
    name: typeof name === 'string' ? name : '',
    input: event.input === undefined ? {} : event.input,
    inputText,
    isMcp: type === 'agent.mcp_tool_use',
    server: typeof server === 'string' && server !== '' ? server : undefined,
    isContradicted,
    isUnclear:
      isContradicted ||
      typeof name !== 'string' ||
      inputText.length > maxAllowedInputLength ||
      findRepeatedJsonKey(text) !== undefined ||
      isJsonDeeperThan(inputText, maxToolInputDepth),
    permission: toolUse.wantsResult ? toolUse.permission : event.evaluated_permission,
  }
}

export interface JudgementRules {
  policy: Policy
  /** Commands that execute tool uses, by tool name. */
  tools: ReadonlyMap<string, string>
}

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
  decision: Decision
  reason?: string
  rule?: number
  by: 'rule' | 'default' | 'tool' | 'person'
  /** Reason why the allow rules for this tool do not match; `undefined` if there is no such rule. */
  why?: string | undefined
}

/**
 * Decides about a tool use. A `--tool` command counts as an allow rule, but a matching rule of the policy
 * wins.
 */
export async function judgeToolUse(
  use: ParsedToolUse,
  { policy, tools }: JudgementRules,
): Promise<Judgement> {
  const { decision, reason, rule } = await decideByPolicy(policy, use)
  if (rule !== undefined) return { use, decision, by: 'rule', rule, reason }
  if (getToolUseExecutor(use, tools) === 'tool-command' && !use.isUnclear)
    return { use, decision: 'allow', by: 'tool' }
  const why = decision === 'allow' ? undefined : explainUnmatchedAllowRule(policy, use)
  return { use, decision, by: 'default', reason, why }
}

export const toAuditFields = ({ use, decision, by, rule, reason }: Judgement) => ({
  toolUse: use.id,
  type: use.type,
  server: use.server,
  name: use.name,
  input: use.inputText,
  decision,
  by,
  rule,
  reason,
})

export function getToolUseExecutor(
  use: ParsedToolUse,
  tools: JudgementRules['tools'],
): 'service' | 'tool-command' | 'other-client' {
  const hasCommand = tools.has(use.name)
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

const maxPrintedLength = 400

export const describeToolUse = ({ id, name, inputText }: ParsedToolUse): string =>
  `${formatBriefName(name)} ${inputText.length > maxPrintedLength ? `${inputText.slice(0, maxPrintedLength)}…` : inputText} ${id}`
