import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import type { Caller } from '../../http/caller.ts'
import type { RequestParts } from '../../http/drafter.ts'
import { elementsOf } from '../../wire/page.ts'
import { SessionEvent } from '../../wire/sessions/session-event.ts'
import { stillWaiting } from '../following/stop-text.ts'
import { listOldestFirst } from '../listing/selection.ts'
import { readGiven } from '../sending/read-events.ts'
import { SessionState, type ToolUse } from '../session-state.ts'

/** A tool use to answer; all but its id may be unknown. */
export type PendingUse = { id: string } & Partial<ToolUse>

export interface Pending {
  /** Confirmations that were given whole, each as it is spelled. */
  given: string[]
  pending: PendingUse[]
}

/** How much is kept of each tool use: where a person is asked, also how it is spelled. */
interface Keeping {
  isAsked: boolean
}

/** Reads what waits from events in a file or on stdin. Throws a usage error. */
export async function readPending(
  context: Context,
  path: string | undefined,
  { isAsked }: Keeping,
): Promise<Pending> {
  const { stdinKind } = context.input
  if (path === undefined && (stdinKind === 'terminal' || stdinKind === 'none'))
    throw usage('no tool uses: give their ids, --pending, or events as JSON through a pipe or with -i FILE')
  const { name, body } = await readGiven(context, path)
  const state = new SessionState()
  const given: string[] = []
  for (const text of spellEvents(body)) {
    const event = SessionEvent.safeParse(JSON.parse(text))
    if (!event.success) throw usage(`${name}: expected a session.status_idle event, or a list of events`)
    if (event.data.type === 'user.tool_confirmation' && event.data.id === undefined) given.push(text)
    else state.add(event.data, isAsked ? text : undefined)
  }
  return given.length > 0 ? { given, pending: [] } : { given, pending: toAnswer(context, state) }
}

/** The events of a body as they are spelled; in a page of the service they are one level deeper. */
function spellEvents(body: string): string[] {
  const texts: string[] = []
  for (const text of elementsOf(body, 'events')) {
    const { data } = (JSON.parse(text) ?? {}) as { data?: unknown }
    for (const inner of Array.isArray(data) ? elementsOf(text, 'data') : [text]) texts.push(inner)
  }
  return texts
}

/** Asks the service what waits. */
export async function findPending(
  context: Context,
  caller: Caller,
  { parts, isAsked }: Keeping & { parts: RequestParts },
): Promise<Pending> {
  const state = new SessionState()
  for await (const items of listOldestFirst(caller, parts))
    for (const { event, text } of items) state.add(event, isAsked ? text : undefined)
  const { unlisted } = state
  if (unlisted.length > 0) throw await stillWaiting(context, parts.params.session ?? '', state, unlisted)
  return { given: [], pending: toAnswer(context, state) }
}

/** Only uses of the agent's own tools are confirmed; a custom tool needs a result. */
function toAnswer({ note }: Context, state: SessionState): PendingUse[] {
  const uses = state.pending.map((id): PendingUse => state.toolUse(id) ?? { id })
  const isConfirmable = ({ type }: PendingUse) => type === undefined || /^agent\.(mcp_)?tool_use$/.test(type)
  for (const { id, type } of uses.filter((use) => !isConfirmable(use))) {
    note(`${id} is an ${type}: it needs a result, not a confirmation`)
  }
  return uses.filter(isConfirmable)
}
