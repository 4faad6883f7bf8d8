import { message } from '../harness/run.ts'
import { resetWhenRead, response, type Script } from '../harness/server.ts'

/** The chat endpoint's answer "ok", and its printed form. */
export const ok = response(message('ok'))
export const okText = 'ok\n'

/** Response of the session service to sent events, and its printed form. */
export const receipt = response('{"data":[{"id":"sevt_1","type":"user.message","processed_at":null}]}')
export const receiptText = 'sevt_1\tuser.message\t\t\n'

/** Answers the requests with these responses in order, and repeats the last one. */
export const answering =
  (...answers: (string | Uint8Array)[]): Script =>
  (socket, _, count) =>
    void socket.write(answers[Math.min(count, answers.length) - 1] ?? '')

/** Writes these bytes and closes the connection with FIN. */
export const closing =
  (bytes: string | Uint8Array = ''): Script =>
  (socket) =>
    void socket.end(bytes)

/** Writes these bytes, and resets the connection after they were read. */
export const resetting =
  (bytes: string | Uint8Array = ''): Script =>
  (socket) => {
    if (bytes.length === 0) return void socket.resetAndDestroy()
    socket.write(bytes)
    void resetWhenRead(socket)
  }

export const makeHead = (status: string, ...headers: string[]) =>
  `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\n${headers.map((line) => `${line}\r\n`).join('')}\r\n`

/** The head of an event stream without a length. */
export const sseHead = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n'

export const event = (value: unknown, name = '') =>
  `${name ? `event: ${name}\n` : ''}data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`

/** An event that adds text to a message stream. */
export const delta = (text: string) =>
  event({ type: 'content_block_delta', delta: { type: 'text_delta', text } })

export const stop = event({ type: 'message_stop' })

/** Encodes a body in HTTP's chunked form, without its end. */
export const chunked = (...chunks: string[]) =>
  chunks.map((chunk) => `${Buffer.byteLength(chunk).toString(16)}\r\n${chunk}\r\n`).join('')
