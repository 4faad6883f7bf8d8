import { gzipSync } from 'node:zlib'
import { exitCodes, type FailureKind } from '../../src/errors.ts'
import { response } from '../harness/server.ts'
import { formatHead, respondAndClose, respondAndReset, respondWith } from './answers.ts'
import { chatArgv, type FaultRow, forChatAndSend, sendArgv, testNetworkFaults } from './rows.ts'

const mayBe = 'the event may have been accepted: check with'
const noRetry = ['--retries', '0']
const login = '<!doctype html><html><head><title>Please log in</title></head></html>'
const html = ['content-type: text/html']
const envelope = (type: string) => JSON.stringify({ type: 'error', error: { type, message: 'no luck' } })

/** Returns two rows, without and with `--errors json`, for a response that does not prove acceptance. */
const rowsWithoutProof = (row: Omit<FaultRow, 'code' | 'reqs'> & { kind?: FailureKind }): FaultRow[] => {
  const { kind = 'response', err = [], ...rest } = row
  const code = exitCodes[kind]
  return [
    { ...rest, argv: sendArgv, code, err: [mayBe, /^(?!.*was accepted)/s, ...err] },
    {
      ...rest,
      name: `${row.name}, with --errors json`,
      argv: [...sendArgv, '--errors', 'json'],
      code,
      err: [`"kind":"${kind}"`, '"sent":"unknown"', '"safeToRetry":false', '"attempts":1'],
    },
  ]
}

const slowHead = (header: string) => Buffer.from(formatHead('429 Slow down', 'connection: close', header))
const incomplete = gzipSync('{"error":"no"}').subarray(0, 15)

/** Rows for an error whose body cannot be read. The status of the response still decides the exit code. */
const unreadable = (
  [
    ['U20', 'with an unknown Content-Encoding', respondAndClose, 'content-encoding: zst', 'zz'],
    ['U21', 'whose body is broken gzip', respondAndClose, 'content-encoding: gzip', '{"error":"no"}'],
    ['U21', 'whose body is incomplete gzip', respondAndClose, 'content-encoding: gzip', incomplete],
    ['U22', 'if FIN cuts its body', respondAndClose, 'content-length: 99', '{"er'],
    ['U22', 'if RST cuts its body', respondAndReset, 'content-length: 99', '{"er'],
    ['U23', 'whose body has an invalid chunk size', respondAndClose, 'transfer-encoding: chunked', 'zz\r\n'],
  ] as const
).flatMap(([id, what, end, header, body]) =>
  forChatAndSend(
    `${id}: parley exits with 6 on a 429 ${what}`,
    { script: end(Buffer.concat([slowHead(header), Buffer.from(body as string)])), flags: noRetry },
    { code: 6, err: ['answered 429 Slow down', /^(?!.*was accepted)/s] },
  ),
)

/** A GOAWAY frame, which an HTTP/2 server sends to an HTTP/1.1 client. */
const goAway = Buffer.from('000000040000000000000008070000000000000000000000000d', 'hex')

testNetworkFaults('U: parley reports only what the response proves', [
  ...unreadable,
  ...rowsWithoutProof({
    name: 'U24: events send reports that the event may have been accepted if the server answers with an SSH banner',
    script: respondAndClose('SSH-2.0-OpenSSH_9\r\n'),
    err: ['not valid HTTP'],
  }),
  ...rowsWithoutProof({
    name: 'U25: events send reports that the event may have been accepted after an HTTP/2 GOAWAY frame',
    script: respondAndClose(goAway),
  }),
  ...rowsWithoutProof({
    name: 'U26: events send reports that the event may have been accepted after an unrequested 101 Switching Protocols',
    script: respondWith('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
  }),
  ...rowsWithoutProof({
    name: 'U27: events send reports that the event may have been accepted after HTML without HTTP headers',
    script: respondAndClose(login),
  }),
  ...rowsWithoutProof({
    name: 'U28: events send reports that the event may have been accepted after a login page with status 200',
    script: respondWith(response(login, '200 OK', html)),
    err: ['is not JSON', 'Please log in'],
  }),
  ...(
    [
      ['overloaded_error', 'service'],
      ['not_found_error', 'refused'],
    ] as const
  ).flatMap(([type, kind]) =>
    rowsWithoutProof({
      name: `U30: events send reports that the event may have been accepted after a 200 with the error ${type}`,
      script: respondWith(response(envelope(type))),
      kind,
      err: ['no luck'],
    }),
  ),
  {
    name: 'U32: parley reports the unanswered first attempt if the retry gets a 429 and SIGINT ends the next wait (needs signals)',
    argv: [...chatArgv, '--retry-unknown'],
    script: (socket, _, count) =>
      void (count === 1 ? socket.destroy() : socket.end(response('{}', '429 Slow', ['retry-after: 30']))),
    during: async (command) => {
      await command.waitUntil(() => command.err().split('trying again').length >= 3)
      command.child.kill('SIGINT')
    },
    code: 'SIGINT',
    reqs: 2,
    err: ['interrupted: the request was sent; it may have been carried out'],
  },
  {
    name: 'U33: events list exits with 10 and prints a one-line error if it gets no response',
    argv: ['events', 'list', ...noRetry],
    script: respondAndClose(),
    code: 10,
    err: [/^parley: [^\n]*was closed[^\n]*\n$/],
  },
])
