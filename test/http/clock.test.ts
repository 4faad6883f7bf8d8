import { expect, test } from 'vitest'
import type { Exchange } from '../../src/wire/exchange.ts'
import { createClock, createIdleClock } from '../harness/clock.ts'
import { answering, message, run } from '../harness/run.ts'

test('a wall clock that runs backwards extends neither the pause of a batch nor its deadline', async () => {
  const clock = createIdleClock()
  const start = clock.now()
  const timers = { ...clock, wallTime: () => 2 * start - clock.wallTime() }
  const sentAtMs: number[] = []
  const responses = [
    answering('{}', { status: 429, headers: { 'retry-after': '1' } }),
    answering(message('hi')),
    // The second line gets no answer.
    () => new Promise<never>(() => {}),
  ]
  const exchange: Exchange = (request) => {
    sentAtMs.push(clock.now() - start)
    return (responses[sentAtMs.length - 1] as Exchange)(request)
  }
  const argv = ['chat', '-m', 'm', '--batch', '-', '--concurrency', '1', '--deadline', '3']
  const { code, out } = await run(argv, { timers, exchange, stdin: '"one"\n"two"\n' })
  expect(code).toBe(15)
  expect(out.match(/"ok":true/g)).toHaveLength(1)
  expect(sentAtMs).toEqual([0, 1000, 1000])
  expect(clock.now() - start).toBe(3000)
})

test('a wall clock that is set back does not extend the deadline of a call', async () => {
  let reads = 0
  const clock = createClock()
  const timers = { ...clock, wallTime: () => clock.wallTime() - 3_600_000 * reads++ }
  const start = timers.now()
  const exchange = answering('{}', { status: 503, headers: { 'retry-after': '2' } })
  const argv = ['chat', 'x', '--retries', '100', '--deadline', '7', '--errors', 'json']
  const { code, err } = await run(argv, { timers, exchange })
  expect(code).toBe(6)
  expect(JSON.parse(err).error).toMatchObject({ deadline: true })
  expect(timers.now() - start).toBeLessThan(7000)
})
