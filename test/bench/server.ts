import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

const words = 500_000

/** Delay of each answer below the path `/slow`. */
export const slowAnswerMs = 200

const answer = JSON.stringify({
  ...{ id: 'msg_1', type: 'message', role: 'assistant', content: [{ type: 'text', text: 'Hello there' }] },
  ...{ model: 'alpha-2.5-pro', stop_reason: 'end_turn', usage: { input_tokens: 1, output_tokens: 2 } },
})

/** Real services send a similar number of headers. */
const headers = Object.fromEntries(Array.from({ length: 24 }, (_, i) => [`x-header-${i}`, `value-${i}`]))

function createStream(): Buffer {
  const event = (text: string) =>
    `event: content_block_delta\ndata: ${JSON.stringify({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })}\n\n`
  const deltas = Array.from({ length: words }, (_, i) => event(`word${i % 100} `))
  return Buffer.from(`${deltas.join('')}event: message_stop\ndata: {"type":"message_stop"}\n\n`)
}

function createImage(): Buffer {
  const png = Buffer.alloc(36 * 1024 * 1024)
  Buffer.from('89504e470d0a1a0a', 'hex').copy(png)
  for (let i = 8; i < png.length; i += 997) png[i] = i & 255
  const parts = [{ inlineData: { mimeType: 'image/png', data: png.toString('base64') } }]
  const candidates = [{ content: { role: 'model', parts }, finishReason: 'STOP' }]
  return Buffer.from(JSON.stringify({ candidates }))
}

/** Returns the events of a session: 50,000 tool uses, each with its result, then an idle event. */
export function createSessionEvents(): string[] {
  const pair = (_: unknown, i: number) => [
    `{"id":"u${i}","type":"agent.tool_use","processed_at":"2026-11-22T10:00:00Z","name":"bash","input":{"command":"ls ${i}"},"evaluated_permission":"allow"}`,
    `{"id":"r${i}","type":"agent.tool_result","processed_at":"2026-11-22T10:00:00Z","tool_use_id":"u${i}","content":[{"type":"text","text":"done"}]}`,
  ]
  const idle = `{"id":"rest","type":"session.status_idle","processed_at":"2026-11-22T10:00:01Z","stop_reason":{"type":"end_turn"}}`
  return [...Array.from({ length: 50_000 }, pair).flat(), idle]
}

/** Returns a page of 1,000 events, the oldest or the newest first, as the query requires. */
function createPage(oldestFirst: readonly string[], url: string): string {
  const { searchParams: query } = new URL(url, 'http://x')
  const at = Number(query.get('page') ?? 0)
  const session = query.get('order') === 'desc' ? oldestFirst.toReversed() : oldestFirst
  const next = at + 1000 < session.length ? `"${at + 1000}"` : 'null'
  return `{"data":[${session.slice(at, at + 1000).join(',')}],"next_page":${next}}`
}

/** Sends the piece 200 times. */
async function sendLarge(response: ServerResponse, piece: Buffer): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': piece.length * 200 })
  for (let count = 0; count < 200; count++) if (!response.write(piece)) await once(response, 'drain')
  response.end()
}

/** Starts a server for all rows. Returns its address. */
export async function startServer(): Promise<{ url: string; close(): void }> {
  const stream = createStream()
  const image = createImage()
  const session = createSessionEvents()
  const large = Buffer.alloc(2 ** 20, 'parley ')
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      const { url = '' } = request
      if (url === '/large') return void sendLarge(response, large)
      const type = { 'content-type': 'text/event-stream' }
      if (url.includes('/long/events/stream')) return response.writeHead(200, type).write(': connected\n\n')
      if (url.includes('alt=sse')) return response.writeHead(200, type).end(stream)
      const isLong = url.includes('/sessions/long/')
      const other = url.includes('/sessions/') ? '{"data":[]}' : answer
      const body = url.includes('/image/') ? image : isLong ? createPage(session, url) : other
      const length = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
      const answerNow = () => response.writeHead(200, { ...headers, ...length }).end(body)
      return url.startsWith('/slow/') ? setTimeout(answerNow, slowAnswerMs) : answerNow()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() }
}
