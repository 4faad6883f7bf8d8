import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, isIP } from 'node:net'
import { CliError } from '../errors.ts'
import { isLoopbackHost } from '../wire/address.ts'
import { type Exchange, type HttpResponse, readBody } from '../wire/exchange.ts'
import { toHttpResponse } from './response.ts'

interface ServerOptions {
  port: number
  host: string
  exchange: Exchange
  /** `status` is `undefined` if the client did not receive a complete response. */
  onRequest(entry: { method: string; path: string; status: number | undefined }): void
}

/** Slow or silent clients must not keep connections open. */
const timeoutsMs = {
  headersTimeout: 5000,
  requestTimeout: 60_000,
  keepAliveTimeout: 5000,
  connectionsCheckingInterval: 500,
}

/** If `exchange` throws, the server closes or resets the connection. */
export async function startEmulatorServer({ port, host, exchange, onRequest }: ServerOptions) {
  const server = createServer(timeoutsMs, async (request, response) => {
    let status: number | undefined
    try {
      const answer = refuseWebPage(request, isLoopbackHost(host)) ?? (await forwardRequest(request, exchange))
      status = answer.status
      await write(answer, response)
    } catch (error) {
      status = undefined
      await abortRequest(error, request, response)
    }
    onRequest({ method: request.method ?? '', path: request.url ?? '', status })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return Object.assign(server, { port: (server.address() as AddressInfo).port })
}

export function formatServerUrl(host: string, port: number): string {
  const name = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${isIP(name) === 6 ? `[${name}]` : name}:${port}`
}

/** Answers 403 to a request from a web page, even if the page's host name resolves to this machine. */
function refuseWebPage({ headers }: IncomingMessage, isLocal: boolean): HttpResponse | undefined {
  if (headers.origin !== undefined || headers['sec-fetch-site'] !== undefined) {
    return toTextResponse(403, 'requests from web pages are refused')
  }
  const name = headers.host?.replace(/:\d+$/, '').replace(/^\[|\]$/g, '') ?? ''
  if (isLocal && isIP(name) === 0 && name.toLowerCase() !== 'localhost') {
    return toTextResponse(403, 'the Host header must be localhost or an IP address')
  }
  return undefined
}

const maxBodyBytes = 64 * 1024 * 1024

async function forwardRequest(request: IncomingMessage, exchange: Exchange): Promise<HttpResponse> {
  const { method = 'GET', url } = request
  const announced = Number(request.headers['content-length'] ?? 0)
  const limit = announced > maxBodyBytes ? 0 : maxBodyBytes + 1
  const body = await readBody(request.iterator({ destroyOnReturn: false }), limit)
  if (body.length === limit) {
    // A client may read the response only after it has sent the whole body, so the emulator reads and drops
    // the rest.
    request.resume()
    return toTextResponse(413, 'the body is longer than 64 MiB')
  }
  const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)])
  return exchange({ method, url: `http://emulator${url}`, headers: Object.fromEntries(headers), body })
}

const toTextResponse = (status: number, text: string): HttpResponse =>
  toHttpResponse({ status, contentType: 'text/plain', pieces: [`${text}\n`] })

async function write(answer: HttpResponse, response: ServerResponse): Promise<void> {
  const closed = new Promise((resolve) => response.on('close', resolve))
  // A stream that waits for an event does not detect a closed connection, so the stream is closed here.
  response.on('close', () => answer.close())
  response.writeHead(answer.status, answer.headers)
  // Sends the headers now, because the first event of a stream may be late.
  response.flushHeaders()
  for await (const chunk of answer.body) {
    if (response.destroyed) return
    if (!response.write(chunk)) await Promise.race([once(response, 'drain'), closed])
  }
  response.end()
}

async function abortRequest(error: unknown, request: IncomingMessage, response: ServerResponse) {
  // Lets Node send the written bytes before the connection closes.
  await new Promise(setImmediate)
  if (response.headersSent) request.socket.destroySoon()
  else if (error instanceof CliError) request.socket.resetAndDestroy()
  else request.socket.destroy()
}
