import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { createSteadyClock } from '../harness/clock.ts'
import { createRandom } from '../harness/random.ts'
import { message, run } from '../harness/run.ts'
import { response, type ScriptedServer, serve } from '../harness/server.ts'
import { soakBatch } from './batch.ts'
import { serveRuns } from './runs.ts'
import { serveSessions } from './sessions.ts'
import { endings, type SentStream, sendStream } from './streams.ts'

// `npm run soak` sets 2,000 runs.
const runs = Number(process.env.SOAK_RUNS ?? 150)
const seed = process.env.SOAK_SEED ?? process.env.TEST_SEED ?? '1'
const concurrency = 16

/** Maximum number of sessions that are followed at once. */
const maxSessions = 48

/** Results of the requests on the server, in order, by the mark of the run. */
type Verdict = 'taken' | 'refused' | 'failed'
const ledger = new Map<string, Verdict[]>()

/** Marks of runs that never get an answer. Only their timeout is short. */
const unanswered = new Set<string>()

/** Streams that the server sent completely, by the mark of the run. */
const completeStreams = new Map<string, SentStream>()

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
  const isStream = request.includes('alt=sse')
  if (isStream && verdict === 'taken' && act === reactions.answers?.act) {
    completeStreams.set(mark, sendStream(socket, pick(endings), pick([0, 20])))
  } else if (request.includes('/events')) act(socket, pick(receipts))
  else act(socket, isStream ? streamed : response(message('Hi')))
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
    out: ended.out,
    error,
    verdicts: ledger.get(mark) ?? [],
    stream: completeStreams.get(mark),
  }
}

/** Returns the differences between a run's report and the server's records. */
function findDifferences({
  isEvent,
  code,
  out,
  error,
  verdicts,
  stream,
}: Awaited<ReturnType<typeof soakOnce>>): string[] {
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
    ...(stream && code !== (stream.isWhole ? 0 : 8)
      ? [`a stream that is ${stream.isWhole ? '' : 'not '}whole`]
      : []),
    ...(stream && out.trimEnd() !== stream.text ? [`another text than ${stream.text}`] : []),
  ]
}

test(
  `${runs} runs against a server with random failures report what the server recorded`,
  async () => {
    const server = await serve(respondAtRandom)
    const sessions = await serveSessions(runs, Number(seed), random)
    const tasks = await serveRuns(runs, Number(seed), random)
    const wrongSessions: string[] = []
    const follows = new Set<Promise<void>>()
    const follow = async (session: Promise<string[]>) => {
      const followed: Promise<void> = session.then((wrong) => {
        wrongSessions.push(...wrong)
        follows.delete(followed)
      })
      follows.add(followed)
      while (follows.size > maxSessions) await Promise.race(follows)
    }
    const ended: Awaited<ReturnType<typeof soakOnce>>[] = []
    let next = 0
    const work = async () => {
      while (next < runs) {
        const index = next++
        ended.push(await soakOnce(`mark-${index}`, server))
        if (index % 4 === 0) await follow(sessions.follow(index))
        if (index % 4 === 2) await follow(tasks.work(index))
      }
    }
    await Promise.all(Array.from({ length: concurrency }, work))
    await Promise.all(follows)
    await server.close()
    sessions.close()
    tasks.close()

    const codes = [...new Set(ended.map(({ code }) => code))].sort((a, b) => a - b)
    const shares = codes.map((code) => `exit ${code}: ${ended.filter((one) => one.code === code).length}`)
    process.stdout.write(
      `soak: ${runs} runs, seed ${seed}, ${server.requests.length} requests; ${shares.join(', ')}\n`,
    )
    const wrong = ended.flatMap((one) =>
      findDifferences(one).map((what) => `${one.mark}: ${what}: ${JSON.stringify(one)}`),
    )
    expect([...wrong, ...wrongSessions]).toEqual([])
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
