import { CliError } from '../errors.ts'
import type { HttpResponse } from '../wire/exchange.ts'
import { encodeSseEvent, type SseEvent } from '../wire/sse.ts'

export interface EmulatedResponse {
  /** Default: 200. */
  status?: number
  /** Default: JSON. */
  contentType?: string
  headers?: Record<string, string>
  pieces: Iterable<string> | AsyncIterable<string>
  /** Ends a stream of events, which would otherwise wait for the next event. */
  close?(): void
}

export const toJsonResponse = (body: unknown): EmulatedResponse => ({ pieces: [JSON.stringify(body)] })

export const toEventStreamResponse = (events: SseEvent[]): EmulatedResponse => ({
  contentType: 'text/event-stream',
  pieces: events.map(encodeSseEvent),
})

export const createRandomId = (prefix: string): string =>
  `${prefix}_${crypto.randomUUID().replaceAll('-', '').slice(0, 20)}`

const errorTypes: Record<number, string> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}

export function toErrorResponse(status: number, message: string, headers?: Record<string, string>) {
  const type = errorTypes[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error')
  const requestId = createRandomId('req')
  const error = { type, message: `emulator: ${message}` }
  return {
    ...toJsonResponse({ type: 'error', error, request_id: requestId }),
    status,
    headers: { ...headers, 'request-id': requestId },
  }
}

/** With `isCut`, the body ends with an error in the middle of a piece. */
export function toHttpResponse(response: EmulatedResponse, isCut = false): HttpResponse {
  const { pieces, status = 200, contentType = 'application/json', headers, close = () => {} } = response
  // A stream is cut after 60 % of its pieces, so that the client receives a part of the answer.
  const cutAt = Array.isArray(pieces) ? Math.floor(pieces.length * 0.6) : 0

  async function* body(): AsyncGenerator<Uint8Array> {
    let at = 0
    for await (const piece of pieces) {
      const isLast = isCut && at++ === cutAt
      yield Buffer.from(isLast ? piece.slice(0, piece.length >> 1) : piece)
      if (isLast) throw new CliError('response', 'the emulator cut the connection', { isCutOff: true })
    }
  }
  const isStream = contentType === 'text/event-stream'
  return {
    status,
    statusText: '',
    headers: {
      'content-type': contentType,
      'cache-control': 'no-store',
      'request-id': createRandomId('req'),
      // Keeps proxies from buffering a stream.
      ...(isStream ? { 'x-accel-buffering': 'no' } : {}),
      ...headers,
    },
    body: body(),
    close,
  }
}
