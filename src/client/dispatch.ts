import type { Client, Dispatcher } from 'undici'
import type { HttpRequest } from '../wire/exchange.ts'
import { type ConnectOptions, openConnection } from './connect.ts'
import type { PausableSocket } from './pausable-socket.ts'

/** A request on a connection of its own. */
export interface Dispatched {
  /** Stops reading, or goes on. */
  pause(isPaused: boolean): void
  /** Closes the connection, or stops opening it: the process does not wait for it. */
  close(): void
  /** The connection's own error. */
  readonly errored: Error | null | undefined
  /** Bytes. */
  readonly received: number
}

export interface DispatchOptions {
  connect: ConnectOptions
  handler: Dispatcher.DispatchHandler
  /** Called when there is no connection, or it did not take the request. */
  onError(error: Error): void
}

/** Opens a connection and sends a request there; the handler gets the answer. */
export function dispatch(request: HttpRequest, { connect, handler, onError }: DispatchOptions): Dispatched {
  const url = new URL(request.url)
  const over = new AbortController()
  let connection: PausableSocket | undefined
  let client: Client | undefined

  async function send(): Promise<void> {
    connection = await openConnection(url, connect, { signal: over.signal, meanwhile: loadClient })
    const { createClient } = await loadClient()
    if (over.signal.aborted) return void connection.socket.destroy()
    client = createClient(url, connection.socket)
    client.dispatch(optionsOf(request, url), handler)
  }

  send().catch(onError)
  return {
    pause: (isPaused) => connection?.pause(isPaused),
    close() {
      over.abort()
      client?.destroy().catch(() => {})
      connection?.socket.destroy()
    },
    get errored() {
      return connection?.socket.errored
    },
    get received() {
      return connection?.socket.bytesRead ?? 0
    },
  }
}

const loadClient = () => import('./undici-client.ts')

const optionsOf = ({ method, headers, body }: HttpRequest, url: URL) => ({
  origin: url.origin,
  path: url.pathname + url.search,
  method: method as 'POST',
  headers,
  body: body ?? null,
})
