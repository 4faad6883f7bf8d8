import { connect } from 'node:net'
import { afterAll, expect } from 'vitest'
import { type Script, type ScriptedServer, serve } from '../harness/server.ts'
import { okOutput, okResponse, respondAndClose } from './answers.ts'
import { makeCertificate } from './certificates.ts'
import { chatArgv, chatSuccess, type FaultRow, row, sendArgv, testNetworkFaults } from './rows.ts'

const certificate = makeCertificate('DNS:gateway.test,DNS:localhost')

const proxies: ScriptedServer[] = []
afterAll(() => Promise.all(proxies.map((proxy) => proxy.close())))

/** Opens the requested tunnel, but to loopback, because the requested host name does not exist. */
const openTunnel: Script = (socket, request) => {
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
  argv: [...chatArgv, '--cacert', certificate.path],
  listen: { tls: certificate },
  url: secure,
} satisfies Partial<FaultRow>
const toPlain = { argv: [...chatArgv, '--allow-http'], url: plain } satisfies Partial<FaultRow>

/**
 * Returns a row with its own proxy. The row fails if the proxy receives another request than CONNECT, or if
 * the service receives the credentials of the proxy.
 */
async function makeProxyRow(
  row: Omit<FaultRow, 'check'> & {
    /** Variable with the address of the proxy. Default: ALL_PROXY. */
    variable?: string
    credentials?: string
    /** Answers requests to the proxy. Default: opens the tunnel. */
    proxy?: Script
    /** True if parley must not connect to the proxy. */
    isUnused?: boolean
  },
): Promise<FaultRow> {
  const { variable = 'ALL_PROXY', credentials = '', proxy: script, isUnused = false, ...rest } = row
  const proxy = await serve(script ?? openTunnel)
  proxies.push(proxy)
  return {
    ...rest,
    env: { [variable]: proxy.url.replace('://', `://${credentials}`), ...row.env },
    check: ({ server }) => {
      expect(proxy.connections > 0, 'the proxy was used').toBe(!isUnused)
      const basic = `Proxy-Authorization: Basic ${Buffer.from('user:p@ss').toString('base64')}\r\n`
      for (const request of proxy.requests) {
        expect(request).toMatch(/^CONNECT gateway\.test:\d+ HTTP\/1\.1\r\n/)
        expect(request.includes(basic), 'the proxy received credentials').toBe(credentials !== '')
      }
      for (const request of server.requests) expect(request).not.toMatch(/proxy-auth/i)
    },
  }
}

const credentials = 'user:p%40ss@'
const noRetry = ['--retries', '0']
const overTls = { ...toSecure, ...chatSuccess }
const overHttp = { ...toPlain, ...chatSuccess }
/** Returns a row whose proxy fails, so parley exits with 9. */
const makeFailingProxyRow = (
  name: string,
  proxy: Script,
  more: Partial<FaultRow> & { credentials?: string } = {},
): Promise<FaultRow> =>
  makeProxyRow({
    ...toSecure,
    name,
    argv: [...toSecure.argv, ...noRetry],
    code: 9,
    err: ['the proxy 127.0.0.1:', 'nothing was sent'],
    ...more,
    proxy,
  })

/** True after the proxy of the SIGINT row has received a request. */
let isRequested = false

const rows = await Promise.all([
  ...['HTTPS_PROXY', 'ALL_PROXY', 'all_proxy'].map((variable) =>
    makeProxyRow({ ...overTls, name: `X01: parley uses the proxy of ${variable} for https`, variable }),
  ),
  ...['HTTP_PROXY', 'ALL_PROXY', 'all_proxy'].map((variable) =>
    makeProxyRow({
      ...overHttp,
      name: `X01, X09: parley sends http requests through a CONNECT tunnel of the ${variable} proxy`,
      variable,
    }),
  ),
  ...(
    [
      ['HTTP_PROXY for https', { ...overTls, variable: 'HTTP_PROXY' }],
      ['HTTPS_PROXY for http', { ...overHttp, variable: 'HTTPS_PROXY' }],
      ['the proxy for a host in NO_PROXY', { ...overTls, env: { NO_PROXY: 'gateway.test' } }],
      ['the proxy for a host in no_proxy', { ...overTls, env: { no_proxy: 'gateway.test' } }],
      ['the proxy for loopback addresses', chatSuccess],
    ] as const
  ).map(([what, row]) => makeProxyRow({ ...row, name: `X01: parley does not use ${what}`, isUnused: true })),
  makeProxyRow({ ...overTls, name: 'X02: parley sends proxy credentials to the proxy only', credentials }),
  ...['', credentials].map((given) =>
    makeFailingProxyRow(
      `X03: parley exits with 3 and names the proxy on a 407${given && ' despite proxy credentials'}`,
      respondAndClose('HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n'),
      {
        code: 3,
        err: ['from ALL_PROXY', '407', 'nothing was sent', /^(?!.*(p@ss|p%40))/s],
        credentials: given,
      },
    ),
  ),
  makeFailingProxyRow(
    'X07: parley exits with 9 if the proxy answers CONNECT with a 502',
    respondAndClose('HTTP/1.1 502 No\r\ncontent-length: 3\r\n\r\nno\n'),
    { err: ['the proxy 127.0.0.1:', ': 502', 'nothing was sent'] },
  ),
  makeFailingProxyRow('X07: parley exits with 9 if the proxy closes a tunnel on CONNECT', respondAndClose()),
  makeFailingProxyRow(
    'X07: parley exits with 9 if the proxy does not answer in HTTP',
    respondAndClose('SSH-2.0-x\x1b[2J\r\n\r\n'),
    { err: ['did not answer in HTTP'] },
  ),
  makeFailingProxyRow('X07: parley exits with 9 if the headers of the proxy never end', (socket) => {
    const timer = setInterval(() => socket.write(`x: ${'x'.repeat(4000)}\r\n`), 1)
    socket.on('close', () => clearInterval(timer))
  }),
  makeFailingProxyRow('X07: parley exits with 9 after --connect-timeout if the proxy is silent', () => {}, {
    argv: [...toSecure.argv, ...noRetry, '--connect-timeout', '3'],
    err: [/through the proxy 127\.0\.0\.1:\d+, from ALL_PROXY: no connection within 3 s/],
    minSeconds: 3,
  }),
  makeFailingProxyRow('X07: parley exits with 9 if the deadline passes before the proxy answers', () => {}, {
    argv: [...toSecure.argv, '--deadline', '3', '--connect-timeout', '1h'],
    err: [/through the proxy 127\.0\.0\.1:\d+, from ALL_PROXY: the deadline passed/],
    minSeconds: 3,
  }),
  makeProxyRow({
    ...toSecure,
    name: 'X07: parley reports that nothing was sent if SIGINT ends the wait for the proxy',
    proxy: () => {
      isRequested = true
    },
    during: async ({ child, waitUntil }) => {
      await waitUntil(() => isRequested)
      child.kill('SIGINT')
    },
    code: 'SIGINT',
    err: ['interrupted: nothing was sent'],
  }),
  makeFailingProxyRow(
    'X08: parley exits with 9 if the tunnel closes before the request is sent',
    respondAndClose('HTTP/1.1 200 OK\r\n\r\n'),
    { err: ['nothing was sent'] },
  ),
  makeFailingProxyRow(
    'X08: parley exits with 9 and names the proxy if the tunnel contains a page instead of TLS',
    respondAndClose('HTTP/1.1 200 OK\r\n\r\n<html>'),
    { err: [/, from ALL_PROXY: the server does not use TLS /] },
  ),
  makeProxyRow({
    ...toSecure,
    name: 'X24: parley exits with 9 and names the proxy if it does not trust a certificate in the tunnel',
    argv: [...chatArgv, ...noRetry],
    code: 9,
    err: [/through the proxy 127\.0\.0\.1:\d+, from ALL_PROXY: its certificate comes from an unknown/],
  }),
  makeProxyRow({
    name: 'X08: parley reports that the request may have arrived if the tunnel breaks after the request',
    ...toSecure,
    argv: [...sendArgv, '--cacert', certificate.path],
    script: (socket) => void socket.destroy(),
    code: 10,
    err: ['may have been accepted'],
  }),
  makeProxyRow({
    code: 0,
    out: okOutput,
    name: 'X08: parley reads the response to its request after the response to CONNECT',
    ...toPlain,
    proxy: (socket) => {
      socket.removeAllListeners('data')
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      socket.once('data', () => socket.write(okResponse))
    },
  }),
])

const wrongScheme = 'must begin with https:// or http://'

/** Returns a row in which parley exits with 3 for the address of a proxy. */
const makeInvalidProxyRow = (value: string, message: string, variable = 'HTTPS_PROXY') =>
  row(
    `X11: parley exits with 3 for ${variable}=${value}`,
    { ...toSecure, env: { [variable]: value } },
    { code: 3, err: [`parley: ${variable} `, message, 'nothing was sent', /^(?!.*secretword)/s] },
  )

testNetworkFaults('X: parley connects through proxies (needs openssl)', [
  ...rows,
  row('X04: parley exits with 9 and names the proxy if the proxy refuses connections', {
    ...toSecure,
    env: { HTTPS_PROXY: 'http://user:secretword@127.0.0.1:1' },
    code: 9,
    err: [
      'parley: the proxy in HTTPS_PROXY, 127.0.0.1:1: connection refused; trying again',
      'nothing was sent',
      /^(?!.*secretword)/s,
    ],
  }),
  row(
    'X21: parley prints no password of ALL_PROXY=USER:PASSWORD@HOST:PORT if the proxy refuses connections',
    {
      ...toSecure,
      argv: [...toSecure.argv, ...noRetry],
      env: { ALL_PROXY: 'user:secretword@127.0.0.1:1' },
      code: 9,
      err: ['parley: the proxy in ALL_PROXY, 127.0.0.1:1: connection refused\n', /^(?!.*secretword)/s],
    },
  ),
  row('X24: parley exits with 9 and names the proxy if the certificate of the proxy is not trusted', {
    ...toSecure,
    argv: [...chatArgv, ...noRetry],
    envOf: ({ port }) => ({ HTTPS_PROXY: `https://localhost:${port}` }),
    code: 9,
    err: ['the proxy in HTTPS_PROXY, localhost:', 'its certificate comes from an unknown authority'],
  }),
  ...['mailto:secretword', 'a b:1', '127.0.0.1:1/x'].map((value) => makeInvalidProxyRow(value, wrongScheme)),
  makeInvalidProxyRow('proxy.test', `${wrongScheme}: give HOST:PORT or http://HOST:PORT`, 'all_proxy'),
  makeInvalidProxyRow('socks5://user:secretword@127.0.0.1:8080', wrongScheme),
  ...['http://secretword:80/9@127.0.0.1:1', 'http://user:secret/secretword@127.0.0.1:1'].map((value) =>
    makeInvalidProxyRow(value, "has '/', '?' or '#' in its user name or password: percent-encode these"),
  ),
])
