import type { Context } from '../../context.ts'
import { usage, usageProblems } from '../../errors.ts'
import type { Caller } from '../../http/call.ts'
import { elementsOf } from '../../wire/page.ts'
import { SessionEvent } from '../../wire/sessions/session-event.ts'
import { resultCommand, stillWaiting } from '../following/stop-text.ts'
import { listOldestFirst } from '../listing/event-list.ts'
import { type GivenEvents, readGiven } from '../sending/given-events.ts'
import type { SessionParts } from '../session.ts'
import { SessionState, type ToolUse } from '../session-state.ts'

/** A tool use to reply to; all but its id may be unknown. */
export type PendingUse = { id: string } & Partial<ToolUse>

/** What the input of `confirm` holds: confirmations to be sent as they are, or the tool uses that a record shows as waiting. */
export type ConfirmInput =
  | { is: 'confirmations'; text: GivenEvents; body: string; events: string[] }
  | SessionRecord

/** Which tool uses are to be replied to, and what is known of their session. */
export interface SessionRecord {
  is: 'record'
  uses: PendingUse[]
  state: SessionState
}

/**
 * Reads events in a file or on stdin. With a `session.status_idle` among them they are a record, of which all else is
 * context. Throws a usage error.
 */
export async function readConfirmInput(
  context: Context,
  session: string,
  path: string | undefined,
): Promise<ConfirmInput> {
  const { stdinKind } = context.input
  if (path === undefined && (stdinKind === 'terminal' || stdinKind === 'none'))
    throw usage('no tool uses: give their ids, --pending, or events as JSON through a pipe or with -i FILE')
  const text = await readGiven(context.input, path ?? '-')
  const listed = elementsOf(text.body, 'events')
  const spelled = listed.flatMap(unpack)
  const events = spelled.map((each) => requireEvent(each, text.name))
  if (events.some(({ type }) => type === 'session.status_idle')) {
    const record = createRecord()
    for (const [index, event] of events.entries()) record.add(event, spelled[index])
    return { is: 'record', uses: record.pending(context, session), state: record.state }
  }
  const stranger = events.findIndex(({ type }) => type !== 'user.tool_confirmation')
  if (stranger >= 0) {
    const place = `${text.placeOf(stranger, '')} (${events[stranger]?.type})`
    throw usage(`${text.name}: there is no session.status_idle, and ${place} is not a user.tool_confirmation`)
  }
  if (events.length === 0) throw usage(`nothing waits for an answer: ${text.name} has no events`)
  // The events of a page of the service are not in a body that could be sent.
  const isBody = listed.length === spelled.length && listed.every((each, index) => each === spelled[index])
  const body = isBody ? text.body : `{"events":[${spelled.join(',')}]}`
  return { is: 'confirmations', text, body, events: spelled }
}

/** The events that a text holds: in a page of the service, which has no type, they are one level deeper. */
export function unpack(text: string): string[] {
  const { type, data } = (JSON.parse(text) ?? {}) as { type?: unknown; data?: unknown }
  return type === undefined && Array.isArray(data) ? elementsOf(text, 'data') : [text]
}

function requireEvent(text: string, name: string): SessionEvent {
  const event = SessionEvent.safeParse(JSON.parse(text))
  if (!event.success) throw usage(`${name}: expected a session.status_idle event, or a list of events`)
  return event.data
}

/** Asks the service what waits. */
export async function findPending(
  context: Context,
  caller: Caller,
  parts: SessionParts,
): Promise<SessionRecord> {
  const { session } = parts.params
  const record = await readRecord(caller, parts)
  // A rest that lists nothing leaves it to a person to name those that wait.
  const { state } = record
  if (state.unlisted.length > 0) throw await stillWaiting(context, session, state, { ids: state.unlisted })
  return { is: 'record', uses: record.pending(context, session), state }
}

/**
 * Asks the service for tool uses of which no more than the id is known. Throws a usage error that names each of them
 * about which nobody can be asked.
 */
export async function lookUp(
  context: Context,
  caller: Caller,
  parts: SessionParts,
  found: SessionRecord,
): Promise<SessionRecord> {
  if (found.uses.every(({ text }) => text !== undefined)) return found
  const { dryRun, curl } = context.flags
  if (dryRun || curl)
    throw usage(
      '--dry-run and --curl send nothing, so they cannot look a tool use up: give --allow or --deny',
    )
  const { session } = parts.params
  const record = await readRecord(caller, parts)
  const uses = found.uses.map((use) => (use.text === undefined ? record.use(use.id) : use))
  const problems = uses.flatMap(({ id, type, text }) => {
    if (type === undefined) return [`shows no tool use ${id}`]
    if (!isConfirmable(type)) return [whyNot(context, session, { id, type })]
    return text === undefined ? [`${id} has its answer already`] : []
  })
  if (problems.length > 0) throw usageProblems(session, problems)
  return { is: 'record', uses, state: record.state }
}

async function readRecord(caller: Caller, parts: SessionParts) {
  const record = createRecord()
  for await (const items of listOldestFirst(caller, parts))
    for (const { event, text } of items) record.add(event, text)
  return record
}

/** Events in their order, and what they show as waiting. */
function createRecord() {
  const state = new SessionState()
  /** The types of events that are not tool uses, by id. */
  const others = new Map<string, string>()
  const use = (id: string): PendingUse => state.toolUse(id) ?? { id, type: others.get(id) }
  return {
    state,
    use,
    add(event: SessionEvent, text: string | undefined) {
      state.add(event, text)
      if (event.id !== undefined && !/^agent\.(|mcp_|custom_)tool_use$/.test(event.type))
        others.set(event.id, event.type)
    },
    /** Only uses of the agent's own tools are confirmed, and what nothing is known of; the others are named. */
    pending(context: Context, session: string): PendingUse[] {
      return state.pending.flatMap((id): PendingUse[] => {
        const found = use(id)
        const { type } = found
        if (type === undefined || isConfirmable(type)) return [found]
        context.note(whyNot(context, session, { id, type }))
        return []
      })
    },
  }
}

const isConfirmable = (type: string): boolean => /^agent\.(mcp_)?tool_use$/.test(type)

/** Why a confirmation is of no use to it, and what is. */
const whyNot = (context: Context, session: string, { id, type }: { id: string; type: string }): string =>
  type === 'agent.custom_tool_use'
    ? `${id} is an ${type}: it needs a result, not a confirmation: ${resultCommand(context, session, type, [id])}`
    : `${id} cannot be confirmed: its type is ${type}`
