import { expect, onTestFinished, test } from 'vitest'
import { message, run } from '../harness/run.ts'
import { response, type Script, type ScriptedServer, serve } from '../harness/server.ts'
import { batchFolder, parseResults, upTo } from './pieces.ts'

const promptIn = (request: string) => /p \d+/.exec(request)?.[0] ?? ''
const answerTo = (request: string, headers?: string[]) =>
  response(message(promptIn(request)), '200 OK', headers)

/** Runs a batch of this number of lines against a server. */
async function runBatch(count: number, concurrency: number, script: Script) {
  const server = await serve(script)
  onTestFinished(() => server.close())
  let maxOpen = 0
  const watch = setInterval(() => {
    maxOpen = Math.max(maxOpen, server.sockets.size)
  }, 1)
  const cwd = batchFolder(upTo(count).map((at) => JSON.stringify(`p ${at} of it`)))
  const argv = ['chat', '--batch', 'in.ndjson', '--concurrency', String(concurrency), '--retries', '0']
  const ended = await run(argv, { exchange: 'network', cwd, env: { PARLEY_BASE_URL: server.url } })
  clearInterval(watch)
  return { ...ended, results: parseResults(ended.out), server, maxOpen }
}

/** Returns the different numbers of requests per line: `[1]` if each line was requested once. */
function countsPerLine({ requests }: ScriptedServer): number[] {
  const counts = new Map<string, number>()
  for (const request of requests) counts.set(promptIn(request), (counts.get(promptIn(request)) ?? 0) + 1)
  return [...new Set(counts.values())].sort()
}

test('a batch reuses connections and never opens more connections than its concurrency allows', async () => {
  const script: Script = (socket, request) => socket.write(answerTo(request))
  const { code, server, maxOpen } = await runBatch(20, 5, script)
  expect([code, server.requests.length, countsPerLine(server)]).toEqual([0, 20, [1]])
  expect(server.connections).toBe(5)
  expect(maxOpen).toBeLessThanOrEqual(5)
})

const close = ['connection: close']

test.each<[string, Script]>([
  ['sends connection: close and closes at once', (socket, text) => socket.end(answerTo(text, close))],
  ['sends connection: close and closes late', (socket, text) => void socket.write(answerTo(text, close))],
  ['closes each connection without connection: close', (socket, text) => socket.end(answerTo(text))],
])('a batch sends each line once if the server %s', async (_, script) => {
  const { code, err, server, maxOpen } = await runBatch(24, 4, script)
  expect([code, server.requests.length, countsPerLine(server)], err).toEqual([0, 24, [1]])
  expect(maxOpen).toBeLessThanOrEqual(4 + 4)
})

test('a batch sends nothing twice if idle connections are reset', async () => {
  const { results, server } = await runBatch(24, 4, (socket, request) => {
    socket.write(answerTo(request), () => setTimeout(() => socket.resetAndDestroy(), 1))
  })
  expect(countsPerLine(server)).toEqual([1])
  expect(results).toHaveLength(24)
  // A line fails if the reset hits its request instead of an idle connection.
  expect(results.filter(({ ok }) => !ok).every(({ error }) => error?.kind === 'unknown')).toBe(true)
})

test('a batch line fails without a retry if its reused connection is reset during the request', async () => {
  const { code, results, server } = await runBatch(30, 8, (socket, request) => {
    if (/p \d*[37] /.test(request)) socket.resetAndDestroy()
    else socket.write(answerTo(request))
  })
  expect([code, server.requests.length, countsPerLine(server)]).toEqual([10, 30, [1]])
  expect(results.filter(({ ok }) => !ok).map(({ error }) => [error?.kind, error?.sent])).toEqual(
    Array(6).fill(['unknown', 'unknown']),
  )
})

test('a batch ignores a response that no line requested', async () => {
  const double = (request: string) => Buffer.concat([answerTo(request), response(message('nobody asked'))])
  const { code, results, out, server } = await runBatch(40, 4, (socket, request, count) => {
    socket.write(count % 3 === 0 ? double(request) : answerTo(request))
  })
  expect([code, results.length, countsPerLine(server)]).toEqual([0, 40, [1]])
  expect(out).not.toContain('nobody asked')
})
