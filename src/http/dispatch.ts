import type { Dispatcher } from 'undici'
import type { HttpRequest } from '../wire/exchange.ts'
import { type Connection, type Connections, close } from './connections.ts'
import { errorOf } from './socket-error.ts'

/** A request on a connection that no other request uses. */
export interface Dispatched {
  /** Stops reading, or goes on. */
  pause(isPaused: boolean): void
  /** The answer is whole: the connection is free. */
  release(): void
  /** Closes the connection, or stops opening it: the process does not wait for it. */
  close(): void
  /** The connection's own error. */
  readonly errored: Error | null | undefined
  /** Bytes that came since the request was sent. */
  readonly received: number
}

export interface DispatchOptions {
  /** The request's. */
  url: URL
  connections: Connections
  handler: Dispatcher.DispatchHandler
  /** Called when there is no connection, or it did not take the request. */
  onError(error: Error): void
}

/** Sends a request over a connection; the handler gets the answer. */
export function dispatch(
  request: HttpRequest,
  { url, connections, handler, onError }: DispatchOptions,
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
    taken.client.dispatch(optionsOf(request, url), isStale ? replacing(expecting, again) : expecting)
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
    get errored() {
      return connection && errorOf(connection.socket)
    },
    get received() {
      return (connection?.socket.bytesRead ?? 0) - bytesBefore
    },
  }
}

/** What an idle connection brings is no answer: undici has to see it as it is. */
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

/** A handler that takes another connection where the server closed this one before anything was sent. */
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

const optionsOf = ({ method, headers, body }: HttpRequest, url: URL) => ({
  origin: url.origin,
  path: url.pathname + url.search,
  method: method as 'POST',
  headers,
  body: body ?? null,
})
