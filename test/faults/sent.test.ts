import type { Socket } from 'node:net'
import { response } from '../harness/server.ts'
import { answering, closing, makeHead, ok, okText, resetting } from './answers.ts'
import { chat, chatAndEvents, faultsInside, type Row } from './rows.ts'

const big = 'x'.repeat(20 * 1024 * 1024)
const upload = { argv: ['chat'], stdin: big } satisfies Partial<Row>

/** Calls `act` after the first megabyte of a request. */
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

faultsInside('U: the request is sent and not answered', [
  ...chatAndEvents({
    name: 'U01: parley exits with 10, without a retry, if FIN follows the request',
    script: closing(),
    code: 10,
    reqs: 1,
    err: ['was closed'],
  }),
  ...chatAndEvents({
    name: 'U02: parley exits with 10, without a retry, if RST follows the request',
    script: resetting(),
    code: 10,
    reqs: 1,
    err: ['was reset'],
  }),
  ...chatAndEvents({
    name: 'U03: parley exits with 10 if the server closes the connection without reading',
    listen: { onConnection: (socket) => void socket.end() },
    flags: ['--retries', '0'],
    code: 10,
    conns: 1,
    err: ['the connection was closed without an answer'],
  }),
  ...chatAndEvents({
    name: 'U05: parley exits with 10 after --timeout if no response head arrives',
    script: () => {},
    flags: ['--timeout', '3'],
    code: 10,
    reqs: 1,
    err: ['no byte arrived for 3 s'],
    atLeast: 3,
  }),
  ...chatAndEvents({
    name: 'U05: parley exits with 10 after --timeout if interim responses never end',
    script: (socket) => drip(socket, 'HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\n'),
    flags: ['--timeout', '3'],
    code: 10,
    reqs: 1,
    atLeast: 3,
  }),
  ...chatAndEvents({
    name: 'U09: parley exits with 8 at the deadline if a body arrives byte by byte',
    script: (socket) => {
      socket.write(makeHead('200 OK', 'content-length: 1000'))
      drip(socket, ' ')
    },
    flags: ['--deadline', '3', '--timeout', '3'],
    code: 8,
    reqs: 1,
    err: ['the deadline passed'],
    atLeast: 3,
  }),
  {
    name: 'U09: parley exits with 10 if the deadline passes before the response',
    argv: [...chat, '--deadline', '3'],
    script: () => {},
    code: 10,
    reqs: 1,
    err: ['the deadline passed', 'the request was sent'],
    atLeast: 3,
  },
  ...chatAndEvents({
    name: 'U12: parley opens a new connection for each attempt',
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
  ...chatAndEvents({
    name: 'U14: parley skips an unrequested 100',
    script: answering(`HTTP/1.1 100 Continue\r\n\r\n${response('{"content":"ok","data":[]}')}`),
    code: 0,
    reqs: 1,
  }),
  ...chatAndEvents({
    name: 'U15: parley reports that the request may have arrived if SIGINT ends the run before the response',
    script: () => {},
    signal: { name: 'SIGINT', at: 'request' },
    code: 'SIGINT',
    reqs: 1,
    err: [
      /^parley: interrupted: the (request was sent; it may have been carried out|event may have been accepted: check with 'parley events list -s sesn_1' before sending again)\n$/,
    ],
  }),
  {
    name: 'U17: parley retries with --retry-unknown after a connection without an answer',
    argv: [...chat, '--retry-unknown'],
    script: (socket, _, count) => void (count < 3 ? socket.destroy() : socket.write(ok)),
    code: 0,
    out: okText,
    reqs: 3,
    err: [/^(parley: .*; trying again in .*\n){2}$/],
  },
  {
    name: 'U18: parley exits with 10 if the retry is refused but the first request was sent',
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
])

// A separate group, because each of these rows keeps the process busy.
faultsInside('U: the request is sent in part and not answered', [
  {
    ...upload,
    name: 'U04: parley exits with 10, without a retry, if RST interrupts an upload of 20 MB',
    listen: { onConnection: onMegabyte((socket) => socket.resetAndDestroy()) },
    code: 10,
    conns: 1,
    err: ['the connection was reset'],
  },
  {
    ...upload,
    name: 'U04: parley exits with 10, without a retry, if FIN interrupts an upload of 20 MB',
    listen: { onConnection: onMegabyte((socket) => socket.end()) },
    code: 10,
    conns: 1,
    err: ['the connection was'],
  },
  {
    ...upload,
    name: 'U08: parley exits with 10 after --timeout if the server reads nothing of 20 MB',
    argv: ['chat', '--timeout', '3'],
    listen: { onConnection: (socket) => void socket.pause() },
    code: 10,
    conns: 1,
    atLeast: 3,
  },
  {
    ...upload,
    name: 'U11: parley exits with 3 if a 401 and FIN interrupt the upload',
    listen: { onConnection: onMegabyte((socket) => socket.end(response('{"error":"who?"}', '401 No'))) },
    code: 3,
    conns: 1,
    err: ['401', 'the service says: who?'],
  },
])
