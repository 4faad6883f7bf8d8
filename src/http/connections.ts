import type { Client } from 'undici'
import type { ArraySet } from '../array-set.ts'
import { type ConnectOptions, describeTarget, openConnection } from './connect.ts'
import type { PausableSocket } from './socket.ts'

export interface Connection extends PausableSocket {
  client: Client
  origin: string
  /**
   * True after the first response. The server may then close the connection at any time. If the connection
   * closes before the next request is sent, parley sends the request on another connection.
   */
  isUsed: boolean
  /**
   * Number of failed connection attempts when this connection was opened. A later failure may mean that no
   * file descriptor is free. This connection is then closed after its request, to free its descriptor.
   */
  failuresBefore?: number
}

export type ConnectionPool = ReturnType<typeof createConnectionPool>

/**
 * With `cleanups`, connections stay open for later requests until a cleanup closes them at the end of the
 * run. All requests must then go to the same server. Without `cleanups`, each request gets a new connection.
 */
export function createConnectionPool(options: ConnectOptions, cleanups?: ArraySet<() => void>) {
  const idle: Connection[] = []
  let failures = 0
  const closeIdle = () => idle.splice(0).forEach(closeConnection)
  cleanups?.add(closeIdle)

  return {
    /** True after the first response of the server. */
    hasAnswered: false,
    describeTarget: (url: URL) => describeTarget(url, options.findProxy?.(url)),
    /**
     * Returns an idle connection, or a new one to the server of `url`. Throws like `openConnection`. Aborting
     * `opening` stops the attempt to connect. A controller creates its signal on first use, so a request on
     * an idle connection does not spend time on a signal.
     */
    async acquire(url: URL, opening: AbortController): Promise<Connection> {
      if (!cleanups) return connect(url, options, opening.signal)
      for (let connection = idle.shift(); connection; connection = idle.shift()) {
        // If the server has closed a connection, Node reports this in the next turn of the event loop, so
        // parley waits for that turn. If the last response announced `Connection: close`, undici closes the
        // connection before that turn.
        await new Promise(setImmediate)
        if (!isClosing(connection)) return connection
        closeConnection(connection)
      }
      const failuresBefore = failures
      try {
        return { ...(await connect(url, options, opening.signal)), failuresBefore }
      } catch (error) {
        // The process may have no free file descriptor. Closing idle connections frees some for the next
        // connection or file.
        failures++
        closeIdle()
        throw error
      }
    },
    /**
     * The response must be complete before this call, because another request may then use the connection.
     */
    release(connection: Connection): void {
      // If `cleanups` no longer has `closeIdle`, the run has ended, and nothing else would close the
      // connection.
      if (!cleanups?.has(closeIdle) || connection.failuresBefore !== failures) {
        closeConnection(connection)
        return
      }
      connection.isUsed = true
      connection.pause(false)
      idle.push(connection)
    },
  }
}

const isClosing = ({ socket }: Connection) => socket.destroyed || socket.readableEnded

export function closeConnection({ client, socket }: Connection): void {
  client.destroy().catch(() => {})
  socket.destroy()
}

async function connect(url: URL, options: ConnectOptions, signal: AbortSignal): Promise<Connection> {
  const opened = await openConnection(url, options, { signal, meanwhile: loadUndiciClient })
  const { createUndiciClient } = await loadUndiciClient()
  return { ...opened, client: createUndiciClient(url, opened.socket), origin: url.origin, isUsed: false }
}

/**
 * A batch loads undici before it opens many connections, because loading code needs a free file descriptor.
 */
export const loadUndiciClient = () => import('./undici-client.ts')
