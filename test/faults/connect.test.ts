import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { has } from '../harness/needs.ts'
import { configFolder } from '../harness/run.ts'
import { response, type ScriptedServer, serve } from '../harness/server.ts'
import { answering, ok, okText, receipt, receiptText } from './answers.ts'
import { makeCertificate } from './certificates.ts'
import { both, chat, events, faults, type Row } from './rows.ts'

const noRetry = ['--retries', '0']
/** Nothing listens there, and no other program will. */
const nowhere = () => 'http://127.0.0.1:2'
const secure = ({ port }: ScriptedServer) => `https://localhost:${port}`

/** Elsewhere a full queue refuses, and loopback has one address. */

/** A listener whose queue is full, so that no connection to it comes about before it is woken up. */
async function block() {
  const accept = `(socket) => socket.on('error', () => {}).on('data', () => socket.end(${JSON.stringify(ok.toString())}))`
  const code = `require('node:net').createServer(${accept}).listen({ host: '127.0.0.1', port: 0, backlog: 1 }, function () {
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
    wake: () => void child.stdin?.write('x'),
    end() {
      for (const filler of fillers) filler.destroy()
      child.kill('SIGKILL')
    },
  }
}
const blocked = await block()
const slow = await block()
const silent = await block()
afterAll(() => {
  blocked.end()
  slow.end()
  silent.end()
})

/** A service at the second address of a name whose first one is blocked. */
const beside = await serve(answering(ok), has('Linux') ? { host: '127.0.0.2', port: blocked.port } : {})
afterAll(() => beside.close())
const plainHttp = [...chat, '--allow-http', ...noRetry]

const selfSigned = makeCertificate('DNS:localhost,IP:127.0.0.1')
const expired = makeCertificate('DNS:localhost', -1)
const elsewhere = makeCertificate('DNS:elsewhere.test')

/** A server that comes up when parley has said twice that it tries again. */
async function comeUp({ err }: { err(): string }, port: number): Promise<ScriptedServer> {
  while (err().split('trying again').length < 3) await new Promise((resolve) => setTimeout(resolve, 10))
  return serve(answering(ok), { port })
}

/** A system gives such a port to nobody who does not name it, so that it stays free until the server comes up. */
const late: { port: number; server?: ScriptedServer } = { port: 20_000 + (process.pid % 10_000) }

const notSent = { code: 9, err: ['nothing was sent'] } satisfies Partial<Row>
const stalled = { listen: { onConnection() {} }, url: secure, conns: 1 } satisfies Partial<Row>

faults('N: connect phase, nothing sent (needs openssl)', [
  {
    name: 'N20: the first address of a name is a black hole, the second one answers (needs Linux)',
    argv: plainHttp,
    url: () => `http://near.test:${blocked.port}`,
    code: 0,
    out: okText,
    check: () => {
      if (beside.requests.length !== 1) throw new Error('one request was expected')
    },
  },
  {
    name: 'N21: the first address of a name is slow, the second one refuses (needs Linux)',
    argv: plainHttp,
    url: () => `http://near.test:${slow.port}`,
    during: async () => {
      await new Promise((resolve) => setTimeout(resolve, 1000))
      slow.wake()
    },
    code: 0,
    out: okText,
  },
  {
    ...notSent,
    name: 'N22: the first address of a name is a black hole, the second one refuses (needs Linux)',
    argv: [...plainHttp, '--connect-timeout', '3'],
    url: () => `http://near.test:${silent.port}`,
    err: ['near.test:', 'no connection within 3 s', 'nothing was sent'],
    atLeast: 3,
  },
  {
    name: 'N23: the first address of a name refuses, the second one answers (needs Linux)',
    argv: plainHttp,
    url: ({ port }) => `http://far.test:${port}`,
    script: answering(ok),
    code: 0,
    out: okText,
    reqs: 1,
  },
  {
    ...notSent,
    name: 'N24: a name that is looked up for ever',
    argv: [...chat, ...noRetry, '--connect-timeout', '3'],
    url: () => 'https://silent.test',
    err: ['silent.test: no connection within 3 s', 'nothing was sent'],
    atLeast: 3,
  },
  {
    name: 'N28: nothing is left to wait for, and nothing came',
    argv: [...chat, ...noRetry, '--connect-timeout', '0'],
    url: () => 'https://silent.test',
    code: 1,
    err: [/^parley: a bug in parley: it ended before its work\n {2}nothing was sent\n$/],
    isProcess: true,
  },
  {
    name: 'N28: nothing is left to wait for, told with --errors json and in a report',
    argv: [...chat, ...noRetry, '--connect-timeout', '0', '--errors', 'json', '--report', 'r.json'],
    url: () => 'https://silent.test',
    code: 1,
    err: [
      /^\{"error":\{"format":1,"kind":"unexpected","exit":1,"message":"a bug in parley: it ended before its work",.*\}\n$/,
    ],
    files: ['cwd/r.json'],
    isProcess: true,
    check: ({ ending }) => {
      const report = JSON.parse(ending.files.get('cwd/r.json') ?? '')
      if (report.exit !== 1 || report.kind !== 'unexpected') throw new Error(JSON.stringify(report))
    },
  },
  {
    ...notSent,
    name: 'N25: the deadline passes while a name is looked up',
    argv: [...chat, '--deadline', '3', '--connect-timeout', '1h'],
    url: () => 'https://silent.test',
    err: ['the deadline passed', 'nothing was sent'],
    atLeast: 3,
  },
  ...['WORKSPACE_ID', 'AGENTS_VERSION', 'BETAS', 'API_KEY'].flatMap((setting): Row[] =>
    ['a\nevil: b', 'a\r\nevil: b', 'a\u00e9'].map((value) => ({
      name: `N26: PARLEY_${setting}=${JSON.stringify(value)} can stand in no header`,
      argv: events,
      env: { [`PARLEY_${setting}`]: value },
      code: 3,
      err: [new RegExp(`^parley: PARLEY_${setting} [^\n]*\n$`)],
    })),
  ),
  {
    name: 'N26: a header value in the profile with a line break',
    argv: events,
    prepare: (folder) => {
      const place = join(folder, 'home', configFolder)
      mkdirSync(place, { recursive: true, mode: 0o700 })
      writeFileSync(
        `${place}/config.json`,
        JSON.stringify({ profiles: { default: { workspaceId: 'a\nb' } } }),
        { mode: 0o600 },
      )
    },
    code: 3,
    err: [/^parley: 'workspaceId' in profile 'default' has characters [^\n]*\n$/],
    files: [`home/${configFolder}/config.json`],
  },
  ...both({
    ...notSent,
    name: 'N01: connection refused',
    url: nowhere,
    err: [
      /^parley: 127\.0\.0\.1:2: connection refused; trying again in 0\.\d s\nparley: .*; trying again in .*\nparley: 127/,
    ],
    atLeast: 0.75,
  }),
  {
    ...notSent,
    name: 'N02: refused on both addresses of a name',
    argv: [...chat, ...noRetry, '--allow-http'],
    url: () => 'http://two.test:2',
    err: ['parley: [::1]:2: connection refused, 127.0.0.1:2: connection refused'],
  },
  ...both({
    ...notSent,
    name: 'N03: no such name',
    url: () => 'https://down.test',
    err: [/^parley: down\.test: no such host\n {2}nothing was sent\n$/],
  }),
  ...both({
    ...notSent,
    name: 'N03: no such name, for programs',
    url: () => 'https://down.test',
    flags: ['--errors', 'json'],
    err: ['"kind":"not-sent","exit":9,', '"sent":"no","safeToRetry":false,"retry":"never","attempts":1}'],
  }),
  ...both({
    name: 'N04: a name that cannot be looked up once',
    // What was looked up is counted for each process.
    isProcess: true,
    url: ({ port }) => `http://again.test:${port}`,
    flags: ['--allow-http'],
    script: answering(response('{"content":"ok","data":[]}')),
    code: 0,
    reqs: 1,
    err: ['cannot be looked up at the moment; trying again'],
  }),
  ...both({
    ...notSent,
    name: 'N05: SYN dropped (needs Linux)',
    url: () => blocked.url,
    flags: [...noRetry, '--connect-timeout', '3'],
    err: ['no connection within 3 s', 'nothing was sent'],
    atLeast: 3,
  }),
  ...both({
    ...notSent,
    ...stalled,
    name: 'N06: TLS handshake stall',
    flags: [...noRetry, '--connect-timeout', '3'],
    err: ['no connection within 3 s'],
    atLeast: 3,
  }),
  {
    ...notSent,
    name: 'N06: the deadline passes in the handshake',
    ...stalled,
    argv: [...chat, '--deadline', '3', '--connect-timeout', '1h'],
    err: ['the deadline passed', 'nothing was sent'],
    atLeast: 3,
  },
  {
    ...notSent,
    name: 'N07: TLS handshake cut off by FIN, and tried again',
    url: secure,
    listen: { onConnection: (socket) => void socket.once('data', () => socket.end()) },
    conns: 3,
    err: ['the connection was'],
  },
  {
    ...notSent,
    name: 'N08: TLS handshake cut off by RST, and tried again',
    url: secure,
    listen: { onConnection: (socket) => void socket.once('data', () => socket.resetAndDestroy()) },
    conns: 3,
    err: ['the connection was reset'],
  },
  ...both({
    ...notSent,
    name: 'N09: self-signed certificate',
    url: secure,
    listen: { tls: () => selfSigned },
    err: [/^parley: localhost:\d+: its certificate is self-signed: --cacert FILE trusts it\n {2}nothing/],
  }),
  ...both({
    ...notSent,
    name: 'N09: self-signed certificate, for programs',
    url: secure,
    listen: { tls: () => selfSigned },
    flags: ['--errors', 'json'],
    err: ['"sent":"no","safeToRetry":false,"retry":"never","attempts":1}'],
  }),
  {
    ...notSent,
    name: 'N04: a name that cannot be looked up, for programs',
    isProcess: true,
    url: () => 'https://again.test',
    argv: [...chat, '--errors', 'json', '--retries', '0'],
    err: ['"retry":"later"'],
  },
  {
    ...notSent,
    name: 'N10: expired certificate',
    url: secure,
    argv: [...chat, '--cacert', expired.path],
    listen: { tls: () => expired },
    err: [/^parley: localhost:\d+: its certificate has expired/],
  },
  {
    ...notSent,
    name: 'N11: certificate for another host',
    url: secure,
    argv: [...chat, '--cacert', elsewhere.path],
    listen: { tls: () => elsewhere },
    err: [/^parley: localhost:\d+: its certificate is for another host$/m],
  },
  {
    ...notSent,
    name: 'N13: https to a port that speaks plain HTTP',
    url: secure,
    listen: { onConnection: (socket) => void socket.once('data', () => socket.end(ok)) },
    conns: 1,
    err: ['http://', 'nothing was sent'],
  },
  ...both({
    name: 'N14: http to a port that speaks TLS',
    url: ({ port }) => `http://localhost:${port}`,
    listen: { tls: () => selfSigned },
    code: 10,
    err: ['is the address https:// ?'],
  }),
  ...[chat, events].map(
    (argv): Row => ({
      name: `N15: RST at accept (${argv[0]})`,
      argv: [...argv, ...noRetry],
      listen: { onConnection: (socket) => void socket.resetAndDestroy() },
      conns: 1,
      // Whether the request was written before the reset came is chance; what is said of it is not.
      code: [9, 10],
      err: [
        /reset before it was ready\n {2}nothing was sent\n|was reset\n {2}(the request was sent|the event may)/,
      ],
    }),
  ),
  {
    name: 'N16: refused twice or more, then up',
    // A busy machine may take longer to bring the service up than until the third try.
    argv: [...chat, '--retries', '9'],
    url: () => `http://127.0.0.1:${late.port}`,
    during: async (world) => {
      late.server = await comeUp(world, late.port)
      await world.ended
      await late.server.close()
    },
    code: 0,
    out: okText,
    err: [/^(parley: .*connection refused; trying again in .*\n){2,9}$/],
    check: () => {
      if (late.server?.requests.length !== 1) throw new Error('one request was expected')
    },
  },
  {
    name: 'N17: SIGINT in the TLS handshake',
    ...stalled,
    signal: { name: 'SIGINT', at: 'connection' },
    code: 'SIGINT',
    err: ['parley: interrupted: nothing was sent'],
  },
  {
    name: 'S05: --cacert',
    url: secure,
    argv: [...chat, '--cacert', selfSigned.path],
    listen: { tls: () => selfSigned },
    script: answering(ok),
    code: 0,
    out: okText,
    reqs: 1,
  },
  {
    name: 'S05: PARLEY_CACERT',
    url: secure,
    argv: events,
    env: { PARLEY_CACERT: selfSigned.path },
    listen: { tls: () => selfSigned },
    script: answering(receipt),
    code: 0,
    out: receiptText,
    reqs: 1,
  },
  {
    name: 'S05: NODE_EXTRA_CA_CERTS, beside --cacert',
    url: secure,
    argv: [...chat, '--cacert', elsewhere.path],
    env: { NODE_EXTRA_CA_CERTS: selfSigned.path },
    listen: { tls: () => selfSigned },
    script: answering(ok),
    code: 0,
    out: okText,
    reqs: 1,
  },
  {
    name: 'S05: --cacert that holds no certificate',
    url: secure,
    argv: [...chat, '--cacert', import.meta.filename],
    code: 3,
    err: ['--cacert', 'has no PEM certificate'],
  },
  {
    name: 'S05: --cacert that is not there',
    url: secure,
    argv: [...chat, '--cacert', 'none.pem'],
    code: 11,
    err: ['none.pem: no such file'],
  },
  ...[[], ['--quiet']].map(
    (flags): Row => ({
      name: `S04, S06: verification switched off warns ${flags.join()}`,
      url: secure,
      argv: [...chat, ...flags],
      env: { NODE_TLS_REJECT_UNAUTHORIZED: '0' },
      listen: { tls: () => selfSigned },
      script: answering(ok),
      code: 0,
      out: okText,
      reqs: 1,
      err: [/^parley: NODE_TLS_REJECT_UNAUTHORIZED=0 .*\n$/],
    }),
  ),
])
