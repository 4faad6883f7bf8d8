import type { SessionEvent } from '../wire/sessions/session-event.ts'

/** The fields that the specification's page shows, and no other: the service finds the thread by the id. */
export const confirmation = (id: string, result: 'allow' | 'deny', reason?: string): SessionEvent => ({
  type: 'user.tool_confirmation',
  tool_use_id: id,
  result,
  deny_message: result === 'deny' ? reason : undefined,
})

/** What a command gave, for the agent. */
export interface ToolResult {
  text: string
  isError: boolean
}

/** The result of a tool use that was carried out here, or was not because it is denied. */
export const toolResult = (
  { id, type }: { id: string; type: string },
  { text, isError }: ToolResult,
): SessionEvent => ({
  ...(type === 'agent.custom_tool_use'
    ? { type: 'user.custom_tool_result', custom_tool_use_id: id }
    : { type: 'user.tool_result', tool_use_id: id }),
  content: text === '' ? [] : [{ type: 'text', text }],
  is_error: isError ? true : undefined,
})
