import type { Client } from 'undici'
import { type Crowd, createCrowd } from '../crowd.ts'
import { type ConnectOptions, openConnection } from './connect.ts'
import type { PausableSocket } from './socket.ts'

/** A connection to a server, and undici's client that uses it. */
export interface Connection extends PausableSocket {
  client: Client
  /** It has carried a request before, and the server may be about to close it. */
  isUsed: boolean
}

/** Where requests get their connections from. */
export interface Connections {
  /** Throws as `openConnection` does; `signal` stops one that has to be opened. */
  take(url: URL, signal: AbortSignal): Promise<Connection>
  /** Takes back one whose response is whole. */
  giveBack(url: URL, connection: Connection): void
}

/** A connection that no request uses. */
interface Idle {
  connection: Connection
  /** It is used again, or closed. */
  leave(): void
}

/** A new connection for each request, closed after it. */
export const createConnections = (options: ConnectOptions): Connections => ({
  take: (url, signal) => connect(url, options, signal),
  giveBack: (_, connection) => close(connection),
})

/** Connections that are kept for the next request to the same server. `open` gets what closes each one that is idle. */
export function keepConnections(options: ConnectOptions, open: Crowd<() => void>): Connections {
  const idle = new Map<string, Crowd<Idle>>()

  function keep(origin: string, connection: Connection): void {
    const { socket } = connection
    const ofServer = idle.get(origin) ?? createCrowd<Idle>()
    idle.set(origin, ofServer)
    const kept = {
      connection,
      leave() {
        ofServer.delete(kept)
        open.delete(drop)
        socket.off('close', drop).off('end', drop)
      },
    }
    const drop = () => {
      kept.leave()
      close(connection)
    }
    ofServer.add(kept)
    open.add(drop)
    socket.once('close', drop).once('end', drop)
  }

  return {
    async take(url, signal) {
      // What the server has closed in the meantime is seen first.
      await new Promise(setImmediate)
      for (const { connection, leave } of idle.get(url.origin) ?? []) {
        leave()
        return connection
      }
      return connect(url, options, signal)
    },
    giveBack(url, connection) {
      connection.isUsed = true
      connection.pause(false)
      const drop = () => close(connection)
      open.add(drop)
      // undici closes it now, if the server said that it will.
      setImmediate(() => {
        // Not kept if the run has ended meanwhile.
        if (!open.delete(drop)) return
        const { destroyed, readableEnded } = connection.socket
        if (destroyed || readableEnded) drop()
        else keep(url.origin, connection)
      })
    },
  }
}

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
