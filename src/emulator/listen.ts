import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, isIP } from 'node:net'
import { CliError } from '../errors.ts'
import { isLoopback } from '../wire/address.ts'
import { type Exchange, type HttpResponse, readBody as readAll } from '../wire/exchange.ts'

export interface ListenOptions {
  port: number
  host: string
  exchange: Exchange
  /** Called for each answered request. */
  onRequest(entry: { method: string; path: string; status: number | undefined }): void
}

/** Milliseconds: a client that is slower, or says nothing, loses its connection. */
const patience = {
  headersTimeout: 5000,
  requestTimeout: 60_000,
  keepAliveTimeout: 5000,
  connectionsCheckingInterval: 500,
}

/** Serves an exchange over HTTP. A failure of the exchange breaks the connection, as it would on a network. */
export async function listen({
  port,
  host,
  exchange,
  onRequest,
}: ListenOptions): Promise<Server & { port: number }> {
  const readBody = createBodyReader()
  const server = createServer(patience, async (request, response) => {
    let status: number | undefined
    try {
      const answer = refuse(request, isLoopback(host)) ?? (await exchange(await toRequest(request, readBody)))
      status = answer.status
      await write(answer, response)
    } catch (error) {
      status = await fail(error, request, response)
    }
    onRequest({ method: request.method ?? '', path: request.url ?? '', status })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return Object.assign(server, { port: (server.address() as AddressInfo).port })
}

/** The address of a server for those who call it: one that listens everywhere is called on this machine. */
export function addressToCall(host: string, port: number): string {
  const name = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${isIP(name) === 6 ? `[${name}]` : name}:${port}`
}

/** Web pages reach this server through a browser, by its address or by a name of theirs that points here. */
function refuse({ headers, url = '' }: IncomingMessage, isPrivate: boolean): HttpResponse | undefined {
  if (headers.origin !== undefined || headers['sec-fetch-site'] !== undefined) {
    return plain(403, 'requests from web pages are refused')
  }
  const name = headers.host?.replace(/:\d+$/, '').replace(/^\[|\]$/g, '') ?? ''
  if (isPrivate && isIP(name) === 0 && name.toLowerCase() !== 'localhost') {
    return plain(403, 'the Host header must name this machine')
  }
  return isPath(url) ? undefined : plain(400, 'the path is not valid')
}

function isPath(url: string): boolean {
  try {
    decodeURIComponent(url.split('?')[0] ?? '')
    return url.startsWith('/') && URL.canParse(`http://emulator${url}`)
  } catch {
    return false
  }
}

async function toRequest(
  request: IncomingMessage,
  readBody: (request: IncomingMessage) => Promise<Uint8Array>,
) {
  const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)])
  return {
    method: request.method ?? 'GET',
    url: `http://emulator${request.url}`,
    headers: Object.fromEntries(headers),
    body: await readBody(request),
  }
}

function plain(status: number, text: string): HttpResponse {
  const body = (async function* () {
    yield Buffer.from(`${text}\n`)
  })()
  return { status, statusText: '', headers: { 'content-type': 'text/plain' }, body, close() {} }
}

async function write(answer: HttpResponse, response: ServerResponse): Promise<void> {
  let goOn = () => {}
  response.on('drain', () => goOn())
  response.on('close', () => {
    // A stream that waits for its next event does not notice by itself that its reader has gone.
    answer.close()
    goOn()
  })
  response.writeHead(answer.status, answer.headers)
  if (answer.headers['content-length'] !== undefined) return void response.end(await readAll(answer.body))
  // A stream may have nothing to tell for long.
  response.flushHeaders()
  for await (const chunk of answer.body) {
    if (response.destroyed) return
    if (response.write(chunk)) continue
    await new Promise<void>((resolve) => {
      goOn = resolve
    })
  }
  response.end()
}

/** Ends a request that cannot be answered; returns the status, if it has one. */
async function fail(
  error: unknown,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<number | undefined> {
  if (error instanceof BodyTooLong && !response.headersSent) {
    response.writeHead(413, { connection: 'close' }).end(`${error.message}\n`)
    // For a while the bytes still on their way are thrown away: the response would be lost with them.
    request.resume()
    setTimeout(() => request.socket.destroy(), 1000)
    return 413
  }
  // What was written still arrives before the connection goes.
  await new Promise(setImmediate)
  if (response.headersSent) request.socket.destroySoon()
  else if (error instanceof CliError) request.socket.resetAndDestroy()
  else request.socket.destroy()
  return undefined
}

/** The longest body, and the most that all bodies together may take in memory; in bytes. */
const longest = 64 * 1024 * 1024
const most = 256 * 1024 * 1024

class BodyTooLong extends Error {}

/** Makes what reads the bodies of a server's requests. It throws `BodyTooLong`, and leaves the connection open. */
function createBodyReader(): (request: IncomingMessage) => Promise<Uint8Array> {
  let held = 0

  return async (request) => {
    const chunks: Buffer[] = []
    let size = 0
    try {
      if (Number(request.headers['content-length'] ?? 0) > longest) throw tooLong()
      for await (const chunk of request.iterator({ destroyOnReturn: false })) {
        size += chunk.length
        held += chunk.length
        if (size > longest || held > most) throw tooLong()
        chunks.push(chunk)
      }
      return Buffer.concat(chunks)
    } finally {
      held -= size
    }
  }
}

const tooLong = () => new BodyTooLong('the body is longer than 64 MiB')
