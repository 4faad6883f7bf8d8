import { afterAll, expect } from 'vitest'
import { response, serve } from '../harness/server.ts'
import { respondWith } from './answers.ts'
import { makeCertificate } from './certificates.ts'
import { chatArgv, chatSuccess, type FaultRow, forChatAndSend, row, testNetworkFaults } from './rows.ts'

/** A server that must not get a connection. */
const other = await serve(() => {})
afterAll(() => other.close())
const certificate = makeCertificate('DNS:gateway.test,DNS:localhost')

const redirect = (location: string, status = 302) =>
  respondWith(response('', `${status} Moved`, [`location: ${location}`]))
const otherIsUnused: Partial<FaultRow> = { check: () => expect(other.connections).toBe(0) }
const locations = [
  'file:///etc/passwd',
  `//127.0.0.1:${other.port}/`,
  `http://user:canary-token-5f3a9c@127.0.0.1:${other.port}/a@b`,
  `http:\\\\user:secretword@127.0.0.1:${other.port}/`,
  `//user:secretword@127.0.0.1:${other.port}/`,
  `/${'long'.repeat(3000)}`,
]
const notModified: Partial<FaultRow> = { script: respondWith(response('', '304 Same')) }
const named = (name: string) => ({ url: ({ port }: { port: number }) => `http://${name}:${port}` })

testNetworkFaults('D: parley follows no redirect (needs openssl)', [
  ...[302, 308].flatMap((status) =>
    forChatAndSend(
      `D01: parley does not follow a ${status} redirect to another server`,
      { ...otherIsUnused, script: redirect(other.url, status) },
      { code: 4, err: [`redirect not followed, to ${other.url}`] },
    ),
  ),
  ...forChatAndSend('D01: parley does not follow a redirect to another path', {
    script: redirect('/elsewhere'),
    code: 4,
    err: ['redirect not followed, to /elsewhere'],
  }),
  row('D04: parley does not follow a redirect from https to http', {
    url: ({ port }) => `https://gateway.test:${port}`,
    argv: [...chatArgv, '--cacert', certificate.path],
    listen: { tls: certificate },
    script: redirect(`http://127.0.0.1:${other.port}/`),
    ...otherIsUnused,
    code: 4,
  }),
  ...locations.map((location) =>
    row(
      `D07: parley does not follow a redirect to ${location.replace(`:${other.port}`, '').slice(0, 40)}`,
      { ...otherIsUnused, script: redirect(location) },
      { code: 4, err: ['redirect not followed', /^(?!.*secretword)/s] },
    ),
  ),
  ...(
    [
      ['exits with 8 on a redirect target with an ESC character', 'a\x1b[2Jb', 8, 'is not valid HTTP/1.1'],
      ['escapes C1 control codes in a target', 'a\x80\x9bb', 4, 'not followed, to a\\u0080\\u009bb: 302'],
    ] as const
  ).map(([reaction, location, code, message]) =>
    row(`D07: parley ${reaction}`, {
      script: (socket) =>
        void socket.write(
          Buffer.from(`HTTP/1.1 302 Moved\r\nlocation: ${location}\r\ncontent-length: 0\r\n\r\n`, 'latin1'),
        ),
      code,
      err: [message],
    }),
  ),
  row('D08: parley exits with 4 on a redirect without a target', { ...notModified, code: 4 }),
])

testNetworkFaults('S: parley sends secrets only over encrypted or local connections', [
  ...forChatAndSend('S01: parley refuses plain http to another machine', {
    ...named('gateway.test'),
    code: 3,
    err: ['would not be encrypted'],
  }),
  row(
    'S01: parley --curl prints no command for plain http to another machine',
    { argv: [...chatArgv, '--curl'], ...named('gateway.test') },
    { code: 3, err: ['would not be encrypted'] },
  ),
  row('S01: parley allows plain http to another machine with --allow-http', {
    ...named('gateway.test'),
    argv: [...chatArgv, '--allow-http'],
    ...chatSuccess,
  }),
  ...['127.0.0.1', 'localhost'].map((name) =>
    row(`S02: parley allows plain http to the loopback host ${name}`, { ...named(name), ...chatSuccess }),
  ),
  row('S02: parley allows plain http to the loopback host [::1]', {
    listen: { host: '::1' },
    ...chatSuccess,
    check: ({ server }) => expect(server.requests[0]).toContain(`host: [::1]:${server.port}\r\n`),
  }),
])
