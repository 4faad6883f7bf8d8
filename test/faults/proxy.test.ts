import { connect } from 'node:net'
import { afterAll } from 'vitest'
import { type Script, type ScriptedServer, type ServeOptions, serve } from '../harness/server.ts'
import { answering, closing, ok, okText } from './answers.ts'
import { makeCertificate } from './certificates.ts'
import { chat, events, faultsInside, type Row } from './rows.ts'

const certificate = makeCertificate('DNS:gateway.test,DNS:localhost')

const proxies: ScriptedServer[] = []
afterAll(() => Promise.all(proxies.map((proxy) => proxy.close())))

async function openProxy(script: Script, options?: ServeOptions): Promise<ScriptedServer> {
  const proxy = await serve(script, options)
  proxies.push(proxy)
  return proxy
}

/** Opens the requested tunnel to loopback, whatever the host name. */
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
const proxyEnv = (proxy: ScriptedServer, variable = 'ALL_PROXY', credentials = '') => ({
  [variable]: proxy.url.replace('://', `://${credentials}`),
})
const withoutScheme = (env: Record<string, string>) =>
  Object.fromEntries(Object.entries(env).map(([name, url]) => [name, url.replace('http://', '')]))

const unchanged = (env: Record<string, string>) => env

/**
 * Returns a row that runs through a separate proxy. The row fails if the proxy receives anything but CONNECT.
 */
async function makeProxyRow(
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
    env: { ...(isBare ? withoutScheme : unchanged)(proxyEnv(proxy, variable, credentials)), ...row.env },
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
      if (shown.length !== (credentials ? proxy.requests.length : 0))
        throw new Error('the proxy received wrong credentials')
      if (seen.server.requests.some((request) => /proxy-auth/i.test(request)))
        throw new Error('the service received proxy credentials')
    },
  }
}

const noRetry = ['--retries', '0']
const failing = (name: string, proxy: Script, more: Partial<Row> = {}): Promise<Row> =>
  makeProxyRow({
    ...toSecure,
    name,
    argv: [...toSecure.argv, ...noRetry],
    code: 9,
    err: ['the proxy 127.0.0.1:', 'nothing was sent'],
    ...more,
    proxy,
  })

/** True after the silent proxy has received a request. */
let isRequested = false

const rows = await Promise.all([
  ...['HTTPS_PROXY', 'ALL_PROXY', 'all_proxy'].map((variable) =>
    makeProxyRow({
      ...toSecure,
      ...fine,
      name: `X01: parley uses the proxy of ${variable} for https`,
      variable,
    }),
  ),
  ...['HTTP_PROXY', 'ALL_PROXY', 'all_proxy'].map((variable) =>
    makeProxyRow({
      ...toPlain,
      ...fine,
      name: `X01, X09: parley uses the proxy of ${variable} for http through CONNECT`,
      variable,
    }),
  ),
  makeProxyRow({
    ...toSecure,
    ...fine,
    name: 'X01: parley does not use HTTP_PROXY for https',
    variable: 'HTTP_PROXY',
    isUnused: true,
  }),
  makeProxyRow({
    ...toPlain,
    ...fine,
    name: 'X01: parley does not use HTTPS_PROXY for http',
    variable: 'HTTPS_PROXY',
    isUnused: true,
  }),
  ...['NO_PROXY', 'no_proxy'].map((name) =>
    makeProxyRow({
      ...toSecure,
      ...fine,
      name: `X01: parley bypasses the proxy with ${name}=${'gateway.test'}`,
      env: { [name]: 'gateway.test' },
      isUnused: true,
    }),
  ),
  makeProxyRow({ ...fine, name: 'X01: parley bypasses the proxy for loopback', isUnused: true }),
  makeProxyRow({
    ...toSecure,
    ...fine,
    name: 'X02: parley sends proxy credentials to the proxy only',
    credentials: 'user:p%40ss@',
  }),
  ...['', 'user:p%40ss@'].map((credentials) =>
    failing(
      'X03: parley exits with 3 on a 407',
      closing('HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n'),
      {
        name: `X03: parley exits with 3 and names the proxy on a 407${credentials && ' despite credentials'}`,
        code: 3,
        err: ['the proxy 127.0.0.1:', 'from ALL_PROXY', '407', 'nothing was sent', /^(?!.*(p@ss|p%40))/s],
        ...({ credentials } as object),
      },
    ),
  ),
  failing(
    'X07: parley exits with 9 if the proxy answers CONNECT with a 502',
    closing('HTTP/1.1 502 No\r\ncontent-length: 3\r\n\r\nno\n'),
    {
      err: ['the proxy 127.0.0.1:', ': 502', 'nothing was sent'],
    },
  ),
  failing('X07: parley exits with 9 if FIN answers CONNECT', (socket) => void socket.end()),
  failing(
    'X07: parley exits with 9 if the proxy does not answer in HTTP',
    closing('SSH-2.0-x\x1b[2J\r\n\r\n'),
    {
      err: ['did not answer in HTTP'],
    },
  ),
  failing('X07: parley exits with 9 if the head of the answer to CONNECT never ends', (socket) => {
    const timer = setInterval(() => socket.write(`x: ${'x'.repeat(4000)}\r\n`), 1)
    socket.on('close', () => clearInterval(timer))
  }),
  failing('X07: parley exits with 9 after --connect-timeout if the proxy does not answer', () => {}, {
    argv: [...toSecure.argv, ...noRetry, '--connect-timeout', '3'],
    err: ['through the proxy 127.0.0.1:', 'no connection within 3 s'],
    atLeast: 3,
  }),
  failing('X07: parley exits with 9 if the deadline passes before the proxy answers', () => {}, {
    argv: [...toSecure.argv, '--deadline', '3', '--connect-timeout', '1h'],
    err: ['the deadline passed'],
    atLeast: 3,
  }),
  makeProxyRow({
    ...toSecure,
    name: 'X07: parley reports that nothing was sent if SIGINT ends the wait for the proxy',
    proxy: () => {
      isRequested = true
    },
    during: async (command) => {
      while (!isRequested && command.child.exitCode === null)
        await new Promise((resolve) => setTimeout(resolve, 10))
      command.child.kill('SIGINT')
    },
    code: 'SIGINT',
    err: ['interrupted: nothing was sent'],
  }),
  failing(
    'X08: parley exits with 9 if FIN closes the tunnel before the request',
    closing('HTTP/1.1 200 OK\r\n\r\n'),
    { err: ['nothing was sent'] },
  ),
  makeProxyRow({
    ...toSecure,
    name: 'X08: parley reports that the request may have arrived if the tunnel breaks after the request',
    argv: [...events, '--cacert', certificate.path],
    script: (socket) => void socket.destroy(),
    code: 10,
    reqs: 1,
    err: ['may have been accepted'],
  }),
  makeProxyRow({
    ...toSecure,
    ...fine,
    name: 'X08: parley reads the response that follows the answer to CONNECT',
    ...toPlain,
    script: undefined as never,
    proxy: (socket) => {
      socket.removeAllListeners('data')
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      socket.once('data', () => socket.write(ok))
    },
    reqs: 0,
  }),
])

const beginning = 'must begin with https:// or http://'

const refusedUrl = (value: string, message: string, variable = 'HTTPS_PROXY'): Row => ({
  ...toSecure,
  name: `X11: parley rejects ${variable}=${value}`,
  env: { [variable]: value },
  code: 3,
  err: [`parley: ${variable} `, message, 'nothing was sent', /^(?!.*secretword)/s],
})

faultsInside('X: proxies (needs openssl)', [
  ...rows,
  {
    ...toSecure,
    name: 'X04: parley exits with 9 and names the proxy if it refuses connections',
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
    name: 'X21: parley prints no password if a proxy without a scheme refuses connections',
    argv: [...toSecure.argv, ...noRetry],
    env: { ALL_PROXY: 'user:secretword@127.0.0.1:1' },
    code: 9,
    err: ['parley: the proxy in ALL_PROXY, 127.0.0.1:1: connection refused\n', /^(?!.*secretword)/s],
  },
  {
    ...toSecure,
    name: 'X24: parley exits with 9 and names the proxy if its certificate is not trusted',
    argv: [...chat, ...noRetry],
    envOf: ({ port }) => ({ HTTPS_PROXY: `https://localhost:${port}` }),
    code: 9,
    err: ['the proxy in HTTPS_PROXY, localhost:', 'its certificate comes from an unknown authority'],
  },
  ...['mailto:secretword', 'a b:1', '127.0.0.1:1/x'].map((value) =>
    refusedUrl(value, value === 'a b:1' ? 'must not contain blanks' : beginning),
  ),
  refusedUrl('proxy.test', `${beginning}: give HOST:PORT or http://HOST:PORT`, 'all_proxy'),
  refusedUrl('socks5://user:secretword@127.0.0.1:8080', beginning),
  ...['http://secretword:80/9@127.0.0.1:1', 'http://user:secret/secretword@127.0.0.1:1'].map((value) =>
    refusedUrl(value, "has '/', '?' or '#' in its user name or password: percent-encode these characters"),
  ),
])
