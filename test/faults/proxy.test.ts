import { connect } from 'node:net'
import { afterAll } from 'vitest'
import {
  resetWhenRead,
  type Script,
  type ScriptedServer,
  type ServeOptions,
  serve,
} from '../harness/server.ts'
import { answering, ok, okText } from './answers.ts'
import { makeCertificate } from './certificates.ts'
import { chat, events, faultsInside, type Row } from './rows.ts'

const certificate = makeCertificate('DNS:gateway.test,DNS:localhost')
const stranger = makeCertificate('DNS:gateway.test,DNS:other.test')

const proxies: ScriptedServer[] = []
afterAll(() => Promise.all(proxies.map((proxy) => proxy.close())))

async function openProxy(script: Script, options?: ServeOptions): Promise<ScriptedServer> {
  const proxy = await serve(script, options)
  proxies.push(proxy)
  return proxy
}

/** Opens the tunnel that is asked for, to loopback, whatever its name. */
const tunnel: Script = (socket, request) => {
  const port = Number(/^CONNECT \S+:(\d+) /.exec(request)?.[1])
  socket.removeAllListeners('data')
  const onward = connect(port, '127.0.0.1', () => {
    socket.write('HTTP/1.1 200 Connection established\r\nvia: a proxy\r\n\r\n')
    onward.pipe(socket).pipe(onward)
  })
  onward.on('error', () => socket.destroy())
  socket.on('close', () => onward.destroy())
}

const secure = ({ port }: ScriptedServer) => `https://gateway.test:${port}`
const plain = ({ port }: ScriptedServer) => `http://gateway.test:${port}`
const toSecure = {
  argv: [...chat, '--cacert', certificate.path],
  listen: { tls: () => certificate },
  url: secure,
} satisfies Partial<Row>
const toPlain = { argv: [...chat, '--allow-http'], url: plain } satisfies Partial<Row>
const fine = { script: answering(ok), code: 0, out: okText, reqs: 1 } satisfies Partial<Row>
const by = (proxy: ScriptedServer, variable = 'ALL_PROXY', credentials = '') => ({
  [variable]: proxy.url.replace('://', `://${credentials}`),
})
const bare = (env: Record<string, string>) =>
  Object.fromEntries(Object.entries(env).map(([name, url]) => [name, url.replace('http://', '')]))

const same = (env: Record<string, string>) => env

/** A row whose run goes by a proxy of its own, which sees only CONNECT, and the secret never. */
async function through(
  row: Row & {
    variable?: string
    credentials?: string
    proxy?: Script
    isUnused?: boolean
    isBare?: boolean
  },
  options?: ServeOptions,
): Promise<Row> {
  const { variable, credentials, proxy: script = tunnel, isUnused = false, isBare, ...rest } = row
  const proxy = await openProxy(script, options)
  return {
    ...rest,
    env: { ...(isBare ? bare : same)(by(proxy, variable, credentials)), ...row.env },
    check: (seen) => {
      row.check?.(seen)
      if (isUnused && proxy.connections > 0) throw new Error('the proxy was used')
      if (!isUnused && proxy.connections === 0) throw new Error('the proxy was not used')
      const wrong = proxy.requests.filter(
        (request) => !/^CONNECT gateway\.test:\d+ HTTP\/1\.1\r\n/.test(request),
      )
      if (wrong.length > 0) throw new Error(`the proxy saw ${wrong[0]}`)
      const basic = Buffer.from('user:p@ss').toString('base64')
      const shown = proxy.requests.filter((request) =>
        request.includes(`Proxy-Authorization: Basic ${basic}\r\n`),
      )
      if (shown.length !== (credentials ? proxy.requests.length : 0)) throw new Error('credentials')
      if (seen.server.requests.some((request) => /proxy-auth/i.test(request))) throw new Error('they went on')
    },
  }
}

const once = ['--retries', '0']
const failing = (name: string, proxy: Script, more: Partial<Row> = {}): Promise<Row> =>
  through({
    ...toSecure,
    name,
    argv: [...toSecure.argv, ...once],
    code: 9,
    err: ['the proxy 127.0.0.1:', 'nothing was sent'],
    ...more,
    proxy,
  })
const saying =
  (bytes: string): Script =>
  (socket) =>
    void socket.end(bytes)

/** Whether a proxy that says nothing was asked. */
let isAsked = false

const rows = await Promise.all([
  ...['HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy'].map((variable) =>
    through({ ...toSecure, ...fine, name: `X01: ${variable} for https`, variable }),
  ),
  ...['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy'].map((variable) =>
    through({ ...toPlain, ...fine, name: `X01: ${variable} for http, by CONNECT (X09)`, variable }),
  ),
  through({
    ...toSecure,
    ...fine,
    name: 'X01: HTTP_PROXY is not for https',
    variable: 'HTTP_PROXY',
    isUnused: true,
  }),
  through({
    ...toPlain,
    ...fine,
    name: 'X01: HTTPS_PROXY is not for http',
    variable: 'HTTPS_PROXY',
    isUnused: true,
  }),
  ...['gateway.test', '.test', 'x, *.test', '*', 'GATEWAY.TEST'].flatMap((list) =>
    ['NO_PROXY', 'no_proxy'].map((name) =>
      through({ ...toSecure, ...fine, name: `X01: ${name}=${list}`, env: { [name]: list }, isUnused: true }),
    ),
  ),
  through({
    ...toSecure,
    ...fine,
    name: 'X01: NO_PROXY for others',
    env: { NO_PROXY: 'other.test,way.test,10.0.0.0/8' },
  }),
  through({ ...fine, name: 'X01: loopback goes direct', isUnused: true }),
  through(
    { ...toSecure, ...fine, name: 'X01: a proxy that speaks TLS, for https', variable: 'HTTPS_PROXY' },
    { tls: certificate, host: 'localhost' },
  ),
  through(
    {
      ...toPlain,
      ...fine,
      name: 'X01: a proxy that speaks TLS, for http',
      argv: [...toPlain.argv, '--cacert', certificate.path],
      variable: 'HTTP_PROXY',
    },
    { tls: certificate, host: 'localhost' },
  ),
  ...['', 'user:p%40ss@'].map((credentials) =>
    through({ ...toSecure, ...fine, name: `X20: ${credentials}HOST:PORT`, credentials, isBare: true }),
  ),
  through({ ...toPlain, ...fine, name: 'X20: HOST:PORT for http', variable: 'http_proxy', isBare: true }),
  through({ ...toSecure, ...fine, name: 'X02: credentials for the proxy', credentials: 'user:p%40ss@' }),
  ...['', 'user:p%40ss@'].map((credentials) =>
    failing('X03 407', saying('HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n'), {
      name: `X03: 407 ${credentials && 'in spite of credentials'}`,
      code: 3,
      err: ['the proxy 127.0.0.1:', 'from ALL_PROXY', '407', 'nothing was sent', /^(?!.*(p@ss|p%40))/s],
      ...({ credentials } as object),
    }),
  ),
  ...[502, 503, 403, 404].map((status) =>
    failing(`X07 ${status} on CONNECT`, saying(`HTTP/1.1 ${status} No\r\ncontent-length: 3\r\n\r\nno\n`), {
      err: ['the proxy 127.0.0.1:', `: ${status}`, 'nothing was sent'],
    }),
  ),
  failing('X07 302 on CONNECT', saying('HTTP/1.1 302 Found\r\nlocation: http://x/\r\n\r\n')),
  failing('X07 FIN on CONNECT', (socket) => void socket.end()),
  failing('X07 RST on CONNECT', (socket) => void socket.resetAndDestroy()),
  failing('X07 no HTTP on CONNECT', saying('SSH-2.0-x\x1b[2J\r\n\r\n'), { err: ['did not answer in HTTP'] }),
  failing('X07 half a head on CONNECT', saying('HTTP/1.1 200 OK\r\nvia:')),
  failing('X07 a head without end on CONNECT', (socket) => {
    const timer = setInterval(() => socket.write(`x: ${'x'.repeat(4000)}\r\n`), 1)
    socket.on('close', () => clearInterval(timer))
  }),
  failing('X07 silence on CONNECT', () => {}, {
    argv: [...toSecure.argv, ...once, '--connect-timeout', '3'],
    err: ['through the proxy 127.0.0.1:', 'no connection within 3 s'],
    atLeast: 3,
  }),
  failing('X07 silence on CONNECT, up to the deadline', () => {}, {
    argv: [...toSecure.argv, '--deadline', '3', '--connect-timeout', '1h'],
    err: ['the deadline passed'],
    atLeast: 3,
  }),
  through({
    ...toSecure,
    name: 'X07: 502 is tried again',
    proxy: (socket, request, count, requests) =>
      count === 1 ? socket.end('HTTP/1.1 502 No\r\n\r\n') : tunnel(socket, request, count, requests),
    ...fine,
    err: ['trying again'],
  }),
  through({
    ...toSecure,
    name: 'X07: SIGINT while the proxy is silent',
    proxy: () => {
      isAsked = true
    },
    during: async (world) => {
      while (!isAsked && world.child.exitCode === null)
        await new Promise((resolve) => setTimeout(resolve, 10))
      world.child.kill('SIGINT')
    },
    code: 'SIGINT',
    err: ['interrupted: nothing was sent'],
  }),
  failing('X08 200, then FIN', saying('HTTP/1.1 200 OK\r\n\r\n'), { err: ['nothing was sent'] }),
  failing(
    'X08 200, then RST',
    (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      void resetWhenRead(socket)
    },
    { err: ['nothing was sent'] },
  ),
  through({
    ...toSecure,
    name: 'X08: the tunnel breaks after the request',
    argv: [...events, '--cacert', certificate.path],
    script: (socket) => void socket.destroy(),
    code: 10,
    reqs: 1,
    err: ['may have been accepted'],
  }),
  through({
    ...toSecure,
    ...fine,
    name: 'X08: the answer to CONNECT comes with the first bytes of what follows',
    ...toPlain,
    script: undefined as never,
    proxy: (socket) => {
      socket.removeAllListeners('data')
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      socket.once('data', () => socket.write(ok))
    },
    reqs: 0,
  }),
  through({
    ...toSecure,
    name: 'X12: a self-signed target through the tunnel',
    argv: chat,
    listen: { tls: () => stranger },
    code: 9,
    err: ['its certificate is self-signed: --cacert FILE trusts it'],
  }),
])

const beginning = 'must begin with https:// or http://'

const refusedUrl = (value: string, said: string, variable = 'HTTPS_PROXY'): Row => ({
  ...toSecure,
  name: `X11: ${variable}=${value}`,
  env: { [variable]: value },
  code: 3,
  err: [`parley: ${variable} `, said, 'nothing was sent', /^(?!.*secretword)/s],
})

faultsInside('X: proxies (needs openssl)', [
  ...rows,
  {
    ...toSecure,
    name: 'X04: the proxy refuses connections',
    env: { HTTPS_PROXY: 'http://user:secretword@127.0.0.1:1' },
    code: 9,
    err: [
      'parley: the proxy in HTTPS_PROXY, 127.0.0.1:1: connection refused; trying again',
      'nothing was sent',
      /^(?!.*secretword)/s,
    ],
  },
  {
    ...toSecure,
    name: 'X21: a proxy without a scheme refuses connections',
    argv: [...toSecure.argv, ...once],
    env: { ALL_PROXY: 'user:secretword@127.0.0.1:1' },
    code: 9,
    err: ['parley: the proxy in ALL_PROXY, 127.0.0.1:1: connection refused\n', /^(?!.*secretword)/s],
  },
  {
    ...toSecure,
    name: 'X22: a proxy that refuses at both addresses',
    argv: [...toSecure.argv, ...once],
    env: { https_proxy: 'http://two.test:2' },
    code: 9,
    err: ['the proxy in https_proxy, [::1]:2: connection refused, 127.0.0.1:2: connection refused\n'],
  },
  {
    ...toSecure,
    name: 'X23: a proxy without a name that is known',
    env: { HTTPS_PROXY: 'down.test:3128' },
    code: 9,
    err: ['the proxy in HTTPS_PROXY, down.test:3128: no such host\n'],
  },
  {
    ...toSecure,
    name: 'X24: a proxy with a certificate that is not trusted',
    argv: [...chat, ...once],
    envOf: ({ port }) => ({ HTTPS_PROXY: `https://localhost:${port}` }),
    code: 9,
    err: ['the proxy in HTTPS_PROXY, localhost:', 'its certificate is self-signed'],
  },
  ...['mailto:secretword', 'proxy.test:', '/a:1', ':1', 'x://127.0.0.1:1', 'a b:1', '127.0.0.1:1/x'].map(
    (value) => refusedUrl(value, value === 'a b:1' ? 'must not contain blanks' : beginning),
  ),
  refusedUrl('127.0.0.1:0', 'port 0'),
  refusedUrl('127.0.0.1:99999', 'not a valid URL'),
  refusedUrl('proxy.test', `${beginning}: give HOST:PORT or http://HOST:PORT`, 'all_proxy'),
  refusedUrl('socks5://user:secretword@127.0.0.1:8080', beginning),
  refusedUrl('http://user:secretword@a b:1', 'must not contain blanks'),
  ...[
    'http://secretword:80/9@127.0.0.1:1',
    'https://secretword:80/9@127.0.0.1:1',
    'http://user:1@secretword/9@127.0.0.1:1',
    'http://secretword:80?9@127.0.0.1:1',
    'http://secretword:80#9@127.0.0.1:1',
    'secretword:80/9@127.0.0.1:1',
    'http://user:secret/secretword@127.0.0.1:1',
  ].map((value) =>
    refusedUrl(value, "must have '/', '?' and '#' percent-encoded in its user name and password"),
  ),
  refusedUrl('http://127.0.0.1:0', 'port 0'),
])
