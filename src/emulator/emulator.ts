import { CliError } from '../errors.ts'
import { type Endpoint, type EndpointName, endpoints } from '../wire/endpoints.ts'
import type { Exchange, HttpRequest } from '../wire/exchange.ts'
import type { GenerateRequest } from '../wire/generate.ts'
import { describeIssues } from '../wire/json.ts'
import { composeAnswer, messageEventsReply, messageReply, nativeStreamReply } from './chat.ts'
import { type Fault, takeFault } from './faults.ts'
import { createRandom, randomId } from './random.ts'
import { deliver, errorReply, type Reply } from './reply.ts'

export interface EmulatorOptions {
  /** What a caller must show; without one any will do. */
  accessToken?: string
  faults?: Fault[]
  /** Milliseconds before an answer begins. */
  latency?: number
  /** Milliseconds between two pieces of a stream. */
  chunkDelay?: number
  seed?: string
}

/** A call to one endpoint, checked. */
interface Call {
  params: Record<string, string>
  query: URLSearchParams
  body: unknown
  seed: string
}

/** What each endpoint answers; an endpoint without a handler is a type error. */
const handlers: Record<EndpointName, (call: Call) => Reply> = {
  chat({ params, query, body, seed }) {
    const answer = composeAnswer(body as GenerateRequest, params.model ?? '', seed)
    const isStream = query.get('alt') === 'sse' || (body as { stream?: unknown }).stream === true
    return isStream ? messageEventsReply(answer) : messageReply(answer)
  },
  streamChat({ params, query, body, seed }) {
    const answer = composeAnswer(body as GenerateRequest, params.model ?? '', seed)
    return nativeStreamReply(answer, query.get('alt') === 'sse')
  },
}

/** The name that `--fault` knows an endpoint by. */
const faultNames: Record<EndpointName, string> = { chat: 'chat', streamChat: 'chat' }

export const faultEndpoints = [...new Set(Object.values(faultNames))]

/** Emulates the service: checks what the specification says, answers in the documented shapes. */
export function createEmulator(options: EmulatorOptions): Exchange {
  const { faults = [], latency = 0, chunkDelay = 0, seed = '0' } = options
  const random = createRandom(seed)

  return async (request) => {
    if (latency > 0) await new Promise((resolve) => setTimeout(resolve, latency))
    const delivery = { requestId: randomId('req', random), delay: chunkDelay }
    const route = findRoute(request)
    if (!route) return deliver(errorReply(404, 'there is no such endpoint'), delivery)
    const fault = takeFault(faults, faultNames[route.name])
    if (fault === 'reset')
      throw new CliError('unknown', 'the emulator reset the connection', { sent: 'unknown' })
    if (fault === 'stall') return new Promise(() => {})
    if (fault === 'html') return deliver(page, delivery)
    if (typeof fault === 'number') return deliver(faultReply(fault), delivery)
    const reply = answer(route, request, options, seed)
    const cut = () => new CliError('response', 'the emulator cut the connection', { sent: 'yes' })
    return deliver(reply, fault === 'cut' ? { ...delivery, cut } : delivery)
  }
}

const page: Reply = {
  status: 200,
  contentType: 'text/html',
  pieces: ['<!doctype html><html><head><title>Please log in</title></head><body>A web page.</body></html>'],
}

const faultReply = (status: number) =>
  errorReply(status, `asked to fail with ${status}`, status === 429 ? { 'retry-after': '1' } : undefined)

interface Route {
  name: EndpointName
  endpoint: Endpoint
  params: Record<string, string>
  query: URLSearchParams
}

function findRoute({ method, url }: HttpRequest): Route | undefined {
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

function answer(route: Route, request: HttpRequest, { accessToken }: EmulatorOptions, seed: string): Reply {
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name.toLowerCase(), value]),
  )
  const token = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1]
  if (token === undefined || (accessToken !== undefined && token !== accessToken)) {
    return errorReply(401, 'the Authorization header must be Bearer and the access token')
  }
  if (!/^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '')) {
    return errorReply(400, 'the content type must be application/json')
  }
  let body: unknown
  try {
    body = JSON.parse(Buffer.from(request.body ?? []).toString())
  } catch {
    return errorReply(400, 'the body is not JSON')
  }
  const parsed = route.endpoint.request?.safeParse(body)
  if (parsed && !parsed.success) return errorReply(400, describeIssues(parsed.error).join('; '))
  return handlers[route.name]({ params: route.params, query: route.query, body, seed })
}
