import { gzipSync } from 'node:zlib'
import { exitCodes, type FailureKind } from '../../src/errors.ts'
import { response } from '../harness/server.ts'
import { answering, closing, headOf, resetting } from './answers.ts'
import { both, chat, events, faultsInside, type Row } from './rows.ts'

const mayBe = 'the event may have been accepted: look with'
const once = ['--retries', '0']
const login = '<!doctype html><html><head><title>Please log in</title></head></html>'
const html = ['content-type: text/html']
const envelope = (type: string) => JSON.stringify({ type: 'error', error: { type, message: 'no luck' } })

/** An event whose answer proves nothing: nothing may be claimed, and `--errors json` says the same. */
const unproved = (row: Omit<Row, 'code' | 'reqs'> & { kind?: FailureKind }): Row[] => {
  const { kind = 'response', err = [], ...rest } = row
  const code = exitCodes[kind]
  return [
    { ...rest, argv: events, code, reqs: 1, err: [mayBe, /^(?!.*was accepted)/s, ...err] },
    {
      ...rest,
      name: `${row.name}, as JSON`,
      argv: [...events, '--errors', 'json'],
      code,
      reqs: 1,
      err: [`"kind":"${kind}"`, '"sent":"unknown"', '"safeToRetry":false', '"attempts":1'],
    },
  ]
}

/** A status under a body that cannot be read: it counts all the same. */
const counted = (status: string, code: number): Row[] => {
  const told = [`answered ${status}`, /^(?!.*was accepted)/s]
  const head = (...headers: string[]) => headOf(status, 'connection: close', ...headers)
  const row = { flags: once, code, reqs: 1, err: told }
  return [
    ...both({
      ...row,
      name: `U20: ${status} in an unknown coding`,
      script: closing(`${head('content-encoding: zst')}zz`),
    }),
    ...both({
      ...row,
      name: `U21: ${status} whose gzip is broken`,
      script: closing(`${head('content-encoding: gzip')}{"error":"no"}`),
    }),
    ...both({
      ...row,
      name: `U21: ${status} whose gzip is cut`,
      script: answering(
        response(gzipSync('{"error":"no"}').subarray(0, 15), status, ['content-encoding: gzip']),
      ),
    }),
    ...both({
      ...row,
      name: `U22: ${status} whose body is cut by FIN`,
      script: closing(`${head('content-length: 99')}{"er`),
    }),
    ...both({
      ...row,
      name: `U22: ${status} whose body is cut by RST`,
      script: resetting(`${head('content-length: 99')}{"er`),
    }),
    ...both({
      ...row,
      name: `U23: ${status} whose chunks are none`,
      script: closing(`${head('transfer-encoding: chunked')}zz\r\n`),
    }),
  ]
}

/** A GOAWAY, which a server of HTTP/2 sends to whoever speaks HTTP/1.1. */
const goAway = Buffer.from('000000040000000000000008070000000000000000000000000d', 'hex')

faultsInside('U: nothing is claimed that was not proved', [
  ...[
    ['401 Who', 3],
    ['429 Slow down', 6],
    ['500 Oops', 7],
  ].flatMap(([status, code]) => counted(String(status), Number(code))),
  ...unproved({
    name: 'U24: an SSH banner',
    script: closing('SSH-2.0-OpenSSH_9\r\n'),
    err: ['not proper HTTP'],
  }),
  ...unproved({ name: 'U25: a GOAWAY', script: closing(goAway) }),
  ...unproved({
    name: 'U26: 101 unasked',
    script: answering('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
  }),
  ...unproved({ name: 'U27: bare HTML', script: closing(login) }),
  ...unproved({
    name: 'U28: a login page with status 200',
    script: answering(response(login, '200 OK', html)),
    err: ['is not JSON', 'Please log in'],
  }),
  ...unproved({ name: 'U28: a login page that calls itself JSON', script: answering(response(login)) }),
  ...unproved({
    name: 'U28: a login page that is cut',
    script: closing(`${headOf('200 OK', 'content-length: 999')}${login}`),
  }),
  ...unproved({
    name: 'U28: a login page that is cut after its head',
    script: closing('HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 999\r\n\r\n'),
  }),
  ...['"ok"', 'true', 'ok', '{"data":"x"}', '{"message":"hello"}'].flatMap((body) =>
    unproved({ name: `U29: ${body} is no receipt`, script: answering(response(body)) }),
  ),
  ...(
    [
      ['timeout_error', 'service'],
      ['overloaded_error', 'service'],
      ['api_error', 'service'],
      ['rate_limit_error', 'rate-limited'],
      ['not_found_error', 'refused'],
      ['forbidden', 'credentials'],
      ['billing_error', 'payment'],
    ] as const
  ).flatMap(([type, kind]) =>
    unproved({
      name: `U30: ${type} with status 200`,
      script: answering(response(envelope(type))),
      kind,
      err: ['no luck'],
    }),
  ),
  ...unproved({
    name: 'U31: an error of a strange type with status 200',
    script: answering(response(envelope('odd_error'))),
  }),
  {
    name: 'U32: a rate limit after a cut does not undo it (SIGINT in the wait) (needs signals)',
    argv: [...chat, '--retry-unknown'],
    script: (socket, _, count) =>
      void (count === 1 ? socket.destroy() : socket.end(response('{}', '429 Slow', ['retry-after: 30']))),
    during: async (world) => {
      while (world.err().split('trying again').length < 3)
        await new Promise((resolve) => setTimeout(resolve, 10))
      world.child.kill('SIGINT')
    },
    code: 'SIGINT',
    reqs: 2,
    err: ['interrupted: the request was sent; it may have been carried out'],
  },
  {
    name: 'U33: a list that brought no answer has nothing to carry out',
    argv: ['events', 'list', ...once],
    script: closing(),
    code: 10,
    reqs: 1,
    err: [/^parley: [^\n]*was closed[^\n]*\n$/],
  },
])
