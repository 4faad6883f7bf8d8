import { CliError } from '../errors.ts'

/** How far a request got. */
export type Reached = 'nowhere' | 'sent' | 'head'

/** Names a failure by how far the request got, never by its error code: a reset happens at every stage. */
export function failure(reached: Reached, url: URL, what: string): CliError {
  if (reached === 'nowhere') return new CliError('not-sent', `${url.host}: ${what}`)
  if (reached === 'sent') return new CliError('unknown', `${url.host}: ${what}`)
  return new CliError('response', `the answer broke off: ${what}`)
}

/** Names what undici reports; the connection's own error counts more. */
export function explainFailure(
  reported: Error,
  reached: Reached,
  url: URL,
  connection: { errored?: Error | null; received: number },
): CliError {
  const error: NodeJS.ErrnoException & { data?: unknown } = connection.errored ?? reported
  const { code, name, message } = error
  if (isTlsAlert(error.data)) return failure(reached, url, `the server expects TLS ${hint}`)
  const violation =
    name === 'HTTPParserError' ? 'malformed' : (violations.get(code ?? '') ?? violations.get(message))
  if (violation && reached !== 'nowhere') {
    return new CliError('response', `the answer of ${url.host} is not proper HTTP/1.1: ${violation}`)
  }
  if (message === 'other side closed') {
    // A server that expects TLS often closes without an answer.
    const isMute = connection.received === 0 && url.protocol === 'http:'
    return failure(reached, url, `the connection was closed${isMute ? ` without an answer ${hint}` : ''}`)
  }
  if (code === 'ECONNRESET' || code === 'EPIPE') return failure(reached, url, 'the connection was reset')
  return failure(reached, url, code ?? name)
}

const hint = '(is the address https:// ?)'

/** Whether the bytes that undici could not read as HTTP begin a TLS alert. */
const isTlsAlert = (data: unknown) => typeof data === 'string' && data.charCodeAt(0) === 0x15

/** What is wrong with an answer that is not proper HTTP, by undici's codes and messages. */
const violations = new Map([
  ['UND_ERR_HEADERS_OVERFLOW', 'its headers are too long'],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'the body does not match Content-Length'],
  ['bad upgrade', 'unexpected change of protocol'],
  ['bad response', 'unexpected extra response'],
])
