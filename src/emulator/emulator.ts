import { CliError } from '../errors.ts'
import type { Endpoint, EndpointName } from '../wire/endpoints.ts'
import type { Exchange, HttpRequest } from '../wire/exchange.ts'
import type { GenerateRequest } from '../wire/gateway/generate-request.ts'
import type { SendEvents } from '../wire/sessions/send-events.ts'
import type { CreateSession, UpdateSession } from '../wire/sessions/session-requests.ts'
import { checkBody, header } from './body.ts'
import {
  createLimiter,
  type Fault,
  faultResponse,
  limitResponse,
  type RateLimit,
  takeFault,
  webPageResponse,
} from './faults.ts'
import {
  composeAnswer,
  messageEventsResponse,
  messageResponse,
  nativeStreamResponse,
} from './gateway/chat.ts'
import { createRandom, randomId } from './random.ts'
import { deliver, type EmulatedResponse, errorResponse } from './response.ts'
import { findRoute, type Route, strayResponse } from './route.ts'
import { keepSessions, type SessionHandlers, type SessionStore } from './sessions/kept-sessions.ts'
import type { StreamStyle } from './sessions/session-stream.ts'
import { createSessions } from './sessions/sessions.ts'
import { findDoubts } from './sessions/strict.ts'

export interface EmulatorOptions {
  /** What callers must show; without one any will do. */
  accessToken?: string
  apiKey?: string
  faults?: Fault[]
  /** For all callers and endpoints together; a request beyond it gets 429, and uses up no fault. */
  limit?: RateLimit
  /** Milliseconds before an answer begins. */
  latency?: number
  /** Milliseconds between two pieces of a stream, and between two events of an agent. */
  chunkDelay?: number
  seed?: string
  /** The only sessions that exist; without it any does. */
  sessions?: readonly string[]
  /** What a service may refuse is refused. */
  isStrict?: boolean
  /** Told of what would be refused if it were strict. */
  onDoubt?(doubt: string): void
  /** What streams of events do that is not documented. */
  streamStyles?: readonly StreamStyle[]
  /** What all sessions may take together, in characters of JSON; those used last are kept. */
  sessionRoom?: number
  /** Keeps the sessions for other processes; without it they end with this one. */
  store?: SessionStore
}

/** A call to one endpoint, checked. */
interface RoutedRequest {
  params: Record<string, string>
  query: URLSearchParams
  body: unknown
}

type Handlers = Record<EndpointName, (call: RoutedRequest) => EmulatedResponse | Promise<EmulatedResponse>>

/** What each endpoint answers; an endpoint without a handler is a type error. */
function createHandlers(options: EmulatorOptions): Handlers {
  const { seed = '0', chunkDelay = 0, sessions: only, streamStyles: styles = [] } = options
  // Others wait for a store until the agent is done.
  const delay = options.store ? 0 : chunkDelay
  const room = options.sessionRoom ?? 32 * 1024 * 1024
  const made = createSessions({ seed, delay, styles, room, ...(only ? { only } : {}) })
  const sessions: SessionHandlers = options.store ? keepSessions(made, options.store) : made
  const compose = ({ body, params }: RoutedRequest) =>
    composeAnswer(body as GenerateRequest, params.model ?? '', seed)
  return {
    chat(call) {
      const isStream = call.query.get('alt') === 'sse' || (call.body as { stream?: unknown }).stream === true
      return isStream ? messageEventsResponse(compose(call)) : messageResponse(compose(call))
    },
    streamChat: (call) => nativeStreamResponse(compose(call), call.query.get('alt') === 'sse'),
    async image({ params, body }) {
      const { imageResponse } = await import('./gateway/image.ts')
      return imageResponse(body as GenerateRequest, params.model ?? '', seed)
    },
    createSession: ({ body }) => sessions.create(body as CreateSession),
    updateSession: ({ params, body }) => sessions.update(params.session ?? '', body as UpdateSession),
    readSession: ({ params }) => sessions.describe(params.session ?? ''),
    listSessions: ({ query }) => sessions.describeAll(query),
    sendEvents: ({ params, body }) => sessions.send(params.session ?? '', body as SendEvents),
    listEvents: ({ params, query }) => sessions.list(params.session ?? '', query),
    followEvents: ({ params, query }) => sessions.follow(params.session ?? '', query),
  }
}

/** The name that `--fault` knows an endpoint by. */
const faultNames: Record<EndpointName, string> = {
  chat: 'chat',
  streamChat: 'chat',
  image: 'image',
  createSession: 'session',
  updateSession: 'session',
  readSession: 'session',
  listSessions: 'session',
  sendEvents: 'events',
  listEvents: 'list',
  followEvents: 'follow',
}

export const faultEndpoints = [...new Set(Object.values(faultNames))]

/** Emulates both services: checks what the specification says, answers in the documented shapes. */
export function createEmulator(options: EmulatorOptions): Exchange {
  const { faults = [], latency = 0, chunkDelay = 0, seed = '0' } = options
  const random = createRandom([seed])
  const handlers = createHandlers(options)
  const take = options.limit ? createLimiter(options.limit) : () => true

  return async (request) => {
    if (latency > 0) await new Promise((resolve) => setTimeout(resolve, latency))
    const delivery = { requestId: randomId('req', random), delay: chunkDelay }
    const { route, methods } = findRoute(request)
    if (!route) return deliver(strayResponse(methods), delivery)
    if (!take()) return deliver(limitResponse, delivery)
    const fault = takeFault(faults, faultNames[route.name])
    if (fault === 'reset') throw new CliError('unknown', 'the emulator reset the connection')
    if (fault === 'stall') return new Promise(() => {})
    if (fault === 'html') return deliver(webPageResponse, delivery)
    if (typeof fault === 'number') return deliver(faultResponse(fault), delivery)
    const refusal = refuse(route.endpoint, request, options)
    const response = refusal ?? (await answer(route, request, { handlers, options }))
    if (request.method === 'HEAD') return deliver(headOf(response), delivery)
    const cut = () => new CliError('response', 'the emulator cut the connection', { brokeOff: true })
    return deliver(response, fault === 'cut' ? { ...delivery, cut } : delivery)
  }
}

/** What a `HEAD` gets: everything but the body. */
function headOf({ status, contentType, headers = {}, close }: EmulatedResponse): EmulatedResponse {
  close?.()
  return { status, contentType, headers, pieces: [] }
}

/** The refusal of a caller who does not show the right credential. */
function refuse(
  { service }: Endpoint,
  { headers }: HttpRequest,
  options: EmulatorOptions,
): EmulatedResponse | undefined {
  const bearer = /^bearer +(.+)$/i.exec(header(headers, 'authorization') ?? '')?.[1]
  const shown = service === 'gateway' ? bearer : (header(headers, 'x-api-key') ?? bearer)
  const wanted = (service === 'gateway' ? options.accessToken : options.apiKey) ?? shown
  if (shown && shown === wanted) return undefined
  const place =
    service === 'gateway'
      ? 'Authorization must be Bearer and the access token'
      : 'x-api-key must be the key, or Authorization Bearer and the key'
  return errorResponse(401, `the header ${place}`)
}

async function answer(
  { name, endpoint, params, query }: Route,
  request: HttpRequest,
  { handlers, options }: { handlers: Handlers; options: EmulatorOptions },
): Promise<EmulatedResponse> {
  const read = endpoint.request ? await checkBody(request, endpoint.request) : { body: undefined }
  if ('refusal' in read) return read.refusal
  const { body } = read
  const doubts = endpoint.service === 'agents' ? findDoubts(request, eventsIn(body)) : []
  if (options.isStrict && doubts.length > 0) return errorResponse(400, doubts.slice(0, mostTold).join('; '))
  for (const doubt of doubts.slice(0, mostTold)) options.onDoubt?.(doubt)
  return handlers[name]({ params, query, body })
}

/** The events of a body that sends some, or makes a session with some. */
const eventsIn = (body: unknown): SendEvents['events'] => {
  const { events, initial_events: initial } = (body ?? {}) as Partial<SendEvents & CreateSession>
  return events ?? initial ?? []
}

/** How many doubts about one request are told. */
const mostTold = 20
