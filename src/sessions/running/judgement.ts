import { usageError } from '../../errors.ts'
import { findChild, findRepeatedKey, isDeeperThan, skipBlanks } from '../../wire/json/scanner.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { readStopReason, type SessionEvent, stopsSession } from '../../wire/sessions/session-event.ts'
import { formatBriefName } from '../plain-name.ts'
import {
  type Decision,
  decideByPolicy,
  explainMismatch,
  maxInputLength,
  type Pauser,
  type Policy,
  type ToolCall,
} from '../policy/policy.ts'
import { maxInputDepth, needsResult, type ToolUse } from '../session-state.ts'

export interface KnownToolUse extends ToolCall {
  id: string
  type: string
  /** Source text of the whole event. */
  text: string
  isContradicted: boolean
  permission?: unknown
}

type ListedToolUse = Pick<ToolUse, 'id' | 'type' | 'text' | 'isContradicted' | 'wantsResult' | 'permission'>

/** Reads a tool use from its event. Returns `undefined` if parley no longer has the text of the event. */
export function readToolUse(toolUse: ListedToolUse | undefined): KnownToolUse | undefined {
  if (toolUse?.text === undefined) return undefined
  const { id, type, text, isContradicted = false } = toolUse
  const event = JSON.parse(text) as Record<string, unknown>
  const { name, mcp_server_name: server } = event
  const input = findChild(text, skipBlanks(text, 0), 'input')
  const inputText = input ? text.slice(input.start, input.end) : '{}'
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
      inputText.length > maxInputLength ||
      findRepeatedKey(text) !== undefined ||
      isDeeperThan(inputText, maxInputDepth),
    permission: toolUse.wantsResult ? toolUse.permission : event.evaluated_permission,
  }
}

export interface Rules {
  policy: Policy
  /** Commands that execute tool uses, by tool name. */
  tools: ReadonlyMap<string, string>
  pauser?: Pauser
}

/** Returns the commands by tool name. Throws a usage error. */
export function readToolFlags(given: readonly string[] = []): Map<string, string> {
  const tools = new Map<string, string>()
  for (const text of given) {
    const [, name = '', command = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? []
    if (name === '' || command.trim() === '')
      throw usageError(`--tool ${text}: must have the form NAME=COMMAND`)
    if (tools.has(name)) throw usageError(`--tool: there are two commands for ${name}`)
    tools.set(name, command)
  }
  return tools
}

export interface Judgement {
  use: KnownToolUse
  decision: Decision
  by: 'rule' | 'default' | 'tool' | 'person'
  rule?: number
  reason?: string
  /** Reason why the allow rules for this tool do not match; `undefined` if there is no such rule. */
  why?: string | undefined
}

/** A `--tool` command counts as an allow rule; a matching ask or deny rule wins. */
export async function judge(use: KnownToolUse, { policy, tools, pauser }: Rules): Promise<Judgement> {
  const { decision, reason, rule } = await decideByPolicy(policy, use, pauser)
  if (rule !== undefined) return { use, decision, by: 'rule', rule, reason }
  if (findExecutor(use, tools) === 'command' && !use.isUnclear) return { use, decision: 'allow', by: 'tool' }
  const why = decision === 'allow' ? undefined : explainMismatch(policy, use)
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

/** `other`: another client executes the tool use. */
export function findExecutor(use: KnownToolUse, tools: Rules['tools']): 'service' | 'command' | 'other' {
  const hasCommand = tools.has(use.name)
  if (needsResult(use)) return hasCommand ? 'command' : 'other'
  return hasCommand && use.type === 'agent.tool_use' && use.permission !== 'ask' ? 'command' : 'service'
}

export function describeJudgement(judgement: Judgement): string {
  const { use, decision, reason } = judgement
  const why = reason === undefined ? '' : `: ${reason}`
  return `${decision} ${describeToolUse(use)} (${describeDecider(judgement)}${why})`
}

export const describeDecider = ({ by, rule }: Judgement): string =>
  ({ rule: `rules[${rule}]`, default: 'default', tool: '--tool', person: 'you' })[by]

const maxPrintedLength = 400

export const describeToolUse = ({ id, name, inputText }: KnownToolUse): string =>
  `${formatBriefName(name)} ${inputText.length > maxPrintedLength ? `${inputText.slice(0, maxPrintedLength)}…` : inputText} ${id}`

/** Tool uses that the policy denies and that have not run yet, by id. */
export interface DeniedToolUses {
  /** Tool uses that the service runs without a confirmation: `evaluated_permission` is `allow`. */
  allowed: Map<string, Judgement>
  /** Tool uses for which the service requests a confirmation, or without `evaluated_permission`. */
  asked: Map<string, Judgement>
}

/**
 * Examines an event of the session. Adds a tool use that the policy denies to `notRun`. If the event shows
 * that tool uses in `notRun` have run, removes them and returns them.
 */
export async function findUnapprovedToolUses(
  notRun: DeniedToolUses,
  { event, text }: EventItem,
  rules: Rules,
): Promise<Judgement[]> {
  const { id = '', type } = event
  const { allowed, asked } = notRun
  if (/^agent\.(mcp_)?tool_use$/.test(type)) {
    const use = readToolUse({ id, type, text })
    const judgement = use && use.permission !== 'deny' ? await judge(use, rules) : undefined
    if (judgement?.decision !== 'deny') return []
    const [target, other] = judgement.use.permission === 'allow' ? [allowed, asked] : [asked, allowed]
    other.delete(id)
    target.set(id, judgement)
    return []
  }
  return takeToolUses(notRun, stopsSession(event) ? findRunBefore(event, allowed) : getResultIds(event))
}

/** `ran` may contain ids of other events. */
export function takeToolUses({ allowed, asked }: DeniedToolUses, ran: readonly string[]): Judgement[] {
  const found = ran.flatMap((id) => allowed.get(id) ?? asked.get(id) ?? [])
  for (const id of ran) if (!allowed.delete(id)) asked.delete(id)
  return found
}

/**
 * Returns the tool uses in `allowed` that ran before an idle event: the event does not list them as waiting.
 * Returns none if the event says that the session waits for replies, but lists no tool use.
 */
export function findRunBefore(stop: SessionEvent, allowed: ReadonlyMap<string, Judgement>): string[] {
  const { type, eventIds } = readStopReason(stop)
  if (type === 'requires_action' && !eventIds) return []
  const waiting = new Set(eventIds)
  return [...allowed.keys()].filter((id) => !waiting.has(id))
}

function getResultIds({ type, tool_use_id, mcp_tool_use_id }: SessionEvent): string[] {
  const id = tool_use_id ?? mcp_tool_use_id
  return /^agent\.(mcp_)?tool_result$/.test(type) && typeof id === 'string' ? [id] : []
}
