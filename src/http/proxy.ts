import { BlockList, isIP, type Socket } from 'node:net'
import type { ProcessInfo } from '../basic-context.ts'
import { CliError } from '../errors.ts'
import { findAddressProblem, isLoopbackHost } from '../wire/address.ts'
import { findFailureKindOfStatus } from './retry.ts'
import { waitForSocketEvent } from './socket.ts'

export interface HttpProxy {
  /** URL without user name and password, so messages may show it. */
  url: URL
  authorization?: string
  variable: string
}

/**
 * Returns the proxy that the environment sets for `url`, or `undefined` for a loopback address. Throws a
 * `CliError` that names the variable, and never the password, if the proxy is invalid.
 */
export function findProxy(url: URL, env: ProcessInfo['env']): HttpProxy | undefined {
  if (isLoopbackHost(url.hostname)) return undefined
  const names = url.protocol === 'https:' ? ['HTTPS_PROXY', 'ALL_PROXY'] : ['HTTP_PROXY', 'ALL_PROXY']
  const variable = names.flatMap((name) => [name.toLowerCase(), name]).find((name) => env[name])
  if (variable === undefined || isExempt(url, env.no_proxy || env.NO_PROXY || '')) return undefined
  return parseProxy(env[variable] as string, variable)
}

/**
 * Matches a proxy without a scheme, which parley, like curl, uses as an HTTP proxy. The port is required,
 * because without a port any word would be a valid proxy.
 */
const hostAndPort = /^(?:[^\s/]*@)?(?:\[[\da-f:.]+\]|[\w.-]+):\d+\/?$/i

function parseProxy(given: string, variable: string): HttpProxy {
  const text = hostAndPort.test(given) ? `http://${given}` : given
  const address = text.replace(/(?<=:\/\/)[^/\\?#]*@/, '')
  // `URL` ends the host at the first `/`, `?` or `#`, even in a password. parley would then use the start
  // of the password as the host, and print it.
  const isCut = address.includes('@')
  const problem = isCut
    ? "has '/', '?' or '#' in its user name or password: percent-encode these characters"
    : findAddressProblem(address)
  if (problem) {
    const advice = isCut ? '' : ': give HOST:PORT or http://HOST:PORT'
    throw new CliError('credentials', `${variable} ${problem}${advice}`, { sent: 'no' })
  }
  const url = new URL(text)
  const { username, password } = url
  url.username = ''
  url.password = ''
  if (username === '' && password === '') return { url, variable }
  const credentials = `${decodePercent(username)}:${decodePercent(password)}`
  return { url, variable, authorization: `Basic ${Buffer.from(credentials, 'latin1').toString('base64')}` }
}

/** Decodes each byte to one Latin-1 character, because a password need not be UTF-8. */
const decodePercent = (text: string) =>
  text.replace(/%[\da-f]{2}/gi, (byte) => Buffer.from(byte.slice(1), 'hex').toString('latin1'))

function isExempt(url: URL, list: string): boolean {
  const host = normalizeHost(url.hostname)
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  return list
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => entry === '*' || matchesEntry(entry.toLowerCase(), host, port))
}

function matchesEntry(entry: string, host: string, port: string): boolean {
  const [, bracketed, name = bracketed, wanted] =
    /^(?:\[(.+)\]|([^:]+|.*:.*:.*?))(?::(\d+))?$/.exec(entry) ?? []
  if (name === undefined || (wanted !== undefined && wanted !== port)) return false
  const [address = '', length] = name.replace(/[[\]]/g, '').split('/')
  if (isIP(address) > 0) return isInBlock(host, address, length)
  const suffix = name.replace(/^\*?\./, '').replace(/\.$/, '')
  return host === suffix || host.endsWith(`.${suffix}`)
}

function isInBlock(host: string, address: string, length?: string): boolean {
  const family = isIP(address) === 4 ? 'ipv4' : 'ipv6'
  const blocks = new BlockList()
  try {
    if (length === undefined) blocks.addAddress(address, family)
    else blocks.addSubnet(address, Number(length || NaN), family)
    return blocks.check(host, family)
  } catch {
    // `BlockList` throws if the host is a name, the families differ, or the prefix length is invalid.
    return false
  }
}

const normalizeHost = (hostname: string) => hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')

const maxHeadBytes = 16 * 1024

/**
 * `target` is host and port. Throws a `CliError`: `credentials` if the proxy refuses user name and
 * password, otherwise `not-sent`. If the socket is destroyed, throws the error that destroyed the socket.
 */
export async function openTunnel(socket: Socket, proxy: HttpProxy, target: string): Promise<void> {
  const credentials = proxy.authorization ? [`Proxy-Authorization: ${proxy.authorization}`] : []
  socket.write([`CONNECT ${target} HTTP/1.1`, `Host: ${target}`, ...credentials, '', ''].join('\r\n'))
  const head = await readHead(socket, proxy)
  const status = Number(/^HTTP\/1\.[01] (\d{3})(?: |\r?\n)/.exec(head)?.[1])
  if (status >= 200 && status < 300) return
  const who = `the proxy ${proxy.url.host}, from ${proxy.variable},`
  // Some proxies answer 401 instead of 407 to a wrong password.
  if (status === 407 || status === 401) {
    const way = `give them in ${proxy.variable}, percent-encoded, before the host: USER:PASSWORD@${proxy.url.host}`
    throw new CliError('credentials', `${who} requires a valid user name and password: ${status}`, {
      consequence: way,
    })
  }
  if (Number.isNaN(status)) throw notSent(`${who} did not answer in HTTP`, true)
  const isTransient = ['service', 'rate-limited'].includes(findFailureKindOfStatus(status, true))
  throw notSent(`${who} did not open a tunnel to ${target}: ${status}`, !isTransient)
}

const notSent = (message: string, isPermanent = false) => new CliError('not-sent', message, { isPermanent })

async function readHead(socket: Socket, { url, variable }: HttpProxy): Promise<string> {
  let received = Buffer.alloc(0)
  for (;;) {
    for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) {
      received = Buffer.concat([received, chunk])
      const end = received.indexOf('\r\n\r\n')
      if (end >= 0) {
        if (received.length > end + 4) socket.unshift(received.subarray(end + 4))
        return received.subarray(0, end + 4).toString('latin1')
      }
      if (received.length > maxHeadBytes) return ''
    }
    await waitForSocketEvent(socket, 'readable').catch((error: Error) => {
      if (error instanceof CliError) throw error
      throw notSent(`the proxy ${url.host}, from ${variable}, closed the connection`)
    })
  }
}
