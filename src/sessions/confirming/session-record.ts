import type { Context } from '../../context.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isToolUse, SessionEvent } from '../../wire/sessions/session-event.ts'
import { resultCommand } from '../following/stop-text.ts'
import { needsResult, SessionState, type ToolUse } from '../session-state.ts'
import { namesTool } from './shown-use.ts'

/** A tool use that may be confirmed; all but its id may be unknown. */
export type PendingUse = { id: string } & Partial<ToolUse>

/** The tool uses of a session, by its events in their order. */
export class SessionRecord {
  readonly state = new SessionState()
  /** The types of events that are not tool uses, by id. */
  readonly #others = new Map<string, string>()

  add({ event, text }: EventItem): void {
    this.state.add(event, text)
    if (event.id !== undefined && !isToolUse(event)) this.#others.set(event.id, event.type)
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

  /** Why a tool use needs no reply any more, if an earlier record does not say so too. */
  whyClosed(id: string, earlier: SessionRecord): string | undefined {
    if (this.use(id).type === undefined) return 'the session no longer shows it'
    const why = this.whyOver(id)
    return why === earlier.whyOver(id) ? undefined : why
  }

  /** Why a tool use needs no reply any more. A rest that lists nothing waits for all that is open. */
  whyOver(id: string): string | undefined {
    return this.state.unlisted.includes(id) ? undefined : this.state.whyOver(id)
  }

  /** Whether a tool use is the same as in an earlier record: its tool, its server and its whole input. */
  isSame({ id, text = '{}' }: PendingUse): boolean {
    this.state.addAgain(SessionEvent.parse(JSON.parse(text)), text)
    return this.state.toolUse(id)?.isContradicted !== true
  }
}

/** Why a tool use cannot be confirmed, and what it needs instead. */
export function whyUnconfirmable(context: Context, session: string, use: PendingUse): string | undefined {
  const { id, type = '', text } = use
  if (needsResult(use))
    return `${id} is an ${type}: it needs a result, not a confirmation: ${resultCommand(context, session, type, [id])}`
  if (!/^agent\.(mcp_)?tool_use$/.test(type)) return `${id} cannot be confirmed: its type is ${type}`
  return text !== undefined && !namesTool(text) ? `${id} is not answered: its tool has no name` : undefined
}
