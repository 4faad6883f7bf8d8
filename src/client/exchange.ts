import Client from 'undici/lib/dispatcher/client.js'
import { CliError } from '../errors.ts'
import type { Exchange, HttpRequest, HttpResponse } from '../wire/exchange.ts'
import { type ConnectOptions, openConnection } from './connect.ts'
import { explainFailure, failure, type Reached } from './exchange-problem.ts'
import type { HeldSocket } from './hold.ts'
import { createChunkQueue } from './queue.ts'
import { withoutTierUp } from './tier-up.ts'
import { setTimer } from './timer.ts'

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
      // undici would open one connection after another to a server that closes them at once.
      if (connection) return callback(failure(reached, url, 'the connection was closed'), null)
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
    // First, for letting go of the connection fails the request once more, with words of undici's own.
    if (reached === 'head') queue.close(error)
    else reject(error)
    finish()
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
        fail(
          error instanceof CliError
            ? error
            : explainFailure(error, reached, url, connection?.socket.bytesRead ?? 0),
        )
      },
    },
  )
}

function flatten(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  )
}
