import { endpoints } from '../wire/endpoints.ts'
import { readBody } from '../wire/exchange.ts'
import { isObject, tryParseJson } from '../wire/json/parse.ts'
import { listEventsOldestFirst } from './listing/event-list.ts'
import type { SessionClient } from './session.ts'
import { SessionState } from './session-state.ts'

const maxWaitMs = 5000

const maxAnswerBytes = 2 ** 20

/**
 * Reads the session resource (`GET /v1/sessions/ID`). Returns `undefined` after any failure, because some
 * services lack this endpoint.
 */
export async function readSessionResource({
  caller,
  parts,
}: SessionClient): Promise<Record<string, unknown> | undefined> {
  const deadline = parts.deadline.narrow(maxWaitMs, 'no complete response within 5 s')
  return caller
    .call(endpoints.readSession, { ...parts, deadline, isSingle: true }, async (response) => {
      const session = tryParseJson(new TextDecoder().decode(await readBody(response.body, maxAnswerBytes)))
      return isObject(session) ? session : undefined
    })
    .catch(() => undefined)
}

export async function readSessionState({ caller, parts }: SessionClient): Promise<SessionState> {
  const state = new SessionState()
  for await (const items of listEventsOldestFirst(caller, parts))
    for (const { event, text } of items) state.add(event, text)
  return state
}
