import type { Context } from '../context.ts'
import { usage } from '../errors.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { addressOf } from '../settings/service-settings.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import { type Draft, type DraftParts, draftRequest, parseHeader } from './draft.ts'
import { readTrace } from './trace-headers.ts'

/** What is different from one request of a run to the next. */
export type RequestParts = Omit<DraftParts, 'address' | 'extraHeaders'> & {
  /** Called while the answer is waited for: loads what reads it. */
  meanwhile?: (() => void) | undefined
}

/** Makes what drafts all of a run's requests, from flags and settings too. Drafting throws a usage error. */
export function createDrafter(
  context: Context,
  { values }: ResolvedSettings,
): (endpoint: Endpoint, parts: RequestParts) => Promise<Draft> {
  // Read once for all requests: `@-` is stdin.
  let headers: Promise<Record<string, string>> | undefined
  let trace: Record<string, string> | undefined
  return async (endpoint, parts) => {
    if (context.flags.retryUnknown && endpoint.repeat !== 'failed')
      throw usage('--retry-unknown works only with chat, image and api')
    headers ??= readHeaders(context)
    trace ??= findTrace(context, Object.keys(await headers))
    const address = values[addressOf(endpoint.service)]
    return draftRequest(endpoint, {
      ...parts,
      headers: { ...trace, ...parts.headers },
      address,
      extraHeaders: await headers,
    })
  }
}

/** `given` are the names of headers that a person gave: a state does not go with another parent than its own. */
function findTrace({ host, flags, note }: Context, given: string[]): Record<string, string> {
  if (given.some((name) => name.toLowerCase() === 'traceparent')) return {}
  const { headers, leftOut } = readTrace(host.env)
  if (flags.verbose)
    for (const name of leftOut) note(`${name} is left out: it does not have the form of W3C Trace Context`)
  return headers
}

async function readHeaders({ flags, input }: Context): Promise<Record<string, string>> {
  const headers = new Map<string, [name: string, value: string]>()
  for (const line of flags.header ?? []) {
    const header = parseHeader((await input.value(line, '--header')).trimEnd())
    headers.set(header[0].toLowerCase(), header)
  }
  return Object.fromEntries(headers.values())
}
