import { CliError } from '../../src/errors.ts'
import type { Exchange } from '../../src/wire/exchange.ts'
import { answering } from './run.ts'

/** Yields the text, then fails like a connection that breaks. */
export async function* createCutBody(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
  throw new CliError('response', 'the connection broke off', { sent: 'yes', isCutOff: true })
}

/** Exchange that sends the request and gets no answer. */
export const unanswered: Exchange = async (_, onSent) => {
  onSent?.()
  throw new CliError('unknown', 'the connection was closed before an answer')
}

/** Exchange that cannot connect, so it sends nothing. */
export const unreachable: Exchange = async () => {
  throw new CliError('not-sent', 'the connection was refused')
}

/**
 * Answers with these chunks of a body, and calls `act`. If `act` returns an error, the body then fails with
 * it.
 */
export const breaking =
  (chunks: string | string[], act: () => unknown, contentType = 'application/json', status = 200): Exchange =>
  async (...call) => {
    const response = await answering(chunks, { status, headers: { 'content-type': contentType } })(...call)
    async function* body() {
      yield* response.body
      const error = await act()
      if (error instanceof Error) throw error
    }
    return { ...response, body: body() }
  }

/** Answers the requests in order, each with a body of JSON, given as text or as a value, or by an exchange. */
export function answerInOrder(...answers: (string | Exchange | object)[]): Exchange {
  let count = 0
  return (request, onSent) => {
    const next = answers[count++]
    if (next === undefined) throw new Error(`request ${count} was not expected`)
    onSent?.()
    if (typeof next === 'function') return (next as Exchange)(request, onSent)
    return answering(typeof next === 'string' ? next : JSON.stringify(next))(request, onSent)
  }
}
