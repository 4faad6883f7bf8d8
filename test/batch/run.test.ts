import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { type BatchLine, BatchTally } from '../../src/batch/input.ts'
import type { CliError } from '../../src/errors.ts'
import { createClock } from '../harness/clock.ts'
import { answerOf, failureOf, linesOf, play } from './batch.ts'
import { type Ask, failure, indexes, parseResults, upTo } from './pieces.ts'

const sorted = (results: { index: number }[]) => indexes(results).sort((one, other) => one - other)

test('a batch requests each line once, at most --concurrency at a time, and writes each result at once', async () => {
  const timers = createClock()
  const requested: number[] = []
  let [open, maxOpen] = [0, 0]
  const ask: Ask = async (line) => {
    requested.push(line.index)
    maxOpen = Math.max(maxOpen, ++open)
    await timers.wait({ 1: 2500, 7: 9000 }[line.index] ?? 1000)
    open--
    return answerOf(line, 10)
  }
  const { out, tally, stop, failure } = await play(linesOf(100), ask, { timers })
  expect(indexes(out)).not.toEqual(upTo(100))
  expect(sorted(out)).toEqual(upTo(100))
  expect([requested, maxOpen, stop, failure]).toEqual([upTo(100), 8, undefined, undefined])
  const counts = { total: 100, hasLine: true, ok: 100, tokens: 1000, hasAnswer: true }
  expect(tally).toEqual(Object.assign(new BatchTally(), counts))
  const seventh = { id: 'id 7', ok: true, text: 'answer to "p7"', attempts: 1 }
  expect(out.find(({ index }) => index === 7)).toMatchObject(seventh)
})

test('the failed line with the lowest number decides the failure of a batch', async () => {
  const timers = createClock()
  const ask: Ask = async (line) => {
    await timers.wait(10_000 - line.index * 100)
    const kind = line.index === 3 ? 'response' : 'service'
    if (line.index % 3 === 0) throw failureOf(line, kind, { attempts: 3 })
    return answerOf(line, 1)
  }
  const { out, tally, stop, failure: first } = await play(linesOf(10), ask, { timers })
  expect(out.filter(({ ok }) => !ok).map(({ index, error }) => [index, error])).toEqual([
    [6, { kind: 'service', attempts: 3 }],
    [3, { kind: 'response', attempts: 3 }],
    [9, { kind: 'service', attempts: 3 }],
  ])
  const failures = { response: 1, service: 2 }
  const counts = { total: 10, hasLine: true, ok: 7, failed: 3, failures, tokens: 7, hasAnswer: true }
  expect(tally).toEqual(Object.assign(new BatchTally(), counts))
  expect([stop, first?.error.kind]).toEqual([undefined, 'response'])
})

/** Emulates a service that takes 200 ms per request and fails for a while. */
async function runThroughOutage(
  fault: (line: BatchLine) => CliError,
  world: Parameters<typeof play>[2] = {},
) {
  const timers = createClock()
  const start = timers.now()
  const tried: number[] = []
  let open = 0
  let maxOpen = 0
  const ask: Ask = async (line) => {
    const at = timers.now() - start
    maxOpen = Math.max(maxOpen, ++open)
    await timers.wait(200)
    open--
    if (at < 5000 || at >= 35_000) return answerOf(line, 1)
    tried.push(line.index)
    throw fault(line)
  }
  const ended = await play(linesOf(1250), ask, { timers, retries: 2, ...world })
  return { ...ended, tried, maxOpen, seconds: (timers.now() - start) / 1000 }
}
const badGateway = (line: BatchLine) =>
  failureOf(line, 'service', { status: 502, sent: 'yes', retry: 'later' })
const reset = (line: BatchLine) => failureOf(line, 'unknown', lost)

test.each([8, 4])('B13: 502s for 30 s fail no line of a batch with concurrency %i', async (concurrency) => {
  const world = { concurrency, file: { text: '' } }
  const { tally, stop, tried, maxOpen, file } = await runThroughOutage(badGateway, world)
  expect({ ...tally, stop }).toMatchObject({ ok: 1250, failed: 0, stop: undefined })
  expect(new Set(indexes(parseResults(file))).size).toBe(1250)
  // The failing requests start the outage, retry some lines, or test the service after a pause.
  expect(tried.length).toBeLessThan(2 * Math.max(4, concurrency) + 8)
  expect(maxOpen).toBe(concurrency)
})

test('B13: an outage with resets fails only the running lines and the lines that test the service', async () => {
  const { tally, stop, tried } = await runThroughOutage(reset)
  expect(stop).toBeUndefined()
  expect(tally.failures).toEqual({ unknown: tried.length })
  // Eight failures start the outage, seven requests still run then, and five lines test the service.
  expect(tried.length).toBeLessThanOrEqual(8 + 7 + 5)
  expect(new Set(tried).size).toBe(tried.length)
  expect(tally.ok + tally.failed).toBe(1250)
})

test('B13: batch lines that always fail do not delay the lines that succeed', async () => {
  const timers = createClock()
  const ask: Ask = async (line) => {
    await timers.wait(10)
    if (line.index <= 4) throw badGateway(line)
    return answerOf(line, 1)
  }
  for (const concurrency of [1, 4, 8]) {
    const { tally, stop } = await play(linesOf(40), ask, { timers, concurrency, retries: 2 })
    expect({ ...tally, stop }).toMatchObject({ ok: 36, failed: 4, stop: undefined })
  }
})

test('B01: a batch requests every line, also if the clock advances at each reading', async () => {
  // The first pause is 375 ms long.
  for (let step = 25; step <= 500; step += 25) {
    const clock = createClock()
    let readings = 0
    const timers = { ...clock, now: () => clock.now() + step * ++readings }
    let requested = 0
    const ask: Ask = async (line) => {
      if (++requested === 3) throw failure('rate-limited')
      return answerOf(line)
    }
    const done = play(linesOf(5), ask, { timers, concurrency: 1 }).then(({ tally }) => tally.ok)
    expect(await Promise.race([done, waitManyTurns()]), `a step of ${step} ms`).toBe(5)
  }
})

/** Resolves after all pending work that needs no clock. */
async function waitManyTurns(): Promise<string> {
  for (let count = 0; count < 500; count++) await turn()
  return 'nothing happens any more'
}

/** Runs 100 lines, 4 at a time. Calls `tenth` before the answer to the tenth line. */
async function runWithTenthLine(tenth: () => unknown, world = {}) {
  const timers = createClock()
  const requested: number[] = []
  const ask: Ask = async (line) => {
    requested.push(line.index)
    await timers.wait(line.index === 10 ? 500 : 1000)
    if (line.index === 10) await tenth()
    return answerOf(line, 10)
  }
  return { requested, ...(await play(linesOf(100), ask, { timers, concurrency: 4, ...world })) }
}

test('a batch stops if a result cannot be formatted, which is a bug in parley', async () => {
  const world = { describe: () => ({ tokens: 1n }) }
  const { requested, stop } = await runWithTenthLine(() => Promise.reject(failure('service')), world)
  expect(requested).toEqual(upTo(12))
  expect(stop).toMatchObject({ kind: 'unexpected' })
})

test('an interrupt stops a batch after the running requests', async () => {
  const interrupted = new AbortController()
  const world = { interrupted: interrupted.signal }
  const { requested, out, stop, tally } = await runWithTenthLine(() => interrupted.abort(), world)
  expect(requested).toEqual(upTo(12))
  expect(sorted(out)).toEqual(upTo(12))
  expect([stop, tally.ok]).toEqual([undefined, 12])
})

test('a batch sends nothing if an interrupt or the deadline precedes its first request', async () => {
  const early = await runWithTenthLine(() => undefined, { interrupted: AbortSignal.abort() })
  expect(early.requested).toEqual([])
  const late = await runWithTenthLine(() => undefined, { deadline: 1 })
  expect([late.requested, late.stop?.kind]).toEqual([[], 'stopped'])
})

test('a batch stops if a results file accepts no more results, and prints the remaining results on stdout', async () => {
  let lines = 0
  const full = {
    write() {
      if (++lines > 6) throw failure('file')
    },
  }
  const { requested, out, stop, tally } = await runWithTenthLine(() => undefined, { results: full })
  expect(stop).toMatchObject({ kind: 'file', details: { consequence: /are on stdout/ } })
  expect(requested.length).toBeLessThanOrEqual(11)
  expect(sorted(out)).toEqual(requested.slice(6))
  expect(tally).toMatchObject({ ok: requested.length, failed: 0, savedElsewhere: requested.length - 6 })
})

test('a batch stops when its input cannot be read', async () => {
  async function* broken() {
    yield Buffer.from('"a"\n"b"\n')
    throw failure('file')
  }
  const { out, stop } = await play(broken(), async (line) => answerOf(line))
  expect([stop?.kind, indexes(out)]).toEqual(['file', [1, 2]])
})

test('the deadline ends the wait of a batch for a silent pipe', async () => {
  const timers = createClock()
  async function* silent() {
    yield Buffer.from('"a"\n')
    await new Promise(() => {})
  }
  const world = { timers, deadline: timers.now() + 1000 }
  const { out, stop } = await play(silent(), async (line) => answerOf(line), world)
  expect([indexes(out), stop?.kind]).toEqual([[1], 'stopped'])
})

test.each([
  ['an answer', (line: BatchLine) => answerOf(line)],
  ['a failure', (line: BatchLine) => Promise.reject(failureOf(line, 'service'))],
])('a batch line that failed at the deadline gets no second result if %s arrives later', async (_, end) => {
  const timers = createClock()
  const results: string[] = []
  const ask: Ask = (line) => timers.wait(2000).then(() => end(line))
  // Writing the result takes from the deadline (1 s) to 6 s, so the request ends (at 2 s) during the write.
  const write = (text: string) => {
    results.push(text)
    return timers.wait(5000)
  }
  const describe = ({ kind, mayDuplicate }: CliError) => ({ kind, mayDuplicate })
  const world = { timers, stdout: { write }, describe, deadline: timers.now() + 1000 }
  const { tally } = await play('"a"\n', ask, world)
  const error = { kind: 'unknown', mayDuplicate: true }
  expect(results.map((text) => JSON.parse(text))).toMatchObject([{ error }])
  expect([tally.ok, tally.failures]).toEqual([0, { unknown: 1 }])
})

test('the deadline ends the wait of a batch line for its retry, also if the clock jumps', async () => {
  const clock = createClock()
  let jump = 0
  const timers = { ...clock, now: () => clock.now() + jump }
  const ask: Ask = async (line) => {
    if (line.index === 1) throw failureOf(line, 'service')
    await timers.wait(100)
    jump = 60_000
    return answerOf(line)
  }
  const { out, stop } = await play(linesOf(2), ask, { timers, retries: 1, deadline: timers.now() + 10_000 })
  expect([sorted(out), stop?.kind]).toEqual([[1, 2], 'stopped'])
})

test('a batch requests no further part of an answer after the deadline', async () => {
  const timers = createClock()
  let requireNext = () => {}
  const ask: Ask = (_, next) => {
    requireNext = next
    return new Promise(() => {})
  }
  await play('"a"\n', ask, { timers, deadline: timers.now() + 1000 })
  expect(requireNext).toThrow('the deadline passed')
})

const lost = { sent: 'unknown', retry: 'later' } as const

test.each<[name: string, first: (line: BatchLine) => CliError]>([
  ['an earlier request got no answer', (line) => failureOf(line, 'unknown', lost)],
  [
    'an earlier request returned a part of the answer',
    (line) => {
      answerOf(line)
      return failureOf(line, 'service', { sent: 'yes', retry: 'later', mayDuplicate: false })
    },
  ],
])('the result of a failed batch line has mayDuplicate: true if %s', async (_, first) => {
  let requests = 0
  const ask: Ask = async (line) => {
    if (++requests === 1) throw first(line)
    throw failureOf(line, 'refused', { sent: 'yes', mayDuplicate: false })
  }
  const describe = ({ kind, mayDuplicate }: CliError) => ({ kind, mayDuplicate })
  const { out } = await play('"a"\n', ask, { describe, retries: 1, retryUnknown: true })
  expect(out).toMatchObject([{ error: { kind: 'refused', mayDuplicate: true } }])
})

test('a batch starts no request while stdout is blocked', async () => {
  let requested = 0
  let open = () => {}
  const isOpen = new Promise<void>((resolve) => (open = resolve))
  const ask: Ask = async (line) => {
    requested++
    return answerOf(line)
  }
  const running = play(linesOf(100), ask, { concurrency: 4, stdout: { write: () => isOpen } })
  for (let count = 0; count < 50; count++) await turn()
  expect(requested).toBeLessThanOrEqual(8)
  open()
  expect((await running).tally.ok).toBe(100)
})

test.each([
  ['cancels the scheduled retry of a line', 0, 500, [1]],
  ['retries no line that fails later', 500, 0, []],
])('after the service refuses a credential, a batch %s', async (_, serviceMs, credentialsMs, retries) => {
  const timers = createClock()
  const start = timers.now()
  const requested: number[] = []
  const ask: Ask = async (line) => {
    requested.push(line.index)
    await timers.wait(line.index === 1 ? serviceMs : credentialsMs)
    throw failureOf(line, line.index === 1 ? 'service' : 'credentials', { retryAfterSeconds: 59 })
  }
  const { out, retried } = await play(linesOf(2), ask, { timers, retries: 2 })
  expect(out.map(({ index, error }) => [index, error?.kind])).toEqual([[1, 'service']])
  expect([requested, retried]).toEqual([[1, 2], retries])
  expect(timers.now() - start).toBeLessThan(5_000)
})
