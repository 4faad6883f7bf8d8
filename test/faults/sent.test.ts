import type { Socket } from 'node:net'
import { response } from '../harness/server.ts'
import { answering, closing, headOf, ok, okText, resetting } from './answers.ts'
import { both, chat, faultsInside, image, type Row } from './rows.ts'

const big = 'x'.repeat(20 * 1024 * 1024)
const upload = { argv: ['chat'], stdin: big } satisfies Partial<Row>

/** Calls back when a megabyte has come. */
const onMegabyte = (act: (socket: Socket) => void) => (socket: Socket) => {
  let size = 0
  const count = (chunk: Buffer) => {
    size += chunk.length
    if (size < 2 ** 20) return
    socket.off('data', count)
    act(socket)
  }
  socket.on('data', count)
}

const drip = (socket: Socket, bytes: string) => {
  const timer = setInterval(() => socket.write(bytes), 100)
  socket.on('close', () => clearInterval(timer))
}

faultsInside('U: sent, no answer', [
  ...both({ name: 'U01: FIN after the request', script: closing(), code: 10, reqs: 1, err: ['was closed'] }),
  ...both({ name: 'U02: RST after the request', script: resetting(), code: 10, reqs: 1, err: ['was reset'] }),
  ...both({
    name: 'U03: accept, FIN, never read',
    listen: { onConnection: (socket) => void socket.end() },
    flags: ['--retries', '0'],
    code: 10,
    conns: 1,
    err: ['the connection was closed without an answer'],
  }),
  ...both({
    name: 'U05: no response head',
    script: () => {},
    flags: ['--timeout', '3'],
    code: 10,
    reqs: 1,
    err: ['no byte came for 3 s'],
    atLeast: 3,
  }),
  ...both({
    name: 'U05: a head that drips',
    script: (socket) => {
      socket.write('HTTP/1.1 200 OK\r\nx-drip: ')
      drip(socket, 'x')
    },
    flags: ['--timeout', '3'],
    code: 10,
    reqs: 1,
    atLeast: 3,
  }),
  ...both({
    name: 'U05: interim answers without end',
    script: (socket) => drip(socket, 'HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\n'),
    flags: ['--timeout', '3'],
    code: 10,
    reqs: 1,
    atLeast: 3,
  }),
  ...both({
    name: 'U09: a body that drips, up to the deadline',
    script: (socket) => {
      socket.write(headOf('200 OK', 'content-length: 1000'))
      drip(socket, ' ')
    },
    flags: ['--deadline', '3', '--timeout', '3'],
    code: 8,
    reqs: 1,
    err: ['the deadline passed'],
    atLeast: 3,
  }),
  {
    name: 'U09: the deadline passes while waiting',
    argv: [...chat, '--deadline', '3'],
    script: () => {},
    code: 10,
    reqs: 1,
    err: ['the deadline passed', 'the request was sent'],
    atLeast: 3,
  },
  ...both({
    name: 'U12: the connection of an attempt is not used for the next',
    script: (socket, _, count) => {
      if (count > 1) return void socket.write(response('{"content":"ok","data":[]}'))
      socket.write(response('{}', '429 Slow down'))
      setTimeout(() => socket.end(), 100)
    },
    code: 0,
    reqs: 2,
    conns: 2,
    err: ['trying again'],
  }),
  ...both({
    name: 'U14: 101 unasked',
    script: answering('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
    code: 8,
    reqs: 1,
    err: ['not proper HTTP'],
  }),
  ...both({
    name: 'U14: 100 unasked, then the answer',
    script: answering(`HTTP/1.1 100 Continue\r\n\r\n${response('{"content":"ok","data":[]}')}`),
    code: 0,
    reqs: 1,
  }),
  ...both({
    name: 'U15: SIGINT before the answer',
    script: () => {},
    signal: { name: 'SIGINT', at: 'request' },
    code: 'SIGINT',
    reqs: 1,
    err: [
      /^parley: interrupted: the (request was sent; it may have been carried out|event may have been accepted: look with 'parley events list -s sesn_1' before sending again)\n$/,
    ],
  }),
  {
    name: 'U16: the answer comes after --timeout',
    argv: [...chat, '--timeout', '3'],
    script: (socket) => void setTimeout(() => socket.write(ok), 60_000).unref(),
    code: 10,
    reqs: 1,
    atLeast: 3,
  },
  {
    name: 'U17: --retry-unknown',
    argv: [...chat, '--retry-unknown'],
    script: (socket, _, count) => void (count < 3 ? socket.destroy() : socket.write(ok)),
    code: 0,
    out: okText,
    reqs: 3,
    err: [/^(parley: .*; trying again in .*\n){2}$/],
  },
  {
    name: 'U18: nothing left the second time, but the first may have been carried out',
    argv: [...chat, '--retry-unknown', '--retries', '1'],
    script: () => {},
    during: async (_, server) => {
      while (server.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 10))
      await server.close()
    },
    code: 10,
    reqs: 1,
    err: ['connection refused; before that, ', 'the request was sent'],
  },
  { name: 'U01: FIN after the request (image)', argv: image, script: closing(), code: 10, reqs: 1 },
  { name: 'U02: RST after the request (image)', argv: image, script: resetting(), code: 10, reqs: 1 },
  {
    name: 'R01: half of the length, then FIN (image)',
    argv: image,
    script: closing(`${headOf('200 OK', 'content-length: 900')}{"candidates":[`),
    code: 8,
    reqs: 1,
    err: ['the received data is saved as'],
  },
])

// By themselves, for each keeps the process busy.
faultsInside('U: sent in part, no answer', [
  {
    ...upload,
    name: 'U04: RST in the middle of 20 MB',
    listen: { onConnection: onMegabyte((socket) => socket.resetAndDestroy()) },
    code: 10,
    conns: 1,
    err: ['the connection was reset'],
  },
  {
    ...upload,
    name: 'U04: FIN in the middle of 20 MB',
    listen: { onConnection: onMegabyte((socket) => socket.end()) },
    code: 10,
    conns: 1,
    err: ['the connection was'],
  },
  {
    ...upload,
    name: 'U08: nothing of 20 MB is read',
    argv: ['chat', '--timeout', '3'],
    listen: { onConnection: (socket) => void socket.pause() },
    code: 10,
    conns: 1,
    atLeast: 3,
  },
  {
    ...upload,
    name: 'U11: 401 and close in the middle of the upload',
    listen: { onConnection: onMegabyte((socket) => socket.end(response('{"error":"who?"}', '401 No'))) },
    code: 3,
    conns: 1,
    err: ['401', 'the service says: who?'],
  },
])
