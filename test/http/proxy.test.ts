import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { findProxy, openTunnel } from '../../src/http/proxy.ts'
import { readJson, run, temporaryFolder } from '../harness/run.ts'
import { serve } from '../harness/server.ts'

const proxy = 'http://proxy.test:8080'
const isDirect = (url: string, list: string) =>
  findProxy(new URL(url), { ALL_PROXY: proxy, NO_PROXY: list }) === undefined

test('X26: parley exits with 9 at once if the proxy closes the connection before CONNECT', async () => {
  const server = await serve(() => {}, { onConnection: (socket) => void socket.resetAndDestroy() })
  const url = new URL(server.url)
  const socket = connect(Number(url.port), url.hostname).on('error', () => {})
  await new Promise((resolve) => socket.once('close', resolve))
  await expect(openTunnel(socket, { url, variable: 'HTTPS_PROXY' }, 'a.test:443')).rejects.toMatchObject({
    kind: 'not-sent',
    message: expect.stringContaining('closed the connection'),
  })
  await server.close()
})

const localHosts = ['https://127.0.0.1', 'https://127.8.9.1', 'https://[::1]']

test.each<[url: string, lists: string[]]>([
  ['https://a.test', ['a.test', '.a.test', 'x.test, a.test', '*', 'a.test:443']],
  ['https://b.a.test', ['a.test', '.a.test']],
  ['https://A.TEST.', ['a.test.']],
  ['http://a.test', ['a.test:80']],
  ['https://a.test:8443', ['a.test:8443']],
  ['https://10.1.2.3', ['10.1.2.3', '10.0.0.0/8']],
  ['https://[fd00::1]', ['fd00::1', '[fd00::1]', 'fd00:0:0::1', 'fd00::/8']],
  ['https://[fe80::1]', ['[fe80::]/10']],
  ...localHosts.map((url): [string, string[]] => [url, ['']]),
  ['https://localhost.', ['localhost']],
])('parley connects to %s directly if NO_PROXY is one of %j', (url, lists) =>
  expect(lists.filter((list) => !isDirect(url, list))).toEqual([]),
)

test.each<[url: string, lists: string[]]>([
  ['https://ba.test', ['a.test']],
  ['https://a.test', ['b.a.test', 'a.test:80', '', ' , ', 'https://a.test', '10.0.0.0/8']],
  ['https://11.1.2.3', ['10.0.0.0/8']],
  ['https://10.1.2.3', ['10.0.0.0/99']],
  ['https://110.1.2.3', ['10.1.2.3']],
  ['https://[fd00::1]:1', ['[fd00::1]:8443']],
  ['https://localhost.', ['']],
  ['https://localhost.evil.test', ['']],
])('parley connects to %s through the proxy if NO_PROXY is one of %j', (url, lists) =>
  expect(lists.filter((list) => isDirect(url, list))).toEqual([]),
)

test("parley moves user name and password from the proxy's URL to Proxy-Authorization", () => {
  const found = findProxy(new URL('https://a.test'), { https_proxy: 'https://us%65r:p%40ss%3A@proxy.test' })
  expect(found).toMatchObject({ variable: 'https_proxy' })
  expect(found?.url.href).toBe('https://proxy.test/')
  expect(found?.authorization).toBe(`Basic ${Buffer.from('user:p@ss:').toString('base64')}`)
})

test.each([
  ['%ff', '\xff'],
  ['é', '\xc3\xa9'],
  ['50%', '50%'],
])('parley percent-decodes the proxy password %s and sends its exact bytes', (given, bytes) => {
  const found = findProxy(new URL('https://a.test'), { https_proxy: `http://u:${given}@proxy.test` })
  expect(found?.authorization).toBe(`Basic ${Buffer.from(`u:${bytes}`, 'latin1').toString('base64')}`)
})

/** Starts a proxy that answers each request with this status. */
async function startRefusingProxy(status = 407) {
  const answer = `HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`
  const server = await serve((socket) => void socket.end(answer))
  onTestFinished(() => server.close())
  return server
}

test.each([
  [[403], 'never', 1],
  [[408, 425, 429, 502], 'later', 3],
])(
  'after one of the statuses %j of the proxy, retry is "%s" and parley makes %d attempts',
  async (...row) => {
    const [statuses, retry, attempts] = row
    const argv = 'chat hi --no-stdin --errors json -q'.split(' ')
    for (const status of statuses) {
      const { url } = await startRefusingProxy(status)
      const { code, err } = await run(argv, { env: { HTTPS_PROXY: url }, exchange: 'network' })
      expect([code, JSON.parse(err).error], `${status}`).toMatchObject([9, { sent: 'no', retry, attempts }])
    }
  },
)

test.each<[what: string, proxy: () => Promise<string>]>([
  ['refuses the request', async () => (await startRefusingProxy()).url],
  ['has no valid address', async () => 'zzz'],
  ['is a SOCKS proxy', async () => 'socks5://127.0.0.1:1'],
])('parley sends nothing and exits with 3 if the proxy %s', async (_, proxy) => {
  const cwd = temporaryFolder()
  const world = { cwd, env: { HTTPS_PROXY: await proxy() }, exchange: 'network' } as const
  const argv = 'events send hi -s sesn_1 --no-stdin --report report.json --errors json'.split(' ')
  const { code, err } = await run(argv, world)
  const error = { kind: 'credentials', sent: 'no', retry: 'never', attempts: 1 }
  expect([code, JSON.parse(err).error]).toMatchObject([3, error])
  expect(readJson(cwd, 'report.json')).toMatchObject({ exit: 3, sent: 'no', attempts: 1 })
})
