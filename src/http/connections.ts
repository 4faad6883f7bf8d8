import type { Client } from 'undici'
import type { ShortLivedSet } from '../short-lived-set.ts'
import { type ConnectOptions, openConnection } from './connect.ts'
import type { PausableSocket } from './socket.ts'

export interface Connection extends PausableSocket {
  client: Client
  /** The server may close a used connection at any time. */
  isUsed: boolean
  /**
   * Value of `failures` when this connection was opened. After a further failure, the connection is not
   * reused.
   */
  failuresBefore?: number
}

export type ConnectionPool = ReturnType<typeof createConnectionPool>

/**
 * Without `closers`, each request gets a new connection. With `closers`, connections stay open for later
 * requests to the same server. For each idle connection, `closers` gets a function that closes it.
 */
export function createConnectionPool(options: ConnectOptions, closers?: ShortLivedSet<() => void>) {
  const idle = new Map<string, { connection: Connection; drop(): void }[]>()

  let failures = 0

  function closeIdle(): void {
    for (const { drop } of [...idle.values()].flat()) {
      closers?.delete(drop)
      drop()
    }
    idle.clear()
  }

  return {
    /**
     * Returns an idle connection to the server of `url`, or opens a new connection. Throws like
     * `openConnection`. Aborting `opening` stops the attempt to connect. Node creates the controller's signal
     * when it is read, so a request on an idle connection has no signal.
     */
    async take(url: URL, opening: AbortController): Promise<Connection> {
      if (!closers) return connect(url, options, opening.signal)
      // The server may have closed idle connections. Node reports closed connections in the next turn of the
      // event loop.
      await new Promise(setImmediate)
      const candidates = idle.get(url.origin) ?? []
      for (let entry = candidates.shift(); entry; entry = candidates.shift()) {
        const { connection, drop } = entry
        closers.delete(drop)
        if (!isClosing(connection)) return connection
        closeConnection(connection)
      }
      const failuresBefore = failures
      try {
        return { ...(await connect(url, options, opening.signal)), failuresBefore }
      } catch (error) {
        // The process may have no free descriptors. Closing idle connections frees some for requests and
        // image files.
        failures++
        closeIdle()
        throw error
      }
    },
    /** Makes the connection available to later requests, or closes it. The response must be complete. */
    release(url: URL, connection: Connection): void {
      if (!closers || connection.failuresBefore !== failures) {
        closeConnection(connection)
        return
      }
      connection.isUsed = true
      connection.pause(false)
      const drop = () => closeConnection(connection)
      closers.add(drop)
      // If the server announced `Connection: close`, undici closes the connection before the next turn of the
      // event loop.
      setImmediate(() => {
        // At the end of the run, a cleanup has called `drop` and removed it from `closers`.
        if (!closers.has(drop)) return
        const candidates = idle.get(url.origin) ?? []
        idle.set(url.origin, candidates)
        candidates.push({ connection, drop })
      })
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
  return { ...opened, client: createUndiciClient(url, opened.socket), isUsed: false }
}

/** A batch loads undici before it opens many connections, because loading code needs a free descriptor. */
export const loadUndiciClient = () => import('./undici-client.ts')
