import { findJsonField } from '../wire/json/scanner.ts'
import { quoteUnusualName } from './quoted-name.ts'

interface SummarizedToolUse {
  type?: unknown
  name?: unknown
  server?: unknown
}

/**
 * Returns the source text of a tool use's input. Serializing the parsed input again would change large
 * numbers. `eventJson` is the JSON text of the event, or of another object with the field `input`.
 */
export const findToolInput = (eventJson: string): string => findJsonField(eventJson, 'input') ?? '{}'

export const summarizeToolUse = (use: SummarizedToolUse, inputText: string): string =>
  `${describeTool(use)}${inputText && ` ${inputText}`}`

/** Includes the MCP server, because its tool may have the name of a built-in tool. */
export function describeTool({ type, name, server }: SummarizedToolUse): string {
  const tool = isFilled(name) ? quoteUnusualName(name) : '(no name)'
  if (isFilled(server)) return `${tool} (MCP server ${quoteUnusualName(server)})`
  return type === 'agent.mcp_tool_use' ? `${tool} (MCP server not named)` : tool
}

const isFilled = (value: unknown): value is string => typeof value === 'string' && value !== ''
