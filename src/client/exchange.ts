import type { Client, Dispatcher } from 'undici'
import { CliError } from '../errors.ts'
import type { Exchange, HttpRequest, HttpResponse } from '../wire/exchange.ts'
import { createChunkQueue } from './chunk-queue.ts'
import { type ConnectOptions, openConnection } from './connect.ts'
import { explainFailure, failure, type Reached } from './exchange-problem.ts'
import type { PausableSocket } from './pausable-socket.ts'
import { createTimeLimits } from './time-limits.ts'

export interface ExchangeOptions {
  connect: ConnectOptions
  /** Milliseconds: the longest wait for the response's head, and the longest silence after it; 0 for none. */
  timeout: number
  /** Milliseconds since the epoch; 0 for none. */
  deadline: number
  /** What lets go of each connection that is open: whoever ends the run calls them all. */
  open: Set<() => void>
}

/** The exchange over the network: one connection for each request, and how far it got known at every moment. */
export function createHttpExchange(options: ExchangeOptions): Exchange {
  return (request, onSent) =>
    new Promise((resolve, reject) => attempt(request, options, { onSent, resolve, reject }))
}

/** What an attempt tells of itself while it goes on. */
interface Outcome {
  onSent: (() => void) | undefined
  resolve(response: HttpResponse): void
  reject(error: CliError): void
}

function attempt(request: HttpRequest, options: ExchangeOptions, { onSent, resolve, reject }: Outcome): void {
  const { timeout, deadline, open } = options
  const url = new URL(request.url)
  let reached: Reached = 'nowhere'
  const over = new AbortController()
  let connection: PausableSocket | undefined
  let client: Client | undefined
  const limits = createTimeLimits({
    timeout,
    deadline,
    onEnd: (why, isDeadline) =>
      fail(failure(reached, url, why).with(isDeadline ? { isPermanent: true } : {})),
  })
  const queue = createChunkQueue({
    pause(isPaused) {
      connection?.pause(isPaused)
      limits.pause(isPaused)
    },
    leave: finish,
  })

  /** Releases the connection: the process does not wait for it. */
  function finish(): void {
    open.delete(finish)
    limits.end()
    over.abort()
    client?.destroy().catch(() => {})
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

  function failFor(error: Error): void {
    const { bytesRead = 0, errored } = connection?.socket ?? {}
    // What went wrong with the connection comes before what undici made of it.
    fail(error instanceof CliError ? error : explainFailure(errored ?? error, reached, url, bytesRead))
  }

  open.add(finish)
  const handler: Dispatcher.DispatchHandler = {
    onRequestStart() {
      reached = 'sent'
      onSent?.()
      limits.start()
    },
    onResponseStart(_, status, headers, statusText = '') {
      if (status < 200) return
      reached = 'head'
      limits.start()
      resolve({ status, statusText, headers: flatten(headers), body: queue, close })
    },
    onResponseData(_, chunk) {
      limits.refresh()
      queue.push(chunk)
    },
    onResponseEnd() {
      // undici takes a reset for the end of a body whose length nobody told.
      const error = connection?.socket.errored
      if (error) failFor(error)
      else close()
    },
    onResponseError: (_, error) => failFor(error),
  }
  openConnection(url, options.connect, { signal: over.signal, meanwhile: loadClient })
    .then(async (opened) => {
      connection = opened
      const { createClient } = await loadClient()
      if (over.signal.aborted) return opened.socket.destroy()
      client = createClient(url, opened.socket)
      return client.dispatch(toDispatch(request, url), handler)
    })
    .catch(failFor)
}

const loadClient = () => import('./undici-client.ts')

const toDispatch = ({ method, headers, body }: HttpRequest, url: URL) => ({
  origin: url.origin,
  path: url.pathname + url.search,
  method: method as 'POST',
  headers,
  body: body ?? null,
})

function flatten(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  )
}
