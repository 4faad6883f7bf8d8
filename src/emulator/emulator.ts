import { unescape as decode } from 'node:querystring'
import { suggestSpelling } from '../argv/spelling.ts'
import { CliError } from '../errors.ts'
import { type Endpoint, type EndpointName, endpoints } from '../wire/endpoints.ts'
import type { Exchange } from '../wire/exchange.ts'
import type { GenerateRequest } from '../wire/gateway/generate-request.ts'
import { describeSchemaIssues, jsonTooDeepReason, tryParseJson } from '../wire/json/parse.ts'
import { documentedBetas } from '../wire/sessions/betas.ts'
import type { SendEventsBody } from '../wire/sessions/send-events.ts'
import type { CreateSessionBody } from '../wire/sessions/session-requests.ts'
import { getTextStart } from '../wire/text-start.ts'
import { createFaultSource } from './faults.ts'
import {
  composeEmulatedAnswer,
  createImageResponse,
  toMessageResponse,
  toMessageStreamResponse,
  toNativeResponse,
} from './gateway.ts'
import { type EmulatedResponse, toErrorResponse, toHttpResponse, toJsonResponse } from './response.ts'
import { EmulatedSessions, type EmulatedSessionsOptions } from './sessions/sessions.ts'

export interface EmulatorOptions extends EmulatedSessionsOptions {
  /** If omitted, the emulator accepts any credential. */
  credentials?: { accessToken?: string; apiKey?: string }
  faults?: readonly string[]
  /** If omitted, the emulator composes an answer from the prompt. */
  answer?: string | undefined
}

type Route = NonNullable<ReturnType<typeof findRoute>>

interface Call extends Route {
  /** The fields of the body depend on the endpoint. */
  body: GenerateRequest & SendEventsBody & CreateSessionBody
  headers: Record<string, string>
}

type Handlers = Record<EndpointName, (call: Call) => EmulatedResponse | Promise<EmulatedResponse>>

function createHandlers({ answer, ...options }: EmulatorOptions): Handlers {
  const sessions = new EmulatedSessions(options)
  const generate = (call: Call, isStream: boolean, isNative = false): EmulatedResponse => {
    const composed = composeEmulatedAnswer(call.body, call.model, answer)
    if (isNative || composed.isPart) return toNativeResponse(composed, isStream)
    return isStream ? toMessageStreamResponse(composed) : toMessageResponse(composed)
  }
  return {
    chat: (call) => generate(call, call.query.get('alt') === 'sse' || call.body.stream === true),
    streamChat: (call) => generate(call, true, true),
    readModel: ({ model }) => toJsonResponse({ name: `models/${model}` }),
    image: ({ model, body }) => createImageResponse(body, model),
    createSession: ({ body }) => sessions.create(body),
    readSession: ({ session }) => sessions.describe(session),
    updateSession: ({ session, body }) => sessions.update(session, body),
    listSessions: ({ query }) => sessions.describeAll(query),
    sendEvents: ({ session, body }) => sessions.send(session, body),
    listEvents: ({ session, query }) => sessions.list(session, query),
    followEvents: ({ session }) => sessions.follow(session),
  }
}

/**
 * Emulates both services as src/wire/README.md describes them. `now` returns monotonic milliseconds. Throws a
 * usage error for an invalid fault.
 */
export function createEmulator(options: EmulatorOptions, now = () => performance.now()): Exchange {
  const { faults = [], latencyMs = 0 } = options
  const handlers = createHandlers(options)
  const takeFault = createFaultSource(faults, now)

  return async ({ method, url, headers: given, body: bytes }) => {
    if (latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, latencyMs))
    const route = findRoute(method, url)
    if (!route) return toHttpResponse(toErrorResponse(404, 'no endpoint has this path and method'))
    const fault = takeFault(route.name)
    if (fault === 'reset') throw new CliError('unknown', 'the emulator reset the connection')
    if (fault === 'stall') return new Promise(() => {})
    if (typeof fault === 'object') return toHttpResponse(fault)
    const lower = Object.entries(given).map(([name, value]) => [name.toLowerCase(), value])
    const headers: Record<string, string> = Object.fromEntries(lower)
    const value = bytes && tryParseJson(Buffer.from(bytes).toString())
    const call = { ...route, headers, body: value as Call['body'] }
    const refusal =
      refuseCredential(call, options.credentials) ?? (await refuseInvalid(call, options.isStrict))
    return toHttpResponse(refusal ?? (await handlers[route.name](call)), fault === 'cut')
  }
}

const routes = (Object.entries(endpoints) as [EndpointName, Endpoint][]).map(([name, endpoint]) => ({
  name,
  endpoint,
  pattern: new RegExp(`^${endpoint.path.replaceAll(/\{(\w+)\}/g, '(?<$1>(?:%[\\da-fA-F]{2}|[^/%])+?)')}$`),
}))

function findRoute(method: string, url: string) {
  const { pathname, searchParams: query } = new URL(url)
  // Some clients percent-encode the colon in paths such as `models/NAME:ACTION`.
  const path = pathname.replaceAll(/%3a/gi, ':')
  for (const { name, endpoint, pattern } of routes) {
    const match = endpoint.method === method ? pattern.exec(path) : null
    const { model = '', session = '' } = match?.groups ?? {}
    if (match) return { name, endpoint, model: decode(model), session: decode(session), query }
  }
  return undefined
}

function refuseCredential({ endpoint, headers }: Call, credentials: EmulatorOptions['credentials'] = {}) {
  const { service } = endpoint
  const bearer = /^bearer +(.+)$/i.exec(headers.authorization ?? '')?.[1]
  const shown = service === 'gateway' ? bearer : (headers['x-api-key'] ?? bearer)
  const wanted = (service === 'gateway' ? credentials.accessToken : credentials.apiKey) ?? shown
  if (shown && shown === wanted) return undefined
  const place =
    service === 'gateway'
      ? "Authorization must be 'Bearer ACCESS_TOKEN'"
      : "x-api-key must be the key, or Authorization must be 'Bearer KEY'"
  return toErrorResponse(401, `the header ${place}`)
}

const maxMessageLength = 4000

async function refuseInvalid({ endpoint, headers, body }: Call, isStrict = false) {
  const schema = await endpoint.request?.()
  const invalid = schema ? listProblems(schema, body, headers['content-type']) : []
  const problems = [...invalid, ...(isStrict ? listUndocumentedBetas(headers) : [])]
  return problems.length === 0
    ? undefined
    : toErrorResponse(400, getTextStart(problems.join('; '), maxMessageLength))
}

type Schema = Awaited<ReturnType<NonNullable<Endpoint['request']>>>

function listProblems(schema: Schema, value: unknown, type = ''): string[] {
  if (!/^application\/json\s*(;|$)/i.test(type)) return ['the content type must be application/json']
  if (value === undefined) return [`the body is not JSON, or is ${jsonTooDeepReason}`]
  const { error } = schema.safeParse(value)
  return error ? describeSchemaIssues(error) : []
}

/** The name of the beta header may begin with any vendor name (src/wire/README.md: session events, 9.3). */
function listUndocumentedBetas(headers: Record<string, string>): string[] {
  const values = Object.entries(headers).flatMap(([name, value]) => (name.endsWith('-beta') ? value : []))
  const ids = values.flatMap((value) => value.trim().split(/\s*,\s*/))
  return ids
    .filter((id) => id !== '' && !documentedBetas.includes(id))
    .map((id) => `undocumented beta '${id.slice(0, 100)}'${suggestSpelling(id, documentedBetas)}`)
}
