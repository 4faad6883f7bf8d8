import { readStopReason, type SessionEvent } from './events.ts'

/** How a session came to rest. */
type Rest =
  | { kind: 'done' }
  /** Tool uses wait for an answer. */
  | { kind: 'waiting'; ids: string[] }
  | { kind: 'stuck'; reason: string }

export interface ToolUse {
  id: string
  type: string
  name: string
  input: unknown
}

/** What a session's events, taken in their order, say about where it stands. */
export interface SessionState {
  add(event: SessionEvent): void
  /** Absent while the agent works, or has been sent something since. */
  readonly rest: Rest | undefined
  /** The tool uses that the last `session.status_idle` waits for and that nobody has answered. */
  readonly pending: string[]
  toolUse(id: string): ToolUse | undefined
  /** Takes note that the session was sent something: what it was at rest for is over. */
  expectWork(): void
}

/** Where an answer names the tool use that it is for, by the answer's type. */
const answers = new Map([
  ['user.tool_confirmation', 'tool_use_id'],
  ['user.tool_result', 'tool_use_id'],
  ['user.custom_tool_result', 'custom_tool_use_id'],
])

export function createSessionState(): SessionState {
  const toolUses = new Map<string, ToolUse>()
  const answered = new Set<string>()
  let idle: { type: string; eventIds: string[] } | undefined
  let end: string | undefined
  let isBusy = true

  const pending = () => (idle?.eventIds ?? []).filter((id) => !answered.has(id))

  function takeNote(event: SessionEvent): void {
    const { type, id = '' } = event
    if (/^agent\.(|mcp_|custom_)tool_use$/.test(type)) {
      toolUses.set(id, {
        id,
        type,
        name: typeof event.name === 'string' ? event.name : '',
        input: event.input,
      })
    }
    const answer = answers.get(type)
    const answeredId = answer === undefined ? undefined : event[answer]
    if (typeof answeredId === 'string') answered.add(answeredId)
  }

  return {
    add(event) {
      takeNote(event)
      if (event.type === 'session.status_idle') {
        idle = readStopReason(event)
        isBusy = false
      } else if (event.type === 'session.status_terminated' || event.type === 'session.deleted') {
        end = event.type.replace(/^session\.(status_)?/, '')
      } else if (event.type.startsWith('user.') || event.type === 'session.status_running') {
        isBusy = true
      }
    },
    get rest(): Rest | undefined {
      if (end !== undefined) return { kind: 'stuck', reason: end }
      if (isBusy || idle === undefined) return undefined
      if (idle.type === 'requires_action' && pending().length > 0) return { kind: 'waiting', ids: pending() }
      if (idle.type === 'requires_action' && idle.eventIds.length > 0) return undefined
      return idle.type === 'end_turn' ? { kind: 'done' } : { kind: 'stuck', reason: idle.type }
    },
    get pending() {
      return pending()
    },
    toolUse: (id) => toolUses.get(id),
    expectWork() {
      isBusy = true
    },
  }
}
