import type { DeliveryRules } from '../delivery-state.ts'
import type * as z from './zod.ts'

export interface Endpoint extends DeliveryRules {
  service: 'gateway' | 'agents'
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'
  path: string
  accept?: string
  /**
   * Loads the schema of the request body. parley loads a schema only if a request needs it, because building
   * the schema takes about as long as sending a prompt.
   */
  request?(): Promise<z.ZodMiniType>
  /** If a response is cut, parley repeats the request and reads the new response from its start. */
  isRepeatedIfCut?: true
}

const generation = {
  service: 'gateway',
  method: 'POST',
  repeat: 'failed',
  request: async () => (await import('./gateway/generate-request.ts')).GenerateRequest(),
} as const
const get = { service: 'agents', method: 'GET', repeat: 'always', isRepeatedIfCut: true } as const
const post = { service: 'agents', method: 'POST', repeat: 'unaccepted' } as const

export const endpoints = {
  chat: { ...generation, path: '/{family}_cli/v1beta/models/{model}:generateContent' },
  streamChat: { ...generation, path: '/{family}_cli/v1beta/models/{model}:streamGenerateContent' },
  /**
   * Only `config check` uses this endpoint, which the specification does not contain. The status of the
   * response shows whether the gateway refuses the token.
   */
  readModel: {
    service: 'gateway',
    method: 'GET',
    repeat: 'always',
    path: '/{family}_cli/v1beta/models/{model}',
  },
  image: { ...generation, path: '/api/image/{family}/v1beta/models/{model}:generateContent' },
  createSession: {
    ...post,
    path: '/v1/sessions',
    isProvedByReceipt: true,
    missingReceiptText: 'the session may have been created',
    request: async () => (await import('./sessions/session-requests.ts')).CreateSessionBody,
  },
  readSession: { ...get, path: '/v1/sessions/{session}' },
  /** parley never calls this endpoint, but prints a `parley api` command that raises or removes a budget. */
  updateSession: {
    ...post,
    path: '/v1/sessions/{session}',
    request: async () => (await import('./sessions/session-requests.ts')).UpdateSessionBody,
  },
  listSessions: { ...get, path: '/v1/sessions' },
  sendEvents: {
    ...post,
    path: '/v1/sessions/{session}/events',
    isProvedByReceipt: true,
    request: async () => (await import('./sessions/send-events.ts')).SendEventsBody,
  },
  listEvents: { ...get, path: '/v1/sessions/{session}/events' },
  followEvents: { ...get, path: '/v1/sessions/{session}/events/stream', accept: 'text/event-stream' },
} satisfies Record<string, Endpoint>

export type EndpointName = keyof typeof endpoints
