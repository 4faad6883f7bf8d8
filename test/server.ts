import { createServer, type Socket } from 'node:net'

export interface ScriptedServer {
  url: string
  /** Requests that arrived whole, as the bytes they came in. */
  requests: string[]
  connections: number
  close(): Promise<void>
}

/** Called when a request has arrived whole; `count` is its number from 1. */
type Script = (socket: Socket, request: string, count: number) => void

/** A server on loopback that does with each request what its script says, byte for byte. */
export async function serve(script: Script): Promise<ScriptedServer> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    scripted.connections++
    let received = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      const whole = wholeRequest(received)
      if (whole === undefined) return
      received = received.subarray(Buffer.byteLength(whole))
      scripted.requests.push(whole)
      script(socket, whole, scripted.requests.length)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const scripted: ScriptedServer = {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    requests: [],
    connections: 0,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }
  return scripted
}

function wholeRequest(received: Buffer): string | undefined {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const length = Number(/\r\ncontent-length: (\d+)/i.exec(received.subarray(0, end).toString())?.[1] ?? 0)
  const size = end + 4 + length
  return received.length < size ? undefined : received.subarray(0, size).toString()
}

/** A whole answer with a body of known length. */
export function response(body: string | Uint8Array, status = '200 OK', headers: string[] = []): string {
  const lines = [
    `HTTP/1.1 ${status}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    ...headers,
  ]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

/** The environment that points parley at a server. */
export const pointedAt = (server: ScriptedServer) => ({ PARLEY_BASE_URL: server.url })
