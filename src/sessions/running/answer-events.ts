import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { confirmation as confirmationEvent, toolResult } from '../reply-events.ts'
import type { Call } from './call.ts'
import type { ToolResult } from './tools.ts'

/** What a tool use is answered with. */
export interface Answer {
  call: Pick<Call, 'id' | 'name'>
  event: SessionEvent
}

/** The answer to a tool use that waits for a decision. */
export const confirmation = (call: Call, isAllowed: boolean, reason?: string): Answer => ({
  call,
  event: confirmationEvent(call.id, isAllowed, reason),
})

/** The answer to a tool use that waits for its result. */
export const result = (call: Call, given: ToolResult): Answer => ({ call, event: toolResult(call, given) })
