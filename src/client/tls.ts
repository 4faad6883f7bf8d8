import type { Socket } from 'node:net'
import { connect, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls'

/** What is trusted: the usual certificates and, beside them, the CA certificates in `ca` (PEM). */
export function createTrust(ca: string | undefined): SecureContext {
  const trust = createSecureContext()
  // With a `ca` option the context would trust nothing else: this adds to what it trusts.
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
    ...(isName(host) ? { servername: host } : {}),
  })
}

interface NativeContext {
  context: { addCACert(pem: string): void }
}

const isName = (host: string) => !/^[\d.]+$|:/.test(host)
