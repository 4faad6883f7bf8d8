import Client from 'undici/lib/dispatcher/client.js'
import { CliError } from '../errors.ts'
import type { Exchange, HttpRequest, HttpResponse } from '../wire/exchange.ts'
import { type ConnectOptions, type HeldSocket, openConnection } from './connect.ts'
import { createChunkQueue } from './queue.ts'
import { withoutTierUp } from './tier-up.ts'

export interface ExchangeOptions {
  connect: ConnectOptions
  /** Milliseconds: the longest wait for the response's head, and the longest silence after it; 0 for none. */
  timeout: number
  /** Milliseconds since the epoch; 0 for none. */
  deadline: number
  /** Called when the request's first byte leaves, and when an answer begins. */
  onProgress(reached: 'sent' | 'answered'): void
}

/** The exchange over the network: one connection for each request, and how far it got known at every moment. */
export function createHttpExchange(options: ExchangeOptions): Exchange {
  return (request) => new Promise((resolve, reject) => attempt(request, options, resolve, reject))
}

function attempt(
  request: HttpRequest,
  { connect, timeout, deadline, onProgress }: ExchangeOptions,
  resolve: (response: HttpResponse) => void,
  reject: (error: CliError) => void,
): void {
  const url = new URL(request.url)
  let reached: Reached = 'nowhere'
  let connection: HeldSocket | undefined
  let silence: NodeJS.Timeout | undefined
  let isHeld = false
  const over = new AbortController()

  const client = new Client(url.origin, {
    connect: (_, callback) => {
      openConnection(url, connect, over.signal).then(
        (opened) => {
          connection = opened
          withoutTierUp(() => callback(null, opened.socket))
        },
        (error: Error) => callback(error, null),
      )
    },
    headersTimeout: 0,
    bodyTimeout: 0,
  })

  const queue = createChunkQueue({
    hold(isFull) {
      isHeld = isFull
      connection?.hold(isFull)
      awaitBytes()
    },
    leave: finish,
  })

  const overall =
    deadline > 0
      ? setTimer(() => fail(failure(reached, url, 'the deadline passed')), deadline - Date.now())
      : undefined

  function awaitBytes(): void {
    clearTimeout(silence)
    // A silence of our own making counts against nobody.
    if (timeout === 0 || isHeld || over.signal.aborted) return
    silence = setTimer(() => fail(failure(reached, url, `no byte came for ${timeout / 1000} s`)), timeout)
  }

  /** Releases the connection: the process does not wait for it. */
  function finish(): void {
    over.abort()
    clearTimeout(silence)
    clearTimeout(overall)
    client.destroy().catch(() => {})
    connection?.socket.destroy()
  }

  function close(): void {
    finish()
    queue.close()
  }

  function fail(error: CliError): void {
    finish()
    if (reached === 'head') queue.close(error)
    else reject(error)
  }

  client.dispatch(
    {
      origin: url.origin,
      path: url.pathname + url.search,
      method: request.method as 'POST',
      headers: request.headers,
      body: request.body ?? null,
    },
    {
      onRequestStart() {
        reached = 'sent'
        onProgress('sent')
        awaitBytes()
      },
      onResponseStart(_, status, headers, statusText = '') {
        if (status < 200) return
        reached = 'head'
        onProgress('answered')
        awaitBytes()
        resolve({ status, statusText, headers: flatten(headers), body: queue, close })
      },
      onResponseData(_, chunk) {
        if (!isHeld) silence?.refresh()
        queue.push(chunk)
      },
      onResponseEnd: close,
      onResponseError(_, error) {
        fail(error instanceof CliError ? error : explain(error, reached, url))
      },
    },
  )
}

type Reached = 'nowhere' | 'sent' | 'head'

/** Names a failure by how far the request got, never by its error code: a reset happens at every stage. */
function failure(reached: Reached, url: URL, what: string): CliError {
  if (reached === 'nowhere') return new CliError('not-sent', `${url.host}: ${what}`, { sent: 'no' })
  if (reached === 'sent') return new CliError('unknown', `${url.host}: ${what}`, { sent: 'unknown' })
  return new CliError('response', `the answer broke off: ${what}`, { sent: 'yes' })
}

function explain(error: NodeJS.ErrnoException, reached: Reached, url: URL): CliError {
  const { code, name, message } = error
  const violation = name === 'HTTPParserError' ? 'malformed' : (violations[code ?? ''] ?? violations[message])
  if (violation && reached !== 'nowhere') {
    return new CliError('response', `the answer of ${url.host} is not proper HTTP/1.1: ${violation}`, {
      sent: 'yes',
    })
  }
  if (message === 'other side closed') return failure(reached, url, 'the connection was closed')
  if (code === 'ECONNRESET' || code === 'EPIPE') return failure(reached, url, 'the connection was reset')
  return failure(reached, url, code ?? name)
}

/** What an answer did wrong that was no proper HTTP, by undici's codes and messages. */
const violations: Record<string, string> = {
  UND_ERR_HEADERS_OVERFLOW: 'its headers are too long',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'its length is not the one that it announced',
  'bad upgrade': 'it changed the protocol unasked',
  'bad response': 'it answered what was not asked',
}

/** A timer that a wait of more than 24 days does not turn into one of a millisecond. */
function setTimer(callback: () => void, milliseconds: number): NodeJS.Timeout {
  return setTimeout(callback, Math.min(Math.max(milliseconds, 0), 2 ** 31 - 1))
}

function flatten(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  )
}
