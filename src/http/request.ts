import { version } from '../../package.json'
import type { Context } from '../context.ts'
import { usage } from '../errors.ts'
import { isSecretHeader } from '../secrets.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import type { Settings } from '../settings/schemas.ts'
import { addressOf } from '../settings/service-settings.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import type { HttpRequest } from '../wire/exchange.ts'

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
  /** It is sent once at most, without a spinner, and given up when this is aborted. */
  once?: AbortSignal
}

/** A secret that a request needs, named by its setting; it is added only when the request is sent. */
interface Credential {
  setting: 'accessToken' | 'apiKey'
  header: string
  prefix: string
}

/** A request without its secret. */
export interface Request extends HttpRequest {
  endpoint: Endpoint
  /** Absent if `-H` replaces it, or leaves it out. */
  credential?: Credential
  /** The names of headers that `-H` leaves out. */
  leftOut: string[]
}

const bearer = { header: 'Authorization', prefix: 'Bearer ' }

/** How a service is shown its secret. */
function credentialFor(
  service: Endpoint['service'],
  agentsAuth: Settings['agentsAuth'] | undefined,
): Credential {
  if (service === 'gateway') return { setting: 'accessToken', ...bearer }
  return { setting: 'apiKey', ...(agentsAuth === 'bearer' ? bearer : { header: 'x-api-key', prefix: '' }) }
}

const addressPlaceholder = { gateway: '{base_url}', agents: '{agents_url}' }

type Header = [name: string, value: string]

/** The headers that a run adds to all its requests. */
interface RunHeaders {
  /** From `-H`, by their names in lower case: they replace others, and an empty one only takes the other away. */
  given: ReadonlyMap<string, Header>
  /** The trace that the environment names. */
  trace: Record<string, string>
}

/** Makes what builds all of a run's requests, from flags and settings too. Building throws a usage error. */
export function createRequestBuilder(context: Context, { values }: ResolvedSettings) {
  // Read once for all requests: `@-` is stdin.
  let headers: Promise<RunHeaders> | undefined
  return async (endpoint: Endpoint, parts: RequestParts): Promise<Request> => {
    if (context.flags.retryUnknown && endpoint.repeat !== 'failed')
      throw usage('--retry-unknown works only with chat, image and api')
    headers ??= readHeaders(context)
    return buildRequest(endpoint, parts, values, await headers)
  }
}

/** Builds the request to an endpoint; throws a usage error for a value that is not allowed in a path or a header. */
export function buildRequest(
  endpoint: Endpoint,
  { params, query, headers, body }: RequestParts,
  values: Pick<Settings, 'baseUrl' | 'agentsUrl' | 'agentsAuth'>,
  { given, trace }: RunHeaders = { given: new Map(), trace: {} },
): Request {
  const { service } = endpoint
  const path = endpoint.path.replace(/\{(\w+)\}/g, (_, name: string) => pathSegment(name, params[name]))
  // Only a dry run does without an address.
  const address = values[addressOf(service)]?.replace(/\/+$/, '') ?? addressPlaceholder[service]
  const credential = credentialFor(service, values.agentsAuth)
  const own = {
    ...(body ? { 'Content-Type': 'application/json' } : {}),
    Accept: endpoint.accept ?? 'application/json',
    'Accept-Encoding': 'identity',
    'User-Agent': `parley-cli/${version}`,
    ...trace,
    ...headers,
  }
  return {
    endpoint,
    method: endpoint.method,
    url: `${address}${path}${query ? `?${query}` : ''}`,
    headers: mergeHeaders(own, given),
    body,
    credential: given.has(credential.header.toLowerCase()) ? undefined : credential,
    leftOut: [...given.values()].filter(([, value]) => value === '').map(([name]) => name),
  }
}

/**
 * The headers of a trace that goes on (W3C Trace Context), as the environment has them. A state does not go with another
 * parent than its own, nor without one.
 */
function findTrace({ host, flags, note }: Context): Record<string, string> {
  const { TRACEPARENT: traceparent = '', TRACESTATE: tracestate = '' } = host.env
  const isParent = traceParent.test(traceparent)
  const isState = isParent && isHeaderText(tracestate) && tracestate.length <= longestHeader
  const found = [
    ['traceparent', traceparent, isParent],
    ['tracestate', tracestate, isState],
  ] as const
  for (const [name, value, isRight] of found)
    if (value !== '' && !isRight && flags.verbose)
      note(`${name.toUpperCase()} is left out: it does not have the form of W3C Trace Context`)
  return Object.fromEntries(found.filter(([, value, isRight]) => value !== '' && isRight))
}

/** Of a version that is not known, what follows the four fields is its own. */
const traceParent =
  /^(?!ff|00.{54})[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-[\x21-\x7e]{0,450})?$/

async function readHeaders(context: Context): Promise<RunHeaders> {
  const { flags, input } = context
  const given = new Map<string, Header>()
  for (const line of flags.header ?? []) {
    const [name, value] = parseHeader((await input.value(line, '--header')).trimEnd())
    const before = given.get(name.toLowerCase())
    given.set(name.toLowerCase(), before ? joinHeaders(before, value) : [name, value])
  }
  return { given, trace: given.has('traceparent') ? {} : findTrace(context) }
}

/** A header that was given before, and once more. Throws a usage error for one that a service reads as one value. */
function joinHeaders([name, before]: Header, value: string): Header {
  const isCookie = /^cookie$/i.test(name)
  if (
    !isCookie &&
    (/^content-type$|version$/i.test(name) || [before, value].some((each) => isSecretHeader(name, each)))
  )
    throw usage(`the header ${name} is given twice`)
  return [name, [before, value].filter((each) => each !== '').join(isCookie ? '; ' : ', ')]
}

/** Percent-encodes a value as one path segment. Throws a usage error for one that would change the path. */
export function pathSegment(name: string, value = ''): string {
  const what = name === 'session' ? 'the session id' : `the ${name}`
  if (value === '') throw usage(`${what} must not be empty`)
  if (/[\p{Cc}\p{Cs}]/u.test(value)) throw usage(`${what} must not contain control characters`)
  if (/^(\.|%2e){1,2}$/i.test(value.trim())) throw usage(`${what} must not be '${value}'`)
  if (value.trim() === '') throw usage(`${what} must not be blank`)
  if (value.length > 2048) throw usage(`${what} must be at most 2048 characters long`)
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
    throw usage("a header must have the form 'NAME: VALUE', with a name of letters, digits and hyphens")
  }
  if (forbidden.test(name)) throw usage(`the header ${name} cannot be set`)
  if (!isHeaderText(value)) {
    throw usage(`the header ${name} must not contain control characters or letters beyond ASCII`)
  }
  if (value.length > longestHeader) throw usage(`the header ${name} is longer than 16 KiB`)
  return [name, value]
}

const longestHeader = 16 * 1024

const isHeaderText = (value: string) => !/[^\t\x20-\x7e]/.test(value)

function mergeHeaders(own: Record<string, string>, given: RunHeaders['given']): Record<string, string> {
  if (given.size === 0) return own
  const kept = Object.entries(own).filter(([name]) => !given.has(name.toLowerCase()))
  return Object.fromEntries([...kept, ...[...given.values()].filter(([, value]) => value !== '')])
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
