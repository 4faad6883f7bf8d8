import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { createSteadyClock } from '../harness/clock.ts'
import { createRandom } from '../harness/random.ts'
import { message, run } from '../harness/run.ts'
import { response, type ScriptedServer, serve } from '../harness/server.ts'
import { soakBatch } from './batch.ts'

// `npm run soak` sets 2,000 runs.
const runs = Number(process.env.SOAK_RUNS ?? 150)
const seed = process.env.SOAK_SEED ?? process.env.TEST_SEED ?? '1'
const concurrency = 16

/** Results of the requests on the server, in order, by the mark of the run. */
type Verdict = 'taken' | 'refused' | 'failed'
const ledger = new Map<string, Verdict[]>()

/** Marks of runs that never get an answer. Only their timeout is short. */
const unanswered = new Set<string>()

const random = createRandom([seed])
const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T

const streamed = response(
  'data: {"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}\n\ndata: [DONE]\n\n',
  '200 OK',
  ['content-type: text/event-stream'],
)

/** Responses of different length to accepted events. */
const receipts = [
  response('{"data":[{"id":"e1","type":"user.message"}]}'),
  response('{"data":[]}'),
  response('{}'),
  response('', '202 Accepted'),
]

/** Reactions to a complete request. A failure may follow the execution of the request. */
const reactions: Record<string, { verdict: Verdict; act(socket: Socket, answer: Buffer): void }> = {
  answers: { verdict: 'taken', act: (socket, answer) => socket.write(answer) },
  resets: { verdict: 'taken', act: (socket) => socket.resetAndDestroy() },
  closes: { verdict: 'taken', act: (socket) => socket.end() },
  'cuts its head': { verdict: 'taken', act: (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-') },
  'cuts its body': { verdict: 'taken', act: (socket, answer) => socket.end(answer.subarray(0, -3)) },
  'answers a page': {
    verdict: 'taken',
    act: (socket) => socket.write(response('<html>', '200 OK', ['content-type: text/html'])),
  },
  'is rate-limited': {
    verdict: 'refused',
    act: (socket) => socket.write(response('{}', '429 Slow', ['retry-after: 0'])),
  },
  'is unavailable': {
    verdict: 'refused',
    act: (socket) => socket.write(response('{}', '503 Away', ['retry-after: 0'])),
  },
  'refuses it': { verdict: 'refused', act: (socket) => socket.write(response('{}', '400 No')) },
  'fails with 500': { verdict: 'failed', act: (socket) => socket.write(response('{}', '500 Oops')) },
  'fails with 503': { verdict: 'failed', act: (socket) => socket.write(response('{}', '503 Oops')) },
}

const stall: (typeof reactions)[string] = { verdict: 'taken', act: () => {} }

function respondAtRandom(socket: Socket, request: string): void {
  const mark = /mark-\d+/.exec(request)?.[0] ?? ''
  const { verdict, act } = unanswered.has(mark)
    ? stall
    : (reactions[random() < 0.3 ? 'answers' : pick(Object.keys(reactions))] as (typeof reactions)[string])
  ledger.set(mark, [...(ledger.get(mark) ?? []), verdict])
  if (request.includes('/events')) act(socket, pick(receipts))
  else act(socket, request.includes('alt=sse') ? streamed : response(message('Hi')))
}

async function soakOnce(mark: string, server: ScriptedServer) {
  const words = pick([['chat'], ['chat', '--stream'], ['events', 'send', '-s', 's']])
  const isUnanswered = random() < 0.06
  if (isUnanswered) unanswered.add(mark)
  const timeout = isUnanswered ? '1' : '10m'
  const argv = [...words, mark, '--errors', 'json', '--timeout', timeout, '--retries', '2']
  // Some runs find no server.
  const url = random() < 0.05 ? 'http://127.0.0.1:2' : server.url
  const env = { PARLEY_BASE_URL: url, PARLEY_AGENTS_URL: url }
  // If this process stalls, so does its server. A real clock would take the pause for the end of a stream.
  const ended = await run(argv, { exchange: 'network', env, timers: createSteadyClock() })
  const error = ended.code === 0 ? undefined : JSON.parse(ended.err).error
  return {
    mark,
    isEvent: words[0] === 'events',
    code: ended.code,
    error,
    verdicts: ledger.get(mark) ?? [],
  }
}

/** Returns the differences between a run's report and the server's records. */
function findDifferences({ isEvent, code, error, verdicts }: Awaited<ReturnType<typeof soakOnce>>): string[] {
  const last = verdicts.at(-1)
  const mayRepeat = verdicts.slice(0, -1)
  return [
    ...(code === 0 && last !== 'taken' ? ['done, but not taken'] : []),
    ...(error?.sent === 'no' && verdicts.length > 0 ? ['"not sent", but it arrived'] : []),
    ...(error?.sent === 'yes' && verdicts.length === 0 ? ['"sent", but nothing arrived'] : []),
    ...(isEvent && mayRepeat.some((verdict) => verdict !== 'refused') ? ['an event was sent again'] : []),
    ...(verdicts.filter((verdict) => verdict === 'taken').length > 1 ? ['taken twice'] : []),
    ...(isEvent && error?.safeToRetry && verdicts.some((verdict) => verdict !== 'refused')
      ? ['"run it again", but it may have been taken']
      : []),
    ...([6, 9].includes(code) && last !== undefined && last !== 'refused'
      ? [`exit ${code}, but it may have been taken`]
      : []),
    ...([1, 2, 3, 11].includes(code) ? [`exit ${code}`] : []),
  ]
}

test(
  `${runs} runs against a server with random failures report what the server recorded`,
  async () => {
    const server = await serve(respondAtRandom)
    const ended: Awaited<ReturnType<typeof soakOnce>>[] = []
    let next = 0
    const work = async () => {
      while (next < runs) ended.push(await soakOnce(`mark-${next++}`, server))
    }
    await Promise.all(Array.from({ length: concurrency }, work))
    await server.close()

    const codes = [...new Set(ended.map(({ code }) => code))].sort((a, b) => a - b)
    const shares = codes.map((code) => `exit ${code}: ${ended.filter((one) => one.code === code).length}`)
    process.stdout.write(
      `soak: ${runs} runs, seed ${seed}, ${server.requests.length} requests; ${shares.join(', ')}\n`,
    )
    const wrong = ended.flatMap((one) =>
      findDifferences(one).map((what) => `${one.mark}: ${what}: ${JSON.stringify(one)}`),
    )
    expect(wrong).toEqual([])
    expect(ended).toHaveLength(runs)
  },
  runs * 2_000,
)

// A run after a kill waits 5 s for the lock of the file.
const kills = Math.ceil(runs / 150)

test(
  `a batch of ${runs * 5} lines that is killed ${kills} times answers each line once`,
  async () => {
    expect(await soakBatch(runs * 5, kills, random)).toEqual([])
  },
  60_000 + runs * 600,
)
