import { gzipSync } from 'node:zlib'
import { message } from '../harness/run.ts'
import { response } from '../harness/server.ts'
import { answering, chunked, closing, makeHead, ok, okText, resetting } from './answers.ts'
import { chat, chatAndEvents, events, faultsInside, type Row } from './rows.ts'

const hi = message('hi')
const half = hi.slice(0, 40)
const cutAt = makeHead('200 OK', `content-length: ${hi.length}`) + half
const halfReceipt = `${makeHead('200 OK', 'content-length: 200')}{"data":[{"id":"sevt_1"`
const accepted = 'the event was accepted'
const cut = { code: 8, reqs: 1, err: ['the answer broke off'] } satisfies Partial<Row>
const cutReceipt = {
  argv: events,
  code: 8,
  reqs: 1,
  err: [accepted, 'do not send it again'],
} satisfies Partial<Row>
const open = makeHead('200 OK', 'connection: close')
const coded = (encoding: string, body: Uint8Array) =>
  answering(response(body, '200 OK', [`content-encoding: ${encoding}`]))

faultsInside('R: response framing', [
  {
    ...cut,
    name: 'R01: parley exits with 8 if FIN cuts the body at half its length (chat)',
    script: closing(cutAt),
  },
  {
    ...cutReceipt,
    name: 'R01: parley reports that the event was accepted if FIN cuts the response at half its length (events)',
    script: closing(halfReceipt),
  },
  {
    ...cut,
    name: 'R02: parley exits with 8 if RST cuts the body at half its length (chat)',
    script: resetting(cutAt),
  },
  {
    ...cutReceipt,
    name: 'R02: parley reports that the event was accepted if RST cuts the response at half its length (events)',
    script: resetting(halfReceipt),
  },
  ...[closing, resetting].flatMap((end): Row[] => [
    {
      ...cut,
      name: `R03: parley exits with 8 if ${end === closing ? 'FIN' : 'RST'} cuts a chunked body (chat)`,
      script: end(makeHead('200 OK', 'transfer-encoding: chunked') + chunked(half)),
    },
    {
      ...cutReceipt,
      name: `R03: parley reports that the event was accepted if ${end === closing ? 'FIN' : 'RST'} cuts a chunked response (events)`,
      script: end(makeHead('200 OK', 'transfer-encoding: chunked') + chunked('{"data":[')),
    },
  ]),
  ...chatAndEvents({
    name: 'R04: parley exits with 8 on an invalid chunk size and does not print its bytes',
    script: answering(`${makeHead('200 OK', 'transfer-encoding: chunked')}zz\r\n::set-env secret\r\n`),
    code: 8,
    reqs: 1,
    err: [/^(?!.*set-env)/s],
  }),
  {
    ...cutReceipt,
    name: 'R05: parley reports that the event was accepted if FIN cuts a response without a length (events)',
    script: closing(`${open}{"data":[{"id"`),
  },
  {
    name: 'R07: parley exits with 8 if the body is longer than its Content-Length (chat)',
    script: answering(`${makeHead('200 OK', 'content-length: 40')}${hi}`),
    code: 8,
    reqs: 1,
  },
  {
    ...cutReceipt,
    name: 'R07: parley reports that the event was accepted if the response is longer than its Content-Length (events)',
    script: answering(`${makeHead('200 OK', 'content-length: 10')}{"data":[],"more":"than that"}`),
  },
  ...chatAndEvents({
    name: 'R09: parley exits with 8 on a response that is not HTTP: "\\u001b]0;evil\\u0007\\n::add-mask::x\\n"',
    script: closing('\x1b]0;evil\x07\n::add-mask::x\n'),
    code: 8,
    reqs: 1,
  }),
  ...chatAndEvents({
    name: 'R10: parley exits with 8 on a head of 20 KB',
    script: answering(response('{}', '200 OK', [`x-long: ${'x'.repeat(20_000)}`])),
    code: 8,
    reqs: 1,
    err: ['its headers are too long'],
  }),
  ...chatAndEvents({
    name: 'R10: parley exits with 8 on a NUL in a header',
    script: answering(response('{}', '200 OK', ['x: a\0b'])),
    code: 8,
    reqs: 1,
  }),
  ...chatAndEvents({
    name: 'R10: parley exits with 8 on lines that end with a bare LF',
    script: answering(response('{"content":"ok","data":[]}').toString().replaceAll('\r\n', '\n')),
    code: 8,
    reqs: 1,
    err: ['is not valid HTTP/1.1'],
  }),
  ...chatAndEvents({
    name: 'R10: parley exits with 8 on a response with both Content-Length and chunks',
    script: answering(
      `${makeHead('200 OK', 'content-length: 5', 'transfer-encoding: chunked')}2\r\n{}\r\n0\r\n\r\n`,
    ),
    code: 8,
    reqs: 1,
  }),
  {
    name: 'R30: parley decodes gzip that was not requested',
    script: coded('gzip', gzipSync(hi)),
    code: 0,
    out: 'hi\n',
    reqs: 1,
  },
  {
    ...cutReceipt,
    name: 'R32: parley reports that the event was accepted if an uncompressed response has the coding gzip (events)',
    script: coded('gzip', Buffer.from('{"data":[]}')),
  },
  ...chatAndEvents({
    name: 'R33: parley exits with 8 on an unknown coding',
    script: coded('zst\u00ff', Buffer.from(hi)),
    code: 8,
    reqs: 1,
  }),
  {
    name: 'R37: parley prints a whole megabyte to a slow reader although FIN follows it',
    shell: 'set -o pipefail; parley chat hi | (sleep 1; cat)',
    script: closing(open + message('x'.repeat(2 ** 20))),
    code: 0,
    out: `${'x'.repeat(2 ** 20)}\n`,
    reqs: 1,
  },
  {
    name: 'R39: parley does not take an unrequested second answer for the answer to the retry',
    script: (socket, _, count) => {
      const fake = response(message('fake'))
      socket.write(count === 1 ? Buffer.concat([response('{}', '500 Oops'), fake]) : ok)
    },
    code: 0,
    out: okText,
    reqs: 2,
    err: ['trying again'],
  },
  ...chatAndEvents({
    name: 'R65: parley accepts two equal Content-Length headers',
    script: answering(response('{"content":"ok","data":[]}', '200 OK', ['Content-Length: 26'])),
    code: 0,
    reqs: 1,
  }),
  ...chatAndEvents({
    name: 'R66: parley exits with 8 on two different Content-Length headers',
    script: answering(response('{"content":"ok","data":[]}', '200 OK', ['Content-Length: 9'])),
    code: 8,
    reqs: 1,
    err: ['the body does not match Content-Length'],
  }),
  ...['100', '100 Continue', '103 Early Hints'].flatMap((status) =>
    chatAndEvents({
      name: `R67: parley skips three interim responses ${status} in two packets`,
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
    name: 'R67: parley exits with 10 after --timeout if only a 100 arrives',
    argv: [...chat, '--timeout', '3'],
    script: answering('HTTP/1.1 100 Continue\r\n\r\n'),
    code: 10,
    reqs: 1,
    err: ['no byte arrived for 3 s'],
  },
  {
    name: 'R68: parley exits with 4 on a 400 that arrives byte by byte after a 100',
    script: async (socket) => {
      socket.setNoDelay(true)
      const head = makeHead('400 Bad', 'transfer-encoding: chunked')
      for (const byte of `HTTP/1.1 100 Continue\r\n\r\n${head}${chunked('{"detail":"no"}')}0\r\n\r\n`) {
        socket.write(byte)
        await new Promise(setImmediate)
      }
    },
    code: 4,
    reqs: 1,
    err: ['the service says: no'],
  },
])
