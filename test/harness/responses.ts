import { CliError } from '../../src/errors.ts'
import type { HttpResponse } from '../../src/wire/exchange.ts'

/** Returns a response with this body. Default content type: JSON. */
export function createResponse(
  status: number,
  text: string,
  headers: Record<string, string> = {},
): HttpResponse {
  async function* body(): AsyncGenerator<Uint8Array> {
    if (text !== '') yield Buffer.from(text)
  }
  return {
    status,
    statusText: '',
    headers: { 'content-type': 'application/json', ...headers },
    body: body(),
    close() {},
  }
}

/** Yields the text, then fails like a connection that breaks. */
export async function* createCutBody(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
  throw new CliError('response', 'the connection broke off', { sent: 'yes', isCutOff: true })
}
