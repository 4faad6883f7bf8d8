import type { DeliveryRules } from '../delivery-state.ts'
import type * as z from './zod.ts'

export interface Endpoint extends DeliveryRules {
  service: 'gateway' | 'agents'
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'
  /** `{name}` is a placeholder for a path segment or for a part of a segment. */
  path: string
  /** Default: JSON. */
  accept?: string
  /** Building a schema takes as long as sending a prompt, so parley loads the schema only if needed. */
  request?(): Promise<z.ZodMiniType>
  /** parley reads the new response from its start. */
  isRepeatedIfCut?: true
}

const generation = {
  service: 'gateway',
  method: 'POST',
  repeat: 'failed',
  request: async () => (await import('./gateway/generate-request.ts')).GenerateRequest,
} as const
const get = { service: 'agents', method: 'GET', repeat: 'always', isRepeatedIfCut: true } as const
const post = { service: 'agents', method: 'POST', repeat: 'unaccepted' } as const

export const endpoints = {
  chat: { ...generation, path: '/{family}_cli/v1beta/models/{model}:generateContent' },
  streamChat: { ...generation, path: '/{family}_cli/v1beta/models/{model}:streamGenerateContent' },
  /**
   * For `config check`. The specification has no such endpoint, but the status of the response shows whether
   * the gateway refuses the token.
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
  /** parley only prints `parley api` commands for this endpoint, to raise or remove a budget. */
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
