import { type Endpoint, type EndpointName, endpoints } from '../wire/endpoints.ts'
import type { HttpRequest } from '../wire/exchange.ts'

/** The endpoint that a request goes to, and what its address says. */
export interface Route {
  name: EndpointName
  endpoint: Endpoint
  params: Record<string, string>
  query: URLSearchParams
}

export function findRoute({ method, url }: HttpRequest): Route | undefined {
  const { pathname, searchParams: query } = new URL(url)
  for (const [name, endpoint] of Object.entries(endpoints) as [EndpointName, Endpoint][]) {
    const params = endpoint.method === method && patternOf(endpoint.path).exec(pathname)?.groups
    if (params) return { name, endpoint, params: mapValues(params, decodeURIComponent), query }
  }
  return undefined
}

const patternOf = (path: string) =>
  new RegExp(
    `^${path.replace(/\{(\w+)\}|[.*+?^$()[\]\\|]/g, (found, name) => (name ? `(?<${name}>[^/:]+?)` : `\\${found}`))}$`,
  )

const mapValues = (values: Record<string, string>, change: (value: string) => string) =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, change(value)]))
