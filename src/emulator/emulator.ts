import { unescape as decode } from 'node:querystring'
import { didYouMean } from '../argv/spelling.ts'
import { CliError } from '../errors.ts'
import { type Endpoint, type EndpointName, endpoints } from '../wire/endpoints.ts'
import type { Exchange } from '../wire/exchange.ts'
import type { GenerateRequest } from '../wire/gateway/generate-request.ts'
import { describeIssues, tooDeep, tryParseJson } from '../wire/json/parse.ts'
import { betas } from '../wire/sessions/betas.ts'
import type { SendEvents } from '../wire/sessions/send-events.ts'
import type { CreateSession } from '../wire/sessions/session-requests.ts'
import { takeStart } from '../wire/text-start.ts'
import {
  createLimiter,
  type Faults,
  faultResponse,
  parseFaults,
  takeFault,
  webPageResponse,
} from './faults.ts'
import {
  composeAnswer,
  imageResponse,
  messageEventsResponse,
  messageResponse,
  nativeResponse,
  nativeStreamResponse,
} from './gateway.ts'
import { deliver, type EmulatedResponse, errorResponse } from './response.ts'
import { Sessions, type SessionsOptions } from './sessions/sessions.ts'

export interface EmulatorOptions {
  /** What callers must show; without one any will do. */
  credentials?: { accessToken?: string; apiKey?: string }
  faults?: Faults
  /** Milliseconds before an answer begins, and before an agent reacts. */
  latencyMs?: number
  /** What the model says to everything. */
  answer?: string | undefined
  sessions?: SessionsOptions
  /** Whether to refuse what a service may refuse, and what is called with that if not. */
  strict?: { refuses: boolean; onDoubt(doubt: string): void }
}

/** The endpoint that a request goes to, and what its address says. */
interface Route {
  name: EndpointName
  endpoint: Endpoint
  model: string
  session: string
  query: URLSearchParams
}

/** A call to one endpoint, checked. */
interface Call extends Route {
  /** As the endpoint's schema wants it. */
  body: GenerateRequest & SendEvents & CreateSession
  headers: Record<string, string>
}

type Handlers = Record<EndpointName, (call: Call) => EmulatedResponse | Promise<EmulatedResponse>>

/** What each endpoint answers; an endpoint without a handler is a type error. */
function createHandlers({ sessions: given = {}, latencyMs = 0, answer }: EmulatorOptions): Handlers {
  const sessions = new Sessions(given, latencyMs)
  const compose = ({ body, model }: Call) => composeAnswer(body, model, answer)
  const wrongToken = () => errorResponse(400, 'continuationToken continues no answer to this prompt')
  return {
    chat(call) {
      const isStream = call.query.get('alt') === 'sse' || call.body.stream === true
      const composed = compose(call)
      if (composed.hasWrongToken) return wrongToken()
      if (composed.isPart) return isStream ? nativeStreamResponse(composed) : nativeResponse(composed)
      return isStream ? messageEventsResponse(composed) : messageResponse(composed)
    },
    streamChat(call) {
      const composed = compose(call)
      return composed.hasWrongToken ? wrongToken() : nativeStreamResponse(composed)
    },
    image: ({ model, body }) => imageResponse(body, model),
    createSession: ({ body }) => sessions.create(body),
    readSession: ({ session }) => sessions.describe(session),
    listSessions: ({ query }) => sessions.describeAll(query),
    sendEvents: ({ session, body }) => sessions.send(session, body),
    listEvents: ({ session, query }) => sessions.list(session, query),
    followEvents: ({ session, headers }) => sessions.follow(session, headers['last-event-id']),
  }
}

/** The name that `--fault` knows an endpoint by. */
const faultNames: Record<EndpointName, string> = {
  chat: 'chat',
  streamChat: 'chat',
  image: 'image',
  createSession: 'session',
  readSession: 'session',
  listSessions: 'session',
  sendEvents: 'events',
  listEvents: 'list',
  followEvents: 'follow',
}

export const faultEndpoints = [...new Set(Object.values(faultNames))]

/** Emulates both services: checks what the specification says, answers in the documented shapes. */
export function createEmulator(options: EmulatorOptions, now = () => performance.now()): Exchange {
  const { faults: { faults, rate } = parseFaults([], []), latencyMs = 0 } = options
  const handlers = createHandlers(options)
  const take = rate === Infinity ? () => true : createLimiter(rate, now)

  return async ({ method, url, headers: given, body: bytes }) => {
    if (latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, latencyMs))
    const route = findRoute(method, url)
    if (!route) return deliver(errorResponse(404, 'no endpoint has this path and method'))
    if (!take()) return deliver(faultResponse(429, 'too many requests a second'))
    const fault = takeFault(faults, faultNames[route.name])
    if (fault === 'reset') throw new CliError('unknown', 'the emulator reset the connection')
    if (fault === 'stall') return new Promise(() => {})
    if (fault === 'html') return deliver(webPageResponse)
    if (typeof fault === 'number') return deliver(faultResponse(fault))
    const lower = Object.entries(given).map(([name, value]) => [name.toLowerCase(), value])
    const headers: Record<string, string> = Object.fromEntries(lower)
    const value = bytes && tryParseJson(Buffer.from(bytes).toString())
    const call = { ...route, headers, body: value as Call['body'] }
    const refusal = refuse(call, options.credentials) ?? (await findProblems(call, options.strict))
    return deliver(refusal ?? (await handlers[route.name](call)), fault === 'cut')
  }
}

const all = (Object.entries(endpoints) as [EndpointName, Endpoint][]).map(([name, endpoint]) => ({
  name,
  endpoint,
  pattern: new RegExp(`^${endpoint.path.replaceAll(/\{(\w+)\}/g, '(?<$1>(?:%[\\da-fA-F]{2}|[^/%])+?)')}$`),
}))

function findRoute(method: string, url: string): Route | undefined {
  const { pathname, searchParams: query } = new URL(url)
  // Some clients encode a colon.
  const path = pathname.replaceAll(/%3a/gi, ':')
  for (const { name, endpoint, pattern } of all) {
    const match = endpoint.method === method ? pattern.exec(path) : null
    const { model = '', session = '' } = match?.groups ?? {}
    if (match) return { name, endpoint, model: decode(model), session: decode(session), query }
  }
  return undefined
}

/** The refusal of a caller who does not show the right credential. */
function refuse(
  { endpoint: { service }, headers }: Call,
  { accessToken, apiKey }: EmulatorOptions['credentials'] = {},
): EmulatedResponse | undefined {
  const bearer = /^bearer +(.+)$/i.exec(headers.authorization ?? '')?.[1]
  const shown = service === 'gateway' ? bearer : (headers['x-api-key'] ?? bearer)
  const wanted = (service === 'gateway' ? accessToken : apiKey) ?? shown
  if (shown && shown === wanted) return undefined
  const place =
    service === 'gateway'
      ? 'Authorization must be Bearer and the access token'
      : 'x-api-key must be the key, or Authorization Bearer and the key'
  return errorResponse(401, `the header ${place}`)
}

/** The most doubts about a request that are told, and the longest message of a refusal in characters. */
const [maxReportedDoubts, maxMessageLength] = [20, 4000]

/** The refusal of a request whose JSON is not as its endpoint's schema wants it, or about which a service may have doubts. */
async function findProblems(
  { endpoint, headers, body }: Call,
  strict: EmulatorOptions['strict'],
): Promise<EmulatedResponse | undefined> {
  const schema = await endpoint.request?.()
  const problems = schema ? problemsOf(schema, body, headers['content-type']) : []
  const hasDoubts = endpoint.service === 'agents' && strict !== undefined && problems.length === 0
  const doubts = hasDoubts ? [...findHeaderDoubts(headers), ...findEventDoubts(body)] : []
  const refused = strict?.refuses ? [...problems, ...doubts] : problems
  if (refused.length > 0) return errorResponse(400, takeStart(refused.join('; '), maxMessageLength))
  for (const doubt of doubts.slice(0, maxReportedDoubts)) strict?.onDoubt(doubt)
  return undefined
}

type Schema = Awaited<ReturnType<NonNullable<Endpoint['request']>>>

function problemsOf(schema: Schema, value: unknown, type = ''): string[] {
  if (!/^application\/json\s*(;|$)/i.test(type)) return ['the content type must be application/json']
  if (value === undefined) return [`the body is not JSON, or is ${tooDeep}`]
  const { error } = schema.safeParse(value)
  return error ? describeIssues(error) : []
}

/**
 * What a service may refuse about the headers of a request to a session although the specification does not say so (session
 * events, 9.2 and 9.3). The vendor word in their names may be any.
 */
function findHeaderDoubts(headers: Record<string, string>): string[] {
  const all = Object.entries(headers).map(([name, value]) => [name, value.trim()] as const)
  const hasVersion = all.some(([name, value]) => name.endsWith('-version') && value !== '')
  const ids = all.flatMap(([name, value]) => (name.endsWith('-beta') ? value.split(/\s*,\s*/) : []))
  const unknown = ids.filter((id) => id !== '' && !betas.includes(id))
  return [
    ...(hasVersion ? [] : ['there is no version header']),
    ...unknown.map((id) => `there is no documented beta '${id.slice(0, 100)}'${didYouMean(id, betas)}`),
  ]
}

/** The same for a body that sends events, or makes a session with some (session events, 2.2). */
const findEventDoubts = (body: Partial<SendEvents & CreateSession> = {}): string[] =>
  (body.events ?? body.initial_events ?? []).flatMap((event, index) =>
    event.type === 'user.message' && event.content.length === 0
      ? [`events[${index}].content: must not be empty`]
      : [],
  )
