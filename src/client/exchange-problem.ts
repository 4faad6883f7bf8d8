import { CliError } from '../errors.ts'

/** How far a request got. */
export type Reached = 'nowhere' | 'sent' | 'head'

/** Names a failure by how far the request got, never by its error code: a reset happens at every stage. */
export function failure(reached: Reached, url: URL, what: string): CliError {
  if (reached === 'nowhere') return new CliError('not-sent', `${url.host}: ${what}`, { sent: 'no' })
  if (reached === 'sent') return new CliError('unknown', `${url.host}: ${what}`, { sent: 'unknown' })
  return new CliError('response', `the answer broke off: ${what}`, { sent: 'yes' })
}

/** Names what undici reports. `received` tells how much came over the connection, in bytes. */
export function explainFailure(
  error: NodeJS.ErrnoException & { data?: unknown },
  reached: Reached,
  url: URL,
  received: number,
): CliError {
  const { code, name, message } = error
  if (isTlsAlert(error.data)) return failure(reached, url, `it speaks TLS there ${hint}`)
  const violation =
    name === 'HTTPParserError' ? 'malformed' : (violations.get(code ?? '') ?? violations.get(message))
  if (violation && reached !== 'nowhere') {
    const what = `the answer of ${url.host} is not proper HTTP/1.1: ${violation}`
    // Without a head nobody has said what became of the request.
    return new CliError('response', what, { sent: reached === 'head' ? 'yes' : 'unknown' })
  }
  if (message === 'other side closed') {
    // A server that speaks TLS often hangs up without a word.
    const isMute = received === 0 && url.protocol === 'http:'
    return failure(reached, url, `the connection was closed${isMute ? ` without an answer ${hint}` : ''}`)
  }
  if (code === 'ECONNRESET' || code === 'EPIPE') return failure(reached, url, 'the connection was reset')
  return failure(reached, url, code ?? name)
}

const hint = '(is the address https:// ?)'

/** The first byte of a TLS record that is an alert. undici hands on the bytes that were no HTTP. */
const isTlsAlert = (data: unknown) => typeof data === 'string' && data.charCodeAt(0) === 0x15

/** What an answer did wrong that was no proper HTTP, by undici's codes and messages. */
const violations = new Map([
  ['UND_ERR_HEADERS_OVERFLOW', 'its headers are too long'],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'its length is not the one that it announced'],
  ['bad upgrade', 'it changed the protocol unasked'],
  ['bad response', 'it answered what was not asked'],
])
