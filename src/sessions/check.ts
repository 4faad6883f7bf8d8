import type { Context } from '../context.ts'
import type { Caller } from '../http/call.ts'
import { agentHeaders } from '../http/request.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { endpoints } from '../wire/endpoints.ts'
import { readBody } from '../wire/exchange.ts'
import { readPage } from '../wire/page.ts'
import { readEventsPage } from '../wire/sessions/events-page.ts'
import { toQuery } from './listing/event-list.ts'
import { sessionParts } from './session.ts'

/** Reads one event of a session, which changes nothing. Throws a `CliError`, also for an answer that is not a list of events. */
export async function tryEvents(
  context: Context,
  settings: ResolvedSettings,
  { caller, session }: { caller: Caller; session: string },
): Promise<void> {
  const parts = { ...sessionParts(context, settings, { session }), query: toQuery({ limit: 1 }) }
  await caller.call(endpoints.listEvents, parts, async ({ body }) =>
    readEventsPage(new TextDecoder().decode(await readBody(body))),
  )
}

/** The same for the service's list of sessions. */
export async function trySessions(caller: Caller, { values }: ResolvedSettings): Promise<void> {
  const headers = agentHeaders(values, values.betas)
  const parts = { params: {}, headers, query: toQuery({ limit: 1 }) }
  await caller.call(endpoints.listSessions, parts, async ({ body }) =>
    readPage(new TextDecoder().decode(await readBody(body)), 'the list of sessions'),
  )
}
