import type { Client } from 'undici'
import type { ActiveSet } from '../active-set.ts'
import { type ConnectOptions, openConnection } from './connect.ts'
import type { PausableSocket } from './socket.ts'

/** A connection to a server, and undici's client that uses it. */
export interface Connection extends PausableSocket {
  client: Client
  /** It has carried a request before, and the server may be about to close it. */
  isUsed: boolean
}

export type Connections = ReturnType<typeof createConnections>

/**
 * Where requests get their connections from: a new one for each, closed after it. If `open` is given they are kept for
 * the next request to the same server, and `open` gets what closes each one that is idle.
 */
export function createConnections(options: ConnectOptions, open?: ActiveSet<() => void>) {
  const idle = new Map<string, { connection: Connection; drop(): void }[]>()
  return {
    /** Throws as `openConnection` does; `signal` stops one that has to be opened. */
    async take(url: URL, signal: AbortSignal): Promise<Connection> {
      if (!open) return connect(url, options, signal)
      // First notice the connections that the server has closed meanwhile.
      await new Promise(setImmediate)
      const ofServer = idle.get(url.origin) ?? []
      for (let kept = ofServer.shift(); kept; kept = ofServer.shift()) {
        const { connection, drop } = kept
        open.delete(drop)
        if (!isClosing(connection)) return connection
        close(connection)
      }
      return connect(url, options, signal)
    },
    /** Takes back one whose response is whole. */
    giveBack(url: URL, connection: Connection): void {
      if (!open) {
        close(connection)
        return
      }
      connection.isUsed = true
      connection.pause(false)
      const drop = () => close(connection)
      open.add(drop)
      // undici closes it now, if the server said that it will.
      setImmediate(() => {
        // Not kept if the run has ended meanwhile.
        if (!open.has(drop)) return
        const ofServer = idle.get(url.origin) ?? []
        idle.set(url.origin, ofServer)
        ofServer.push({ connection, drop })
      })
    },
  }
}

const isClosing = ({ socket }: Connection) => socket.destroyed || socket.readableEnded

export function close({ client, socket }: Connection): void {
  client.destroy().catch(() => {})
  socket.destroy()
}

async function connect(url: URL, options: ConnectOptions, signal: AbortSignal): Promise<Connection> {
  const opened = await openConnection(url, options, { signal, meanwhile: loadClient })
  const { createClient } = await loadClient()
  return { ...opened, client: createClient(url, opened.socket), isUsed: false }
}

const loadClient = () => import('./undici-client.ts')
