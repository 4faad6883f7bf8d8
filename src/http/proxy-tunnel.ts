import type { Socket } from 'node:net'
import { CliError } from '../errors.ts'
import type { HttpProxy } from './proxy.ts'

/** The longest head of a proxy's answer, in bytes. */
const longestHead = 16 * 1024

/**
 * Asks a proxy for a tunnel to `target` (host and port). Throws a `CliError`: of kind `credentials` where the proxy
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
    throw new CliError('credentials', `${who} ${why}: ${status}`)
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
