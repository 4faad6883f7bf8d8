import { lookup } from 'node:dns'
import { connect, type Socket } from 'node:net'
import { CliError } from '../errors.ts'

/** How long an address is tried alone before the next one is tried beside it. Milliseconds. */
const headStart = 250

export interface DialOptions {
  port: number
  /** Every socket joins them, so that whoever gives up can reach it. */
  sockets: Socket[]
  /** Ends the search for addresses; the sockets have to be ended too. */
  signal: AbortSignal
  /** Called when the name is known and the first connection on its way. */
  onFound(): void
}

/**
 * Connects to whichever address of a name answers first. Each is tried beside those before it, and none is given up
 * while another may still win. Throws what Node does; where all fail, an error with their `errors`.
 */
export async function dial(name: string, { port, sockets, signal, onFound }: DialOptions): Promise<Socket> {
  const addresses = await findAddresses(name, signal)
  return new Promise((resolve, reject) => {
    const failures: Error[] = []
    const tried: Socket[] = []
    let timer: NodeJS.Timeout | undefined

    function tryNext(): void {
      clearTimeout(timer)
      const host = addresses[tried.length]
      if (host === undefined) return
      const socket = connect({ host, port })
      tried.push(socket)
      sockets.push(socket)
      if (tried.length < addresses.length) timer = setTimeout(tryNext, headStart)
      socket.once('connect', () => win(socket))
      socket.on('error', onFailure)
    }

    function win(socket: Socket): void {
      clearTimeout(timer)
      for (const other of tried) if (other !== socket) other.destroy()
      socket.off('error', onFailure).on('error', () => {})
      resolve(socket)
    }

    function onFailure(error: Error): void {
      failures.push(error)
      const isGivenUp = error instanceof CliError
      if (!isGivenUp && failures.length < addresses.length) tryNext()
      else {
        clearTimeout(timer)
        reject(isGivenUp || failures.length === 1 ? error : new AggregateError(failures))
      }
    }

    tryNext()
    onFound()
  })
}

const findAddresses = (name: string, signal: AbortSignal): Promise<string[]> =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted()
    signal.addEventListener('abort', () => reject(signal.reason))
    lookup(name, { all: true }, (error, found) => {
      if (error) reject(error)
      else resolve(found.map(({ address }) => address))
    })
  })
