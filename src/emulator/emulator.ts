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
  nativeStreamResponse,
} from './gateway.ts'
import { deliver, type EmulatedResponse, errorResponse } from './response.ts'
import { Sessions, type SessionsOptions } from './sessions/sessions.ts'

export interface EmulatorOptions {
  /** What callers must show; without one any will do. */
  credentials?: { accessToken?: string; apiKey?: string }
  faults?: Faults
  /** Milliseconds before an answer begins, and before an agent reacts. */
  latency?: number
  /** What the model says to everything. */
  answer?: string | undefined
  sessions?: SessionsOptions
  /** Whether to refuse what a service may refuse, and what is called with that if not. */
  strict?: { refuses: boolean; onDoubt(doubt: string): void }
}

/** A call to one endpoint, checked. */
interface RoutedRequest {
  model: string
  session: string
  query: URLSearchParams
  /** As the endpoint's schema wants it. */
  body: GenerateRequest & SendEvents & CreateSession
  headers: Record<string, string>
}

type Handlers = Record<EndpointName, (call: RoutedRequest) => EmulatedResponse | Promise<EmulatedResponse>>

/** What each endpoint answers; an endpoint without a handler is a type error. */
function createHandlers({ sessions: given = {}, latency = 0, answer }: EmulatorOptions): Handlers {
  const sessions = new Sessions(given, latency)
  const compose = ({ body, model }: RoutedRequest) => composeAnswer(body, model, answer)
  return {
    chat(call) {
      const isStream = call.query.get('alt') === 'sse' || call.body.stream === true
      return isStream ? messageEventsResponse(compose(call)) : messageResponse(compose(call))
    },
    streamChat: (call) => nativeStreamResponse(compose(call)),
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
  const { faults: { faults, rate } = parseFaults([], []), latency = 0 } = options
  const handlers = createHandlers(options)
  const take = rate === undefined ? () => true : createLimiter(rate, now)

  return async ({ method, url, headers: given, body }) => {
    if (latency > 0) await new Promise((resolve) => setTimeout(resolve, latency))
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
    const refusal = refuse(route.endpoint, headers, options.credentials)
    const response = refusal ?? (await answer({ ...route, headers, bytes: body }, handlers, options.strict))
    return deliver(response, fault === 'cut')
  }
}

/** The endpoint that a request goes to, and what its address says. */
interface Route {
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

function findRoute(method: string, url: string): Route | undefined {
  const { pathname, searchParams: query } = new URL(url)
  // Some clients encode a colon.
  const path = pathname.replaceAll(/%3a/gi, ':')
  for (const { name, endpoint, pattern } of all) {
    const match = endpoint.method === method ? pattern.exec(path) : null
    const params = Object.entries(match?.groups ?? {}).map(([key, value]) => [key, decode(value)])
    if (match) return { name, endpoint, params: Object.fromEntries(params), query }
  }
  return undefined
}

function patternOf(path: string): RegExp {
  const text = path.replace(/\{(\w+)\}|[.*+?^$()[\]\\|]/g, (found, name) =>
    name ? `(?<${name}>(?:%[\\da-fA-F]{2}|[^/%])+?)` : `\\${found}`,
  )
  return new RegExp(`^${text}$`)
}

/** The refusal of a caller who does not show the right credential. */
function refuse(
  { service }: Endpoint,
  headers: Record<string, string>,
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

interface Call extends Route {
  headers: Record<string, string>
  bytes: Uint8Array | undefined
}

async function answer(
  { name, endpoint, params, query, headers, bytes = new Uint8Array() }: Call,
  handlers: Handlers,
  strict: EmulatorOptions['strict'],
): Promise<EmulatedResponse> {
  const schema = await endpoint.request?.()
  const value = schema && tryParseJson(Buffer.from(bytes).toString())
  const problems = schema ? findProblems(schema, value, headers['content-type']) : []
  if (problems.length > 0) return errorResponse(400, tellProblems(problems))
  const body = value as RoutedRequest['body']
  const isStrict = endpoint.service === 'agents' && strict !== undefined
  const doubts = isStrict ? [...doubtsAboutHeaders(headers), ...doubtsAboutEvents(body)] : []
  if (strict?.refuses && doubts.length > 0) return errorResponse(400, tellProblems(doubts))
  for (const doubt of doubts.slice(0, mostTold)) strict?.onDoubt(doubt)
  const { model = '', session = '' } = params
  return handlers[name]({ model, session, query, body, headers })
}

type Schema = Awaited<ReturnType<NonNullable<Endpoint['request']>>>

/** What is wrong with a request's JSON, which has to be as its endpoint's schema wants it. */
function findProblems(schema: Schema, value: unknown, type = ''): string[] {
  if (!/^application\/json\s*(;|$)/i.test(type)) return ['the content type must be application/json']
  if (value === undefined) return [`the body is not JSON, or is ${tooDeep}`]
  const { error } = schema.safeParse(value)
  return error ? describeIssues(error) : []
}

/** The most problems of a request in an answer or on stderr, and the most characters of each. */
const [mostTold, longestTold] = [20, 300]

function tellProblems(problems: string[]): string {
  const told = problems.slice(0, mostTold).map((problem) => problem.slice(0, longestTold))
  const rest = problems.length - told.length
  return told.join('; ') + (rest > 0 ? `; and ${rest} more` : '')
}

/**
 * What a service may refuse about the headers of a request to a session although the specification does not say so (session
 * events, 9.2 and 9.3). The vendor word in their names may be any.
 */
function doubtsAboutHeaders(headers: Record<string, string>): string[] {
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
const doubtsAboutEvents = (body: Partial<SendEvents & CreateSession> = {}): string[] =>
  (body.events ?? body.initial_events ?? []).flatMap((event, index) =>
    event.type === 'user.message' && event.content.length === 0
      ? [`events[${index}].content: must not be empty`]
      : [],
  )
