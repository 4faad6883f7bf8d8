import { schedule } from '../timers.ts'
import { decodeBodyText } from '../wire/charset.ts'
import { endpoints } from '../wire/endpoints.ts'
import { readBody } from '../wire/exchange.ts'
import { isObject, tryParseJson } from '../wire/json/parse.ts'
import type { SessionAccess } from './session.ts'

/** Maximum wait in milliseconds, and maximum size of the answer in bytes. */
const [longestWait, longestAnswer] = [5000, 2 ** 20]

/**
 * Returns the service's description of a session, or `undefined`: the service may not have this endpoint.
 * Failures are not reported.
 */
export async function readSession({
  context,
  caller,
  parts,
}: SessionAccess): Promise<Record<string, unknown> | undefined> {
  const late = new AbortController()
  const cancel = schedule(context.timers, longestWait, () => late.abort())
  return caller
    .call(endpoints.readSession, { ...parts, once: late.signal }, async (response) => {
      const session = tryParseJson(
        decodeBodyText(await readBody(response.body, longestAnswer), response.headers['content-type']),
      )
      return isObject(session) ? session : undefined
    })
    .catch(() => undefined)
    .finally(cancel)
}
