import { response } from '../harness/server.ts'
import { encodeChunks, respondAndClose, respondAndReset, respondWith, sseHead, textDelta } from './answers.ts'
import { row, streamArgv, testNetworkFaults, unfinishedStream } from './rows.ts'

const chunkedHead = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'
const started = sseHead + textDelta('so far')

testNetworkFaults('E: parley reads text streams', [
  ...[respondAndClose, respondAndReset].flatMap((end) => [
    row(
      `E01: parley prints the text so far and exits with 8 if ${end === respondAndClose ? 'FIN' : 'RST'} cuts a chunked stream`,
      {
        ...unfinishedStream,
        script: end(chunkedHead + encodeChunks(textDelta('so far'), 'data: {"ty')),
        err: ['the answer broke off'],
      },
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
  row('E10: parley exits with 8 and does not quote the data if the data of an event is not JSON', {
    ...unfinishedStream,
    script: respondAndClose(`${started}data: {"type": canary-token-5f3a9c\n\n`),
    err: ['an event of the stream is not JSON', /^(?!.*5f3a)/s],
  }),
  row(
    'E15: parley exits with 8 after --timeout of silence between two events',
    { ...unfinishedStream, argv: [...streamArgv, '--timeout', '3'], script: respondWith(started) },
    { err: ['no byte arrived for 3 s'], minSeconds: 3 },
  ),
  row('E31: parley exits with 0 if RST follows the FIN of a stream with a finishReason (needs resets)', {
    argv: streamArgv,
    script: (socket) =>
      void socket.end(
        `${sseHead}data: {"candidates":[{"content":{"parts":[{"text":"so far"}]},"finishReason":"STOP"}]}\n\n`,
        () => socket.resetAndDestroy(),
      ),
    code: 0,
    out: 'so far\n',
  }),
])

testNetworkFaults('Y: parley rejects responses that are not an event stream', [
  row('Y01: parley exits with 8 at once if a stream request gets an endless text/plain response', {
    argv: ['events', 'follow'],
    script: (socket, request) => {
      if (!/^GET \S+\/stream /.test(request)) return void socket.write(response('{"data":[]}'))
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n')
      const timer = setInterval(() => socket.write('\n'), 50)
      socket.on('close', () => clearInterval(timer))
    },
    code: 8,
    reqs: 2,
    err: ['is not a stream of events: it is text/plain'],
  }),
])
