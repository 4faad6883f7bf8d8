import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { checkEvents, readGiven, recordedEvents, textsOf } from '../sending/given-events.ts'
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
  const items = [...recordedEvents(given)]
  if (items.some(({ event }) => event.type === 'session.status_idle')) {
    const record = new SessionRecord()
    for (const item of items) record.add(item)
    return { record }
  }
  const stranger = items.findIndex(({ event }) => event.type !== 'user.tool_confirmation')
  if (stranger >= 0) {
    const place = `${given.placeOf(stranger, '')} (${items[stranger]?.event.type})`
    throw usage(
      `${given.name}: there is no session.status_idle, and ${place} is not a user.tool_confirmation`,
    )
  }
  if (items.length === 0) throw usage(`nothing waits for an answer: ${given.name} has no events`)
  checkEvents(
    items.map(({ event }) => event),
    given,
  )
  // The events of a page of the service are not in a body that could be sent.
  const isBody = 'body' in given && textsOf(given).every((text, index) => text === items[index]?.text)
  const body = isBody ? given.body : `{"events":[${items.map(({ text }) => text).join(',')}]}`
  return { body: Buffer.from(body) }
}
