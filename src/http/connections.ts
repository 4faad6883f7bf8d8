import type { Client } from 'undici'
import type { ActiveSet } from '../active-set.ts'
import { type ConnectOptions, openConnection } from './connect.ts'
import type { PausableSocket } from './socket.ts'

/** A connection to a server, and undici's client that uses it. */
export interface Connection extends PausableSocket {
  client: Client
  /** It has carried a request before, and the server may be about to close it. */
  isUsed: boolean
  /** Number of failures before it was opened. After another failure it is not kept. */
  failuresBefore?: number
}

export type Connections = ReturnType<typeof createConnections>

/**
 * Where requests get their connections from: a new one for each, closed after it. If `open` is given they are kept for
 * the next request to the same server, and `open` gets what closes each one that is idle.
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
      const failuresBefore = failures
      try {
        return { ...(await connect(url, options, signal)), failuresBefore }
      } catch (error) {
        // Too many may be open. Idle ones would hold descriptors that other requests, and files of images, need.
        failures++
        closeIdle()
        throw error
      }
    },
    /** Takes back one whose response is whole. */
    giveBack(url: URL, connection: Connection): void {
      if (!open || connection.failuresBefore !== failures) {
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

/** Loads undici. Call it before many connections are opened: while no descriptor is free, no code can be loaded. */
export const loadClient = () => import('./undici-client.ts')
