import { isStop, readStopReason, type SessionEvent } from '../wire/events/session-event.ts'

/** How a session came to rest. */
type Rest =
  | { kind: 'done'; reason: string }
  /** Tool uses wait for an answer. */
  | { kind: 'waiting'; ids: string[] }
  | { kind: 'stuck'; reason: string }
  /** Terminated or deleted. */
  | { kind: 'ended'; reason: string }

export interface ToolUse {
  id: string
  type: string
  name: string
  input: unknown
  /** The whole event as it is spelled, where `add` was given that. */
  text?: string | undefined
}

/** What a session's events, taken in their order, say about where it stands. */
export interface SessionState {
  /** `text` is what is kept of a tool use's event as it is spelled. */
  add(event: SessionEvent, text?: string): void
  /** Absent while the agent works, or has been sent something since. */
  readonly rest: Rest | undefined
  /** It was terminated or deleted, and nothing came after. */
  readonly hasEnded: boolean
  /** When the event came that it rests at, where that is known. */
  readonly restingSince: string | undefined
  /** The tool uses that the last `session.status_idle` waits for and that nobody has answered. */
  readonly pending: string[]
  toolUse(id: string): ToolUse | undefined
  /** Takes note that the session was sent something: what it was at rest for is over. */
  expectWork(): void
}

/** The fields by which an answer or a result names its tool use. */
const answerFields = ['tool_use_id', 'custom_tool_use_id', 'mcp_tool_use_id']

/** Types of events that end the need for an answer: what a client says, and what the service says ran. */
const isAnswer = (type: string) =>
  /^user\.(tool_confirmation|tool_result|custom_tool_result)$|^agent\.(mcp_)?tool_result$/.test(type)

/** Types of events with which an agent is at work. An interrupt leaves an idle session idle. */
const isWork = (type: string) =>
  type === 'session.status_running' || (type.startsWith('user.') && type !== 'user.interrupt')

export function createSessionState(): SessionState {
  const toolUses = new Map<string, ToolUse>()
  const answered = new Set<string>()
  /** Tool uses of this turn that may want an answer. */
  const open = new Set<string>()
  let idle: ReturnType<typeof readStopReason> | undefined
  let end: string | undefined
  let isBusy = true
  let since: string | undefined

  function addToolUse(event: SessionEvent, text: string | undefined): void {
    const { id = '', type, name, input, evaluated_permission: permission } = event
    const spelled = text === undefined ? {} : { text }
    toolUses.set(id, { id, type, name: typeof name === 'string' ? name : '', input, ...spelled })
    if (permission !== 'allow' && permission !== 'deny' && !answered.has(id)) open.add(id)
  }

  function addAnswer(event: SessionEvent): void {
    for (const field of answerFields) {
      if (typeof event[field] !== 'string') continue
      answered.add(event[field])
      open.delete(event[field])
    }
  }

  function waiting(): string[] {
    if (idle?.eventIds) return idle.eventIds.filter((id) => !answered.has(id))
    return idle && (idle.type === undefined || idle.type === 'requires_action') ? [...open] : []
  }

  function findRest(): Rest | undefined {
    if (isBusy) return undefined
    if (end !== undefined) return { kind: 'ended', reason: end }
    const { type, eventIds } = idle ?? {}
    const ids = waiting()
    if ((type === undefined || type === 'requires_action') && ids.length > 0) return { kind: 'waiting', ids }
    // All that it waits for is answered: the agent goes on.
    if (type === 'requires_action' && eventIds?.length) return undefined
    if (type === undefined || type === 'end_turn') return { kind: 'done', reason: type ?? 'no reason given' }
    return { kind: 'stuck', reason: type }
  }

  function stop(event: SessionEvent): void {
    isBusy = false
    end = undefined
    since = event.processed_at ?? undefined
    if (event.type !== 'session.status_idle') {
      end = event.type.replace(/^session\.(status_)?/, '')
      return
    }
    idle = readStopReason(event)
    if (idle.type !== undefined && idle.type !== 'requires_action') open.clear()
  }

  return {
    add(event, text) {
      const { type } = event
      if (/^agent\.(|mcp_|custom_)tool_use$/.test(type)) addToolUse(event, text)
      if (isAnswer(type)) addAnswer(event)
      // A new turn: what the one before left open is open no more.
      if (type === 'user.message' || type === 'user.interrupt') open.clear()
      if (isStop(event)) stop(event)
      else if (isWork(type)) isBusy = true
    },
    get rest() {
      return findRest()
    },
    get hasEnded() {
      return !isBusy && end !== undefined
    },
    get restingSince() {
      return since
    },
    get pending() {
      return waiting()
    },
    toolUse: (id) => toolUses.get(id),
    expectWork() {
      isBusy = true
    },
  }
}
