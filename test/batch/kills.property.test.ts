import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createClock } from '../harness/clock.ts'
import { scaleRuns } from '../harness/property-runs.ts'
import { answerOf, linesOf, play, type TestFile } from './batch.ts'
import { type Ask, failure, parseResults } from './pieces.ts'

const runs = Number(process.env.BATCH_RUNS ?? scaleRuns(100).numRuns)
const lines = 40

interface Act {
  kind: 'ok' | 'rate-limited' | 'not-sent' | 'service' | 'response' | 'unknown' | 'payment'
  retryAfter: number
  time: number
}

/** Answer of the service to one request, and its duration. */
const act: fc.Arbitrary<Act> = fc.record({
  kind: fc.oneof(
    { weight: 12, arbitrary: fc.constant('ok' as const) },
    { weight: 2, arbitrary: fc.constantFrom('rate-limited' as const, 'not-sent' as const) },
    { weight: 1, arbitrary: fc.constantFrom('service' as const, 'response' as const, 'unknown' as const) },
    { weight: 1, arbitrary: fc.constant('payment' as const) },
  ),
  retryAfter: fc.integer({ min: 0, max: 20 }),
  time: fc.integer({ min: 0, max: 10_000 }),
})

/**
 * Number of the request at which a run is killed, and the length of the incomplete line that the kill leaves.
 */
const kill = fc.record({ at: fc.integer({ min: 1, max: 40 }), torn: fc.integer({ min: 0, max: 40 }) })
const tornLine = '{"index":39,"id":"id 39","hash":"0123456789abcdef"'

/** Runs until the end or the kill. */
async function runUntilKill(
  file: TestFile,
  acts: () => Act,
  concurrency: number,
  killAt: number | undefined,
) {
  const timers = createClock()
  let die = () => {}
  const death = new Promise<void>((resolve) => (die = resolve))
  let requestCount = 0
  let open = 0
  let paid = 0
  const ask: Ask = async (line) => {
    expect(++open).toBeLessThanOrEqual(concurrency)
    if (++requestCount === killAt) {
      file.isGone = true
      die()
    }
    const { kind, retryAfter, time } = acts()
    await timers.wait(time)
    if (file.isGone) return new Promise(() => {})
    open--
    if (kind !== 'ok') throw failure(kind, { retryAfterSeconds: retryAfter, attempts: 1 })
    paid++
    return answerOf(line, 1)
  }
  const ended = await Promise.race([play(linesOf(lines), ask, { timers, concurrency, file }), death])
  return { ended, open, paid }
}

test('a batch that is resumed after failures and kills answers every line exactly once', async () => {
  const property = fc.asyncProperty(
    fc.infiniteStream(act),
    fc.array(kill, { maxLength: 6 }),
    fc.integer({ min: 1, max: 9 }),
    async (stream, kills, concurrency) => {
      let text = ''
      let paid = 0
      const results = () => parseResults(text)
      for (let round = 0; round === 0 || results().filter(({ ok }) => ok).length < lines; round++) {
        expect(round).toBeLessThan(300)
        const before = results().length
        const file: TestFile = { text }
        const killed = kills[round]
        const life = await runUntilKill(file, () => stream.next().value, concurrency, killed?.at)
        paid += life.paid
        text = file.text
        if (life.ended) {
          const { ok, failed, skipped } = life.ended.tally
          expect(results()).toHaveLength(before + ok + failed)
          if (life.ended.stop !== undefined) continue
          expect(ok + failed + skipped).toBe(lines)
          expect(ok + skipped).toBe(results().filter((result) => result.ok).length)
        } else text += tornLine.slice(0, killed?.torn)
      }
      const good = results().filter(({ ok }) => ok)
      expect(new Set(good.map(({ id }) => id)).size).toBe(lines)
      expect(good).toHaveLength(lines)
      // Results are written at once, so no paid answer is requested again.
      expect(paid).toBe(lines)
    },
  )
  await fc.assert(property, { numRuns: runs })
})
