import { CliError } from '../errors.ts'
import type { Exchange, HttpRequest, HttpResponse } from '../wire/exchange.ts'
import { createChunkQueue } from './chunk-queue.ts'
import type { Connections } from './connections.ts'
import { dispatch } from './dispatch.ts'
import { explainFailure, failure, type Reached } from './exchange-problem.ts'
import { createTimeLimits } from './time-limits.ts'

export interface ExchangeOptions {
  connections: Connections
  /** Milliseconds: the longest wait for the answer's head, and the longest silence after it; 0 for none. */
  timeout: number
  /** Milliseconds since the epoch; 0 for none. */
  deadline: number
  /** For each open connection a function that closes it: whoever ends the run calls them all. */
  open: Set<() => void>
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
  { connections, timeout, deadline, open }: ExchangeOptions,
  { onSent, resolve, reject }: Reports,
): void {
  const url = new URL(request.url)
  let reached: Reached = 'nowhere'
  const limits = createTimeLimits({
    timeout,
    deadline,
    onEnd: (why, isDeadline) => fail(failure(reached, url, why).with({ isPermanent: isDeadline })),
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
    limits.end()
    if (isWhole) connection.release()
    else connection.close()
    queue.close()
  }

  function fail(error: Error): void {
    const known = error instanceof CliError ? error : explainFailure(error, reached, url, connection)
    // Before `finish`: when the connection closes, undici fails the request once more, in words of its own.
    if (reached === 'head') queue.close(known)
    else reject(known)
    finish()
  }

  open.add(finish)
  const connection = dispatch(request, {
    url,
    connections,
    onError: fail,
    handler: {
      onRequestStart() {
        reached = 'sent'
        onSent?.()
        limits.start()
      },
      onResponseStart(_, status, headers, statusText = '') {
        if (status < 200) return
        reached = 'head'
        limits.start()
        resolve({ status, statusText, headers: flatten(headers), body: queue, close: () => finish() })
      },
      onResponseData(_, chunk) {
        limits.refresh()
        queue.push(chunk)
      },
      onResponseEnd() {
        // When no length is given, undici takes a reset for the end of the body.
        const error = connection.errored
        if (error) return fail(error)
        finish(true)
      },
      onResponseError: (_, error) => fail(error),
    },
  })
}

function flatten(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  for (const [name, value] of Object.entries(headers))
    if (typeof value !== 'string') headers[name] = value?.join(', ') ?? ''
  return headers as Record<string, string>
}
