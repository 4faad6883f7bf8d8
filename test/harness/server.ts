import { createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { onTestFinished, TestRunner } from 'vitest'

export interface ScriptedServer {
  url: string
  port: number
  /** Complete requests, as text. */
  requests: string[]
  connections: number
  sockets: Set<Socket>
  /** Stops accepting connections. */
  stop(): void
  close(): Promise<void>
}

/** Answers a complete request. `count` is its number, from 1. `requests` ends with this request. */
export type Script = (socket: Socket, request: string, count: number, requests: readonly string[]) => void

export interface ServeOptions {
  host?: string
  port?: number
  tls?: { key: string; cert: string }
  /** Handles a connection, whose number starts from 1. Default: reads requests and calls the script. */
  onConnection?(socket: Socket, count: number): void
}

/**
 * Starts a server on loopback. The script writes the bytes of the response to each request. The server closes
 * at the end of the test. A hook or a concurrent test, which has no current test, closes its server itself.
 */
export async function serve(faultyScript: Script, options: ServeOptions = {}): Promise<ScriptedServer> {
  const isFaultless = process.env.TEST_PROOF === 'answers'
  const script = isFaultless ? (await import('./faultless.ts')).answerWithoutFault('ok') : faultyScript
  const { host = '127.0.0.1', port = 0, tls } = options
  const onConnection = isFaultless ? undefined : options.onConnection
  const scripted: ScriptedServer = {
    url: '',
    port: 0,
    requests: [],
    connections: 0,
    sockets: new Set(),
    stop: () => void server.close(),
    close: () =>
      new Promise((resolve) => {
        for (const socket of scripted.sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }

  function accept(socket: Socket): void {
    scripted.connections++
    scripted.sockets.add(socket)
    socket.on('error', () => {}).on('close', () => scripted.sockets.delete(socket))
    if (onConnection) onConnection(socket, scripted.connections)
    else readRequests(socket)
  }

  function readRequests(socket: Socket): void {
    const read = createRequestReader()
    socket.on('data', (chunk) => {
      for (const request of read(chunk)) {
        scripted.requests.push(request)
        script(socket, request, scripted.requests.length, scripted.requests)
      }
    })
  }

  const server: Server = tls ? createTlsServer(tls, accept) : createTcpServer(accept)
  server.on('tlsClientError', () => {})
  await new Promise<void>((resolve) => server.listen(port, host, resolve))
  const address = server.address()
  scripted.port = typeof address === 'object' ? (address?.port ?? 0) : 0
  const shown = host.includes(':') ? `[${host}]` : host
  const test = TestRunner.getCurrentTest()
  // While a concurrent test waits, another concurrent test may be the current one.
  if (test && !test.concurrent) onTestFinished(scripted.close)
  scripted.url = `http${tls ? 's' : ''}://${shown}:${scripted.port}`
  return scripted
}

/** Splits received bytes into requests that are complete by their Content-Length. */
function createRequestReader(): (chunk: Buffer) => string[] {
  let chunks: Buffer[] = []
  let received = 0
  let needed = 0
  return (chunk) => {
    const requests: string[] = []
    chunks.push(chunk)
    received += chunk.length
    while (received > 0 && received >= needed) {
      const all = Buffer.concat(chunks)
      chunks = [all]
      const end = all.indexOf('\r\n\r\n')
      if (end < 0) break
      const length = /\r\ncontent-length: (\d+)/i.exec(all.subarray(0, end).toString())?.[1] ?? 0
      needed = end + 4 + Number(length)
      if (received < needed) break
      requests.push(all.subarray(0, needed).toString())
      chunks = [all.subarray(needed)]
      received -= needed
      needed = 0
    }
    return requests
  }
}

/** Formats a complete response with Content-Length. Default content type: JSON. */
export function response(body: string | Uint8Array, status = '200 OK', headers: string[] = []): Buffer {
  const hasType = headers.some((header) => /^content-type:/i.test(header))
  const lines = [
    `HTTP/1.1 ${status}`,
    ...(hasType ? [] : ['content-type: application/json']),
    `content-length: ${Buffer.byteLength(body)}`,
    ...headers,
  ]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), Buffer.from(body)])
}

/**
 * Resets a connection after the client had time to read the written bytes, because a reset discards unread
 * bytes. A client in this process gets fifty turns of the event loop, another process half a second.
 */
export async function resetWhenRead(socket: Socket, isSameProcess = false): Promise<void> {
  for (let turn = 0; turn < 50; turn++)
    await new Promise((resolve) => setTimeout(resolve, isSameProcess ? 1 : 10))
  socket.resetAndDestroy()
}

/** Returns the variables that set the address of both services to this server. */
export const envFor = (server: ScriptedServer) => ({
  PARLEY_BASE_URL: server.url,
  PARLEY_AGENTS_URL: server.url,
})

/** Returns a port of this machine that no program uses at the moment. */
export async function findFreePort(): Promise<number> {
  const server = await serve(() => {})
  await server.close()
  return server.port
}
