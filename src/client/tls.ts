import type { Socket } from 'node:net'
import { connect, createSecureContext, type TLSSocket } from 'node:tls'

/** Starts TLS on a connection, trusting the extra CA certificates in `ca` (PEM) beside the usual ones. */
export function startTls(socket: Socket, host: string, ca: string | undefined): TLSSocket {
  const secureContext = createSecureContext()
  // With a `ca` option the context would trust nothing else: this adds to what it trusts.
  if (ca !== undefined) (secureContext as unknown as NativeContext).context.addCACert(ca)
  return connect({
    socket,
    host,
    secureContext,
    ALPNProtocols: ['http/1.1'],
    ...(isName(host) ? { servername: host } : {}),
  })
}

interface NativeContext {
  context: { addCACert(pem: string): void }
}

const isName = (host: string) => !/^[\d.]+$|:/.test(host)
