import { message } from '../harness/run.ts'
import { response } from '../harness/server.ts'
import {
  encodeChunks,
  formatHead,
  okOutput,
  okResponse,
  respondAndClose,
  respondAndReset,
  respondWith,
} from './answers.ts'
import { chatArgv, type FaultRow, forChatAndSend, row, sendArgv, testNetworkFaults } from './rows.ts'

const hi = message('hi')
const half = hi.slice(0, 40)
const cutAt = formatHead('200 OK', `content-length: ${hi.length}`) + half
const halfReceipt = `${formatHead('200 OK', 'content-length: 200')}{"data":[{"id":"sevt_1"`
const cut = { code: 8, err: ['the answer broke off'] } satisfies Partial<FaultRow>
const accepted = ['the event was accepted', 'do not send it again']
const cutReceipt = { argv: sendArgv, code: 8, err: accepted } satisfies Partial<FaultRow>
const chunkedHead = formatHead('200 OK', 'transfer-encoding: chunked')
const answerWith = (...headers: string[]) => response('{"content":"ok","data":[]}', '200 OK', headers)
const open = formatHead('200 OK', 'connection: close')

const linesWithLf = answerWith('x: a').toString().replaceAll('\r\n', '\n')
const bothLengths = formatHead('200 OK', 'content-length: 5', 'transfer-encoding: chunked')

const invalid: [id: string, what: string, bytes: string | Uint8Array, err: string[]][] = [
  ['R09', 'a response of control characters instead of HTTP', '\x1b]0;evil\x07\n::add-mask::x\n', []],
  ['R10', 'headers of 20 KB', answerWith(`x-long: ${'x'.repeat(20_000)}`), ['its headers are too long']],
  ['R10', 'a NUL in a header', answerWith('x: a\0b'), []],
  ['R10', 'header lines that end with LF instead of CRLF', linesWithLf, ['is not valid HTTP/1.1']],
  ['R10', 'both Content-Length and chunked encoding', `${bothLengths}2\r\n{}\r\n0\r\n\r\n`, []],
  ['R66', 'two different Content-Length headers', answerWith('Content-Length: 9'), ['match Content-Length']],
]

testNetworkFaults('R: parley detects incomplete and invalid responses', [
  ...(
    [
      ['R01', 'FIN', respondAndClose],
      ['R02', 'RST', respondAndReset],
    ] as const
  ).flatMap(([id, end, respond]) => [
    row(`${id}: parley chat exits with 8 if ${end} cuts the body at half its length`, {
      ...cut,
      script: respond(cutAt),
    }),
    row(`${id}: parley events send reports that the event was accepted if ${end} cuts half of the response`, {
      ...cutReceipt,
      script: respond(halfReceipt),
    }),
    row(`R03: parley chat exits with 8 if ${end} cuts a chunked body`, {
      ...cut,
      script: respond(chunkedHead + encodeChunks(half)),
    }),
    row(`R03: parley events send reports that the event was accepted if ${end} cuts a chunked response`, {
      ...cutReceipt,
      script: respond(chunkedHead + encodeChunks('{"data":[')),
    }),
  ]),
  ...forChatAndSend('R04: parley exits with 8 on an invalid chunk size and does not print its bytes', {
    script: respondWith(`${formatHead('200 OK', 'transfer-encoding: chunked')}zz\r\n::set-env secret\r\n`),
    code: 8,
    err: [/^(?!.*set-env)/s],
  }),
  row(
    'R05: parley events send reports that the event was accepted if FIN cuts a response without Content-Length',
    { ...cutReceipt, script: respondAndClose(`${open}{"data":[{"id"`) },
  ),
  row('R07: parley chat exits with 8 if the body is longer than its Content-Length', {
    script: respondWith(`${formatHead('200 OK', 'content-length: 40')}${hi}`),
    code: 8,
  }),
  row('R07: parley events send reports the accepted event if the body is longer than its Content-Length', {
    ...cutReceipt,
    script: respondWith(`${formatHead('200 OK', 'content-length: 10')}{"data":[],"more":"than that"}`),
  }),
  ...invalid.flatMap(([id, what, bytes, err]) =>
    forChatAndSend(`${id}: parley exits with 8 on ${what}`, { code: 8, script: respondWith(bytes), err }),
  ),
  row('R37: parley prints a whole megabyte to a slow reader although the server has closed the connection', {
    shell: 'set -o pipefail; parley chat hi | (sleep 1; cat)',
    script: respondAndClose(open + message('x'.repeat(2 ** 20))),
    code: 0,
    out: `${'x'.repeat(2 ** 20)}\n`,
  }),
  row('R39: parley ignores an unrequested second response and reads the response to its retry', {
    script: (socket, _, count) => {
      const fake = response(message('fake'))
      socket.write(count === 1 ? Buffer.concat([response('{}', '500 Oops'), fake]) : okResponse)
    },
    code: 0,
    out: okOutput,
    reqs: 2,
    err: ['trying again'],
  }),
  ...forChatAndSend('R65: parley accepts two equal Content-Length headers', {
    script: respondWith(answerWith('Content-Length: 26')),
    code: 0,
  }),
  ...['100', '100 Continue', '103 Early Hints'].flatMap((status) =>
    forChatAndSend(`R67, U14: parley skips three interim responses with the status "${status}"`, {
      script: (socket) => {
        const interim = `HTTP/1.1 ${status}\r\nx: y\r\n\r\n`
        socket.write(`${interim}${interim}${interim.slice(0, 5)}`)
        setTimeout(() => socket.write(`${interim.slice(5)}${response('{"content":"ok","data":[]}')}`), 100)
      },
      code: 0,
    }),
  ),
  row(
    'R67: parley exits with 10 after --timeout if only a 100 Continue arrives',
    { argv: [...chatArgv, '--timeout', '3'], script: respondWith('HTTP/1.1 100 Continue\r\n\r\n') },
    { code: 10, err: ['no byte arrived for 3 s'] },
  ),
  row('R68: parley exits with 4 on a 400 that arrives byte by byte after a 100 Continue', {
    script: async (socket) => {
      socket.setNoDelay(true)
      const head = formatHead('400 Bad', 'transfer-encoding: chunked')
      for (const byte of `HTTP/1.1 100 Continue\r\n\r\n${head}${encodeChunks('{"detail":"no"}')}0\r\n\r\n`) {
        socket.write(byte)
        await new Promise(setImmediate)
      }
    },
    code: 4,
    err: ['the service says: no'],
  }),
])
