import type { DeliveryRules } from '../delivery-state.ts'
import type * as z from './zod.ts'

export interface Endpoint extends DeliveryRules {
  service: 'gateway' | 'agents'
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'
  /** `{name}` is replaced by a value, as one segment of the path or a part of one. */
  path: string
  /** The content type to ask for, if it is not JSON. */
  accept?: string
  /** Checks a request's body. Loaded when it is needed: to build a schema takes as long as to send a prompt. */
  request?(): Promise<z.ZodMiniType>
}

const generation = {
  service: 'gateway',
  method: 'POST',
  repeat: 'failed',
  request: async () => (await import('./gateway/generate-request.ts')).GenerateRequest,
} as const
const reading = { service: 'agents', method: 'GET', repeat: 'always' } as const
const posting = { service: 'agents', method: 'POST', repeat: 'not-taken' } as const

/** Every endpoint that parley uses, and its emulator answers. */
export const endpoints = {
  chat: { ...generation, path: '/{family}_cli/v1beta/models/{model}:generateContent' },
  streamChat: { ...generation, path: '/{family}_cli/v1beta/models/{model}:streamGenerateContent' },
  image: { ...generation, path: '/api/image/{family}/v1beta/models/{model}:generateContent' },
  createSession: {
    ...posting,
    path: '/v1/sessions',
    request: async () => (await import('./sessions/session-requests.ts')).CreateSession,
  },
  readSession: { ...reading, path: '/v1/sessions/{session}' },
  listSessions: { ...reading, path: '/v1/sessions' },
  sendEvents: {
    ...posting,
    path: '/v1/sessions/{session}/events',
    isProvedByReceipt: true,
    request: async () => (await import('./sessions/send-events.ts')).SendEvents,
  },
  listEvents: { ...reading, path: '/v1/sessions/{session}/events' },
  followEvents: { ...reading, path: '/v1/sessions/{session}/events/stream', accept: 'text/event-stream' },
} satisfies Record<string, Endpoint>

export type EndpointName = keyof typeof endpoints
