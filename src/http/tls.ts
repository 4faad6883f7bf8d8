import { isIP, type Socket } from 'node:net'
import { connect, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls'

/** Trusts the usual certificates and also the CA certificates in `ca` (PEM). */
export function createTrust(ca: string | undefined): SecureContext {
  const trust = createSecureContext()
  // With the `ca` option the context would trust nothing else.
  if (ca !== undefined) (trust as unknown as NativeContext).context.addCACert(ca)
  return trust
}

/** Starts TLS on a connection. */
export function startTls(socket: Socket, host: string, trust: SecureContext): TLSSocket {
  return connect({
    socket,
    host,
    secureContext: trust,
    ALPNProtocols: ['http/1.1'],
    servername: isIP(host) ? undefined : host,
  })
}

interface NativeContext {
  context: { addCACert(pem: string): void }
}
