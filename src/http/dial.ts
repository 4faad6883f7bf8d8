import { lookup } from 'node:dns'
import { connect, type Socket } from 'node:net'
import { CliError } from '../errors.ts'

/** How long an address is tried before the next one is tried as well. Milliseconds. */
const headStart = 250

export interface DialOptions {
  port: number
  /** Every socket is added, so that all can be destroyed. */
  sockets: Socket[]
  /** Stops the name look-up; it does not stop the sockets. */
  signal: AbortSignal
  /** Called when the addresses are known and the first connection has been started. */
  onFound(): void
}

/**
 * Connects to the address of a name that answers first. They are started one after another, and all are tried until
 * one connects. Throws Node's error; where several fail, an `AggregateError`.
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
