import { CliError } from '../errors.ts'
import type { Endpoint, EndpointName } from '../wire/endpoints.ts'
import type { Exchange, HttpRequest } from '../wire/exchange.ts'
import type { GenerateRequest } from '../wire/gateway/generate-request.ts'
import type { SendEvents } from '../wire/sessions/send-events.ts'
import type { CreateSession, UpdateSession } from '../wire/sessions/session-requests.ts'
import { checkBody, header } from './body.ts'
import {
  createLimiter,
  type Faults,
  faultResponse,
  limitResponse,
  takeFault,
  webPageResponse,
} from './faults.ts'
import {
  composeAnswer,
  messageEventsResponse,
  messageResponse,
  nativeStreamResponse,
} from './gateway/chat.ts'
import { deliver, type EmulatedResponse, errorResponse, newId } from './response.ts'
import { findRoute, type Route, strayResponse } from './route.ts'
import type { ListedEvent } from './sessions/session.ts'
import { type SessionStore, Sessions } from './sessions/sessions.ts'
import { findDoubts } from './sessions/strict.ts'

export interface EmulatorOptions {
  credentials?: WantedCredentials
  faults?: Faults
  /** Milliseconds before an answer begins, and before an agent reacts. */
  latency?: number
  /** Milliseconds between two pieces of a stream. */
  typing?: number
  /** What the model says to everything. */
  answer?: string | undefined
  sessions?: EmulatedSessions
  strict?: Strictness
}

/** What callers must show; without one any will do. */
interface WantedCredentials {
  accessToken?: string
  apiKey?: string
}

interface EmulatedSessions {
  /** The only sessions that exist; without it any does. */
  only?: readonly string[] | undefined
  /** Each session plays these events. */
  record?: readonly ListedEvent[] | undefined
  /** Keeps the sessions for other processes; without it they end with this one. */
  store?: SessionStore
}

interface Strictness {
  /** Refuse what a service may refuse. */
  refuses: boolean
  /** Called with what `--strict` would refuse. */
  onDoubt(doubt: string): void
}

/** A call to one endpoint, checked. */
interface RoutedRequest {
  params: Record<string, string>
  query: URLSearchParams
  body: unknown
  headers: Record<string, string>
}

type Handlers = Record<EndpointName, (call: RoutedRequest) => EmulatedResponse | Promise<EmulatedResponse>>

/** What each endpoint answers; an endpoint without a handler is a type error. */
function createHandlers({ sessions: given = {}, latency = 0, answer }: EmulatorOptions): Handlers {
  const sessions = new Sessions({ ...given, latency })
  const compose = ({ body, params }: RoutedRequest) =>
    composeAnswer(body as GenerateRequest, params.model ?? '', answer)
  return {
    chat(call) {
      const isStream = call.query.get('alt') === 'sse' || (call.body as { stream?: unknown }).stream === true
      return isStream ? messageEventsResponse(compose(call)) : messageResponse(compose(call))
    },
    streamChat: (call) => nativeStreamResponse(compose(call)),
    async image({ params, body }) {
      const { imageResponse } = await import('./gateway/image.ts')
      return imageResponse(body as GenerateRequest, params.model ?? '')
    },
    createSession: ({ body }) => sessions.create(body as CreateSession),
    updateSession: ({ params, body }) => sessions.update(params.session ?? '', body as UpdateSession),
    readSession: ({ params }) => sessions.describe(params.session ?? ''),
    listSessions: ({ query }) => sessions.describeAll(query),
    sendEvents: ({ params, body }) => sessions.send(params.session ?? '', body as SendEvents),
    listEvents: ({ params, query }) => sessions.list(params.session ?? '', query),
    followEvents: ({ params, headers }) =>
      sessions.follow(params.session ?? '', header(headers, 'last-event-id')),
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
export function createEmulator(options: EmulatorOptions, now = () => performance.now()): Exchange {
  const { faults: { faults, rate } = { faults: [] }, latency = 0, typing = 0 } = options
  const handlers = createHandlers(options)
  const take = rate === undefined ? () => true : createLimiter(rate, now)

  return async (request) => {
    if (latency > 0) await new Promise((resolve) => setTimeout(resolve, latency))
    const delivery = { requestId: newId('req'), delay: typing }
    const { route, methods } = findRoute(request)
    if (!route) return deliver(strayResponse(methods), delivery)
    if (!take()) return deliver(limitResponse, delivery)
    const fault = takeFault(faults, faultNames[route.name])
    if (fault === 'reset') throw new CliError('unknown', 'the emulator reset the connection')
    if (fault === 'stall') return new Promise(() => {})
    if (fault === 'html') return deliver(webPageResponse, delivery)
    if (typeof fault === 'number') return deliver(faultResponse(fault), delivery)
    const refusal = refuse(route.endpoint, request, options.credentials)
    const response = refusal ?? (await answer(route, request, { handlers, strict: options.strict }))
    const cut = () => new CliError('response', 'the emulator cut the connection', { brokeOff: true })
    return deliver(response, fault === 'cut' ? { ...delivery, cut } : delivery)
  }
}

/** The refusal of a caller who does not show the right credential. */
function refuse(
  { service }: Endpoint,
  { headers }: HttpRequest,
  { accessToken, apiKey }: WantedCredentials = {},
): EmulatedResponse | undefined {
  const bearer = /^bearer +(.+)$/i.exec(header(headers, 'authorization') ?? '')?.[1]
  const shown = service === 'gateway' ? bearer : (header(headers, 'x-api-key') ?? bearer)
  const wanted = (service === 'gateway' ? accessToken : apiKey) ?? shown
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
  { handlers, strict }: { handlers: Handlers; strict: Strictness | undefined },
): Promise<EmulatedResponse> {
  const read = endpoint.request ? await checkBody(request, endpoint.request) : { body: undefined }
  if ('refusal' in read) return read.refusal
  const { body } = read
  const doubts = endpoint.service === 'agents' && strict ? findDoubts(request, eventsIn(body)) : []
  if (strict?.refuses && doubts.length > 0) return errorResponse(400, doubts.slice(0, mostTold).join('; '))
  for (const doubt of doubts.slice(0, mostTold)) strict?.onDoubt(doubt)
  return handlers[name]({ params, query, body, headers: request.headers })
}

/** The events of a body that sends some, or makes a session with some. */
const eventsIn = (body: unknown): SendEvents['events'] => {
  const { events, initial_events: initial } = (body ?? {}) as Partial<SendEvents & CreateSession>
  return events ?? initial ?? []
}

/** The most doubts about one request in an answer or on stderr. */
const mostTold = 20
