import type { Caller } from '../http/call.ts'
import { endpoints } from '../wire/endpoints.ts'
import { readBody } from '../wire/exchange.ts'
import { readEventsPage } from '../wire/sessions/events-page.ts'
import { toQuery } from './listing/event-list.ts'
import type { SessionParts } from './session.ts'

/** Reads one event of a session, which changes nothing. Throws a `CliError`, also for an answer that is not a list of events. */
export async function tryList(caller: Caller, parts: SessionParts): Promise<void> {
  const query = toQuery({ limit: 1 })
  await caller.call(endpoints.listEvents, { ...parts, query }, async ({ body }) =>
    readEventsPage(new TextDecoder().decode(await readBody(body))),
  )
}
