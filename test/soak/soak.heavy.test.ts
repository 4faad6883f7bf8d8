import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { createSteadyClock } from '../harness/clock.ts'
import { createRandom } from '../harness/random.ts'
import { message, run } from '../harness/run.ts'
import { response, type ScriptedServer, serve } from '../harness/server.ts'

// `npm run soak` sets SOAK_RUNS to 2,000.
const runs = Number(process.env.SOAK_RUNS ?? 150)
const seed = process.env.SOAK_SEED ?? process.env.TEST_SEED ?? '1'
const concurrency = 16

/** Result of a request on the server. Only `executed` has an effect. */
type Effect = 'executed' | 'refused' | 'failed'

/** Effects of the requests of each run, in order. The prompt of a run is its key: `mark-7`. */
const effectsByRun = new Map<string, Effect[]>()

/** Keys of runs that never get an answer. Their timeout is short, so that they end soon. */
const unanswered = new Set<string>()

const random = createRandom([seed])
const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T

const streamed = response(
  'data: {"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}\n\ndata: [DONE]\n\n',
  '200 OK',
  ['content-type: text/event-stream'],
)

/** Possible responses to accepted events. */
const acceptedResponses = [
  response('{"data":[{"id":"e1","type":"user.message"}]}'),
  response('{"data":[]}'),
  response('{}'),
  response('', '202 Accepted'),
]

const refusal = (status: string) => response('{}', status, ['retry-after: 0'])

/** Reactions to a request. A server may execute a request and then fail to answer. */
const reactions: Record<string, { effect: Effect; act(socket: Socket, answer: Buffer): void }> = {
  answers: { effect: 'executed', act: (socket, answer) => socket.write(answer) },
  resets: { effect: 'executed', act: (socket) => socket.resetAndDestroy() },
  closes: { effect: 'executed', act: (socket) => socket.end() },
  'cuts its head': { effect: 'executed', act: (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-') },
  'cuts its body': { effect: 'executed', act: (socket, answer) => socket.end(answer.subarray(0, -3)) },
  'answers a page': {
    effect: 'executed',
    act: (socket) => socket.write(response('<html>', '200 OK', ['content-type: text/html'])),
  },
  'is rate-limited': { effect: 'refused', act: (socket) => socket.write(refusal('429 Slow')) },
  'is unavailable': { effect: 'refused', act: (socket) => socket.write(refusal('503 Away')) },
  'refuses it': { effect: 'refused', act: (socket) => socket.write(response('{}', '400 No')) },
  'fails with 500': { effect: 'failed', act: (socket) => socket.write(response('{}', '500 Oops')) },
  'fails with 503': { effect: 'failed', act: (socket) => socket.write(response('{}', '503 Oops')) },
}

const stall: (typeof reactions)[string] = { effect: 'executed', act: () => {} }

function respondAtRandom(socket: Socket, request: string): void {
  const mark = /mark-\d+/.exec(request)?.[0] ?? ''
  const { effect, act } = unanswered.has(mark)
    ? stall
    : (reactions[random() < 0.3 ? 'answers' : pick(Object.keys(reactions))] as (typeof reactions)[string])
  effectsByRun.set(mark, [...(effectsByRun.get(mark) ?? []), effect])
  if (request.includes('/events')) act(socket, pick(acceptedResponses))
  else act(socket, request.includes('alt=sse') ? streamed : response(message('Hi')))
}

/** Runs a random command, and returns its result and the server's records. */
async function runAtRandom(mark: string, server: ScriptedServer) {
  const words = pick([['chat'], ['chat', '--stream'], ['events', 'send', '-s', 's']])
  const isUnanswered = random() < 0.06
  if (isUnanswered) unanswered.add(mark)
  const timeout = isUnanswered ? '1' : '10m'
  const argv = [...words, mark, '--errors', 'json', '--timeout', timeout, '--retries', '2']
  // In some runs no server listens.
  const url = random() < 0.05 ? 'http://127.0.0.1:2' : server.url
  const env = { PARLEY_BASE_URL: url, PARLEY_AGENTS_URL: url }
  // If this process pauses, its server pauses too. With a real clock, parley could time out meanwhile.
  const ended = await run(argv, { exchange: 'network', env, timers: createSteadyClock() })
  const error = ended.code === 0 ? undefined : JSON.parse(ended.err).error
  const effects = effectsByRun.get(mark) ?? []
  return { mark, isEvent: words[0] === 'events', code: ended.code, error, effects }
}

/** Returns the contradictions between the output of a run and the server's records. */
function findContradictions(ended: Awaited<ReturnType<typeof runAtRandom>>): string[] {
  const { isEvent, code, error, effects } = ended
  const last = effects.at(-1)
  const retried = effects.slice(0, -1)
  return [
    ...(code === 0 && last !== 'executed' ? ['exit 0, but the request was not executed'] : []),
    ...(error?.sent === 'no' && effects.length > 0 ? ['sent is no, but a request arrived'] : []),
    ...(error?.sent === 'yes' && effects.length === 0 ? ['sent is yes, but no request arrived'] : []),
    ...(isEvent && retried.some((effect) => effect !== 'refused') ? ['an event was sent again'] : []),
    ...(effects.filter((effect) => effect === 'executed').length > 1 ? ['executed twice'] : []),
    ...(isEvent && error?.safeToRetry && effects.some((effect) => effect !== 'refused')
      ? ['safeToRetry is true, but the request may have been executed']
      : []),
    ...([6, 9].includes(code) && last !== undefined && last !== 'refused'
      ? [`exit ${code}, but the request may have been executed`]
      : []),
    ...([1, 2, 3, 11].includes(code) ? [`exit ${code}`] : []),
  ]
}

test(
  `in ${runs} runs against a server that fails at random, no exit code or error contradicts the server`,
  async () => {
    const server = await serve(respondAtRandom)
    const ended: Awaited<ReturnType<typeof runAtRandom>>[] = []
    let next = 0
    const work = async () => {
      while (next < runs) ended.push(await runAtRandom(`mark-${next++}`, server))
    }
    await Promise.all(Array.from({ length: concurrency }, work))

    const codes = [...new Set(ended.map(({ code }) => code))].sort((a, b) => a - b)
    const shares = codes.map((code) => `exit ${code}: ${ended.filter((one) => one.code === code).length}`)
    process.stdout.write(
      `soak: ${runs} runs, seed ${seed}, ${server.requests.length} requests; ${shares.join(', ')}\n`,
    )
    const contradictions = ended.flatMap((one) =>
      findContradictions(one).map((what) => `${one.mark}: ${what}: ${JSON.stringify(one)}`),
    )
    expect(contradictions).toEqual([])
    expect(ended).toHaveLength(runs)
  },
  runs * 2_000,
)
