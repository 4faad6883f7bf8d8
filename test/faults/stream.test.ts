import { message } from '../harness/run.ts'
import { response } from '../harness/server.ts'
import {
  encodeChunks,
  messageStop,
  respondAndClose,
  respondAndReset,
  respondWith,
  sseEvent,
  sseHead,
  textDelta,
} from './answers.ts'
import { type FaultRow, row, streamArgv, testNetworkFaults, unfinishedStream } from './rows.ts'

const chunkedHead = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'
const broken = { ...unfinishedStream, err: ['the answer broke off'] } satisfies Partial<FaultRow>
const whole = { argv: streamArgv, code: 0, out: 'so far\n' } satisfies Partial<FaultRow>
const started = sseHead + textDelta('so far')

testNetworkFaults('E: parley reads text streams', [
  ...[respondAndClose, respondAndReset].flatMap((end) => [
    row(
      `E01: parley prints the text so far and exits with 8 if ${end === respondAndClose ? 'FIN' : 'RST'} cuts a chunked stream`,
      { ...broken, script: end(chunkedHead + encodeChunks(textDelta('so far'), 'data: {"ty')) },
    ),
    row(
      `E01: parley prints the text so far and exits with 8 if ${end === respondAndClose ? 'FIN' : 'RST'} cuts a stream that is not chunked`,
      {
        ...unfinishedStream,
        script: end(`${started}data: {"ty`),
        ...(end === respondAndReset ? { err: ['the answer broke off: the connection was reset'] } : {}),
      },
    ),
  ]),
  row('E02: parley exits with 8 if message events end without message_stop', {
    ...unfinishedStream,
    script: respondAndClose(started),
  }),
  row('E02: parley does not print text after message_stop', {
    ...whole,
    script: respondWith(started + messageStop + textDelta('after the end')),
  }),
  ...[
    sseEvent(
      { type: 'error', error: { type: 'overloaded_error', message: 'too\u001b[2J busy\n::error::x' } },
      'error',
    ),
    sseEvent({ error: 'too\u001b[2J busy\n::error::x' }, 'error'),
  ].flatMap((failure, index) => [
    row(
      `E03: parley exits with 8 and prints the service's message if an event with an error ${index === 0 ? 'object' : 'string'} follows some text`,
      { ...unfinishedStream, script: respondWith(started + failure) },
      { err: ['the stream ended with an error', 'the service says: too^[[2J busy ::error::x'] },
    ),
    row(
      `E04: parley exits with 8 and prints no text if the first event has an error ${index === 0 ? 'object' : 'string'}`,
      { ...unfinishedStream, script: respondWith(sseHead + failure) },
      { out: '', err: ['the service says: too^[[2J busy'] },
    ),
  ]),
  row('E05: parley prints the text of a JSON response to a stream request', {
    ...whole,
    script: respondWith(response(message('so far'))),
  }),
  row(
    'E07: parley reads several data lines per event, and skips comments, unknown fields and unknown events',
    {
      ...whole,
      script: respondWith(
        `${sseHead}: hello\n\nid: 7\nretry: 1\nfoo: bar\ndata:{"type":\ndata:"content_block_delta",\ndata: "delta":{"type":"text_delta","text":"so far"}}\n\n${sseEvent({ type: 'strange' }, 'strange')}${messageStop}`,
      ),
    },
  ),
  row('E08: parley exits with 8 if no blank line follows the last event message_stop', {
    ...unfinishedStream,
    script: respondAndClose(started + messageStop.trimEnd()),
  }),
  row('E10: parley exits with 8 and does not quote the data if the data of an event is not JSON', {
    ...unfinishedStream,
    script: respondAndClose(`${started}data: {"type": canary-token-5f3a9c\n\n`),
    err: ['an event of the stream is not JSON', /^(?!.*5f3a)/s],
  }),
  row('E11: parley drops the byte order mark of a stream and replaces bytes that are not UTF-8', {
    ...whole,
    script: respondWith(
      Buffer.concat([
        Buffer.from(`${sseHead}\ufeff`),
        ...textDelta('so far#')
          .split('#')
          .flatMap((text, i) => (i ? [Buffer.of(0xff), Buffer.from(text)] : [Buffer.from(text)])),
        Buffer.from(messageStop),
      ]),
    ),
    out: 'so far\ufffd\n',
    err: ['some bytes of the answer are not UTF-8'],
  }),
  row('E14: parley exits with 8 at the deadline if only comments follow the first text', {
    ...unfinishedStream,
    argv: [...streamArgv, '--timeout', '3', '--deadline', '5'],
    script: (socket) => {
      socket.write(started)
      const timer = setInterval(() => socket.write(': ping\n\n'), 200)
      socket.on('close', () => clearInterval(timer))
    },
    err: ['the deadline passed'],
    minSeconds: 5,
  }),
  row(
    'E15: parley exits with 8 after --timeout of silence between two events',
    { ...unfinishedStream, argv: [...streamArgv, '--timeout', '3'], script: respondWith(started) },
    { err: ['no byte arrived for 3 s'], minSeconds: 3 },
  ),
  row('E16: parley --raw prints only whole events, one per line, if the stream is cut', {
    ...unfinishedStream,
    argv: [...streamArgv, '--raw'],
    script: respondAndClose(`${sseHead}data: {"type":"ping",\ndata: "n": 1.10}\n\ndata: {"type":`),
    out: '{"type":"ping","n": 1.10}\n',
  }),
  row('R22: parley prints whole characters if a stream arrives byte by byte', {
    ...whole,
    script: async (socket) => {
      socket.setNoDelay(true)
      for (const byte of Buffer.from(sseHead + textDelta('hé🦜') + messageStop)) {
        socket.write(Uint8Array.of(byte))
        await new Promise(setImmediate)
      }
    },
    out: 'hé🦜\n',
  }),
])
