import { findRepeatedKey } from '../../wire/json/repeated-key.ts'
import { findChild, isDeeperThan, skipBlanks } from '../../wire/json/scanner.ts'
import type { ToolCall } from '../policy/policy.ts'
import type { ToolUse } from '../session-state.ts'

/** A tool use as it is decided on and answered. */
export interface Call extends ToolCall {
  id: string
  /** Of the event. */
  type: string
  /** The whole event as it is spelled. */
  text: string
  /** The input as it is spelled. */
  inputText: string
  /** The service showed two inputs for its id. */
  isContradicted: boolean
  /** What the service itself decided. */
  permission?: unknown
}

/** How deep an input may be nested; its event is one level around it. */
const deepest = 100

/** Reads a tool use of which the whole event is known. */
export function readCall({ id, type, text, isUnclear: isContradicted = false }: ToolUse): Call | undefined {
  if (text === undefined) return undefined
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
      findRepeatedKey(text) !== undefined ||
      isDeeperThan(inputText, deepest),
    permission: event.evaluated_permission,
  }
}
