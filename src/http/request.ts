import { version } from '../../package.json'
import type { Context } from '../context.ts'
import type { Deadline } from '../deadline.ts'
import type { DeliveryState } from '../delivery-state.ts'
import { type CliError, usageError } from '../errors.ts'
import { isSecretHeader } from '../secrets.ts'
import {
  addressSettings,
  describeRefusedSecret,
  formatProfileFlag,
  type ResolvedSettings,
} from '../settings/resolve.ts'
import { headerValuePattern, type Settings } from '../settings/schemas.ts'
import { secretSettings } from '../settings/table.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import { isMarkup } from '../wire/markup.ts'
import { isRefusedSecret } from './retry.ts'

export interface RequestParts {
  params: Record<string, string>
  query?: string
  headers?: Record<string, string> | undefined
  body?: Uint8Array
  /** Called while parley waits for the response. Loads the code that reads the response. */
  meanwhile?: (() => void) | undefined
  inspectCommand?: string
  rerunHint?: string | undefined
  /** If true, no spinner is shown, because it would erase an unfinished line of earlier output. */
  hasOutput?: boolean | undefined
  deadline?: Deadline
  /** Throws a `CliError` if another run has taken over the lock of this run. */
  requireLock?: (() => void) | undefined
  onAttempt?: (getState: () => DeliveryState) => void
  /**
   * If true, the caller retries the request. parley then shows no spinner, and repeats the request only with
   * a renewed secret.
   */
  isSingle?: boolean
}

const addressPlaceholder = { gateway: '{base_url}', agents: '{agents_url}' }

type Header = [name: string, value: string]

/**
 * Headers of `-H` and of the environment, by lower-case name. A header in this map replaces parley's own
 * header. An empty value removes the header.
 */
type HeaderOverrides = ReadonlyMap<string, Header>

export type PreparedRequest = ReturnType<typeof buildRequest>

export function buildRequest(
  endpoint: Endpoint,
  { params, query, headers = {}, body }: RequestParts,
  values: Pick<Settings, 'baseUrl' | 'agentsUrl' | 'agentsAuth'>,
  given: HeaderOverrides,
) {
  const { service } = endpoint
  const path = endpoint.path.replace(/\{(\w+)\}/g, (_, name: string) => encodePathSegment(name, params[name]))
  // Only `--dry-run` and `--curl` work without an address, because both print a placeholder instead.
  const address = values[addressSettings[service]]?.replace(/\/+$/, '') ?? addressPlaceholder[service]
  const isBearer = service === 'gateway' || values.agentsAuth === 'bearer'
  const credential = {
    setting: secretSettings[service][0],
    header: isBearer ? 'Authorization' : 'x-api-key',
    prefix: isBearer ? 'Bearer ' : '',
  }
  const own: Header[] = [
    ...(body ? [['Content-Type', 'application/json'] satisfies Header] : []),
    ['Accept', endpoint.accept ?? 'application/json'],
    ['Accept-Encoding', 'identity'],
    ['User-Agent', `parley-cli/${version}`],
    ...Object.entries(headers),
  ]
  const replaceable = own.filter(([name]) => !given.has(name.toLowerCase()))
  const extra = [...given.values()]
  return {
    endpoint,
    method: endpoint.method,
    url: `${address}${path}${query ? `?${query}` : ''}`,
    headers: Object.fromEntries([...replaceable, ...extra.filter(([, value]) => value !== '')]),
    body,
    /** Absent if `-H` replaces or removes the header of the secret. The secret itself is added later. */
    credential: given.has(credential.header.toLowerCase()) ? undefined : credential,
    removedHeaders: extra.filter(([, value]) => value === '').map(([name]) => name),
  }
}

export function parseHeaders(lines: readonly string[], host: Context['host']): HeaderOverrides {
  const given = new Map<string, Header>()
  for (const line of lines) {
    const [name, value] = parseHeader(line)
    const before = given.get(name.toLowerCase())
    given.set(name.toLowerCase(), before ? joinHeaders(before, value) : [name, value])
  }
  for (const name of given.has('traceparent') ? [] : ['traceparent', 'tracestate']) {
    const value = host.env[name.toUpperCase()]
    // Usually a build system sets these environment variables, not the user. So parley skips a malformed
    // value and does not reject it.
    if (value && headerValuePattern.test(value) && !given.has(name)) given.set(name, [name, value])
  }
  return given
}

const joinHeaders = ([name, before]: Header, value: string): Header => [
  name,
  [before, value].filter((each) => each !== '').join(/^cookie$/i.test(name) ? '; ' : ', '),
]

/** Throws a usage error for a value that would change the path. */
export function encodePathSegment(name: string, value = ''): string {
  const what = name === 'session' ? 'the session id' : `the ${name}`
  if (/[\x00-\x1f\x7f-\x9f]/.test(value) || !value.isWellFormed())
    throw usageError(`${what} must not contain control characters`)
  if (/^(\.|%2e){1,2}$/i.test(value.trim())) throw usageError(`${what} must not be '${value}'`)
  if (value.trim() === '') throw usageError(`${what} must not be empty`)
  if (value.length > 2048) throw usageError(`${what} must be at most 2048 characters long`)
  return encodeURIComponent(value)
}

/** `-H` cannot set these headers, because parley or undici sets them, or undici refuses to send them. */
const forbidden = /^(host|content-length|transfer-encoding|connection|keep-alive|upgrade|expect)$/i

export function parseHeader(line: string): Header {
  const colon = line.indexOf(':')
  const name = line.slice(0, Math.max(colon, 0))
  const value = line.slice(colon + 1).trim()
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) {
    throw usageError("a header must have the form 'NAME: VALUE', with a name of letters, digits and hyphens")
  }
  if (forbidden.test(name))
    throw usageError(`the header ${name} cannot be set: parley manages the connection itself`)
  // Users copy such a header from a command that parley printed.
  if (value.endsWith('[redacted]'))
    throw usageError(
      `the header ${name} has the word [redacted] instead of its value: fill in the value, or use '${name}: @FILE'`,
    )
  if (!headerValuePattern.test(value))
    throw usageError(`the header ${name} must be at most 16 KiB of ASCII without control characters`)
  return [name, value]
}

/** Creates the headers for version, betas and workspace (src/wire/README.md: session events, 4.1). */
export const createAgentHeaders = (
  { vendor, agentsVersion, workspaceId }: Settings,
  betas: readonly string[],
): Record<string, string> => ({
  [`${vendor}-version`]: agentsVersion,
  ...(betas.length > 0 ? { [`${vendor}-beta`]: betas.join(',') } : {}),
  ...(workspaceId === undefined ? {} : { [`${vendor}-workspace-id`]: workspaceId }),
})

export function describeSettingFix(
  failure: CliError,
  { endpoint, credential, headers, url }: PreparedRequest,
  params: RequestParts['params'],
  settings: ResolvedSettings,
): string | undefined {
  const { values, origins } = settings
  const { service, path } = endpoint
  const { status } = failure.details
  if (isRefusedSecret(failure)) {
    if (credential) return describeRefusedSecret(settings, service)
    const isGiven = Object.entries(headers).some(([name, value]) => isSecretHeader(name, value))
    return isGiven ? 'the refused secret is from --header' : undefined
  }
  const isFromOtherServer = isRedirectOrPage(failure)
  if (status !== 404 && status !== 405 && !isFromOtherServer) return undefined
  const name = addressSettings[service]
  const address = `${name} (${origins[name]?.label})`
  if (path.includes('{model}') && !isFromOtherServer) {
    const { source, label } = origins.family ?? {}
    const from = source === 'default' ? "the default, which may not be this gateway's" : label
    return `check the model '${params.model}', ${address} and family '${values.family}' (${from}); the URL was ${url}`
  }
  const isSession = path.includes('{session}') && status === 404
  const list = isSession ? `'parley sessions list${formatProfileFlag(settings)}' lists the sessions; ` : ''
  return `${list}the URL was ${url}, from ${address}`
}

/** Returns true for a redirect or a web page, which probably comes from another server than the service. */
export const isRedirectOrPage = ({ kind, details: { status = 0, body } }: CliError): boolean =>
  (status >= 300 && status < 400) || (kind === 'response' && isMarkup(body))
