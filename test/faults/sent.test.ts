import type { Socket } from 'node:net'
import { response } from '../harness/server.ts'
import { formatHead, okOutput, okResponse, respondAndClose, respondAndReset } from './answers.ts'
import { chatArgv, type FaultRow, forChatAndSend, row, testNetworkFaults } from './rows.ts'

const big = 'x'.repeat(20 * 1024 * 1024)
const upload = { argv: ['chat'], stdin: big } satisfies Partial<FaultRow>

/** Calls `act` once a megabyte of a request has arrived. */
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

/** Writes the bytes ten times per second until the client closes the connection. */
const writeRepeatedly = (socket: Socket, bytes: string) => {
  const timer = setInterval(() => socket.write(bytes), 100)
  socket.on('close', () => clearInterval(timer))
}

testNetworkFaults('U: parley reports a request that was sent and not answered', [
  ...forChatAndSend('U01: parley exits with 10, without a retry, if FIN arrives instead of a response', {
    script: respondAndClose(),
    code: 10,
    err: ['was closed'],
  }),
  ...forChatAndSend('U02: parley exits with 10, without a retry, if RST arrives instead of a response', {
    script: respondAndReset(),
    code: 10,
    err: ['was reset'],
  }),
  ...forChatAndSend(
    'U03: parley exits with 10 if the server closes the connection without reading',
    { listen: { onConnection: (socket) => void socket.end() }, flags: ['--retries', '0'] },
    {
      code: 10,
      conns: 1,
      err: ['the connection was closed without an answer (should the address begin with https://?)'],
    },
  ),
  ...forChatAndSend(
    'U05: parley exits with 10 after --timeout if no response arrives',
    { script: () => {}, flags: ['--timeout', '3'] },
    { code: 10, err: ['no byte arrived for 3 s'], minSeconds: 3 },
  ),
  ...forChatAndSend('U05: parley exits with 10 after --timeout if the server sends only interim responses', {
    script: (socket) => writeRepeatedly(socket, 'HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\n'),
    flags: ['--timeout', '3'],
    code: 10,
    minSeconds: 3,
  }),
  ...forChatAndSend('U09: parley exits with 8 at the deadline if a body arrives byte by byte', {
    script: (socket) => {
      socket.write(formatHead('200 OK', 'content-length: 1000'))
      writeRepeatedly(socket, ' ')
    },
    flags: ['--deadline', '3', '--timeout', '3'],
    code: 8,
    err: ['the deadline passed'],
    minSeconds: 3,
  }),
  row(
    'U09: parley exits with 10 if the deadline passes before the response',
    { argv: [...chatArgv, '--deadline', '3'], script: () => {} },
    { code: 10, err: ['the deadline passed', 'the request was sent'], minSeconds: 3 },
  ),
  ...forChatAndSend('U12: parley opens a new connection for each attempt', {
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
  ...forChatAndSend(
    'U15: parley reports that the request may have arrived if SIGINT ends the run before the response',
    { script: () => {}, signal: { name: 'SIGINT', at: 'request' } },
    {
      code: 'SIGINT',
      err: [
        /^parley: interrupted: the (request was sent; it may have been carried out|event may have been accepted: check with 'parley events list -s sesn_1' before sending again)\n$/,
      ],
    },
  ),
  row('U17: parley retries with --retry-unknown if the connection closes without a response', {
    argv: [...chatArgv, '--retry-unknown'],
    script: (socket, _, count) => void (count < 3 ? socket.destroy() : socket.write(okResponse)),
    code: 0,
    out: okOutput,
    reqs: 3,
    err: [/^(parley: .*; trying again in .*\n){2}$/],
  }),
  row('U18: parley exits with 10 if the first request was sent and the retry cannot connect', {
    argv: [...chatArgv, '--retry-unknown', '--retries', '1'],
    script: () => {},
    during: async ({ waitUntil }, server) => {
      await waitUntil(() => server.requests.length > 0)
      await server.close()
    },
    code: 10,
    err: ['connection refused; before that, ', 'the request was sent'],
  }),
])

// Each upload keeps this process busy. In a separate group, the uploads do not delay the rows above.
testNetworkFaults('U: parley reports an upload that was interrupted', [
  row(
    'U04: parley exits with 10, without a retry, if RST interrupts an upload of 20 MB',
    { ...upload, listen: { onConnection: onMegabyte((socket) => socket.resetAndDestroy()) } },
    { code: 10, conns: 1, err: ['the connection was reset'] },
  ),
  row(
    'U04: parley exits with 10, without a retry, if FIN interrupts an upload of 20 MB',
    { ...upload, listen: { onConnection: onMegabyte((socket) => socket.end()) } },
    { code: 10, conns: 1, err: ['the connection was'] },
  ),
  row('U08: parley exits with 10 after --timeout if the server does not read an upload of 20 MB', {
    ...upload,
    argv: ['chat', '--timeout', '3'],
    listen: { onConnection: (socket) => void socket.pause() },
    code: 10,
    conns: 1,
    minSeconds: 3,
  }),
  row('U11: parley exits with 3 if the server answers 401 during an upload and closes the connection', {
    ...upload,
    listen: { onConnection: onMegabyte((socket) => socket.end(response('{"error":"who?"}', '401 No'))) },
    code: 3,
    conns: 1,
    err: ['401', 'the service says: who?'],
  }),
])
