import { version } from '../../package.json'
import type { Context } from '../context.ts'
import { usageError } from '../errors.ts'
import { isSecretHeader } from '../secrets.ts'
import { addressSettings, secretSettings } from '../settings/resolve.ts'
import type { Settings } from '../settings/schemas.ts'
import type { Endpoint } from '../wire/endpoints.ts'

/** The parts in which one request of a run differs from the next. */
export interface RequestParts {
  /** Values for the names in braces in the endpoint's path. */
  params: Record<string, string>
  query?: string
  headers?: Record<string, string> | undefined
  body?: Uint8Array
  /** Called while the response is waited for: loads what reads it. */
  meanwhile?: (() => void) | undefined
  /** The command that shows what became of it, if that is not known. */
  look?: string
  /** Whether to stop retrying. */
  isStopped?(): boolean
  /** The cursor may be inside a line, so no spinner is shown. */
  hasOutput?: boolean | undefined
  /** It is sent once at most, without a spinner, and given up when this is aborted. */
  once?: AbortSignal
}

const addressPlaceholder = { gateway: '{base_url}', agents: '{agents_url}' }

type Header = [name: string, value: string]

/**
 * The headers that a run adds to all its requests, by their names in lower case: they replace others, and an empty one only
 * takes the other away.
 */
export type RunHeaders = ReadonlyMap<string, Header>

/** A request without its secret. */
export type Request = ReturnType<typeof buildRequest>

/** Builds the request to an endpoint; throws a usage error for a value that is not allowed in a path or a header. */
export function buildRequest(
  endpoint: Endpoint,
  { params, query, headers, body }: RequestParts,
  values: Pick<Settings, 'baseUrl' | 'agentsUrl' | 'agentsAuth'>,
  given: RunHeaders,
) {
  const { service } = endpoint
  const path = endpoint.path.replace(/\{(\w+)\}/g, (_, name: string) => pathSegment(name, params[name]))
  // Only a dry run does without an address.
  const address = values[addressSettings[service]]?.replace(/\/+$/, '') ?? addressPlaceholder[service]
  const isBearer = service === 'gateway' || values.agentsAuth === 'bearer'
  const credential = {
    setting: secretSettings[service][0],
    header: isBearer ? 'Authorization' : 'x-api-key',
    prefix: isBearer ? 'Bearer ' : '',
  }
  const own = {
    ...(body ? { 'Content-Type': 'application/json' } : {}),
    Accept: endpoint.accept ?? 'application/json',
    'Accept-Encoding': 'identity',
    'User-Agent': `parley-cli/${version}`,
    ...headers,
  }
  const kept = Object.entries(own).filter(([name]) => !given.has(name.toLowerCase()))
  const others = [...given.values()]
  return {
    endpoint,
    method: endpoint.method,
    url: `${address}${path}${query ? `?${query}` : ''}`,
    headers: Object.fromEntries([...kept, ...others.filter(([, value]) => value !== '')]),
    body,
    /** A secret that the request needs, unless `-H` replaces it or leaves it out. It is added only when the request is sent. */
    credential: given.has(credential.header.toLowerCase()) ? undefined : credential,
    /** The names of headers that `-H` leaves out. */
    leftOut: others.filter(([, value]) => value === '').map(([name]) => name),
  }
}

/** What a header may have: ASCII without control characters, and no more than servers take. */
const headerText = /^[\t\x20-\x7e]{0,16384}$/

/** The variables of a trace that goes on (W3C Trace Context), and their forms. */
const traceForms = [
  [
    'TRACEPARENT',
    // Of a version that is not known, what follows the four fields is its own.
    /^(?!ff|00.{54})[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-[\x21-\x7e]{0,450})?$/,
  ],
  ['TRACESTATE', headerText],
] as const

function findTrace({ host, flags, note }: Context): Header[] {
  const found: Header[] = []
  for (const [place, [variable, form]] of traceForms.entries()) {
    const value = host.env[variable]
    if (!value) continue
    // A state does not go with another parent than its own, nor without one.
    if (found.length === place && form.test(value)) found.push([variable.toLowerCase(), value])
    else if (flags.verbose) note(`${variable} is left out: it does not have the form of W3C Trace Context`)
  }
  return found
}

/** The headers of `-H` and of the environment. Throws a usage error. */
export async function readHeaders(context: Context): Promise<RunHeaders> {
  const { flags, input } = context
  const given = new Map<string, Header>()
  for (const line of flags.header ?? []) {
    const [name, value] = parseHeader((await input.readFlagValue(line, '--header')).trimEnd())
    const before = given.get(name.toLowerCase())
    given.set(name.toLowerCase(), before ? joinHeaders(before, value) : [name, value])
  }
  const trace = given.has('traceparent') ? [] : findTrace(context)
  return new Map([...trace.map((header): [string, Header] => [header[0], header]), ...given])
}

/** A header that was given before, and once more. Throws a usage error for one that a service reads as one value. */
function joinHeaders([name, before]: Header, value: string): Header {
  const isCookie = /^cookie$/i.test(name)
  if (
    !isCookie &&
    (/^content-type$|version$/i.test(name) || [before, value].some((each) => isSecretHeader(name, each)))
  )
    throw usageError(`the header ${name} is given twice`)
  return [name, [before, value].filter((each) => each !== '').join(isCookie ? '; ' : ', ')]
}

/** Percent-encodes a value as one path segment. Throws a usage error for one that would change the path. */
export function pathSegment(name: string, value = ''): string {
  const what = name === 'session' ? 'the session id' : `the ${name}`
  if (/[\p{Cc}\p{Cs}]/u.test(value)) throw usageError(`${what} must not contain control characters`)
  if (/^(\.|%2e){1,2}$/i.test(value.trim())) throw usageError(`${what} must not be '${value}'`)
  if (value.trim() === '') throw usageError(`${what} must not be empty`)
  if (value.length > 2048) throw usageError(`${what} must be at most 2048 characters long`)
  return encodeURIComponent(value)
}

/** Headers that are set for every request, or that undici does not send. */
const forbidden = /^(host|content-length|transfer-encoding|connection|keep-alive|upgrade|expect)$/i

/** Reads the `NAME: VALUE` of `-H`, or `NAME:` with an empty value; throws a usage error. */
export function parseHeader(line: string): Header {
  const colon = line.indexOf(':')
  const name = line.slice(0, Math.max(colon, 0))
  const value = line.slice(colon + 1).trim()
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) {
    throw usageError("a header must have the form 'NAME: VALUE', with a name of letters, digits and hyphens")
  }
  if (forbidden.test(name)) throw usageError(`the header ${name} cannot be set`)
  if (!headerText.test(value))
    throw usageError(`the header ${name} must be at most 16 KiB of ASCII without control characters`)
  return [name, value]
}

/** The headers that the session service wants of every request (session events, 9.2). */
export const agentHeaders = (
  { vendor, agentsVersion, workspaceId }: Settings,
  betas: readonly string[],
): Record<string, string> => ({
  [`${vendor}-version`]: agentsVersion,
  ...(betas.length > 0 ? { [`${vendor}-beta`]: betas.join(',') } : {}),
  ...(workspaceId === undefined ? {} : { [`${vendor}-workspace-id`]: workspaceId }),
})
