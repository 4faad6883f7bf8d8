import { type Endpoint, type EndpointName, endpoints } from '../wire/endpoints.ts'
import type { HttpRequest } from '../wire/exchange.ts'
import { type EmulatedResponse, errorResponse } from './response.ts'

/** The endpoint that a request goes to, and what its address says. */
export interface Route {
  name: EndpointName
  endpoint: Endpoint
  params: Record<string, string>
  query: URLSearchParams
}

const all = (Object.entries(endpoints) as [EndpointName, Endpoint][]).map(([name, endpoint]) => ({
  name,
  endpoint,
  pattern: endpoint.path.split('/').map(patternOf),
}))

/** Where a request goes. Without a `route` its path leads to the `methods` at most. */
export function findRoute({ method, url }: HttpRequest): { route?: Route; methods: string[] } {
  const { pathname, searchParams: query } = new URL(url)
  const segments = pathname.split('/').map(decode)
  const found = all.flatMap(({ name, endpoint, pattern }) => {
    const params = matchEach(pattern, segments)
    return params ? [{ name, endpoint, params, query }] : []
  })
  const route = found.find(({ endpoint }) => endpoint.method === method)
  const methods = found.map(({ endpoint }) => endpoint.method)
  return { ...(route ? { route } : {}), methods: methods.sort() }
}

/** What cannot be decoded leads nowhere. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return ''
  }
}

/** Segments are decoded before they are matched: some clients encode a colon. */
function matchEach(patterns: RegExp[], segments: string[]): Record<string, string> | undefined {
  if (patterns.length !== segments.length) return undefined
  const found = patterns.map((pattern, i) => pattern.exec(segments[i] ?? ''))
  if (found.includes(null)) return undefined
  return Object.assign({}, ...found.map((each) => each?.groups ?? {}))
}

function patternOf(segment: string): RegExp {
  const text = segment.replace(/\{(\w+)\}|[.*+?^$()[\]\\|]/g, (found, name) =>
    name ? `(?<${name}>.+?)` : `\\${found}`,
  )
  return new RegExp(`^${text}$`, 's')
}

/** The response if no endpoint is there, or one that has other methods only. */
export const strayResponse = (methods: string[]): EmulatedResponse =>
  methods.length === 0
    ? errorResponse(404, 'there is no such endpoint')
    : errorResponse(405, `the method must be ${methods.join(' or ')}`, { allow: methods.join(', ') })
