import type { Dispatcher } from 'undici'
import type { ArraySet } from '../array-set.ts'
import type { DeliveryState } from '../delivery-state.ts'
import { CliError } from '../errors.ts'
import type { Exchange, HttpRequest, HttpResponse } from '../wire/exchange.ts'
import { maxTextLength } from '../wire/json/text-limit.ts'
import { type Connection, type ConnectionPool, closeConnection } from './connections.ts'
import { createAnswerTooLongError } from './decompress.ts'
import { findSocketError } from './socket.ts'
import { createTimeLimits } from './time-limits.ts'

interface ExchangeOptions {
  /** 0 means no limit. */
  maxSilenceMs: number
  connections: ConnectionPool
  cleanups: ArraySet<() => void>
}

export function createHttpExchange(options: ExchangeOptions): Exchange {
  return (request, onSent) =>
    new Promise((resolve, reject) => new Attempt(request, options, { onSent, resolve, reject }).start())
}

interface Callbacks {
  onSent: (() => void) | undefined
  resolve(response: HttpResponse): void
  reject(error: CliError): void
}

/**
 * Sends a request once, on a connection that no other request uses. undici calls the methods whose names
 * begin with `on`.
 */
class Attempt implements Dispatcher.DispatchHandler {
  readonly #request: HttpRequest
  readonly #options: ExchangeOptions
  readonly #callbacks: Callbacks
  readonly #url: URL
  readonly #limits: ReturnType<typeof createTimeLimits>
  readonly #opening = new AbortController()
  readonly #body = new ChunkQueue(
    (isPaused) => {
      this.#connection?.pause(isPaused)
      this.#limits.pause(isPaused)
    },
    () => this.#finish(),
  )
  #reached: DeliveryState = 'not-sent'
  #connection: Connection | undefined
  #bytesBefore = 0
  #bodyBytes = 0

  constructor(request: HttpRequest, options: ExchangeOptions, callbacks: Callbacks) {
    this.#request = request
    this.#options = options
    this.#callbacks = callbacks
    this.#url = new URL(request.url)
    this.#limits = createTimeLimits(options.maxSilenceMs, request.deadline, (why, passed) => {
      const isUserDeadline = passed !== undefined && passed.limitText === undefined
      this.#fail(this.#failure(why).with({ deadline: isUserDeadline || undefined }))
    })
  }

  start(): void {
    this.#options.cleanups.add(this.#finish)
    this.#send()
  }

  onRequestStart(): void {
    // Bytes that the server sent before this request are not a response, so the socket expects the response
    // only now.
    this.#connection?.expectResponse()
    this.#reached = 'sent'
    this.#callbacks.onSent?.()
    this.#limits.start()
  }

  onResponseStart(_: unknown, status: number, headers: Headers, statusText = ''): void {
    if (status < 200) return
    this.#reached = 'answered'
    this.#options.connections.hasAnswered = true
    this.#limits.refresh()
    const close = () => this.#finish()
    this.#callbacks.resolve({ status, statusText, headers: flattenHeaders(headers), body: this.#body, close })
  }

  onResponseData(_: unknown, chunk: Uint8Array): void {
    this.#limits.refresh()
    this.#bodyBytes += chunk.length
    if (this.#bodyBytes > maxTextLength) this.#fail(createAnswerTooLongError())
    else this.#body.push(chunk)
  }

  onResponseEnd(): void {
    // Without a content length, undici treats a reset as the end of the body. Without this check, a cut body
    // would look complete.
    const error = this.#connectionError()
    if (error) this.#fail(error)
    else this.#finish(true)
  }

  onResponseError(_: unknown, error: Error): void {
    // The server closed a reused connection before anything was sent, so another connection is safe.
    if (this.#reached === 'not-sent' && this.#connection?.isUsed) this.#send()
    else this.#fail(error)
  }

  #send(): void {
    this.#dispatch().catch(this.#fail)
  }

  async #dispatch(): Promise<void> {
    const { connections, cleanups } = this.#options
    const connection = await connections.acquire(this.#url, this.#opening)
    if (!cleanups.has(this.#finish)) return closeConnection(connection)
    this.#connection = connection
    this.#bytesBefore = connection.socket.bytesRead
    const { pathname, search } = this.#url
    const body = toDispatchedBody(this.#request, this.#limits.refresh)
    connection.client.dispatch({ origin: connection.origin, path: pathname + search, ...body }, this)
  }

  #finish = (isWhole = false): void => {
    const { cleanups, connections } = this.#options
    if (!cleanups.delete(this.#finish)) return
    this.#limits.end()
    const connection = this.#connection
    if (isWhole) {
      // Another request may use the connection from now on, so this attempt must not close it.
      this.#connection = undefined
      if (connection) connections.release(connection)
    } else {
      this.#opening.abort()
      if (connection) closeConnection(connection)
    }
    this.#body.close()
  }

  #fail = (error: Error): void => {
    const known = error instanceof CliError ? error : this.#explain(error)
    // Closing the connection makes undici report a second error, so the body gets the first error now.
    if (this.#reached === 'answered') this.#body.close(known)
    else this.#callbacks.reject(known)
    this.#finish()
  }

  #connectionError(): Error | null | undefined {
    return this.#connection && findSocketError(this.#connection.socket)
  }

  /**
   * The kind of the failure depends on `#reached`, because a connection may fail with the same error code
   * before and after the request.
   */
  #failure(what: string): CliError {
    if (this.#reached === 'answered')
      return new CliError('response', `the answer broke off: ${what}`, { isCutOff: true })
    if (this.#reached === 'sent') return new CliError('unknown', `${this.#url.host}: ${what}`)
    return new CliError('not-sent', `${this.#options.connections.describeTarget(this.#url)}: ${what}`)
  }

  #explain(reported: Error): CliError {
    const error: NodeJS.ErrnoException & { data?: unknown } = this.#connectionError() ?? reported
    const { code, name, message } = error
    if (isTlsAlert(error.data)) return this.#failure(`the server expects TLS ${tlsHint}`)
    // The parser reports a cut response with this `HTTPParserError`. After a reset, the error of the socket
    // may arrive too late. So the message does not distinguish a reset from a close.
    if (name === 'HTTPParserError' && message.includes('EOF'))
      return this.#failure('the connection was closed')
    const violation =
      name === 'HTTPParserError' ? 'malformed' : (violations.get(code ?? '') ?? violations.get(message))
    if (violation && this.#reached !== 'not-sent') {
      return new CliError('response', `the answer of ${this.#url.host} is not valid HTTP/1.1: ${violation}`)
    }
    if (message === 'other side closed') {
      // A server that expects TLS often closes without a response, so the message suggests https://.
      const mayExpectTls = this.#url.protocol === 'http:' && !this.#options.connections.hasAnswered
      const hint = mayExpectTls ? ` ${tlsHint}` : ''
      const hasNoAnswer = this.#connection?.socket.bytesRead === this.#bytesBefore
      return this.#failure(`the connection was closed${hasNoAnswer ? ` without an answer${hint}` : ''}`)
    }
    if (code === 'ECONNRESET' || code === 'EPIPE') return this.#failure('the connection was reset')
    return this.#failure(code ?? name)
  }
}

type Headers = Record<string, string | string[] | undefined>

/** Joins repeated headers, and removes the trailing blanks that undici keeps. */
function flattenHeaders(headers: Headers): Record<string, string> {
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    headers[name] = (typeof value === 'string' ? value : (value?.join(', ') ?? '')).trim()
  }
  return headers as Record<string, string>
}

function toDispatchedBody({ method, headers, body }: HttpRequest, onProgress: () => void) {
  const isLong = body !== undefined && body.length > maxPieceBytes
  return {
    method: method as 'POST',
    headers: isLong ? { ...headers, 'content-length': `${body.length}` } : headers,
    // undici accepts an iterable, but its type does not declare it.
    body: isLong ? (splitBody(body, onProgress) as unknown as Uint8Array) : (body ?? null),
  }
}

const maxPieceBytes = 64 * 1024

/**
 * undici requests the next piece after it has sent the previous piece. So `onProgress` is called during a
 * long upload, and the limit for silence does not end the upload.
 */
function* splitBody(body: Uint8Array, onProgress: () => void): Generator<Uint8Array> {
  for (let start = 0; start < body.length; start += maxPieceBytes) {
    if (start > 0) onProgress()
    yield body.subarray(start, start + maxPieceBytes)
  }
}

const tlsHint = '(should the address begin with https://?)'

/**
 * `data` is the received data, which undici adds to the errors of its parser. A TLS alert begins with 0x15.
 */
const isTlsAlert = (data: unknown) => typeof data === 'string' && data.charCodeAt(0) === 0x15

const violations = new Map([
  ['UND_ERR_HEADERS_OVERFLOW', 'its headers are too long'],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'the body does not match Content-Length'],
  ['bad upgrade', 'unexpected protocol upgrade'],
  ['bad response', 'unexpected extra response'],
])

/**
 * Numbers of unread bytes at which the socket pauses and resumes. With twice these numbers, a long stream
 * took 30 MiB more memory, because V8 moved more chunks to the old generation.
 */
const pauseAtBytes = 256 * 1024
const resumeAtBytes = 64 * 1024

/**
 * Buffers a body between the socket and a slow reader. The queue is its own iterator, because a generator
 * would keep each response in memory (see "V8's heap" in src/README.md).
 */
class ChunkQueue implements AsyncIterable<Uint8Array>, AsyncIterator<Uint8Array, undefined> {
  readonly #pause: (isPaused: boolean) => void
  readonly #onAbandon: () => void
  readonly #chunks: Uint8Array[] = []
  #size = 0
  #isFull = false
  #closed: { error: Error | undefined } | undefined
  #wake = () => {}

  /**
   * `pause` gets true if too many bytes are unread, and false after the reader has read most of them.
   * `onAbandon` is called if the reader stops before the end.
   */
  constructor(pause: (isPaused: boolean) => void, onAbandon: () => void) {
    this.#pause = pause
    this.#onAbandon = onAbandon
  }

  push(chunk: Uint8Array): void {
    this.#chunks.push(chunk)
    this.#size += chunk.length
    if (!this.#isFull && this.#size > pauseAtBytes) {
      this.#isFull = true
      this.#pause(true)
    }
    this.#wake()
  }

  close(error?: Error): void {
    this.#closed ??= { error }
    this.#wake()
  }

  [Symbol.asyncIterator]() {
    return this
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    while (this.#chunks.length === 0 && !this.#closed) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    const value = this.#take()
    if (value) return { done: false, value }
    if (this.#closed?.error) throw this.#closed.error
    return { done: true, value: undefined }
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (!this.#closed) this.#onAbandon()
    return { done: true, value: undefined }
  }

  #take(): Uint8Array | undefined {
    const chunk = this.#chunks.shift()
    this.#size -= chunk?.length ?? 0
    if (this.#isFull && this.#size < resumeAtBytes) {
      this.#isFull = false
      this.#pause(false)
    }
    return chunk
  }
}
