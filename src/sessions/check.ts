import type { Context } from '../context.ts'
import type { Caller } from '../http/call.ts'
import { agentHeaders } from '../http/request.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { endpoints } from '../wire/endpoints.ts'
import { readBody } from '../wire/exchange.ts'
import { readPage } from '../wire/page.ts'
import { sessionParts } from './session.ts'

/** Reads one event of a session, or one session if none is named. Throws a `CliError`, also for an answer that is not a list. */
export async function tryList(
  context: Context,
  settings: ResolvedSettings,
  { caller, session }: { caller: Caller; session: string | undefined },
): Promise<void> {
  const { values } = settings
  const [name, endpoint, parts] = session
    ? (['events', endpoints.listEvents, sessionParts(context, settings, { session })] as const)
    : ([
        'sessions',
        endpoints.listSessions,
        { params: {}, headers: agentHeaders(values, values.betas) },
      ] as const)
  await caller.call(endpoint, { ...parts, query: 'limit=1' }, async ({ body }) =>
    readPage(new TextDecoder().decode(await readBody(body)), `the list of ${name}`),
  )
}
