import { BlockList, isIP, type Socket } from 'node:net'
import { unescape as decode } from 'node:querystring'
import { CliError } from '../errors.ts'
import { addressProblem, isLoopback } from '../wire/address.ts'

export interface HttpProxy {
  /** Without user name and password. */
  url: URL
  /** The value of `Proxy-Authorization`. */
  authorization?: string
  /** The environment variable that it comes from. */
  variable: string
}

type Env = Readonly<Record<string, string | undefined>>

/**
 * The proxy on the way to a URL, as the environment says; loopback goes direct. Throws a
 * `CliError` of kind `credentials` that names the variable of a proxy that cannot be used, never its password.
 */
export function findProxy(url: URL, env: Env): HttpProxy | undefined {
  if (isLoopback(url.hostname)) return undefined
  const names = url.protocol === 'https:' ? ['HTTPS_PROXY', 'ALL_PROXY'] : ['HTTP_PROXY', 'ALL_PROXY']
  const variable = names.flatMap((name) => [name.toLowerCase(), name]).find((name) => env[name])
  if (variable === undefined || isExempt(url, env.no_proxy || env.NO_PROXY || '')) return undefined
  return parseProxy(env[variable] as string, variable)
}

/** `HOST:PORT`, which curl accepts for an HTTP proxy too. A host alone is not enough: its port would be a guess. */
const bareProxy = /^(?:[^\s/]*@)?(?:\[[\da-f:.]+\]|[\w.-]+):\d+\/?$/i

function parseProxy(given: string, variable: string): HttpProxy {
  const text = bareProxy.test(given) ? `http://${given}` : given
  const problem = addressProblem(text.replace(/(?<=:\/\/)[^/\\?#]*@/, ''))
  if (problem)
    throw new CliError('credentials', `${variable} ${problem}`, {
      sent: 'no',
      consequence: 'nothing was sent',
    })
  const url = new URL(text)
  const { username, password } = url
  url.username = ''
  url.password = ''
  if (username === '' && password === '') return { url, variable }
  const credentials = `${decode(username)}:${decode(password)}`
  return { url, variable, authorization: `Basic ${Buffer.from(credentials).toString('base64')}` }
}

/** Whether NO_PROXY names the host: by itself, as a suffix, with a port, as a block of addresses, or by `*`. */
function isExempt(url: URL, list: string): boolean {
  const host = bare(url.hostname)
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  return list
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => entry === '*' || matches(entry.toLowerCase(), host, port))
}

function matches(entry: string, host: string, port: string): boolean {
  if (entry.includes('/')) return isInBlock(entry, host)
  const [, bracketed, name = bracketed, wanted] =
    /^(?:\[(.+)\]|([^:]+|.*:.*:.*?))(?::(\d+))?$/.exec(entry) ?? []
  if (name === undefined || (wanted !== undefined && wanted !== port)) return false
  if (isIP(name)) return isIP(host) > 0 && isInBlock(`${name}/${isIP(name) === 4 ? 32 : 128}`, host)
  const suffix = name.replace(/^\*?\./, '').replace(/\.$/, '')
  return host === suffix || host.endsWith(`.${suffix}`)
}

function isInBlock(block: string, host: string): boolean {
  const [address = '', length = ''] = block.replace(/[[\]]/g, '').split('/')
  const family = isIP(address)
  if (family === 0 || family !== isIP(host) || !/^\d+$/.test(length)) return false
  if (Number(length) > (family === 4 ? 32 : 128)) return false
  const blocks = new BlockList()
  blocks.addSubnet(address, Number(length), family === 4 ? 'ipv4' : 'ipv6')
  return blocks.check(host, family === 4 ? 'ipv4' : 'ipv6')
}

/** A host name without brackets and without a dot at its end, to compare it. */
const bare = (hostname: string) => hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')

/** The longest head of a proxy's response, in bytes. */
const longestHead = 16 * 1024

/**
 * Asks a proxy for a tunnel to `target` (host and port). Throws a `CliError`: of kind `credentials` if the proxy
 * wants other ones, else `not-sent`, or the error with which the socket is destroyed.
 */
export async function openTunnel(socket: Socket, proxy: HttpProxy, target: string): Promise<void> {
  const credentials = proxy.authorization ? [`Proxy-Authorization: ${proxy.authorization}`] : []
  socket.write([`CONNECT ${target} HTTP/1.1`, `Host: ${target}`, ...credentials, '', ''].join('\r\n'))
  const head = await readHead(socket, proxy)
  const status = Number(/^HTTP\/1\.[01] (\d{3})(?: |\r?\n)/.exec(head)?.[1])
  if (status >= 200 && status < 300) return
  const who = `the proxy ${proxy.url.host}, from ${proxy.variable},`
  // Some proxies answer 401 to a wrong password.
  if (status === 407 || status === 401) {
    const why = proxy.authorization
      ? 'refused the user name and password'
      : 'asks for a user name and password'
    const way = `give them in ${proxy.variable}, percent-encoded, before the host: USER:PASSWORD@${proxy.url.host}`
    throw new CliError('credentials', `${who} ${why}: ${status}`, { consequence: `nothing was sent\n${way}` })
  }
  if (Number.isNaN(status)) throw notSent(`${who} did not answer in HTTP`, true)
  throw notSent(`${who} did not open a tunnel to ${target}: ${status}`, status < 500)
}

const notSent = (message: string, isPermanent = false) => new CliError('not-sent', message, { isPermanent })

/** Reads up to the blank line that ends the head; what follows it stays in the socket. */
async function readHead(socket: Socket, { url, variable }: HttpProxy): Promise<string> {
  let received = Buffer.alloc(0)
  let settle = () => {}
  const cutOff = () => notSent(`the proxy ${url.host}, from ${variable}, closed the connection`)
  try {
    return await new Promise<string>((resolve, reject) => {
      const onReadable = () => {
        for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) {
          received = Buffer.concat([received, chunk])
          const end = received.indexOf('\r\n\r\n')
          if (end >= 0) {
            settle()
            if (received.length > end + 4) socket.unshift(received.subarray(end + 4))
            return resolve(received.subarray(0, end + 4).toString('latin1'))
          }
          if (received.length > longestHead) return resolve('')
        }
      }
      const onEnd = () => reject(cutOff())
      const onError = (error: Error) => reject(error instanceof CliError ? error : cutOff())
      settle = () => {
        socket.off('readable', onReadable).off('end', onEnd).off('close', onEnd).off('error', onError)
      }
      socket.on('readable', onReadable).on('end', onEnd).on('close', onEnd).on('error', onError)
      // It says so only once, and may have done it while this file was loaded.
      if (socket.destroyed) onEnd()
    })
  } finally {
    settle()
  }
}
