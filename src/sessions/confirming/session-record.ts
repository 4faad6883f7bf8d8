import type { Context } from '../../context.ts'
import { SessionEvent } from '../../wire/sessions/session-event.ts'
import { resultCommand } from '../following/stop-text.ts'
import { isToolUse, SessionState, type ToolUse } from '../session-state.ts'
import { namesTool } from './shown-use.ts'

/** A tool use that may be confirmed; all but its id may be unknown. */
export type PendingUse = { id: string } & Partial<ToolUse>

/** The tool uses of a session, by its events in their order. */
export class SessionRecord {
  readonly state = new SessionState()
  /** The types of events that are not tool uses, by id. */
  readonly #others = new Map<string, string>()
  /** What the reply to a tool use was, by its id. */
  readonly #replies = new Map<unknown, string>()
  /** The threads that were interrupted since the last rest that waits; `undefined` stands for all of them. */
  readonly #interrupted = new Set<unknown>()

  add(event: SessionEvent, text: string | undefined): void {
    const { id, type, session_thread_id: thread } = event
    this.state.add(event, text)
    const answered = event.tool_use_id ?? event.custom_tool_use_id ?? event.mcp_tool_use_id
    const reply = describeReply(event)
    if (reply !== undefined && !this.#replies.has(answered)) this.#replies.set(answered, reply)
    if (type === 'user.interrupt') this.#interrupted.add(thread ?? undefined)
    if (type === 'session.status_idle' && this.state.pending.length > 0) this.#interrupted.clear()
    if (id !== undefined && !isToolUse(event)) this.#others.set(id, type)
  }

  use(id: string): PendingUse {
    return this.state.toolUse(id) ?? { id, type: this.#others.get(id) }
  }

  /** The tool uses that wait and can be confirmed, or of which nothing is known; the others are named on stderr. */
  pending(context: Context, session: string): PendingUse[] {
    return this.state.pending.flatMap((id) => {
      const use = this.use(id)
      const why = use.type === undefined ? undefined : whyUnconfirmable(context, session, use)
      if (why !== undefined) context.note(why)
      return why === undefined ? [use] : []
    })
  }

  /** Why a tool use that an earlier record shows as waiting needs no reply any more. */
  whyClosed(id: string, earlier: SessionRecord): string | undefined {
    const { stop } = this.state
    const { type, text } = this.use(id)
    if (stop?.kind === 'ended') return `the session has ended (${stop.reason})`
    if (this.#replies.has(id)) return this.#replies.get(id)
    if (type === undefined) return 'the session no longer shows it'
    const thread = text === undefined ? undefined : JSON.parse(text).session_thread_id
    if (this.#interrupted.has(undefined) || this.#interrupted.has(thread))
      return 'the session was interrupted'
    return earlier.#waitsFor(id) && !this.#waitsFor(id) ? 'the session no longer waits for it' : undefined
  }

  /** Whether a tool use is the same as in an earlier record: its tool, its server and its whole input. */
  isSame({ id, text = '{}' }: PendingUse): boolean {
    this.state.addAgain(SessionEvent.parse(JSON.parse(text)), text)
    return this.state.toolUse(id)?.isContradicted !== true
  }

  #waitsFor(id: string): boolean {
    return this.state.pending.includes(id) || this.state.unlisted.includes(id)
  }
}

function describeReply({ type, result }: SessionEvent): string | undefined {
  if (type === 'user.tool_confirmation') return `somebody else ${result === 'deny' ? 'denied' : 'allowed'} it`
  if (/^user\.(custom_)?tool_result$/.test(type)) return 'somebody else gave its result'
  return /^agent\.(mcp_)?tool_result$/.test(type) ? 'it has its result already' : undefined
}

/** Why a tool use cannot be confirmed, and what it needs instead. */
export function whyUnconfirmable(
  context: Context,
  session: string,
  { id, type, text }: PendingUse,
): string | undefined {
  if (type === 'agent.custom_tool_use')
    return `${id} is an ${type}: it needs a result, not a confirmation: ${resultCommand(context, session, type, [id])}`
  if (type === undefined || !/^agent\.(mcp_)?tool_use$/.test(type))
    return `${id} cannot be confirmed: its type is ${type}`
  return text !== undefined && !namesTool(text) ? `${id} is not answered: its tool has no name` : undefined
}
