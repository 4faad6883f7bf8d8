import type { Context } from '../context.ts'
import { usage } from '../errors.ts'
import { agentHeaders, type RequestParts } from '../http/request.ts'
import { decodeUtf8 } from '../io/utf8.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { addressOf } from '../settings/service-settings.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import { spellBody } from '../wire/json/body-text.ts'
import { editJson, parseAssignment } from '../wire/json/edit.ts'
import { parseGivenJson } from '../wire/json/parse.ts'

export interface RequestOptions {
  method?: Endpoint['method']
  input?: string
  set?: string[]
}

export interface ApiRequest {
  endpoint: Endpoint
  parts: RequestParts
}

/** Builds the request from the words, flags and input of the command. Throws a usage error. */
export async function readRequest(
  context: Context,
  { values }: Pick<ResolvedSettings, 'values'>,
  { words: [word, given = ''], options }: { words: string[]; options: RequestOptions },
): Promise<ApiRequest> {
  const service = word as Endpoint['service']
  const { path, query } = readPath(given, values[addressOf[service]])
  const hasBody = options.input !== undefined || (options.set ?? []).length > 0
  const method = options.method ?? (hasBody ? 'POST' : 'GET')
  if (hasBody && (method === 'GET' || method === 'HEAD')) throw usage(`${method} takes no body`)
  const body = hasBody ? await readBody(context, options) : undefined
  return {
    endpoint: { service, method, path, repeat: repeatOf(method, context), accept: '*/*' },
    parts: {
      params: {},
      query,
      headers: service === 'agents' ? agentHeaders(values, values.betas) : {},
      body,
    },
  }
}

/** A request that only reads may be sent again, another one if the caller says that a repeat does no harm. */
const repeatOf = (method: Endpoint['method'], { flags }: Context): Endpoint['repeat'] =>
  readingMethods.includes(method) ? 'always' : flags.retryUnknown ? 'failed' : 'not-taken'

const readingMethods: readonly string[] = ['GET', 'HEAD', 'OPTIONS']

async function readBody(context: Context, { input, set = [] }: RequestOptions): Promise<Uint8Array> {
  const { input: inputs, flags } = context
  const assignments = set.map(parseAssignment)
  const name = input === undefined || input === '-' ? 'stdin' : input
  const given = input === undefined ? Buffer.from('{}') : await inputs.bytes(input, '-i -')
  const isOther = flags.header?.some((line) => /^content-type:(?!.*json)/i.test(line)) ?? false
  if (isOther && assignments.length === 0) return given
  const text = decodeUtf8(given, name)
  parseGivenJson(text, name, "other bodies need -H 'Content-Type: TYPE'")
  return Buffer.from(spellBody(() => editJson(text, assignments)))
}

/** A path and what follows its question mark, as they are spelled. */
interface Path {
  path: string
  query: string | undefined
}

/**
 * The path of a service that is asked for. `address` is the service's own, or `undefined` if none is set. Throws a
 * usage error for a path that a server could take for another one.
 */
export function readPath(given: string, address: string | undefined): Path {
  if (given.trim() === '') throw usage('the path is empty')
  const whole = withSlash(/^[a-z][a-z0-9+.-]*:/i.test(given) ? withoutAddress(given, address) : given)
  const [path = '', query] = splitOnce(whole)
  if (whole.includes('#')) throw usage(`${shorten(given)}: a fragment (#) is never sent: spell it %23`)
  if (hasDotSegment(path)) throw usage(`${shorten(given)}: a path must not have the segments . and ..`)
  if (!isUnchanged(whole)) {
    throw usage(`${shorten(given)}: has characters that are not allowed in a path: percent-encode them`)
  }
  return { path, query }
}

function splitOnce(path: string): string[] {
  const mark = path.indexOf('?')
  return mark < 0 ? [path] : [path.slice(0, mark), path.slice(mark + 1)]
}

const withSlash = (path: string) => (path.startsWith('/') ? path : `/${path}`)

const shorten = (text: string) => (text.length > 200 ? `${text.slice(0, 199)}…` : text)

/** The path of a whole URL, which must be one of the service's: a credential goes nowhere else. */
function withoutAddress(url: string, address: string | undefined): string {
  const base = address?.replace(/\/+$/, '')
  const isOwn =
    base !== undefined && (url === base || url.startsWith(`${base}/`) || url.startsWith(`${base}?`))
  if (!isOwn)
    throw usage(`${shorten(url)}: give the path only, or a URL that begins with the service's address`)
  return url.slice(base.length)
}

/**
 * In any encoding, however often it was encoded: a server that decodes a path once too often would walk out of it. So would
 * one that drops `;` and the rest of a segment.
 */
const hasDotSegment = (path: string): boolean =>
  /(?:^|[/\\]|%(?:25)*(?:2f|5c))(?:\.|%(?:25)*2e){1,2}(?:$|[/\\;]|%(?:25)*(?:2f|5c|3b))/i.test(path)

/** Whether a path is sent as it is spelled: a URL would encode or drop some characters. */
function isUnchanged(path: string): boolean {
  if (!/^[\x21-\x7e]+$/.test(path)) return false
  const { pathname, search } = new URL(`http://host${path}`)
  return pathname + search === path.replace(/\?$/, '')
}
