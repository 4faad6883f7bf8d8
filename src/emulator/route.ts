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
  pattern: patternOf(endpoint.path),
}))

/** Where a request goes. Without a `route` its path leads to the `methods` at most. */
export function findRoute({ method, url }: HttpRequest): { route?: Route; methods: string[] } {
  const { pathname, searchParams: query } = new URL(url)
  // Some clients encode a colon.
  const path = pathname.replaceAll(/%3a/gi, ':')
  const found = all.flatMap(({ name, endpoint, pattern }) => {
    const match = pattern.exec(path)
    return match ? [{ name, endpoint, params: decodeAll(match.groups), query }] : []
  })
  const route = found.find(({ endpoint }) => endpoint.method === method)
  return { route, methods: found.map(({ endpoint }) => endpoint.method).sort() }
}

/** The server has refused what cannot be decoded. */
const decodeAll = (params: Record<string, string> = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(params).map(([name, value]) => [name, decodeURIComponent(value)]))

function patternOf(path: string): RegExp {
  const text = path.replace(/\{(\w+)\}|[.*+?^$()[\]\\|]/g, (found, name) =>
    name ? `(?<${name}>[^/]+?)` : `\\${found}`,
  )
  return new RegExp(`^${text}$`)
}

/** The response if no endpoint is there, or one that has other methods only. */
export const strayResponse = (methods: string[]): EmulatedResponse =>
  methods.length === 0
    ? errorResponse(404, 'there is no such endpoint')
    : errorResponse(405, `the method must be ${methods.join(' or ')}`, { allow: methods.join(', ') })
