import { message } from '../harness/run.ts'
import { resetWhenRead, response, type Script } from '../harness/server.ts'

/** Response of the chat endpoint with the answer "ok". parley prints `okOutput`. */
export const okResponse = response(message('ok'))
export const okOutput = 'ok\n'

/** Response of the session service to an event. `events send` prints `sendOutput`. */
export const sendResponse = response('{"data":[{"id":"sevt_1","type":"user.message","processed_at":null}]}')
export const sendOutput = 'sevt_1\tuser.message\t\t\n'

/** Answers the requests with these responses in order. The last response repeats. */
export const respondWith =
  (...answers: (string | Uint8Array)[]): Script =>
  (socket, _, count) =>
    void socket.write(answers[Math.min(count, answers.length) - 1] ?? '')

/** Answers with these bytes and closes the connection with FIN. */
export const respondAndClose =
  (bytes: string | Uint8Array = ''): Script =>
  (socket) =>
    void socket.end(bytes)

/** Answers with these bytes, and resets the connection once they were read. */
export const respondAndReset =
  (bytes: string | Uint8Array = ''): Script =>
  (socket) => {
    if (bytes.length === 0) return void socket.resetAndDestroy()
    socket.write(bytes)
    void resetWhenRead(socket)
  }

/** Formats the status line and the headers of a JSON response. */
export const formatHead = (status: string, ...headers: string[]) =>
  `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\n${headers.map((line) => `${line}\r\n`).join('')}\r\n`

/** Status line and headers of an event stream, which ends with its connection. */
export const sseHead = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n'

export const sseEvent = (value: unknown, name = '') =>
  `${name ? `event: ${name}\n` : ''}data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`

/** Formats the event that adds text to a message stream. */
export const textDelta = (text: string) => sseEvent({ type: 'content_block_delta', delta: textPart(text) })
const textPart = (text: string) => ({ type: 'text_delta', text })

/** Event that completes a message stream. */
export const messageStop = sseEvent({ type: 'message_stop' })

/** Encodes a body in HTTP's chunked form, without the last chunk, which marks the end. */
export const encodeChunks = (...chunks: string[]) =>
  chunks.map((chunk) => `${Buffer.byteLength(chunk).toString(16)}\r\n${chunk}\r\n`).join('')
