import { gzipSync } from 'node:zlib'
import { exitCodes, type FailureKind } from '../../src/errors.ts'
import { response } from '../harness/server.ts'
import { answering, closing, makeHead, resetting } from './answers.ts'
import { chat, chatAndEvents, events, faultsInside, type Row } from './rows.ts'

const mayBe = 'the event may have been accepted: check with'
const noRetry = ['--retries', '0']
const login = '<!doctype html><html><head><title>Please log in</title></head></html>'
const html = ['content-type: text/html']
const envelope = (type: string) => JSON.stringify({ type: 'error', error: { type, message: 'no luck' } })

/**
 * Returns rows for an event whose response does not prove that it was accepted, as text and with `--errors
 * json`.
 */
const rowsWithoutProof = (row: Omit<Row, 'code' | 'reqs'> & { kind?: FailureKind }): Row[] => {
  const { kind = 'response', err = [], ...rest } = row
  const code = exitCodes[kind]
  return [
    { ...rest, argv: events, code, reqs: 1, err: [mayBe, /^(?!.*was accepted)/s, ...err] },
    {
      ...rest,
      name: `${row.name}, with --errors json`,
      argv: [...events, '--errors', 'json'],
      code,
      reqs: 1,
      err: [`"kind":"${kind}"`, '"sent":"unknown"', '"safeToRetry":false', '"attempts":1'],
    },
  ]
}

/** Rows for an error whose body cannot be read. Its status still decides the exit code. */
const unreadable = (
  [
    ['U20', 'an unknown Content-Encoding', closing, 'content-encoding: zst', 'zz'],
    ['U21', 'broken gzip', closing, 'content-encoding: gzip', '{"error":"no"}'],
    ['U21', 'cut gzip', closing, 'content-encoding: gzip', gzipSync('{"error":"no"}').subarray(0, 15)],
    ['U22', 'a body that FIN cuts', closing, 'content-length: 99', '{"er'],
    ['U22', 'a body that RST cuts', resetting, 'content-length: 99', '{"er'],
    ['U23', 'broken chunks', closing, 'transfer-encoding: chunked', 'zz\r\n'],
  ] as const
).flatMap(([id, what, end, header, body]) =>
  chatAndEvents({
    name: `${id}: parley exits with 6 on a 429 with ${what}`,
    script: end(
      Buffer.concat([
        Buffer.from(makeHead('429 Slow down', 'connection: close', header)),
        Buffer.from(body as string),
      ]),
    ),
    flags: noRetry,
    code: 6,
    reqs: 1,
    err: ['answered 429 Slow down', /^(?!.*was accepted)/s],
  }),
)

/** A GOAWAY frame, which an HTTP/2 server sends to an HTTP/1.1 client. */
const goAway = Buffer.from('000000040000000000000008070000000000000000000000000d', 'hex')

faultsInside('U: claims only what the answer proves', [
  ...unreadable,
  ...rowsWithoutProof({
    name: 'U24: parley reports that the request may have arrived if the server answers with an SSH banner',
    script: closing('SSH-2.0-OpenSSH_9\r\n'),
    err: ['not valid HTTP'],
  }),
  ...rowsWithoutProof({
    name: 'U25: parley reports that the request may have arrived if the server answers with an HTTP/2 GOAWAY frame',
    script: closing(goAway),
  }),
  ...rowsWithoutProof({
    name: 'U26: parley reports that the request may have arrived after an unrequested 101',
    script: answering('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
  }),
  ...rowsWithoutProof({
    name: 'U27: parley reports that the request may have arrived if the server answers with HTML without a head',
    script: closing(login),
  }),
  ...rowsWithoutProof({
    name: 'U28: parley reports that the request may have arrived after a login page with status 200',
    script: answering(response(login, '200 OK', html)),
    err: ['is not JSON', 'Please log in'],
  }),
  ...(
    [
      ['overloaded_error', 'service'],
      ['not_found_error', 'refused'],
    ] as const
  ).flatMap(([type, kind]) =>
    rowsWithoutProof({
      name: `U30: parley reports that the request may have arrived after ${type} with status 200`,
      script: answering(response(envelope(type))),
      kind,
      err: ['no luck'],
    }),
  ),
  {
    name: 'U32: parley reports that the first request may have arrived if SIGINT ends the wait after a later 429 (needs signals)',
    argv: [...chat, '--retry-unknown'],
    script: (socket, _, count) =>
      void (count === 1 ? socket.destroy() : socket.end(response('{}', '429 Slow', ['retry-after: 30']))),
    during: async (command) => {
      while (command.err().split('trying again').length < 3)
        await new Promise((resolve) => setTimeout(resolve, 10))
      command.child.kill('SIGINT')
    },
    code: 'SIGINT',
    reqs: 2,
    err: ['interrupted: the request was sent; it may have been carried out'],
  },
  {
    name: 'U33: parley exits with 10 and no warning if a list gets no answer',
    argv: ['events', 'list', ...noRetry],
    script: closing(),
    code: 10,
    reqs: 1,
    err: [/^parley: [^\n]*was closed[^\n]*\n$/],
  },
])
