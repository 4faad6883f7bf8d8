import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, isIP } from 'node:net'
import { CliError } from '../errors.ts'
import { isLoopback } from '../wire/address.ts'
import { createBodyCollector, type Exchange, type HttpResponse } from '../wire/exchange.ts'
import { toHttpResponse } from './response.ts'

export interface ServerOptions {
  port: number
  host: string
  exchange: Exchange
  /**
   * Called after each request. `status` is `undefined` if the connection was closed without a whole response.
   */
  onRequest(entry: { method: string; path: string; status: number | undefined }): void
}

/** Timeouts of the HTTP server, so that slow or silent clients do not keep connections open. */
const timeoutsMs = {
  headersTimeout: 5000,
  requestTimeout: 60_000,
  keepAliveTimeout: 5000,
  connectionsCheckingInterval: 500,
}

/** Starts the emulator's HTTP server. If the exchange throws, the server closes or resets the connection. */
export async function startServer({ port, host, exchange, onRequest }: ServerOptions) {
  const server = createServer(timeoutsMs, async (request, response) => {
    let status: number | undefined
    try {
      const answer = refuseWebPage(request, isLoopback(host)) ?? (await forwardRequest(request, exchange))
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

/** Returns the server's URL. If the server listens on all interfaces, the URL has the loopback address. */
export function getServerUrl(host: string, port: number): string {
  const name = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${isIP(name) === 6 ? `[${name}]` : name}:${port}`
}

/** Returns a 403 for a request that a web page sends through a browser, including by DNS rebinding. */
function refuseWebPage({ headers }: IncomingMessage, isLocal: boolean): HttpResponse | undefined {
  if (headers.origin !== undefined || headers['sec-fetch-site'] !== undefined) {
    return textResponse(403, 'requests from web pages are refused')
  }
  const name = headers.host?.replace(/:\d+$/, '').replace(/^\[|\]$/g, '') ?? ''
  if (isLocal && isIP(name) === 0 && name.toLowerCase() !== 'localhost') {
    return textResponse(403, 'the Host header must name this machine')
  }
  return undefined
}

/** Maximum size of one body, and of all incomplete bodies together. */
const maxBodyBytes = 64 * 1024 * 1024
const maxTotalBytes = 256 * 1024 * 1024

let incomingBytes = 0

/** Reads the body of a request. Returns `undefined` if a size limit is exceeded. */
async function readBody(request: IncomingMessage): Promise<Uint8Array | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) return undefined
  const collected = createBodyCollector()
  let size = 0
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      size += chunk.length
      incomingBytes += chunk.length
      if (size > maxBodyBytes || incomingBytes > maxTotalBytes) return undefined
      collected.add(chunk)
    }
    return collected.bytes()
  } finally {
    incomingBytes -= size
  }
}

async function forwardRequest(request: IncomingMessage, exchange: Exchange): Promise<HttpResponse> {
  const body = await readBody(request)
  if (!body) {
    // Reads and drops the rest of the body, because a client may read the response only after it has sent the
    // whole body.
    request.resume()
    return textResponse(413, 'the body is longer than 64 MiB, or there is no memory left for it')
  }
  const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)])
  const { method = 'GET', url } = request
  return exchange({ method, url: `http://emulator${url}`, headers: Object.fromEntries(headers), body })
}

const textResponse = (status: number, text: string): HttpResponse =>
  toHttpResponse({ status, contentType: 'text/plain', pieces: [`${text}\n`] })

async function write(answer: HttpResponse, response: ServerResponse): Promise<void> {
  let resumeWriting = () => {}
  response.on('drain', () => resumeWriting())
  response.on('close', () => {
    // Closes the response here, because a stream that waits for an event does not detect a closed connection.
    answer.close()
    resumeWriting()
  })
  response.writeHead(answer.status, answer.headers)
  // Sends the headers now, because the first event of a stream may be late.
  response.flushHeaders()
  for await (const chunk of answer.body) {
    if (response.destroyed) return
    if (response.write(chunk)) continue
    await new Promise<void>((resolve) => {
      resumeWriting = resolve
    })
  }
  response.end()
}

async function abortRequest(
  error: unknown,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  // Waits for one iteration of the event loop, so that the written bytes are sent before the connection
  // closes.
  await new Promise(setImmediate)
  if (response.headersSent) request.socket.destroySoon()
  else if (error instanceof CliError) request.socket.resetAndDestroy()
  else request.socket.destroy()
}
