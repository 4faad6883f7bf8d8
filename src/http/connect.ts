import { connect as connectTcp, isIP, type Socket } from 'node:net'
import type { SecureContext } from 'node:tls'
import { CliError, describeFileError } from '../errors.ts'
import { setLongTimeout } from '../timers.ts'
import type { HttpProxy } from './proxy.ts'
import { makeSocketPausable, type PausableSocket, waitForSocketEvent } from './socket.ts'

export interface ConnectOptions {
  /** Time limit for name lookup, connection, proxy and TLS together. 0 means no limit. */
  connectTimeoutMs: number
  extraCertificatesPem: string | undefined
  findProxy?: ((url: URL) => HttpProxy | undefined) | undefined
}

/**
 * Throws a `CliError` of kind `not-sent`, or `credentials` if the proxy refuses user name and password.
 * `signal` cancels the attempt. `meanwhile` is called while parley waits for the network, and can load code.
 */
export async function openConnection(
  url: URL,
  { connectTimeoutMs, extraCertificatesPem, findProxy }: ConnectOptions,
  { signal, meanwhile }: { signal: AbortSignal; meanwhile(): void },
): Promise<PausableSocket> {
  const proxy = findProxy?.(url)
  const target = describeTarget(url, proxy)
  const ending = new AbortController()
  const giveUp = (why: string) => ending.abort(new CliError('not-sent', `${target}: ${why}`))
  const onAbort = () => giveUp('the attempt to connect was cancelled')
  const timer =
    connectTimeoutMs > 0
      ? setLongTimeout(() => giveUp(`no connection within ${connectTimeoutMs / 1000} s`), connectTimeoutMs)
      : undefined
  signal.addEventListener('abort', onAbort)
  try {
    const socket = await openRoute(url, { proxy, extraCertificatesPem, signal: ending.signal, meanwhile })
    ending.signal.throwIfAborted()
    socket.setNoDelay(true)
    return makeSocketPausable(socket)
  } catch (error) {
    // The first reason to abort is the cause of the failure, so parley throws that reason. If the attempt was
    // already aborted, this call has no effect.
    ending.abort(error)
    throw ending.signal.reason
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
}

export const describeTarget = ({ host }: URL, proxy: HttpProxy | undefined): string =>
  proxy ? `${host}, through the proxy ${proxy.url.host}, from ${proxy.variable}` : host

interface Route {
  proxy: HttpProxy | undefined
  extraCertificatesPem: string | undefined
  signal: AbortSignal
  meanwhile(): void
}

async function openRoute(url: URL, { proxy, extraCertificatesPem, signal, meanwhile }: Route) {
  const first = proxy?.url ?? url
  let trusting: Promise<SecureContext> | undefined
  const trust = () => {
    trusting ??= loadTls().then((tls) => createTrust(tls, extraCertificatesPem))
    return trusting
  }
  let namedServer = first
  const secure = async (socket: Socket) => {
    const [tls, secureContext] = await Promise.all([loadTls(), trust()])
    if (socket.destroyed) throw socket.errored ?? Object.assign(new Error(), { code: 'ECONNRESET' })
    const name = getHost(namedServer)
    const secured = tls.connect({
      socket,
      host: name,
      secureContext,
      ALPNProtocols: ['http/1.1'],
      servername: isIP(name) ? undefined : name,
    })
    destroyOn(signal, secured)
    await waitForSocketEvent(secured, 'secureConnect')
    return secured
  }

  try {
    let socket = connectTcp({
      host: getHost(first),
      port: getPort(first),
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: nextAddressDelayMs,
    })
    destroyOn(signal, socket)
    // Loading code first would delay the connection, so parley loads it once the connection attempt has
    // begun.
    setImmediate(() => {
      meanwhile()
      // Reading all certificates takes as long as connecting, so parley reads them while it connects. This
      // line ignores the error of a failed read, because `secure` throws the error later.
      const isSecure = first.protocol === 'https:' || url.protocol === 'https:'
      if (isSecure) setImmediate(() => trust().catch(() => {}))
    })
    await waitForSocketEvent(socket, 'connect')
    if (proxy) {
      if (first.protocol === 'https:') socket = await secure(socket)
      const { openTunnel } = await import('./proxy.ts')
      await openTunnel(socket, proxy, `${url.hostname}:${getPort(url)}`)
      namedServer = url
    }
    return url.protocol === 'https:' ? await secure(socket) : socket
  } catch (error) {
    if (error instanceof CliError) throw error
    const tunnelProxy = namedServer === url ? proxy : undefined
    const failure = explainConnectError(error as ConnectError, describeTarget(namedServer, tunnelProxy))
    const isOfProxy = proxy !== undefined && !tunnelProxy
    throw isOfProxy ? failure.with({}, `the proxy in ${proxy.variable}, ${failure.message}`) : failure
  }
}

function destroyOn(signal: AbortSignal, socket: Socket): void {
  signal.addEventListener('abort', () => socket.destroy(signal.reason))
  // An `error` event without a listener would end the process. `findSocketError` reports the error later.
  socket.on('error', () => {})
}

const getHost = (url: URL) => url.hostname.replace(/^\[|\]$/g, '')

const getPort = (url: URL) => Number(url.port || (url.protocol === 'https:' ? 443 : 80))

const nextAddressDelayMs = 1000

/** Loaded only for https, because loading takes time. */
const loadTls = () => import('node:tls')

type Tls = Awaited<ReturnType<typeof loadTls>>

function createTrust({ createSecureContext }: Tls, extraCertificatesPem: string | undefined): SecureContext {
  const trust = createSecureContext()
  // The option `ca` would replace the default certificates, so parley adds the extra certificates to the
  // native context.
  if (extraCertificatesPem !== undefined)
    (trust as unknown as { context: NativeContext }).context.addCACert(extraCertificatesPem)
  return trust
}

type NativeContext = { addCACert(pem: string): void }

interface ConnectError extends Error {
  code?: string
  address?: string
  port?: number
  errors?: ConnectError[]
}

function explainConnectError(error: ConnectError, target: string): CliError {
  // If a host name has several addresses, the error contains one error per address and no message.
  const all = error.errors ?? [error]
  const isPermanent = all.some(({ code = '' }) => findPermanentCause(code) !== undefined)
  const message = all.map((one) => describe(one, target)).join(', ')
  return new CliError('not-sent', message, { isPermanent })
}

const transient = new Map([
  ['ECONNREFUSED', 'connection refused'],
  ['ECONNRESET', 'the connection was reset before it was ready'],
  ['ETIMEDOUT', 'the connection timed out'],
  ['EHOSTUNREACH', 'no route to the host'],
  ['ENETUNREACH', 'the network is unreachable'],
  ['EAI_AGAIN', 'the name cannot be looked up at the moment'],
])

const permanent: [code: RegExp, cause: string][] = [
  [/^ENOTFOUND$/, 'no such host'],
  [/SELF_SIGNED|^UNABLE_TO_/, 'its certificate comes from an unknown authority: --cacert FILE trusts it'],
  [/^CERT_HAS_EXPIRED$/, 'its certificate has expired'],
  [/^CERT_NOT_YET_VALID$/, 'its certificate is not valid yet (is the clock right?)'],
  [/^CERT_/, 'its certificate is not valid'],
  [/ALTNAME/, 'its certificate is for another host'],
  [/WRONG_VERSION|TOO_LONG|EPROTO/, 'the server does not use TLS (should the address begin with http://?)'],
  [/PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL/, 'the server supports only versions of TLS that are too old'],
]

const findPermanentCause = (code: string) => permanent.find(([pattern]) => pattern.test(code))?.[1]

function describe(error: ConnectError, target: string): string {
  const { code = '', address, port } = error
  const shown = address?.includes(':') ? `[${address}]` : address
  const where = shown === undefined ? target : `${shown}:${port}`
  return `${where}: ${transient.get(code) ?? findPermanentCause(code) ?? describeFileError(error)}`
}
