import { message } from '../harness/run.ts'
import { resetWhenRead, response } from '../harness/server.ts'
import {
  messageStop,
  respondAndClose,
  respondAndReset,
  respondWith,
  sseEvent,
  sseHead,
  textDelta,
} from './answers.ts'
import { chatArgv, type FaultRow, row, streamArgv, testNetworkFaults, unfinishedStream } from './rows.ts'

/** Returns a chunk in the gateway's native format. */
const part = (text: string | object, more: object = {}) => ({
  candidates: [{ index: 0, content: { parts: [typeof text === 'string' ? { text } : text] }, ...more }],
})
const STOP = { finishReason: 'STOP' }
const finished = (text: string | object = 'so far') => sseEvent(part(text, STOP))
const head = (type: string) => `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\nconnection: close\r\n\r\n`
const jsonHead = head('application/json')
const lines = (...values: unknown[]) => values.map((value) => `${JSON.stringify(value)}\n`).join('')

const whole = { argv: streamArgv, code: 0, out: 'so far\n' } satisfies Partial<FaultRow>
const failed = <T extends Partial<FaultRow>>(row: T) => ({ ...unfinishedStream, ...row })
const cancelled = { error: { code: 499, message: 'The operation was cancelled.', status: 'CANCELLED' } }
const expectedErr = ['the stream ended with an error', 'the service says: The operation was cancelled.']
const call = { functionCall: { name: 'search', args: {} } }
const odd = '{"constructor":{"__proto__":1},"__proto__":{"toString":2}}'

testNetworkFaults('E: parley reads streams in the native format of the gateway', [
  row(
    'E30: after a chunk with a function call and a finishReason, parley prints the text of the next chunk',
    {
      ...whole,
      script: (socket) => {
        socket.write(sseHead + finished(call))
        setTimeout(() => socket.end(sseEvent(part('so ')) + finished('far')), 100)
      },
    },
  ),
  row('E30: parley prints all text if every chunk has a finishReason', {
    ...whole,
    script: respondAndClose(sseHead + finished('so ') + finished('f') + finished('ar')),
  }),
  ...[respondAndClose, respondAndReset].map((end) =>
    row(
      `E31: parley exits with 8 if ${end === respondAndClose ? 'FIN' : 'RST'} cuts a stream with more text after a finishReason`,
      { ...unfinishedStream, script: end(sseHead + finished('') + sseEvent(part('so far'))) },
      { err: [/the (stream ended early|answer broke off)/] },
    ),
  ),
  row('E31: parley exits with 0 if RST follows the FIN of a stream with a finishReason (needs resets)', {
    ...whole,
    script: (socket) => void socket.end(sseHead + finished(), () => socket.resetAndDestroy()),
  }),
  row('E31: parley exits with 8 after --timeout if silence follows a finishReason', {
    ...unfinishedStream,
    argv: [...streamArgv, '--timeout', '3'],
    script: respondWith(sseHead + finished('so ') + finished('far')),
    err: ['no byte arrived for 3 s'],
  }),
  ...[sseEvent(cancelled), JSON.stringify(cancelled)].map((failure, index) =>
    row(
      `E32: parley exits with 8 and prints the message of an error ${index === 0 ? 'event' : 'as bare JSON'} after a finishReason`,
      { ...failed({ err: expectedErr }), script: respondAndClose(sseHead + finished() + failure) },
    ),
  ),
  row('E35: parley reads a stream with one chunk per line as application/x-ndjson', {
    ...whole,
    script: respondAndClose(head('application/x-ndjson') + lines(part('so '), null, part('far', STOP))),
  }),
  ...['ping', '{}'].map((data) =>
    row(`E36: parley skips the keep-alive data "${data}" in a text stream`, {
      ...whole,
      script: respondAndClose(
        `${sseHead}data: ${data}\n\n${textDelta('so far')}data: ${data}\n\n${messageStop}`,
      ),
    }),
  ),
  row('E37: parley accepts the data "[done]" as the end of a stream that stays open', {
    ...whole,
    script: respondWith(`${sseHead}${textDelta('so far')}data: "[done]"\n\n`),
  }),
  row('E41: parley prints a chunk of a JSON array before the next comma arrives', {
    ...whole,
    script: (socket) => {
      socket.write(`${jsonHead}[${JSON.stringify(part('so far'))}`)
      void resetWhenRead(socket)
    },
    code: 8,
    out: 'so far\n',
  }),
  ...['\n', ' x'].map((rest) =>
    row(
      `E42: parley --raw prints the ${JSON.stringify(rest)} that follows the closing bracket of a JSON array`,
      {
        ...whole,
        argv: [...streamArgv, '--raw'],
        script: (socket) => {
          socket.write(`${jsonHead}[${JSON.stringify(part('so far'))}]`)
          setTimeout(() => socket.end(rest), 200)
        },
        out: `[${JSON.stringify(part('so far'))}]${rest}`,
      },
    ),
  ),
  row('E42: parley exits with 8 if a brace closes a streamed JSON array', {
    ...failed({ out: '' }),
    script: respondAndClose(`${jsonHead}[}`),
  }),
  ...[`${sseHead}data: `, jsonHead].map((start, index) =>
    row(`E43: parley exits with 8 on 200,000 nested lists in ${index === 0 ? 'an event' : 'a body'}`, {
      ...failed({ out: '', err: ['nested more than 1000 levels deep'] }),
      script: respondAndClose(
        `${start}{"type":"error","error":${'['.repeat(200_000)}${']'.repeat(200_000)}}\n\n`,
      ),
    }),
  ),
  row('E44: parley reads "constructor" as an ordinary type, name and key of stream events', {
    ...whole,
    script: respondAndClose(
      `${sseHead}${sseEvent({ type: 'constructor', constructor: 'constructor' }, 'constructor')}data: ${odd}\n\n${sseEvent({ type: 'content_block_start', content_block: { type: 'constructor' } })}${textDelta('so far')}${sseEvent({ type: 'message_delta', delta: { stop_reason: 'constructor' } })}${messageStop}`,
    ),
    err: ['the answer was stopped: constructor'],
  }),
])

const limitedAnswer = message('so far', { stop_reason: 'max_tokens' })

testNetworkFaults('R: parley reads answers that were stopped', [
  row('R52: parley --fail-on-cut exits with 8 if the stop reason is SAFETY', {
    ...whole,
    argv: [...chatArgv, '--fail-on-cut'],
    script: respondWith(response(message('so far', { stop_reason: 'SAFETY' }))),
    code: 8,
    err: [/^parley: the answer was (cut|stopped).*\n$/],
  }),
  row(
    'R52: parley exits with 8 and prints a JSON error if the setting failOnCut is on and the answer was cut',
    {
      ...whole,
      argv: [...chatArgv, '--errors', 'json'],
      script: respondWith(response(limitedAnswer)),
      env: { PARLEY_FAIL_ON_CUT: 'true' },
    },
    { code: 8, err: [/^\{"error":\{"format":1,"kind":"response","exit":8,"status":200,[^\n]*\}\n$/] },
  ),
  row('R55: parley exits with 8 and prints the reason if the service blocks the prompt', {
    ...whole,
    argv: chatArgv,
    script: respondWith(response('{"promptFeedback":{"blockReason":"SAFETY","blockReasonMessage":"No."}}')),
    code: 8,
    out: '',
    err: ['the answer was stopped: SAFETY: No.'],
  }),
])
