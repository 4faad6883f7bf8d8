import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createFastClock, message, type RunOptions, run, temporaryFolder } from '../harness/run.ts'
import { response, type Script, type ScriptedServer, type ServeOptions, serve } from '../harness/server.ts'

interface Line {
  index: number
  ok: boolean
  error?: { kind: string; sent: string }
}

const promptIn = (request: string) => /p \d+/.exec(request)?.[0] ?? ''
const answerTo = (request: string, headers?: string[]) =>
  response(message(promptIn(request)), '200 OK', headers)

/** Runs this number of lines. Returns the results and the server's requests. */
async function ask(
  count: number,
  concurrency: number,
  script: Script,
  options: ServeOptions = {},
  world: RunOptions = {},
  name = (url: string) => url,
) {
  const server = await serve(script, options)
  onTestFinished(() => server.close())
  let maxOpen = 0
  const watch = setInterval(() => {
    maxOpen = Math.max(maxOpen, server.sockets.size)
  }, 1)
  const cwd = temporaryFolder()
  const prompts = Array.from({ length: count }, (_, at) => JSON.stringify(`p ${at + 1} of it`))
  writeFileSync(join(cwd, 'in.ndjson'), prompts.join('\n'))
  const argv = ['chat', '--batch', 'in.ndjson', '--concurrency', String(concurrency), '--retries', '0']
  const ended = await run(argv, {
    exchange: 'network',
    cwd,
    ...world,
    env: { PARLEY_BASE_URL: name(server.url), ...world.env },
  })
  clearInterval(watch)
  const lines: Line[] = ended.out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  return { ...ended, lines, server, most: maxOpen }
}

/** Returns the different numbers of requests per line: `[1]` if each line was requested once. */
function timesAsked({ requests }: ScriptedServer): number[] {
  const times = new Map<string, number>()
  for (const request of requests) times.set(promptIn(request), (times.get(promptIn(request)) ?? 0) + 1)
  return [...new Set(times.values())].sort()
}

test('a batch reuses connections and never opens more than its concurrency', async () => {
  const {
    code,
    server,
    most: maxOpen,
  } = await ask(20, 5, (socket, request) => socket.write(answerTo(request)))
  expect([code, server.requests.length, timesAsked(server)]).toEqual([0, 20, [1]])
  expect(server.connections).toBe(5)
  expect(maxOpen).toBeLessThanOrEqual(5)
})

describe('servers that close idle connections', () => {
  const manners: Record<string, Script> = {
    'closes each connection as announced': (socket, request) =>
      socket.end(answerTo(request, ['connection: close'])),
    'announces to close a connection and closes it late': (socket, request) => {
      socket.write(answerTo(request, ['connection: close']))
    },
    'closes each connection unannounced': (socket, request) => socket.end(answerTo(request)),
    'resets each connection': (socket, request) => {
      socket.write(answerTo(request), () => setTimeout(() => socket.resetAndDestroy(), 1))
    },
  }
  // The last script has another test below: its reset may hit the next request instead of an idle connection.
  for (const [name, script] of Object.entries(manners).slice(0, 3))
    test(`a batch sends each line once if the server ${name}`, async () => {
      const { code, err, server, most: maxOpen } = await ask(24, 4, script)
      expect([code, server.requests.length, timesAsked(server)], err).toEqual([0, 24, [1]])
      expect(maxOpen).toBeLessThanOrEqual(4 + 4)
    })

  test('a batch sends nothing twice if idle connections are reset', async () => {
    const { lines, server } = await ask(24, 4, manners['resets each connection'] as Script)
    expect(timesAsked(server)).toEqual([1])
    expect(lines).toHaveLength(24)
    expect(lines.filter(({ ok }) => !ok).every(({ error }) => error?.kind === 'unknown')).toBe(true)
  })

  test('a batch sends nothing twice if connections are closed during a pause', async () => {
    let closed = 0
    const clock = createFastClock()
    // The pause ends after the server has closed the four connections.
    const timers: typeof clock = {
      ...clock,
      async wait(milliseconds, signal) {
        await clock.wait(milliseconds, signal)
        while (milliseconds > 1000 && closed < 4 && !signal?.aborted) await wait(1)
      },
    }
    const script: Script = (socket, request, count) => {
      if (count > 4) return void socket.write(answerTo(request))
      socket.on('close', () => closed++)
      socket.write(response('{}', '429 Slow', ['retry-after: 20']))
      setTimeout(() => socket.end(), 50)
    }
    const { code, server } = await ask(8, 4, script, {}, { timers })
    expect([code, closed, server.requests.length]).toEqual([0, 4, 12])
  })
})

test('a line fails without a retry if its reused connection is reset during the request', async () => {
  const isHit = (request: string) => /p \d*[37] /.test(request)
  const { code, lines, server } = await ask(30, 8, (socket, request) => {
    if (isHit(request)) socket.resetAndDestroy()
    else socket.write(answerTo(request))
  })
  expect([code, server.requests.length, timesAsked(server)]).toEqual([10, 30, [1]])
  expect(lines.filter(({ ok }) => !ok).map(({ error }) => [error?.kind, error?.sent])).toEqual(
    Array(6).fill(['unknown', 'unknown']),
  )
})

test('a batch ignores a response that no line requested', async () => {
  const double = (request: string) => Buffer.concat([answerTo(request), response(message('nobody asked'))])
  const { code, lines, out, server } = await ask(40, 4, (socket, request, count) => {
    socket.write(count % 3 === 0 ? double(request) : answerTo(request))
  })
  expect([code, lines.length, timesAsked(server)]).toEqual([0, 40, [1]])
  expect(out).not.toContain('nobody asked')
})
