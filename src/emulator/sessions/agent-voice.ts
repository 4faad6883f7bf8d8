import type { SessionEvent } from '../../wire/sessions/session-event.ts'

/** Adds an event to a session. */
export type AddEvent = (type: string, fields?: object) => SessionEvent

/** The events by which an agent shows what it does. */
export interface Voice {
  run(): void
  say(text: string): void
  /** What a tool of the service's own gave. */
  bringResult(use: SessionEvent): void
  idle(type: string, fields?: object): void
}

export const createVoice = (add: AddEvent): Voice => ({
  run: () => void add('session.status_running'),
  say: (text) => void add('agent.message', { content: [{ type: 'text', text }] }),
  bringResult: (use) => void add(...composeResult(use)),
  idle: (type, fields = {}) => void add('session.status_idle', { stop_reason: { type, ...fields } }),
})

function composeResult({ id, type, session_thread_id: thread }: SessionEvent): [string, object] {
  const content = [{ type: 'text', text: 'emulated output' }]
  const place = thread === undefined ? {} : { session_thread_id: thread }
  return type === 'agent.mcp_tool_use'
    ? ['agent.mcp_tool_result', { mcp_tool_use_id: id, content, ...place }]
    : ['agent.tool_result', { tool_use_id: id, content, ...place }]
}
