import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import type { Call } from './call.ts'
import type { ToolResult } from './tools.ts'

/** What a tool use is answered with. */
export interface Answer {
  call: Pick<Call, 'id' | 'name'>
  event: SessionEvent
}

/** The answer to a tool use that waits for a decision. */
export function confirmation(call: Call, isAllowed: boolean, reason?: string): Answer {
  const event = {
    type: 'user.tool_confirmation',
    tool_use_id: call.id,
    result: isAllowed ? 'allow' : 'deny',
    deny_message: isAllowed ? undefined : reason,
    session_thread_id: call.thread,
  }
  return { call, event }
}

/** The answer to a tool use that waits for its result. */
export function result(call: Call, { text, isError }: ToolResult): Answer {
  const isCustom = call.type === 'agent.custom_tool_use'
  const event = {
    type: isCustom ? 'user.custom_tool_result' : 'user.tool_result',
    [isCustom ? 'custom_tool_use_id' : 'tool_use_id']: call.id,
    content: text === '' ? [] : [{ type: 'text', text }],
    is_error: isError ? true : undefined,
    session_thread_id: call.thread,
  }
  return { call, event }
}
