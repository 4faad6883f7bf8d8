import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { elementsOf } from '../../wire/page.ts'
import { SessionEvent } from '../../wire/sessions/session-event.ts'
import { checkEvents, readGiven } from '../sending/given-events.ts'
import { SessionRecord } from './session-record.ts'

/** The body of confirmations that are sent as they were given, or a record that shows what waits. */
type ConfirmInput = { body: Uint8Array } | { record: SessionRecord }

/**
 * Reads the events of a file or of stdin. If a `session.status_idle` is among them they are a record, and all else is
 * context. Throws a usage error.
 */
export async function readConfirmInput(context: Context, path: string | undefined): Promise<ConfirmInput> {
  const { stdinKind } = context.input
  if (path === undefined && (stdinKind === 'terminal' || stdinKind === 'none'))
    throw usage('no tool uses: give their ids, --pending, or events as JSON through a pipe or with -i FILE')
  const given = await readGiven(context.input, path ?? '-')
  const listed = elementsOf(given.body, 'events')
  const unpacked = listed.flatMap(unpack)
  const spelled = unpacked.map(({ text }) => text)
  const events = unpacked.map(({ value }) => requireEvent(value, given.name))
  if (events.some(({ type }) => type === 'session.status_idle')) {
    const record = new SessionRecord()
    for (const [index, event] of events.entries()) record.add(event, spelled[index])
    return { record }
  }
  const stranger = events.findIndex(({ type }) => type !== 'user.tool_confirmation')
  if (stranger >= 0) {
    const place = `${given.placeOf(stranger, '')} (${events[stranger]?.type})`
    throw usage(
      `${given.name}: there is no session.status_idle, and ${place} is not a user.tool_confirmation`,
    )
  }
  if (events.length === 0) throw usage(`nothing waits for an answer: ${given.name} has no events`)
  checkEvents(
    unpacked.map(({ value }) => value),
    given,
  )
  // The events of a page of the service are not in a body that could be sent.
  const isBody = listed.every((each, index) => each === spelled[index])
  return { body: Buffer.from(isBody ? given.body : `{"events":[${spelled.join(',')}]}`) }
}

/** The events that a text holds, and how each is spelled: in a page of the service, which has no type, they are one level deeper. */
export function unpack(text: string): { text: string; value: unknown }[] {
  const value: unknown = JSON.parse(text)
  const { type, data } = (value ?? {}) as { type?: unknown; data?: unknown }
  if (type !== undefined || !Array.isArray(data)) return [{ text, value }]
  return elementsOf(text, 'data').map((each, index) => ({ text: each, value: data[index] }))
}

function requireEvent(value: unknown, name: string): SessionEvent {
  const event = SessionEvent.safeParse(value)
  if (!event.success) throw usage(`${name}: expected a session.status_idle event, or a list of events`)
  return event.data
}
