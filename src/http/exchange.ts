import type { Dispatcher } from 'undici'
import type { Crowd } from '../crowd.ts'
import { CliError } from '../errors.ts'
import type { Fate } from '../fate.ts'
import type { Timers } from '../timers.ts'
import type { Exchange, HttpRequest, HttpResponse } from '../wire/exchange.ts'
import { type Connection, type Connections, close } from './connections.ts'
import { errorOf } from './socket.ts'
import { createTimeLimits } from './time-limits.ts'

export interface ExchangeOptions {
  connections: Connections
  /** Milliseconds: the longest wait for the response's head, and the longest silence after it; 0 for none. */
  timeout: number
  /** By the forward clock; Infinity for none. */
  deadline: number
  /** For each open connection a function that closes it: whoever ends the run calls them all. */
  open: Crowd<() => void>
  timers: Timers
}

/** The exchange over the network: it is always known how far a request got. */
export function createHttpExchange(options: ExchangeOptions): Exchange {
  return (request, onSent) =>
    new Promise((resolve, reject) => attempt(request, options, { onSent, resolve, reject }))
}

/** What an attempt reports while it goes on. */
interface Reports {
  onSent: (() => void) | undefined
  resolve(response: HttpResponse): void
  reject(error: CliError): void
}

function attempt(
  request: HttpRequest,
  { connections, timeout, deadline, open, timers }: ExchangeOptions,
  { onSent, resolve, reject }: Reports,
): void {
  const url = new URL(request.url)
  let reached: Fate = 'not-sent'
  const limits = createTimeLimits({
    timeout,
    deadline,
    timers,
    onEnd: (why, isDeadline) =>
      fail(failure(reached, url, why).with({ isPermanent: isDeadline, deadline: isDeadline || undefined })),
  })
  const queue = createChunkQueue({
    pause(isPaused) {
      connection.pause(isPaused)
      limits.pause(isPaused)
    },
    leave: () => finish(),
  })

  function finish(isWhole = false): void {
    open.delete(finish)
    request.signal?.removeEventListener('abort', giveUp)
    limits.end()
    if (isWhole) connection.release()
    else connection.close()
    queue.close()
  }

  function fail(error: Error): void {
    const known = error instanceof CliError ? error : explainFailure(error, reached, url, connection)
    // Before `finish`: when the connection closes, undici fails the request once more, in words of its own.
    if (reached === 'answered') queue.close(known)
    else reject(known)
    finish()
  }

  const giveUp = () => fail(failure(reached, url, 'it was given up').with({ isPermanent: true }))

  open.add(finish)
  const connection = dispatch(request, {
    url,
    connections,
    onError: fail,
    onTaken: limits.refresh,
    handler: {
      onRequestStart() {
        reached = 'sent'
        onSent?.()
        limits.start()
      },
      onResponseStart(_, status, headers, statusText = '') {
        if (status < 200) return
        reached = 'answered'
        limits.refresh()
        resolve({ status, statusText, headers: flatten(headers), body: queue, close: () => finish() })
      },
      onResponseData(_, chunk) {
        limits.refresh()
        queue.push(chunk)
      },
      onResponseEnd() {
        // When no length is given, undici takes a reset for the end of the body.
        const error = connection.errored()
        if (error) return fail(error)
        finish(true)
      },
      onResponseError: (_, error) => fail(error),
    },
  })
  request.signal?.addEventListener('abort', giveUp)
  if (request.signal?.aborted) giveUp()
}

function flatten(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (typeof value !== 'string') headers[name] = value?.join(', ') ?? ''
  }
  return headers as Record<string, string>
}

/** A request on a connection that no other request uses. */
interface Dispatched {
  /** Stops reading, or goes on. */
  pause(isPaused: boolean): void
  /** The answer is whole: the connection is free. */
  release(): void
  /** Closes the connection, or stops opening it: the process does not wait for it. */
  close(): void
  /** The connection's own error. */
  errored(): Error | null | undefined
  /** Bytes that came since the request was sent. */
  received(): number
}

interface DispatchOptions {
  /** The request's. */
  url: URL
  connections: Connections
  handler: Dispatcher.DispatchHandler
  /** Called when there is no connection, or it did not take the request. */
  onError(error: Error): void
  /** The connection has taken more of the request's body. */
  onTaken(): void
}

/** Sends a request over a connection; the handler gets the response. */
function dispatch(
  request: HttpRequest,
  { url, connections, handler, onError, onTaken }: DispatchOptions,
): Dispatched {
  let opening: AbortController | undefined
  let isClosed = false
  let connection: Connection | undefined
  let bytesBefore = 0

  async function send(): Promise<void> {
    const taken = await connections.take(url, () => {
      opening = new AbortController()
      return opening.signal
    })
    if (isClosed) return close(taken)
    connection = taken
    bytesBefore = taken.socket.bytesRead
    const isStale = taken.isUsed
    const expecting = expectingAnswer(handler, taken)
    const options = optionsOf(request, url, onTaken)
    taken.client.dispatch(options, isStale ? replacing(expecting, again) : expecting)
  }

  const again = () => void send().catch(onError)

  send().catch(onError)
  return {
    pause: (isPaused) => connection?.pause(isPaused),
    release() {
      // From now on it may be another request's.
      if (connection) connections.giveBack(url, connection)
      connection = undefined
    },
    close() {
      isClosed = true
      opening?.abort()
      if (connection) close(connection)
    },
    errored: () => connection && errorOf(connection.socket),
    received: () => (connection?.socket.bytesRead ?? 0) - bytesBefore,
  }
}

/** What an idle connection brings is not a response: undici has to see it as it is. */
const expectingAnswer = (
  handler: Dispatcher.DispatchHandler,
  { expectAnswer }: Connection,
): Dispatcher.DispatchHandler => ({
  ...handler,
  onRequestStart(controller, context) {
    expectAnswer()
    handler.onRequestStart?.(controller, context)
  },
})

/** A handler that takes another connection if the server closed this one before anything was sent. */
function replacing(handler: Dispatcher.DispatchHandler, again: () => void): Dispatcher.DispatchHandler {
  let isSent = false
  return {
    ...handler,
    onRequestStart(controller, context) {
      isSent = true
      handler.onRequestStart?.(controller, context)
    },
    onResponseError(controller, error) {
      if (isSent) handler.onResponseError?.(controller, error)
      else again()
    },
  }
}

function optionsOf({ method, headers, body }: HttpRequest, url: URL, onTaken: () => void) {
  const isLong = body !== undefined && body.length > longestPiece
  return {
    origin: url.origin,
    path: url.pathname + url.search,
    method: method as 'POST',
    headers: isLong ? { ...headers, 'content-length': `${body.length}` } : headers,
    // undici's types do not know that it takes what can be iterated.
    body: isLong ? (inPieces(body, onTaken) as unknown as Uint8Array) : (body ?? null),
  }
}

/** Bytes. */
const longestPiece = 64 * 1024

/** The pieces of a body, each of which is asked for when those before it were taken: of a whole one nothing would be told. */
function* inPieces(body: Uint8Array, onTaken: () => void): Generator<Uint8Array> {
  for (let start = 0; start < body.length; start += longestPiece) {
    if (start > 0) onTaken()
    yield body.subarray(start, start + longestPiece)
  }
}

/** Names a failure by how far the request got, never by its error code: a reset happens at every stage. */
function failure(reached: Fate, url: URL, what: string): CliError {
  if (reached === 'not-sent') return new CliError('not-sent', `${url.host}: ${what}`)
  if (reached === 'sent') return new CliError('unknown', `${url.host}: ${what}`)
  return new CliError('response', `the answer broke off: ${what}`, { brokeOff: true })
}

/** Names what undici reports; the connection's own error counts more. */
function explainFailure(
  reported: Error,
  reached: Fate,
  url: URL,
  connection: Pick<Dispatched, 'errored' | 'received'>,
): CliError {
  const error: NodeJS.ErrnoException & { data?: unknown } = connection.errored() ?? reported
  const { code, name, message } = error
  if (isTlsAlert(error.data)) return failure(reached, url, `the server expects TLS ${hint}`)
  // undici asks its parser how a response ends that the connection's end cut; a reset can come too late to be named.
  if (name === 'HTTPParserError' && message.includes('EOF'))
    return failure(reached, url, 'the connection was closed')
  const violation =
    name === 'HTTPParserError' ? 'malformed' : (violations.get(code ?? '') ?? violations.get(message))
  if (violation && reached !== 'not-sent') {
    return new CliError('response', `the answer of ${url.host} is not proper HTTP/1.1: ${violation}`)
  }
  if (message === 'other side closed') {
    // A server that expects TLS often closes without a response.
    const isMute = connection.received() === 0 && url.protocol === 'http:'
    return failure(reached, url, `the connection was closed${isMute ? ` without an answer ${hint}` : ''}`)
  }
  if (code === 'ECONNRESET' || code === 'EPIPE') return failure(reached, url, 'the connection was reset')
  return failure(reached, url, code ?? name)
}

const hint = '(is the address https:// ?)'

/** Whether the bytes that undici could not read as HTTP begin a TLS alert. */
const isTlsAlert = (data: unknown) => typeof data === 'string' && data.charCodeAt(0) === 0x15

/** What is wrong with a response that is not proper HTTP, by undici's codes and messages. */
const violations = new Map([
  ['UND_ERR_HEADERS_OVERFLOW', 'its headers are too long'],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'the body does not match Content-Length'],
  ['bad upgrade', 'unexpected change of protocol'],
  ['bad response', 'unexpected extra response'],
])

/**
 * How much may wait for a slow reader before the socket is paused, and how little is left when it goes on. Bytes. What
 * waits longer than two collections of V8's young generation takes up memory until all of the heap is collected: with
 * twice as much, a long stream took up 30 MiB more.
 */
const high = 256 * 1024
const low = 64 * 1024

/** A body between a socket that must not wait and a reader that may be slow. */
interface ChunkQueue extends AsyncIterable<Uint8Array> {
  push(chunk: Uint8Array): void
  /** Ends the body, with an error if one is given. What was pushed before is still read. */
  close(error?: Error): void
}

interface Flow {
  /** Called with `true` when too much waits, and with `false` when the reader has caught up. */
  pause(isPaused: boolean): void
  /** Called once, when the reader leaves before the end. */
  leave(): void
}

function createChunkQueue(flow: Flow): ChunkQueue {
  let arrived: Uint8Array[] = []
  /** Those that arrived before them, the first one last: to take the first of many moves all the others. */
  let taken: Uint8Array[] = []
  let size = 0
  let isFull = false
  let closed: { error: Error | undefined } | undefined
  let wake = () => {}

  function take(): Uint8Array | undefined {
    if (taken.length === 0) {
      taken = arrived.reverse()
      arrived = []
    }
    const chunk = taken.pop()
    size -= chunk?.length ?? 0
    if (isFull && size < low) {
      isFull = false
      flow.pause(false)
    }
    return chunk
  }

  // A generator would keep each response in memory for long: V8, in src/README.md.
  const reader: AsyncIterator<Uint8Array, undefined> = {
    async next() {
      while (arrived.length + taken.length === 0 && !closed) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      const value = take()
      if (value) return { done: false, value }
      if (closed?.error) throw closed.error
      return { done: true, value: undefined }
    },
    async return() {
      if (!closed) flow.leave()
      return { done: true, value: undefined }
    },
  }

  return {
    push(chunk) {
      arrived.push(chunk)
      size += chunk.length
      if (!isFull && size > high) {
        isFull = true
        flow.pause(true)
      }
      wake()
    },
    close(error) {
      closed ??= { error }
      wake()
    },
    [Symbol.asyncIterator]: () => reader,
  }
}
