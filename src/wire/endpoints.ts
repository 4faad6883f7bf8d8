import type { Stakes } from '../fate.ts'
import type * as z from './zod.ts'

export interface Endpoint extends Stakes {
  service: 'gateway' | 'agents'
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'
  /** `{name}` is replaced by a value, as one segment of the path or a part of one. */
  path: string
  /** The content type to ask for, if it is not JSON. */
  accept?: string
  /** Checks a request's body. Loaded when it is needed: to build a schema takes as long as to send a prompt. */
  request?(): Promise<z.ZodMiniType>
}

const generateRequest = async () => (await import('./gateway/generate-request.ts')).GenerateRequest

/** Every endpoint that parley uses, and its emulator answers. */
export const endpoints = {
  chat: {
    service: 'gateway',
    method: 'POST',
    path: '/{family}_cli/v1beta/models/{model}:generateContent',
    repeat: 'failed',
    request: generateRequest,
  },
  streamChat: {
    service: 'gateway',
    method: 'POST',
    path: '/{family}_cli/v1beta/models/{model}:streamGenerateContent',
    repeat: 'failed',
    request: generateRequest,
  },
  image: {
    service: 'gateway',
    method: 'POST',
    path: '/api/image/{family}/v1beta/models/{model}:generateContent',
    repeat: 'failed',
    request: generateRequest,
  },
  createSession: {
    service: 'agents',
    method: 'POST',
    path: '/v1/sessions',
    repeat: 'not-taken',
    request: async () => (await import('./sessions/session-requests.ts')).CreateSession,
  },
  updateSession: {
    service: 'agents',
    method: 'POST',
    path: '/v1/sessions/{session}',
    repeat: 'not-taken',
    request: async () => (await import('./sessions/session-requests.ts')).UpdateSession,
  },
  readSession: {
    service: 'agents',
    method: 'GET',
    path: '/v1/sessions/{session}',
    repeat: 'always',
  },
  listSessions: {
    service: 'agents',
    method: 'GET',
    path: '/v1/sessions',
    repeat: 'always',
  },
  sendEvents: {
    service: 'agents',
    method: 'POST',
    path: '/v1/sessions/{session}/events',
    repeat: 'not-taken',
    isProvedByReceipt: true,
    request: async () => (await import('./sessions/send-events.ts')).SendEvents,
  },
  listEvents: {
    service: 'agents',
    method: 'GET',
    path: '/v1/sessions/{session}/events',
    repeat: 'always',
  },
  followEvents: {
    service: 'agents',
    method: 'GET',
    path: '/v1/sessions/{session}/events/stream',
    repeat: 'always',
    accept: 'text/event-stream',
  },
} satisfies Record<string, Endpoint>

export type EndpointName = keyof typeof endpoints
