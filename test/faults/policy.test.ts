import { afterAll } from 'vitest'
import { response, serve } from '../harness/server.ts'
import { answering, ok, okText } from './answers.ts'
import { makeCertificate } from './certificates.ts'
import { chat, chatAndEvents, faultsInside, type Row } from './rows.ts'

const other = await serve(() => {})
afterAll(() => other.close())
const certificate = makeCertificate('DNS:gateway.test,DNS:localhost')

const redirect = (location: string, status = 302) =>
  answering(response('', `${status} Moved`, [`location: ${location}`]))
const nobodyElse: Partial<Row> = {
  check: () => {
    if (other.connections > 0) throw new Error('the other server was called')
  },
}
const locations = [
  'file:///etc/passwd',
  `//127.0.0.1:${other.port}/`,
  `http://user:canary-token-5f3a9c@127.0.0.1:${other.port}/a@b`,
  `http:\\\\user:secretword@127.0.0.1:${other.port}/`,
  `//user:secretword@127.0.0.1:${other.port}/`,
  `/${'long'.repeat(3000)}`,
]
const named = (name: string) => ({ url: ({ port }: { port: number }) => `http://${name}:${port}` })

faultsInside('D: redirects (needs openssl)', [
  ...[302, 308].flatMap((status) =>
    chatAndEvents({
      ...nobodyElse,
      name: `D01: parley does not follow a ${status} redirect to another server`,
      script: redirect(other.url, status),
      code: 4,
      reqs: 1,
      err: [`redirect not followed, to ${other.url}`],
    }),
  ),
  ...chatAndEvents({
    name: 'D01: parley does not follow a redirect to another path',
    script: redirect('/elsewhere'),
    code: 4,
    reqs: 1,
    err: ['redirect not followed, to /elsewhere'],
  }),
  {
    name: 'D04: parley does not follow a redirect from https to http',
    url: ({ port }) => `https://gateway.test:${port}`,
    argv: [...chat, '--cacert', certificate.path],
    listen: { tls: () => certificate },
    script: redirect(`http://127.0.0.1:${other.port}/`),
    ...nobodyElse,
    code: 4,
    reqs: 1,
  },
  ...locations.map(
    (location): Row => ({
      ...nobodyElse,
      name: `D07: parley does not follow a redirect to ${location.slice(0, 40)}`,
      script: redirect(location),
      code: 4,
      reqs: 1,
      err: ['redirect not followed', /^(?!.*secretword)/s],
    }),
  ),
  ...(
    [
      ['a\x1b[2Jb', 8, 'is not valid HTTP/1.1'],
      ['a\x80\x9bb', 4, 'redirect not followed, to a\\u0080\\u009bb: 302 Moved'],
    ] as const
  ).map(
    ([location, code, said]): Row => ({
      name: `D07: parley rejects or escapes the redirect target ${JSON.stringify(location)}`,
      script: (socket) =>
        void socket.write(
          Buffer.from(`HTTP/1.1 302 Moved\r\nlocation: ${location}\r\ncontent-length: 0\r\n\r\n`, 'latin1'),
        ),
      code,
      reqs: 1,
      err: [said],
    }),
  ),
  {
    name: 'D08: parley exits with 4 on a redirect without a target',
    script: answering(response('', '304 Same')),
    code: 4,
    reqs: 1,
  },
])

faultsInside('S: plain http and secrets (needs openssl)', [
  ...chatAndEvents({
    name: 'S01: parley refuses plain http to another machine',
    ...named('gateway.test'),
    code: 3,
    err: ['would not be encrypted'],
  }),
  {
    name: 'S01: parley prints no curl command for plain http to another machine',
    shell: 'parley chat hi --base-url http://gateway.test --curl',
    code: 3,
    out: '',
    err: ['would not be encrypted'],
  },
  {
    name: 'S01: parley allows plain http to another machine with --allow-http',
    ...named('gateway.test'),
    argv: [...chat, '--allow-http'],
    script: answering(ok),
    code: 0,
    out: okText,
    reqs: 1,
  },
  ...['127.0.0.1', 'localhost'].map(
    (name): Row => ({
      name: `S02: parley allows plain http to the loopback host ${name}`,
      ...named(name),
      script: answering(ok),
      code: 0,
      out: okText,
      reqs: 1,
    }),
  ),
  {
    name: 'S02: parley allows plain http to the loopback host [::1]',
    listen: { host: '::1' },
    script: answering(ok),
    code: 0,
    out: okText,
    reqs: 1,
    check: ({ server }) => {
      if (!server.requests[0]?.includes(`host: [::1]:${server.port}\r\n`)) throw new Error(server.requests[0])
    },
  },
])
