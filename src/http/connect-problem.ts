import { CliError } from '../errors.ts'
import type { HttpProxy } from './proxy.ts'

interface ConnectError {
  code?: string
  message?: string
  address?: string
  port?: number
  /** The certificate that is not valid. */
  cert?: { subjectaltname?: string }
  errors?: ConnectError[]
}

/**
 * Says in plain words why there is no connection to a host, or to the proxy where one is given: a `CliError` of kind
 * `not-sent`.
 */
export function explainConnectError(error: ConnectError, url: URL, proxy: HttpProxy | undefined): CliError {
  // For a name with several addresses, the error has one error for each and no message of its own.
  const all = error.errors ?? [error]
  const isPermanent = all.some(({ code }) => problemOf(code)?.isPermanent)
  const what = all.map((one) => describe(one, url)).join(', ')
  const message = proxy ? `the proxy in ${proxy.variable}, ${what}` : what
  return new CliError('not-sent', message, { isPermanent })
}

const unknownAuthority = {
  text: 'its certificate comes from an unknown authority: --cacert FILE trusts it',
  isPermanent: true,
} as const

const noTls = { text: 'the server does not use TLS (is the address http:// ?)', isPermanent: true } as const

const oldTls = {
  text: 'the server supports only versions of TLS that are too old',
  isPermanent: true,
} as const

interface ConnectProblem {
  text: string
  isPermanent?: true
}

const problems: Record<string, ConnectProblem> = {
  ECONNREFUSED: { text: 'connection refused' },
  ECONNRESET: { text: 'the connection was reset before it was ready' },
  ETIMEDOUT: { text: 'the connection timed out' },
  EHOSTUNREACH: { text: 'no route to the host' },
  ENETUNREACH: { text: 'the network is unreachable' },
  ENOTFOUND: { text: 'no such host', isPermanent: true },
  EAI_AGAIN: { text: 'the name cannot be looked up at the moment' },
  DEPTH_ZERO_SELF_SIGNED_CERT: {
    text: 'its certificate is self-signed: --cacert FILE trusts it',
    isPermanent: true,
  },
  SELF_SIGNED_CERT_IN_CHAIN: unknownAuthority,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: unknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT: unknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: unknownAuthority,
  CERT_HAS_EXPIRED: { text: 'its certificate has expired', isPermanent: true },
  CERT_NOT_YET_VALID: { text: 'its certificate is not valid yet (is the clock right?)', isPermanent: true },
  CERT_REVOKED: { text: 'its certificate was revoked', isPermanent: true },
  ERR_TLS_CERT_ALTNAME_INVALID: { text: 'its certificate is for another host', isPermanent: true },
  ERR_SSL_WRONG_VERSION_NUMBER: noTls,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: noTls,
  EPROTO: noTls,
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: oldTls,
  ERR_SSL_UNSUPPORTED_PROTOCOL: oldTls,
}

const problemOf = (code = '') => (Object.hasOwn(problems, code) ? problems[code] : undefined)

function describe({ code, message, address, port, cert }: ConnectError, url: URL): string {
  const shown = address?.includes(':') ? `[${address}]` : address
  const where = shown === undefined ? url.host : `${shown}:${port}`
  const names = cert?.subjectaltname ? ` (${cert.subjectaltname.replaceAll('DNS:', '').slice(0, 200)})` : ''
  const what = problemOf(code)?.text ?? code ?? message
  return `${where}: ${what}${code === 'ERR_TLS_CERT_ALTNAME_INVALID' ? names : ''}`
}
