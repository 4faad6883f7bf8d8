import type { SessionEvent } from '../wire/sessions/session-event.ts'

/**
 * Creates a confirmation with only the fields of the specification (src/wire/README.md: session events, 2.2).
 * The event has no thread id, because the service finds the thread by the tool use's id.
 */
export const createConfirmationEvent = (
  id: string,
  result: 'allow' | 'deny',
  reason?: string,
): SessionEvent => ({
  type: 'user.tool_confirmation',
  tool_use_id: id,
  result,
  deny_message: result === 'deny' ? reason : undefined,
})

export const createToolResultEvent = (
  { id, type }: { id: string; type: string },
  { text, isError }: { text: string; isError: boolean },
): SessionEvent => ({
  ...(type === 'agent.custom_tool_use'
    ? { type: 'user.custom_tool_result', custom_tool_use_id: id }
    : { type: 'user.tool_result', tool_use_id: id }),
  content: text === '' ? [] : [{ type: 'text', text }],
  is_error: isError ? true : undefined,
})
