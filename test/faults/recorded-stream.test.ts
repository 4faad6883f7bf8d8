import { message } from '../harness/run.ts'
import { resetWhenRead, response } from '../harness/server.ts'
import { answering, closing, delta, event, resetting, sseHead, stop } from './answers.ts'
import { chat, endsEarly, faultsInside, type Row, stream } from './rows.ts'

/** Returns a chunk in the gateway's native format. */
const part = (text: string | object, more: object = {}) => ({
  candidates: [{ index: 0, content: { parts: [typeof text === 'string' ? { text } : text] }, ...more }],
})
const STOP = { finishReason: 'STOP' }
const finished = (text: string | object = 'so far') => event(part(text, STOP))
const head = (type: string) => `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\nconnection: close\r\n\r\n`
const jsonHead = head('application/json')
const lines = (...values: unknown[]) => values.map((value) => `${JSON.stringify(value)}\n`).join('')

const whole = { argv: stream, code: 0, reqs: 1, out: 'so far\n' } satisfies Partial<Row>
const failed = <T extends Partial<Row>>(row: T) => ({ ...endsEarly, ...row })
const cancelled = { error: { code: 499, message: 'The operation was cancelled.', status: 'CANCELLED' } }
const expectedErr = ['the stream ended with an error', 'the service says: The operation was cancelled.']
const call = { functionCall: { name: 'search', args: {} } }
const odd = '{"constructor":{"__proto__":1},"__proto__":{"toString":2}}'

faultsInside('E: recorded streams', [
  {
    ...whole,
    name: 'E30: parley prints the text that follows a function call with a finishReason and a pause',
    script: (socket) => {
      socket.write(sseHead + finished(call))
      setTimeout(() => socket.end(event(part('so ')) + finished('far')), 100)
    },
  },
  {
    ...whole,
    name: 'E30: parley prints all text if every chunk has a finishReason',
    script: closing(sseHead + finished('so ') + finished('f') + finished('ar')),
  },
  ...[closing, resetting].map(
    (end): Row => ({
      ...endsEarly,
      name: `E31: parley exits with 8 if ${end === closing ? 'FIN' : 'RST'} follows the text after an early finishReason`,
      script: end(sseHead + finished('') + event(part('so far'))),
      err: [/the (stream ended early|answer broke off)/],
    }),
  ),
  {
    ...whole,
    name: 'E31: parley exits with 0 if FIN follows a finishReason and RST follows FIN (needs resets)',
    script: (socket) => void socket.end(sseHead + finished(), () => socket.resetAndDestroy()),
  },
  {
    ...endsEarly,
    name: 'E31: parley exits with 8 after --timeout of silence although two chunks have a finishReason',
    argv: [...stream, '--timeout', '3'],
    script: answering(sseHead + finished('so ') + finished('far')),
    err: ['no byte arrived for 3 s'],
  },
  ...[event(cancelled), JSON.stringify(cancelled)].map(
    (failure, index): Row => ({
      ...failed({ err: expectedErr }),
      name: `E32: parley exits with 8 and prints the message of an error after a finishReason, ${index === 0 ? 'in an event' : 'as bare JSON'}`,
      script: closing(sseHead + finished() + failure),
    }),
  ),

  {
    ...whole,
    name: 'E35: parley reads a stream with one chunk per line as application/x-ndjson',
    script: closing(head('application/x-ndjson') + lines(part('so '), null, part('far', STOP))),
  },
  {
    ...endsEarly,
    name: 'E35: parley exits with 8 if application/x-ndjson ends without a finishReason',
    script: closing(head('application/x-ndjson') + lines(part('so '), part('far'))),
  },
  ...['ping', '{}'].map(
    (data): Row => ({
      ...whole,
      name: `E36: parley skips the keep-alive data '${data.trim()}'`,
      script: closing(`${sseHead}data: ${data}\n\n${delta('so far')}data: ${data}\n\n${stop}`),
    }),
  ),
  {
    ...whole,
    name: "E36: parley skips the data after 'event: heartbeat'",
    script: closing(
      sseHead +
        'event: heartbeat\ndata: 1763734608\n\n' +
        delta('so far') +
        'event: heartbeat\ndata: 1763734608\n\n' +
        stop,
    ),
  },
  ...['data: [DONE]', 'data:  [Done] \n\n'].map(
    (end): Row => ({
      ...whole,
      name: `E37: parley accepts ${JSON.stringify(end)} as the end of a stream`,
      script: closing(sseHead + delta('so far') + end),
    }),
  ),
  {
    ...whole,
    name: 'E37: parley does not wait after [DONE] in quotes and lower case',
    script: answering(`${sseHead}${delta('so far')}data: "[done]"\n\n`),
  },
  ...['iso-8859-1', 'klingon'].map(
    (charset): Row => ({
      ...whole,
      name: `E38: parley reads UTF-8 that is labeled ${charset}`,
      script: closing(head(`text/event-stream; charset=${charset}`) + delta('schön 狐') + stop),
      out: 'schön 狐\n',
    }),
  ),
  {
    ...whole,
    name: 'E41: parley prints an element of an array before the next comma arrives',
    script: (socket) => {
      socket.write(`${jsonHead}[${JSON.stringify(part('so far'))}`)
      void resetWhenRead(socket)
    },
    code: 8,
    out: 'so far\n',
  },
  ...['\n', ' x'].map(
    (rest): Row => ({
      ...whole,
      name: `E42: parley prints the text after the bracket of an array with --raw: ${JSON.stringify(rest)}`,
      argv: [...stream, '--raw'],
      script: (socket) => {
        socket.write(`${jsonHead}[${JSON.stringify(part('so far'))}]`)
        setTimeout(() => socket.end(rest), 200)
      },
      out: `[${JSON.stringify(part('so far'))}]${rest}`,
    }),
  ),
  {
    ...failed({ out: '' }),
    name: 'E42: parley exits with 8 if a brace closes an array',
    script: closing(`${jsonHead}[}`),
  },
  ...[`${sseHead}data: `, jsonHead].map((start, index) => ({
    ...failed({ out: '', err: ['nested more than 1000 deep'] }),
    name: `E43: parley exits with 8 on 200,000 nested lists in ${index === 0 ? 'an event' : 'a body'}`,
    script: closing(`${start}{"type":"error","error":${'['.repeat(200_000)}${']'.repeat(200_000)}}\n\n`),
  })),
  {
    ...whole,
    name: 'E44: parley reads "constructor" as an ordinary type, name and key',
    script: closing(
      `${sseHead}${event({ type: 'constructor', constructor: 'constructor' }, 'constructor')}data: ${odd}\n\n${event({ type: 'content_block_start', content_block: { type: 'constructor' } })}${delta('so far')}${event({ type: 'message_delta', delta: { stop_reason: 'constructor' } })}${stop}`,
    ),
    err: ['the answer was stopped: constructor'],
  },
  {
    ...failed({ err: ['Bad gateway'], out: '' }),
    name: 'E45: parley exits with 8 and prints the title of an HTML page that is labeled as an event stream',
    script: closing(`${sseHead}<html><title>Bad gateway</title></html>`),
  },
])

const cutBody = message('so far', { stop_reason: 'max_tokens' })
faultsInside('R: recorded bodies', [
  {
    ...whole,
    name: 'R52: parley exits with 8 for the finish reason SAFETY with --fail-on-cut',
    argv: [...chat, '--fail-on-cut'],
    script: answering(response(message('so far', { stop_reason: 'SAFETY' }))),
    code: 8,
    err: [/^parley: the answer was (cut|stopped).*\n$/],
  },
  {
    ...whole,
    name: 'R52: parley exits with 8 and a JSON error with the setting failOnCut',
    argv: [...chat, '--errors', 'json'],
    script: answering(response(cutBody)),
    env: { PARLEY_FAIL_ON_CUT: 'true' },
    code: 8,
    err: [/^\{"error":\{"format":1,"kind":"response","exit":8,"status":200,[^\n]*\}\n$/],
  },
  {
    ...whole,
    name: 'R53: parley exits with 8 and a message if the answer has no text, even with -q',
    script: answering(response(message(''))),
    argv: [...chat, '-q'],
    code: 8,
    out: '',
    err: [/^parley: the answer has no text\n$/],
  },
  {
    ...whole,
    name: 'R55: parley exits with 8 and prints the reason of a blocked prompt',
    argv: chat,
    script: answering(response('{"promptFeedback":{"blockReason":"SAFETY","blockReasonMessage":"No."}}')),
    code: 8,
    out: '',
    err: ['the answer was stopped: SAFETY: No.'],
  },
])
