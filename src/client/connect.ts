import { connect as connectTcp, type Socket } from 'node:net'
import { CliError } from '../errors.ts'

export interface ConnectOptions {
  /** Milliseconds, for name, connection and TLS together; 0 for none. */
  timeout: number
  /** Extra CA certificates, in PEM. */
  ca: string | undefined
}

/** A connection whose reading can be held up without its parser noticing. */
export interface HeldSocket {
  socket: Socket
  hold(isHeld: boolean): void
}

/**
 * Opens a connection; throws a `CliError` of kind `not-sent` that says what is wrong in plain words. `signal` ends
 * the attempt.
 */
export async function openConnection(
  url: URL,
  { timeout, ca }: ConnectOptions,
  signal: AbortSignal,
): Promise<HeldSocket> {
  const isSecure = url.protocol === 'https:'
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = Number(url.port || (isSecure ? 443 : 80))
  const open = isSecure ? await secureOpener(ca) : connectTcp
  if (signal.aborted) throw notSent(`${url.host}: given up`)
  const socket = open({ host, port })
  await new Promise<void>((resolve, reject) => {
    const timer =
      timeout > 0
        ? setTimeout(() => fail(notSent(`${url.host}: no connection within ${timeout / 1000} s`)), timeout)
        : undefined
    const onError = (error: Error) => fail(explain(error, url))
    const onClose = () => fail(notSent(`${url.host}: the connection was closed before it was ready`))
    const onAbort = () => fail(notSent(`${url.host}: given up`))
    const settle = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      socket.off('error', onError).off('close', onClose)
    }
    const fail = (error: Error) => {
      settle()
      socket.on('error', () => {}).destroy()
      reject(error)
    }
    signal.addEventListener('abort', onAbort)
    socket.on('error', onError).on('close', onClose)
    socket.once(isSecure ? 'secureConnect' : 'connect', () => {
      settle()
      resolve()
    })
  })
  socket.setNoDelay(true)
  return makeHoldable(socket)
}

const notSent = (message: string) => new CliError('not-sent', message, { sent: 'no' })

async function secureOpener(ca: string | undefined) {
  const { connect, createSecureContext } = await import('node:tls')
  const secureContext = createSecureContext()
  // With a `ca` option the context would trust nothing else: this adds to the system's certificates.
  if (ca !== undefined) (secureContext as unknown as NativeContext).context.addCACert(ca)
  return ({ host, port }: { host: string; port: number }) =>
    connect({
      host,
      port,
      secureContext,
      ALPNProtocols: ['http/1.1'],
      ...(isName(host) ? { servername: host } : {}),
    })
}

interface NativeContext {
  context: { addCACert(pem: string): void }
}

const isName = (host: string) => !/^[\d.]+$|:/.test(host)

/**
 * undici's parser, once paused, fails an assertion when the connection ends. So it is never paused: while the
 * socket is held, its `read` has nothing to give, and the kernel's buffer fills up.
 */
function makeHoldable(socket: Socket): HeldSocket {
  let isHeld = false
  const read = socket.read.bind(socket)
  socket.read = (size) => (isHeld ? null : read(size))
  return {
    socket,
    hold(held) {
      isHeld = held
      if (!held) setImmediate(() => socket.emit('readable'))
    },
  }
}

function explain(error: NodeJS.ErrnoException, url: URL): CliError {
  const inner = error instanceof AggregateError ? (error.errors as NodeJS.ErrnoException[]) : [error]
  const what = inner.map((one) => describe(one, url)).join(', ')
  const isPermanent = inner.some(({ code }) => problems[code ?? '']?.isPermanent)
  return new CliError('not-sent', what, { sent: 'no', isPermanent })
}

const problems: Record<string, { text: string; isPermanent?: true }> = {
  ECONNREFUSED: { text: 'connection refused' },
  ECONNRESET: { text: 'the connection was reset before it was ready' },
  ETIMEDOUT: { text: 'the connection timed out' },
  EHOSTUNREACH: { text: 'no route to the host' },
  ENETUNREACH: { text: 'the network is unreachable' },
  ENOTFOUND: { text: 'no such host', isPermanent: true },
  EAI_AGAIN: { text: 'its name could not be looked up just now' },
  DEPTH_ZERO_SELF_SIGNED_CERT: {
    text: 'its certificate is self-signed: --cacert FILE trusts it',
    isPermanent: true,
  },
  SELF_SIGNED_CERT_IN_CHAIN: {
    text: 'its certificate comes from an unknown authority: --cacert FILE trusts it',
    isPermanent: true,
  },
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: {
    text: 'its certificate comes from an unknown authority: --cacert FILE trusts it',
    isPermanent: true,
  },
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: {
    text: 'its certificate comes from an unknown authority: --cacert FILE trusts it',
    isPermanent: true,
  },
  CERT_HAS_EXPIRED: { text: 'its certificate has expired', isPermanent: true },
  CERT_NOT_YET_VALID: { text: 'its certificate is not valid yet', isPermanent: true },
  ERR_TLS_CERT_ALTNAME_INVALID: { text: 'its certificate is for another host', isPermanent: true },
  ERR_SSL_WRONG_VERSION_NUMBER: {
    text: 'it does not speak TLS there (is the address http:// ?)',
    isPermanent: true,
  },
  EPROTO: { text: 'it does not speak TLS there (is the address http:// ?)', isPermanent: true },
}

function describe(error: NodeJS.ErrnoException & { address?: string; port?: number }, url: URL): string {
  const where = error.address === undefined ? url.host : `${error.address}:${error.port}`
  return `${where}: ${problems[error.code ?? '']?.text ?? error.code ?? error.message}`
}
