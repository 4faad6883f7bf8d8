import { usage } from '../errors.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import type { HttpRequest } from '../wire/exchange.ts'

/** A secret that a request needs, named by its setting; it is added only when the request is sent. */
interface Credential {
  setting: 'accessToken' | 'apiKey'
  header: string
  prefix: string
}

/** A request without its secret. */
export interface Draft extends HttpRequest {
  endpoint: Endpoint
  /** Absent if `-H` replaces it, or leaves it out. */
  credential?: Credential
  /** The names of headers that `-H` leaves out. */
  leftOut: string[]
}

export interface DraftParts {
  /** The service's address, or `undefined` where none is set (which only a dry run allows). */
  address: string | undefined
  /** Values for the names in braces in the endpoint's path. */
  params: Record<string, string>
  query?: string
  headers?: Record<string, string> | undefined
  /** Headers from `-H`, which replace others of the same name; an empty one only takes the other away. */
  extraHeaders?: Record<string, string> | undefined
  body?: Uint8Array
}

const credentials = {
  gateway: { setting: 'accessToken', header: 'Authorization', prefix: 'Bearer ' },
  agents: { setting: 'apiKey', header: 'x-api-key', prefix: '' },
} as const satisfies Record<Endpoint['service'], Credential>

const addressPlaceholder = { gateway: '{base_url}', agents: '{agents_url}' }

/** Builds the request to an endpoint; throws a usage error for a value that is not allowed in a path or a header. */
export function draftRequest(endpoint: Endpoint, parts: DraftParts): Draft {
  const path = endpoint.path.replace(/\{(\w+)\}/g, (_, name: string) => pathSegment(name, parts.params[name]))
  const address = parts.address?.replace(/\/+$/, '') ?? addressPlaceholder[endpoint.service]
  const credential = credentials[endpoint.service]
  const extra = parts.extraHeaders ?? {}
  const headers = mergeHeaders(
    {
      ...(parts.body ? { 'Content-Type': 'application/json' } : {}),
      Accept: endpoint.accept ?? 'application/json',
      'Accept-Encoding': 'identity',
      'User-Agent': 'parley-cli',
      ...parts.headers,
    },
    extra,
  )
  return {
    endpoint,
    method: endpoint.method,
    url: `${address}${path}${parts.query ? `?${parts.query}` : ''}`,
    headers,
    body: parts.body,
    credential: hasHeader(extra, credential.header) ? undefined : credential,
    leftOut: Object.keys(extra).filter((name) => extra[name] === ''),
  }
}

/** The request as it goes out. */
export function withSecret(draft: Draft, secret: string | undefined): HttpRequest {
  const { endpoint: _, leftOut: __, credential, ...request } = draft
  if (!credential || secret === undefined) return request
  return { ...request, headers: { [credential.header]: credential.prefix + secret, ...request.headers } }
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

/** What is set for every request, or undici does not send. */
const forbidden = [
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'upgrade',
  'expect',
]

/** Reads the `NAME: VALUE` of `-H`, or `NAME:` with an empty value; throws a usage error. */
export function parseHeader(line: string): [name: string, value: string] {
  const colon = line.indexOf(':')
  const name = line.slice(0, Math.max(colon, 0))
  const value = line.slice(colon + 1).trim()
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) {
    throw usage("a header must have the form 'NAME: VALUE', with a name of letters, digits and hyphens")
  }
  if (forbidden.includes(name.toLowerCase())) throw usage(`the header ${name} cannot be set`)
  if (/[^\t\x20-\x7e]/.test(value)) {
    throw usage(`the header ${name} must not contain control characters or letters beyond ASCII`)
  }
  if (value.length > 16 * 1024) throw usage(`the header ${name} is longer than 16 KiB`)
  return [name, value]
}

function mergeHeaders(own: Record<string, string>, extra: Record<string, string>): Record<string, string> {
  if (Object.keys(extra).length === 0) return own
  const replaced = new Set(Object.keys(extra).map((name) => name.toLowerCase()))
  const kept = Object.entries(own).filter(([name]) => !replaced.has(name.toLowerCase()))
  const given = Object.entries(extra).filter(([, value]) => value !== '')
  return Object.fromEntries([...kept, ...given])
}

const hasHeader = (headers: Record<string, string>, name: string): boolean =>
  Object.keys(headers).some((candidate) => candidate.toLowerCase() === name.toLowerCase())
