import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Exchange, HttpResponse } from '../wire/exchange.ts'

export interface ListenOptions {
  port: number
  host: string
  exchange: Exchange
  /** Called for each answered request. */
  onRequest(entry: { method: string; path: string; status: number | undefined }): void
}

/** Bodies are taken up to here. */
const longestBody = 64 * 1024 * 1024

/** Serves an exchange over HTTP. A failure of the exchange breaks the connection, as it would on a network. */
export async function listen({
  port,
  host,
  exchange,
  onRequest,
}: ListenOptions): Promise<Server & { port: number }> {
  const server = createServer(
    { keepAliveTimeout: 5000, headersTimeout: 10_000 },
    async (request, response) => {
      let status: number | undefined
      try {
        const answer = await answerTo(request, exchange)
        status = answer.status
        await write(answer, response)
      } catch {
        // What was written still arrives before the connection goes.
        await new Promise(setImmediate)
        if (response.headersSent) request.socket.destroySoon()
        else request.socket.resetAndDestroy()
      }
      onRequest({ method: request.method ?? '', path: request.url ?? '', status })
    },
  )
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return Object.assign(server, { port: (server.address() as AddressInfo).port })
}

async function answerTo(request: IncomingMessage, exchange: Exchange): Promise<HttpResponse> {
  // A web page could reach this server through a browser; no command line sends an Origin.
  if (request.headers.origin !== undefined) return plain(403, 'requests from web pages are refused')
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    size += chunk.length
    if (size > longestBody) return plain(413, 'the body is longer than 64 MiB')
  }
  const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)])
  return exchange({
    method: request.method ?? 'GET',
    url: `http://emulator${request.url}`,
    headers: Object.fromEntries(headers),
    body: Buffer.concat(chunks),
  })
}

function plain(status: number, text: string): HttpResponse {
  const body = (async function* () {
    yield Buffer.from(`${text}\n`)
  })()
  return { status, statusText: '', headers: { 'content-type': 'text/plain' }, body, close() {} }
}

async function write({ status, headers, body }: HttpResponse, response: ServerResponse): Promise<void> {
  response.writeHead(status, headers)
  for await (const chunk of body) {
    if (response.destroyed) return
    if (!response.write(chunk))
      await new Promise((resolve) => response.once('drain', resolve).once('close', resolve))
  }
  response.end()
}
