import type { DeliveryRules } from '../delivery-state.ts'
import type * as z from './zod.ts'

export interface Endpoint extends DeliveryRules {
  service: 'gateway' | 'agents'
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'
  /** `{name}` is a placeholder for a path segment or a part of one. */
  path: string
  /** Requested content type. Default: JSON. */
  accept?: string
  /**
   * Loads the schema of the request body. Building a schema takes as long as sending a prompt, so the schema
   * is loaded only if needed.
   */
  request?(): Promise<z.ZodMiniType>
  /** If the answer is cut, parley repeats the request and calls the reader of the answer again. */
  isReadAgain?: true
}

const generation = {
  service: 'gateway',
  method: 'POST',
  repeat: 'failed',
  request: async () => (await import('./gateway/generate-request.ts')).GenerateRequest,
} as const
const reading = { service: 'agents', method: 'GET', repeat: 'always', isReadAgain: true } as const
const posting = { service: 'agents', method: 'POST', repeat: 'not-taken' } as const

/** Every endpoint that parley uses. The emulator implements the same endpoints. */
export const endpoints = {
  chat: { ...generation, path: '/{family}_cli/v1beta/models/{model}:generateContent' },
  streamChat: { ...generation, path: '/{family}_cli/v1beta/models/{model}:streamGenerateContent' },
  /**
   * The specification has no such endpoint. The status of the answer shows whether the gateway refuses the
   * token.
   */
  readModel: {
    service: 'gateway',
    method: 'GET',
    repeat: 'always',
    path: '/{family}_cli/v1beta/models/{model}',
  },
  image: { ...generation, path: '/api/image/{family}/v1beta/models/{model}:generateContent' },
  createSession: {
    ...posting,
    path: '/v1/sessions',
    isProvedByReceipt: true,
    doubt: 'the session may have been created',
    request: async () => (await import('./sessions/session-requests.ts')).CreateSessionBody,
  },
  readSession: { ...reading, path: '/v1/sessions/{session}' },
  /** The budget commands that parley prints call this endpoint. */
  updateSession: {
    ...posting,
    path: '/v1/sessions/{session}',
    request: async () => (await import('./sessions/session-requests.ts')).UpdateSessionBody,
  },
  listSessions: { ...reading, path: '/v1/sessions' },
  sendEvents: {
    ...posting,
    path: '/v1/sessions/{session}/events',
    isProvedByReceipt: true,
    request: async () => (await import('./sessions/send-events.ts')).SendEventsBody,
  },
  listEvents: { ...reading, path: '/v1/sessions/{session}/events' },
  followEvents: { ...reading, path: '/v1/sessions/{session}/events/stream', accept: 'text/event-stream' },
} satisfies Record<string, Endpoint>

export type EndpointName = keyof typeof endpoints
