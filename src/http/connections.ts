import type { Client } from 'undici'
import type { ActiveSet } from '../active-set.ts'
import { type ConnectOptions, openConnection } from './connect.ts'
import type { PausableSocket } from './socket.ts'

/** A connection to a server, and undici's client that uses it. */
export interface Connection extends PausableSocket {
  client: Client
  /** The connection has carried a request, so the server may be about to close it. */
  isUsed: boolean
  /** Number of connection failures before it was opened. After another failure it is not kept. */
  failuresBefore?: number
}

export type Connections = ReturnType<typeof createConnections>

/**
 * Provides connections: a new one per request or, with `open`, kept connections to the same server. `open`
 * gets a function that closes each idle connection.
 */
export function createConnections(options: ConnectOptions, open?: ActiveSet<() => void>) {
  const idle = new Map<string, { connection: Connection; drop(): void }[]>()

  /** Counts failures to open a connection. */
  let failures = 0

  function closeIdle(): void {
    for (const { drop } of [...idle.values()].flat()) {
      open?.delete(drop)
      drop()
    }
    idle.clear()
  }

  return {
    /** Throws like `openConnection`. `signal` stops opening. */
    async take(url: URL, signal: AbortSignal): Promise<Connection> {
      if (!open) return connect(url, options, signal)
      // Lets Node process the closing of connections that the server has closed meanwhile.
      await new Promise(setImmediate)
      const ofServer = idle.get(url.origin) ?? []
      for (let kept = ofServer.shift(); kept; kept = ofServer.shift()) {
        const { connection, drop } = kept
        open.delete(drop)
        if (!isClosing(connection)) return connection
        closeConnection(connection)
      }
      const failuresBefore = failures
      try {
        return { ...(await connect(url, options, signal)), failuresBefore }
      } catch (error) {
        // Idle connections would hold descriptors that other requests and image files need.
        failures++
        closeIdle()
        throw error
      }
    },
    /** Accepts a connection whose response is complete, for a later request. */
    release(url: URL, connection: Connection): void {
      if (!open || connection.failuresBefore !== failures) {
        closeConnection(connection)
        return
      }
      connection.isUsed = true
      connection.pause(false)
      const drop = () => closeConnection(connection)
      open.add(drop)
      // If the server announced `Connection: close`, undici closes the connection before the next turn of the
      // event loop.
      setImmediate(() => {
        // After the end of the run, the connection is closed instead of kept.
        if (!open.has(drop)) return
        const ofServer = idle.get(url.origin) ?? []
        idle.set(url.origin, ofServer)
        ofServer.push({ connection, drop })
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
  const opened = await openConnection(url, options, { signal, meanwhile: loadClient })
  const { createClient } = await loadClient()
  return { ...opened, client: createClient(url, opened.socket), isUsed: false }
}

/**
 * Loads undici. Called before many connections are opened, because no code can be loaded without a free
 * descriptor.
 */
export const loadClient = () => import('./undici-client.ts')
