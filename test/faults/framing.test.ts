import type { Socket } from 'node:net'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { message } from '../harness/run.ts'
import { response } from '../harness/server.ts'
import { answering, chunked, closing, headOf, ok, okText, resetting } from './answers.ts'
import { both, chat, events, faultsInside, type Row, stream } from './rows.ts'

const hi = message('hi')
const half = hi.slice(0, 40)
const cutAt = headOf('200 OK', `content-length: ${hi.length}`) + half
const halfReceipt = `${headOf('200 OK', 'content-length: 200')}{"data":[{"id":"sevt_1"`
const doNotResend = 'the event was accepted'
const cut = { code: 8, reqs: 1, err: ['the answer broke off'] } satisfies Partial<Row>
const cutReceipt = {
  argv: events,
  code: 8,
  reqs: 1,
  err: [doNotResend, 'do not send it again'],
} satisfies Partial<Row>
const open = headOf('200 OK', 'connection: close')
const coded = (encoding: string, body: Uint8Array) =>
  answering(response(body, '200 OK', [`content-encoding: ${encoding}`]))

const codings: [name: string, coding: string, body: Uint8Array][] = [
  ['R60 deflate without its head', 'deflate', deflateRawSync(hi)],
  ['R61 gzip twice', 'gzip, gzip', gzipSync(gzipSync(hi))],
  ['R61 gzip said twice', 'gzip, gzip', gzipSync(hi)],
  ['R61 gzip, then br', 'gzip, br', brotliCompressSync(gzipSync(hi))],
  ['R62 none', 'none', Buffer.from(hi)],
  ['R62 UTF-8', 'UTF-8', Buffer.from(hi)],
  ['R62 identity, gzip', 'identity, gzip', gzipSync(hi)],
]

faultsInside('R: response framing', [
  { ...cut, name: 'R01: half of the length, then FIN (chat)', script: closing(cutAt) },
  { ...cutReceipt, name: 'R01: half of the length, then FIN (events)', script: closing(halfReceipt) },
  { ...cut, name: 'R02: half of the length, then RST (chat)', script: resetting(cutAt) },
  { ...cutReceipt, name: 'R02: half of the length, then RST (events)', script: resetting(halfReceipt) },
  {
    ...cut,
    name: 'R02: RST after the head (chat)',
    script: resetting(headOf('200 OK', 'content-length: 9')),
  },
  {
    ...cutReceipt,
    name: 'R02: RST after the head (events)',
    script: resetting(headOf('200 OK', 'content-length: 9')),
  },
  ...[closing, resetting].flatMap((end): Row[] => [
    {
      ...cut,
      name: `R03: chunked body cut by ${end.name} (chat)`,
      script: end(headOf('200 OK', 'transfer-encoding: chunked') + chunked(half)),
    },
    {
      ...cutReceipt,
      name: `R03: chunked body cut by ${end.name} (events)`,
      script: end(headOf('200 OK', 'transfer-encoding: chunked') + chunked('{"data":[')),
    },
  ]),
  ...both({
    name: 'R04: a chunk size that is none',
    script: answering(`${headOf('200 OK', 'transfer-encoding: chunked')}zz\r\n::set-env secret\r\n`),
    code: 8,
    reqs: 1,
    err: [/^(?!.*set-env)/s],
  }),
  {
    name: 'R05: JSON that the end of the connection cuts (chat)',
    script: closing(open + half),
    code: 8,
    reqs: 1,
  },
  {
    ...cutReceipt,
    name: 'R05: JSON that the end of the connection cuts (events)',
    script: closing(`${open}{"data":[{"id"`),
  },
  { name: 'R05: JSON that a reset cuts', script: resetting(open + half), code: 8, reqs: 1 },
  {
    name: 'R07: a length that is too small (chat)',
    script: answering(`${headOf('200 OK', 'content-length: 40')}${hi}`),
    code: 8,
    reqs: 1,
  },
  {
    ...cutReceipt,
    name: 'R07: a length that is too small (events)',
    script: answering(`${headOf('200 OK', 'content-length: 10')}{"data":[],"more":"than that"}`),
  },
  ...['SSH-2.0-OpenSSH_9\r\n', '<html><h1>hello</h1></html>', '\x1b]0;evil\x07\n::add-mask::x\n'].flatMap(
    (bytes) =>
      both({ name: `R09: not HTTP: ${JSON.stringify(bytes)}`, script: closing(bytes), code: 8, reqs: 1 }),
  ),
  ...both({
    name: 'R10: a head of 20 KB',
    script: answering(response('{}', '200 OK', [`x-long: ${'x'.repeat(20_000)}`])),
    code: 8,
    reqs: 1,
    err: ['its headers are too long'],
  }),
  ...both({
    name: 'R10: NUL in a header',
    script: answering(response('{}', '200 OK', ['x: a\0b'])),
    code: 8,
    reqs: 1,
  }),
  ...both({
    name: 'R10: lines that end in a bare LF',
    script: answering(response('{"content":"ok","data":[]}').toString().replaceAll('\r\n', '\n')),
    code: 8,
    reqs: 1,
    err: ['is not proper HTTP/1.1'],
  }),
  ...both({
    name: 'R10: a length and chunks at once',
    script: answering(
      `${headOf('200 OK', 'content-length: 5', 'transfer-encoding: chunked')}2\r\n{}\r\n0\r\n\r\n`,
    ),
    code: 8,
    reqs: 1,
  }),
  {
    name: 'R30: gzip unasked',
    script: coded('gzip', gzipSync(hi)),
    code: 0,
    out: 'hi\n',
    reqs: 1,
  },
  { name: 'R30: br unasked', script: coded('br', brotliCompressSync(hi)), code: 0, out: 'hi\n', reqs: 1 },
  { name: 'R30: deflate unasked', script: coded('Deflate', deflateSync(hi)), code: 0, out: 'hi\n', reqs: 1 },
  {
    name: 'R30: gzip of a failure',
    script: answering(response(gzipSync('{"error":"no!"}'), '400 Bad', ['content-encoding: gzip'])),
    code: 4,
    reqs: 1,
    err: ['the service says: no!'],
  },
  {
    name: 'R31: gzip cut short, with the length that it has',
    script: coded('gzip', gzipSync(hi).subarray(0, 60)),
    code: 8,
    reqs: 1,
  },
  {
    name: 'R31: br cut short',
    script: coded('br', brotliCompressSync(hi).subarray(0, 60)),
    code: 8,
    reqs: 1,
  },
  {
    name: 'R32: a label without gzip',
    script: coded('gzip', Buffer.from(hi)),
    code: 8,
    reqs: 1,
    err: ['cannot be decompressed'],
  },
  {
    name: 'R32: a wrong checksum',
    script: coded(
      'gzip',
      gzipSync(hi).map((byte, i, all) => (i === all.length - 6 ? byte ^ 255 : byte)),
    ),
    code: 8,
    reqs: 1,
  },
  {
    ...cutReceipt,
    name: 'R32: a label without gzip (events)',
    script: coded('gzip', Buffer.from('{"data":[]}')),
  },
  ...both({
    name: 'R33: an unknown encoding',
    script: coded('zst\u00ff', Buffer.from(hi)),
    code: 8,
    reqs: 1,
  }),
  {
    name: 'R37: Connection: close, a megabyte, FIN, and a slow reader',
    shell: 'set -o pipefail; parley chat hi | (sleep 1; cat)',
    script: closing(open + message('x'.repeat(2 ** 20))),
    code: 0,
    out: `${'x'.repeat(2 ** 20)}\n`,
    reqs: 1,
  },
  {
    name: 'R39: an answer that nobody asked for is never the answer to the retry',
    script: (socket, _, count) => {
      const fake = response(message('fake'))
      socket.write(count === 1 ? Buffer.concat([response('{}', '500 Oops'), fake]) : ok)
    },
    code: 0,
    out: okText,
    reqs: 2,
    err: ['trying again'],
  },
  ...codings.map(
    ([name, coding, body]): Row => ({ name, script: coded(coding, body), code: 0, out: 'hi\n', reqs: 1 }),
  ),
  ...['gzip, zst', 'constructor', '__proto__', 'gzip,'.repeat(6)].map(
    (coding): Row => ({
      name: `R63: ${coding} is unknown`,
      script: coded(coding, gzipSync(hi)),
      code: 8,
      reqs: 1,
      err: ['its encoding, ', 'is unknown'],
    }),
  ),
  {
    name: 'R64: no body in a coding',
    script: coded('gzip', new Uint8Array()),
    code: 8,
    reqs: 1,
    err: ['the answer is empty'],
  },
  ...both({
    name: 'R65: two equal lengths',
    script: answering(response('{"content":"ok","data":[]}', '200 OK', ['Content-Length: 26'])),
    code: 0,
    reqs: 1,
  }),
  ...both({
    name: 'R65: two equal lengths in one line',
    script: answering(`${headOf('200 OK', 'content-length: 26, 26')}{"content":"ok","data":[]}`),
    code: 0,
    reqs: 1,
  }),
  ...both({
    name: 'R66: two lengths that differ',
    script: answering(response('{"content":"ok","data":[]}', '200 OK', ['Content-Length: 9'])),
    code: 8,
    reqs: 1,
    err: ['the body does not match Content-Length'],
  }),
  ...['100', '100 Continue', '102 Wait', '103 Early Hints'].flatMap((status) =>
    both({
      name: `R67: ${status}, three times, in two packets, then the answer`,
      script: (socket) => {
        const interim = `HTTP/1.1 ${status}\r\nx: y\r\n\r\n`
        socket.write(`${interim}${interim}${interim.slice(0, 5)}`)
        setTimeout(() => socket.write(`${interim.slice(5)}${response('{"content":"ok","data":[]}')}`), 100)
      },
      code: 0,
      reqs: 1,
    }),
  ),
  {
    name: 'R67: 100 without an answer',
    argv: [...chat, '--timeout', '3'],
    script: answering('HTTP/1.1 100 Continue\r\n\r\n'),
    code: 10,
    reqs: 1,
    err: ['no byte came for 3 s'],
  },
  { name: 'R67: 100, then FIN', script: closing('HTTP/1.1 100 Continue\r\n\r\n'), code: 10, reqs: 1 },
  {
    name: 'R68: an error in chunks after a 100, one byte at a time',
    script: async (socket) => {
      socket.setNoDelay(true)
      const head = headOf('400 Bad', 'transfer-encoding: chunked')
      for (const byte of `HTTP/1.1 100 Continue\r\n\r\n${head}${chunked('{"detail":"no"}')}0\r\n\r\n`) {
        socket.write(byte)
        await new Promise(setImmediate)
      }
    },
    code: 4,
    reqs: 1,
    err: ['the service says: no'],
  },
  {
    name: 'R40: one byte at a time',
    argv: stream,
    script: (socket) => void drip(socket),
    code: 0,
    out: 'hé🦜\n',
    reqs: 1,
  },
])

/** Writes an answer byte by byte, each in a packet of its own. */
async function drip(socket: Socket) {
  socket.setNoDelay(true)
  for (const byte of response(message('hé🦜'))) {
    socket.write(Uint8Array.of(byte))
    await new Promise(setImmediate)
  }
}

/** Writes the same for ever. */
