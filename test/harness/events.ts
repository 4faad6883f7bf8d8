/** Event of a session. The service adds an id and a time if they are missing. */
export type Event = { type: string } & Record<string, unknown>

// Events that scripts often contain.
export const says = (text: string, more: object = {}): Event => ({
  type: 'agent.message',
  content: [{ type: 'text', text }],
  ...more,
})
export const userSays = (text: string, more: object = {}): Event => ({
  type: 'user.message',
  content: [{ type: 'text', text }],
  ...more,
})
export const running: Event = { type: 'session.status_running' }
export const interrupt: Event = { type: 'user.interrupt' }
export const endTurn: Event = { type: 'session.status_idle', stop_reason: { type: 'end_turn' } }
export const waitsFor = (...ids: string[]): Event => ({
  type: 'session.status_idle',
  stop_reason: { type: 'requires_action', event_ids: ids },
})
export const confirms = (id: string, result: 'allow' | 'deny' = 'allow', deny_message?: string): Event => ({
  type: 'user.tool_confirmation',
  tool_use_id: id,
  result,
  ...(deny_message === undefined ? {} : { deny_message }),
})
export const bash = (id: string, more: object = {}): Event => ({
  id,
  type: 'agent.tool_use',
  name: 'bash',
  input: { command: 'ls' },
  evaluated_permission: 'ask',
  ...more,
})
export const custom = (id: string, more: object = {}): Event => ({
  id,
  type: 'agent.custom_tool_use',
  name: 'count',
  input: {},
  ...more,
})
