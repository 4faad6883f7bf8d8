import { connect as connectTcp, isIP, type Socket } from 'node:net'
import type { SecureContext } from 'node:tls'
import { CliError } from '../errors.ts'
import { setTimer } from '../timers.ts'
import { explainConnectError } from './connect-problem.ts'
import { makePausable, type PausableSocket } from './pausable-socket.ts'
import type { HttpProxy } from './proxy.ts'

export interface ConnectOptions {
  /** Milliseconds, for name, connection, proxy and TLS together; 0 for no limit. */
  timeout: number
  /** Extra CA certificates, in PEM. */
  ca: string | undefined
  /** Finds the proxy to use for a URL. */
  findProxy?: ((url: URL) => HttpProxy | undefined) | undefined
}

/**
 * Opens a connection. Throws a `CliError` of kind `not-sent`, or `credentials` where the proxy wants other ones, that
 * says in plain words what is wrong. `signal` stops it; `meanwhile` is called while the network works.
 */
export async function openConnection(
  url: URL,
  { timeout, ca, findProxy }: ConnectOptions,
  { signal, meanwhile }: { signal: AbortSignal; meanwhile(): void },
): Promise<PausableSocket> {
  const proxy = findProxy?.(url)
  const way = proxy ? `${url.host}, through the proxy ${proxy.url.host}` : url.host
  const sockets: Socket[] = []
  const over = new AbortController()
  const giveUp = (why: string) => {
    const failure = new CliError('not-sent', `${way}: ${why}`)
    over.abort(failure)
    for (const socket of sockets.toReversed()) socket.destroy(failure)
  }
  const onAbort = () => giveUp('given up')
  const timer =
    timeout > 0 ? setTimer(() => giveUp(`no connection within ${timeout / 1000} s`), timeout) : undefined
  signal.addEventListener('abort', onAbort)
  try {
    const socket = await openWay(url, { proxy, ca, sockets, signal: over.signal, meanwhile })
    over.signal.throwIfAborted()
    socket.setNoDelay(true)
    return makePausable(socket)
  } catch (error) {
    for (const socket of sockets.toReversed()) socket.destroy()
    throw error
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
}

interface Way {
  proxy: HttpProxy | undefined
  ca: string | undefined
  /** Every socket on the way is added, so that all can be destroyed. */
  sockets: Socket[]
  /** Stops a name look-up, which has no socket. */
  signal: AbortSignal
  meanwhile(): void
}

async function openWay(url: URL, { proxy, ca, sockets, signal, meanwhile }: Way): Promise<Socket> {
  const first = proxy?.url ?? url
  let trusting: Promise<SecureContext> | undefined
  const trust = () => {
    trusting ??= import('./tls.ts').then(({ createTrust }) => createTrust(ca))
    return trusting
  }
  const explain: Explain = (error, host) =>
    error instanceof CliError ? error : explainConnectError(error, host, host === url ? undefined : proxy)
  const secure = async (socket: Socket, host: URL) => {
    const [{ startTls }, secureContext] = await Promise.all([import('./tls.ts'), trust()])
    if (socket.destroyed) throw socket.errored ?? Object.assign(new Error(), { code: 'ECONNRESET' })
    const secured = startTls(socket, hostOf(host), secureContext)
    sockets.push(secured)
    return ready(secured, 'secureConnect', (error) => explain(error, host))
  }

  // Only now: earlier, work would delay the connection.
  const onFound = () =>
    setImmediate(() => {
      meanwhile()
      // To read all certificates takes as long as to connect. An error is reported later, by `secure`.
      const isSecure = first.protocol === 'https:' || url.protocol === 'https:'
      if (isSecure) setImmediate(() => trust().catch(() => {}))
    })
  let socket = await openTcp(first, { sockets, signal, onFound, explain })
  if (first.protocol === 'https:') socket = await secure(socket, first)
  if (!proxy) return socket
  const { openTunnel } = await import('./proxy-tunnel.ts')
  await openTunnel(socket, proxy, `${url.hostname}:${portOf(url)}`)
  return url.protocol === 'https:' ? secure(socket, url) : socket
}
type Explain = (error: Error, host: URL) => CliError

interface TcpOptions extends Pick<Way, 'sockets' | 'signal'> {
  /** Called when the first connection has been started. */
  onFound(): void
  explain: Explain
}

async function openTcp(url: URL, { sockets, signal, onFound, explain }: TcpOptions): Promise<Socket> {
  const [host, port] = [hostOf(url), portOf(url)]
  if (isIP(host)) {
    const socket = connectTcp({ host, port })
    sockets.push(socket)
    onFound()
    return ready(socket, 'connect', (error) => explain(error, url))
  }
  const { dial } = await import('./dial.ts')
  return dial(host, { port, sockets, signal, onFound }).catch((error) => {
    throw explain(error, url)
  })
}

/** Waits for an event of a socket; throws a `CliError` where the socket fails first. */
async function ready(socket: Socket, event: string, explain: (error: Error) => CliError): Promise<Socket> {
  let settle = () => {}
  try {
    await new Promise<void>((resolve, reject) => {
      const onError = (error: Error) => reject(explain(error))
      const onClose = () => onError(Object.assign(new Error(), { code: 'ECONNRESET' }))
      settle = () => void socket.off('close', onClose).off('error', onError).off(event, resolve)
      socket.on('close', onClose).on('error', onError).on(event, resolve)
      // It says so only once, and may have done it before.
      if (socket.destroyed) onClose()
    })
    return socket
  } finally {
    settle()
    // A later error is the reader's, or nobody's: without a listener it would end the process.
    socket.on('error', () => {})
  }
}

/** Without the brackets of an IPv6 address. */
const hostOf = (url: URL) => url.hostname.replace(/^\[|\]$/g, '')

const portOf = (url: URL) => Number(url.port || (url.protocol === 'https:' ? 443 : 80))
