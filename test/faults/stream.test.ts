import { message } from '../harness/run.ts'
import { response, type Script } from '../harness/server.ts'
import { answering, chunked, closing, delta, event, resetting, sseHead, stop } from './answers.ts'
import { endsEarly, faultsInside, type Row, stream } from './rows.ts'

const chunkedHead = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'
const broken = { ...endsEarly, err: ['the answer broke off'] } satisfies Partial<Row>
const whole = { argv: stream, code: 0, reqs: 1, out: 'so far\n' } satisfies Partial<Row>
const started = sseHead + delta('so far')

/** Writes `start`, then `bytes` again and again. */
const repeating =
  (start: string, bytes: string, pause: number): Script =>
  (socket) => {
    socket.write(start)
    const timer = setInterval(() => socket.write(bytes), pause)
    socket.on('close', () => clearInterval(timer))
  }

faultsInside('E: streams', [
  ...[closing, resetting].flatMap((end): Row[] => [
    {
      ...broken,
      name: `E01: parley prints the text so far and exits with 8 if ${end === closing ? 'FIN' : 'RST'} cuts a chunked stream`,
      script: end(chunkedHead + chunked(delta('so far'), 'data: {"ty')),
    },
    {
      ...endsEarly,
      name: `E01: parley prints the text so far and exits with 8 if ${end === closing ? 'FIN' : 'RST'} cuts a stream without a length`,
      script: end(`${started}data: {"ty`),
      ...(end === resetting ? { err: ['the answer broke off: the connection was reset'] } : {}),
    },
  ]),
  {
    ...endsEarly,
    name: 'E02: parley exits with 8 if message events end without message_stop',
    script: closing(started),
  },
  {
    ...whole,
    name: 'E02: parley ends a stream at message_stop',
    script: answering(started + stop + delta('after the end')),
  },
  ...[
    event(
      { type: 'error', error: { type: 'overloaded_error', message: 'too\u001b[2J busy\n::error::x' } },
      'error',
    ),
    event({ error: 'too\u001b[2J busy\n::error::x' }, 'error'),
  ].flatMap((failure, index): Row[] => [
    {
      ...endsEarly,
      name: `E03: parley exits with 8 and prints the message of an error event after text if its error is ${index === 0 ? 'an object' : 'a text'}`,
      script: answering(started + failure),
      err: ['the stream ended with an error', 'the service says: too^[[2J busy ::error::x'],
    },
    {
      ...endsEarly,
      name: `E04: parley exits with 8 and prints no text if the first event is an error that is ${index === 0 ? 'an object' : 'a text'}`,
      script: answering(sseHead + failure),
      out: '',
      err: ['the service says: too^[[2J busy'],
    },
  ]),
  {
    ...whole,
    name: 'E05: parley prints a single JSON body that answers a stream request',
    script: answering(response(message('so far'))),
  },
  {
    ...whole,
    name: 'E07: parley reads comments, missing blanks, several data lines, id, retry, unknown events and fields',
    script: answering(
      `${sseHead}: hello\n\nid: 7\nretry: 1\nfoo: bar\ndata:{"type":\ndata:"content_block_delta",\ndata: "delta":{"type":"text_delta","text":"so far"}}\n\n${event({ type: 'strange' }, 'strange')}data\n:x\n\n${stop}`.replace(
        'data\n:x\n\n',
        '',
      ),
    ),
  },
  {
    ...endsEarly,
    name: 'E08: parley drops a last event without its blank line and exits with 8',
    script: closing(started + stop.trimEnd()),
  },
  {
    ...endsEarly,
    name: 'E10: parley exits with 8 on bad JSON in an event and does not quote it',
    script: answering(`${started}data: {"type": canary-token-5f3a9c\n\n`),
    err: ['an event of the stream is not JSON', /^(?!.*5f3a)/s],
  },
  {
    ...whole,
    name: 'E11: parley drops a byte order mark and replaces bytes that are not UTF-8',
    script: answering(
      Buffer.concat([
        Buffer.from(`${sseHead}\ufeff`),
        ...delta('so far#')
          .split('#')
          .flatMap((text, i) => (i ? [Buffer.of(0xff), Buffer.from(text)] : [Buffer.from(text)])),
        Buffer.from(stop),
      ]),
    ),
    out: 'so far\ufffd\n',
    err: ['some bytes of the answer are not UTF-8'],
  },
  {
    ...endsEarly,
    name: 'E14: parley exits with 8 at the deadline if only comments arrive',
    argv: [...stream, '--timeout', '3', '--deadline', '5'],
    script: repeating(started, ': ping\n\n', 200),
    err: ['the deadline passed'],
    atLeast: 5,
  },
  {
    ...endsEarly,
    name: 'E15: parley exits with 8 after --timeout of silence between two events',
    argv: [...stream, '--timeout', '3'],
    script: answering(started),
    err: ['no byte arrived for 3 s'],
    atLeast: 3,
  },
  {
    ...endsEarly,
    name: 'E16: parley prints only whole lines with --raw if the stream is cut',
    argv: [...stream, '--raw'],
    script: closing(`${sseHead}data: {"type":"ping",\ndata: "n": 1.10}\n\ndata: {"type":`),
    out: '{"type":"ping","n": 1.10}\n',
  },
  {
    ...whole,
    name: 'R22: parley prints whole characters if a stream arrives byte by byte',
    script: async (socket) => {
      socket.setNoDelay(true)
      for (const byte of Buffer.from(sseHead + delta('hé🦜') + stop)) {
        socket.write(Uint8Array.of(byte))
        await new Promise(setImmediate)
      }
    },
    out: 'hé🦜\n',
  },
])
