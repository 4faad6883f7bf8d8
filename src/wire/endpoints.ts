import type * as z from './zod.ts'

/**
 * When a request may be sent again: `refused` only after an answer that says it was not
 * taken, `failed` also after a 5xx, `always` also when no answer came.
 */
export type Repeat = 'refused' | 'failed' | 'always'

export interface Endpoint {
  service: 'gateway' | 'agents'
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'
  /** `{name}` stands for a value that becomes one path segment or a part of one. */
  path: string
  repeat: Repeat
  /** What kind of answer is asked for, where it is not JSON. */
  accept?: string | undefined
  /** Checks a request's body; loaded when it is needed, for building a schema takes as long as sending a prompt. */
  request?(): Promise<z.ZodMiniType>
}

const generateRequest = async () => (await import('./model/generate-request.ts')).GenerateRequest

/** Every endpoint that parley speaks, and its emulator answers. */
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
  sendEvents: {
    service: 'agents',
    method: 'POST',
    path: '/v1/sessions/{session}/events',
    repeat: 'refused',
    request: async () => (await import('./events/send-events.ts')).SendEvents,
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
