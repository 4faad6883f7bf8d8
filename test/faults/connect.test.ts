import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, expect } from 'vitest'
import { meetsRequirement } from '../harness/needs.ts'
import { response, type ScriptedServer, serve } from '../harness/server.ts'
import { okOutput, okResponse, respondWith } from './answers.ts'
import { makeCertificate } from './certificates.ts'
import { chatArgv, chatSuccess, type FaultRow, forChatAndSend, row, sendArgv, testFaults } from './rows.ts'

const noRetry = ['--retries', '0']
/** Base URL of a port that no program uses. */
const nowhere = () => 'http://127.0.0.1:2'
const secure = ({ port }: ScriptedServer) => `https://localhost:${port}`

/**
 * Starts a server that does not accept connections and whose queue is full, so Linux drops the packets of
 * further connections. Other systems refuse such connections.
 */
async function startBlockedServer() {
  const code = `require('node:net').createServer().listen({ host: '127.0.0.1', port: 0, backlog: 1 }, function () {
    require('node:fs').writeSync(1, String(this.address().port))
    require('node:fs').readSync(0, Buffer.alloc(1))
  })`
  const child: ChildProcess = spawn(process.execPath, ['-e', code], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [port] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer]
  const fillers: Socket[] = []
  for (let i = 0; i < 8; i++) fillers.push(connect(Number(port), '127.0.0.1').on('error', () => {}))
  await new Promise((resolve) => setTimeout(resolve, 200))
  return {
    url: `http://127.0.0.1:${port}`,
    port: Number(port),
    end() {
      for (const filler of fillers) filler.destroy()
      child.kill('SIGKILL')
    },
  }
}
const blocked = await startBlockedServer()
afterAll(blocked.end)

/** A service at the second address of `near.test`. The first address of this name has the blocked server. */
const secondService = await serve(
  respondWith(okResponse),
  meetsRequirement('Linux') ? { host: '127.0.0.2', port: blocked.port } : {},
)
afterAll(() => secondService.close())
const plainHttp = [...chatArgv, '--allow-http', ...noRetry]

const selfSigned = makeCertificate('DNS:localhost,IP:127.0.0.1')
const expired = makeCertificate('DNS:localhost', -1)
const elsewhere = makeCertificate('DNS:elsewhere.test')

/**
 * A server that starts after parley's second retry. Systems do not assign this port to other programs, so the
 * port stays free until then.
 */
const lateService: { port: number; server?: ScriptedServer } = { port: 20_000 + (process.pid % 10_000) }

const notSent = { code: 9, err: ['nothing was sent'] } satisfies Partial<FaultRow>
const stalled = { listen: { onConnection() {} }, url: secure, conns: 1 } satisfies Partial<FaultRow>

testFaults('N: parley sends nothing if it cannot connect (needs openssl)', [
  row(
    'N20: parley uses the second address of a host name if the first does not respond (needs Linux)',
    { argv: plainHttp, url: () => `http://near.test:${blocked.port}` },
    { code: 0, out: okOutput, check: () => expect(secondService.requests).toHaveLength(1) },
  ),
  row(
    'N24: parley exits with 9 after --connect-timeout if the lookup of the host name hangs',
    { argv: [...chatArgv, ...noRetry, '--connect-timeout', '3'], url: () => 'https://silent.test' },
    { ...notSent, err: ['silent.test: no connection within 3 s', 'nothing was sent'], minSeconds: 3 },
  ),
  row('N28: parley exits with 1 and reports a bug if the event loop is empty before the run is done', {
    argv: [...chatArgv, ...noRetry, '--connect-timeout', '0'],
    url: () => 'https://silent.test',
    code: 1,
    err: [/^parley: a bug in parley \S+: EmptyEventLoop at .*; nothing was sent\n$/s],
    isProcess: true,
  }),
  row(
    'N25: parley exits with 9 if the deadline passes during the lookup of the host name',
    { argv: [...chatArgv, '--deadline', '3', '--connect-timeout', '1h'], url: () => 'https://silent.test' },
    { ...notSent, err: ['the deadline passed', 'nothing was sent'], minSeconds: 3 },
  ),
  ...['PARLEY_WORKSPACE_ID', 'PARLEY_AGENTS_VERSION', 'PARLEY_BETAS', 'PARLEY_API_KEY'].map((variable) =>
    row(
      `N26: parley exits with 3 if ${variable}, which is sent as a header, has a line break`,
      { argv: sendArgv, env: { [variable]: 'a\nevil: b' } },
      { code: 3, err: [new RegExp(`^parley: ${variable} [^\n]*\n$`)] },
    ),
  ),
  ...forChatAndSend('N01: parley retries twice and exits with 9 if the connection is refused', {
    ...notSent,
    url: nowhere,
    err: [/^parley: 127\.0\.0\.1:2: connection refused; trying again in 0\.\d s\nparley: .*; trying again/],
    minSeconds: 0.75,
  }),
  row(
    'N02: parley names both addresses of a host if both refuse the connection',
    { argv: [...chatArgv, ...noRetry, '--allow-http'], url: () => 'http://two.test:2' },
    { ...notSent, err: ['parley: [::1]:2: connection refused, 127.0.0.1:2: connection refused'] },
  ),
  ...forChatAndSend('N03: parley exits with 9, without a retry, if the host name is unknown', {
    ...notSent,
    url: () => 'https://down.test',
    err: [/^parley: down\.test: no such host\n {2}nothing was sent\n$/],
  }),
  ...forChatAndSend('N04: parley retries if the lookup of the host name fails temporarily', {
    // preload.cjs counts the lookups of a process, and only the first lookup fails.
    isProcess: true,
    url: ({ port }) => `http://again.test:${port}`,
    flags: ['--allow-http'],
    script: respondWith(response('{"content":"ok","data":[]}')),
    code: 0,
    err: ['cannot be looked up at the moment; trying again'],
  }),
  ...forChatAndSend(
    'N05: parley exits with 9 after --connect-timeout if packets are lost (needs Linux)',
    { url: () => blocked.url, flags: [...noRetry, '--connect-timeout', '3'] },
    { ...notSent, err: ['no connection within 3 s', 'nothing was sent'], minSeconds: 3 },
  ),
  ...forChatAndSend(
    'N06: parley exits with 9 after --connect-timeout if the TLS handshake hangs',
    { ...stalled, flags: [...noRetry, '--connect-timeout', '3'] },
    { ...notSent, err: ['no connection within 3 s'], minSeconds: 3 },
  ),
  row(
    'N06: parley exits with 9 if the deadline passes during the TLS handshake',
    { ...stalled, argv: [...chatArgv, '--deadline', '3', '--connect-timeout', '1h'] },
    { ...notSent, err: ['the deadline passed', 'nothing was sent'], minSeconds: 3 },
  ),
  row(
    'N07: parley retries and exits with 9 if FIN cuts the TLS handshake',
    { url: secure, listen: { onConnection: (socket) => void socket.once('data', () => socket.end()) } },
    { ...notSent, conns: 3, err: ['the connection was'] },
  ),
  row('N08: parley retries and exits with 9 if RST cuts the TLS handshake', {
    ...notSent,
    url: secure,
    listen: { onConnection: (socket) => void socket.once('data', () => socket.resetAndDestroy()) },
    conns: 3,
    err: ['the connection was reset'],
  }),
  ...forChatAndSend('N09: parley exits with 9 and names --cacert if the certificate is self-signed', {
    ...notSent,
    url: secure,
    listen: { tls: selfSigned },
    err: [
      /^parley: localhost:\d+: its certificate comes from an unknown authority: --cacert FILE trusts it\n/,
    ],
  }),
  row(
    'N10: parley exits with 9 and reports an expired certificate',
    { url: secure, argv: [...chatArgv, '--cacert', expired.path], listen: { tls: expired } },
    { ...notSent, err: [/^parley: localhost:\d+: its certificate has expired/] },
  ),
  row(
    'N11: parley exits with 9 and reports a certificate for another host',
    { url: secure, argv: [...chatArgv, '--cacert', elsewhere.path], listen: { tls: elsewhere } },
    { ...notSent, err: [/^parley: localhost:\d+: its certificate is for another host$/m] },
  ),
  row('N13: parley exits with 9 and suggests http:// if the port of an https:// address does not use TLS', {
    ...notSent,
    url: secure,
    listen: { onConnection: (socket) => void socket.once('data', () => socket.end(okResponse)) },
    conns: 1,
    err: ['http://', 'nothing was sent'],
  }),
  ...forChatAndSend(
    'N14: parley exits with 10 and suggests https:// if the port of an http:// address uses TLS',
    { url: ({ port }) => `http://localhost:${port}`, listen: { tls: selfSigned } },
    { code: 10, err: ['should the address begin with https://?'] },
  ),
  ...forChatAndSend(
    'N15: parley reports whether the request was sent if the server resets the connection at once',
    { flags: noRetry, listen: { onConnection: (socket) => void socket.resetAndDestroy() } },
    {
      conns: 1,
      // The reset may arrive before the request is written (9) or afterwards (10).
      code: [9, 10],
      err: [
        /reset before it was ready\n {2}nothing was sent\n|was reset\n {2}the (request was sent|event may)/,
      ],
    },
  ),
  row('N16: parley retries refused connections until the service is up', {
    // On a slow machine the service may start only after the third attempt, so more retries are allowed.
    argv: [...chatArgv, '--retries', '9'],
    url: () => `http://127.0.0.1:${lateService.port}`,
    during: async (command) => {
      await command.waitUntil(() => command.err().split('trying again').length >= 3)
      lateService.server = await serve(respondWith(okResponse), { port: lateService.port })
      await command.ended
      await lateService.server.close()
    },
    code: 0,
    out: okOutput,
    err: [/^(parley: .*connection refused; trying again in .*\n){2,9}$/],
    check: () => expect(lateService.server?.requests).toHaveLength(1),
  }),
  row(
    'N17: parley reports that nothing was sent if SIGINT interrupts the TLS handshake',
    { ...stalled, signal: { name: 'SIGINT', at: 'connection' } },
    { code: 'SIGINT', err: ['parley: interrupted: nothing was sent'] },
  ),
  row('S05: parley trusts the certificate of --cacert', {
    url: secure,
    argv: [...chatArgv, '--cacert', selfSigned.path],
    listen: { tls: selfSigned },
    ...chatSuccess,
  }),
  row('S05: parley trusts NODE_EXTRA_CA_CERTS in addition to --cacert', {
    url: secure,
    argv: [...chatArgv, '--cacert', elsewhere.path],
    env: { NODE_EXTRA_CA_CERTS: selfSigned.path },
    listen: { tls: selfSigned },
    ...chatSuccess,
  }),
  row(
    'S05: parley exits with 3 if the file of --cacert has no certificate',
    { url: secure, argv: [...chatArgv, '--cacert', import.meta.filename] },
    { code: 3, err: ['--cacert', 'has no PEM certificate'] },
  ),
  ...[[], ['--quiet']].map((flags) =>
    row(
      `S04, S06: parley warns if the environment disables certificate verification${flags.join() && ', also with --quiet'}`,
      {
        url: secure,
        argv: [...chatArgv, ...flags],
        env: { NODE_TLS_REJECT_UNAUTHORIZED: '0' },
        listen: { tls: selfSigned },
        ...chatSuccess,
        err: [/^parley: NODE_TLS_REJECT_UNAUTHORIZED=0 .*\n$/],
      },
    ),
  ),
])
