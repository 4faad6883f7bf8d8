import { afterEach, expect, test, vi } from 'vitest'
import { Deadline } from '../src/deadline.ts'
import { realTimers } from '../src/timers.ts'

afterEach(() => void vi.useRealTimers())

test('a deadline of 30 days does not pass after the 24 days that a timer of Node can last', async () => {
  vi.useFakeTimers()
  const dayMs = 86_400_000
  const timers = { ...realTimers, now: Date.now }
  const start = timers.now()
  const passedAfter: number[] = []
  new Deadline(timers, start + 30 * dayMs).onPass(() => passedAfter.push((timers.now() - start) / dayMs))
  await vi.advanceTimersByTimeAsync(31 * dayMs)
  expect(passedAfter).toEqual([30])
})

test('the monotonic clock counts from the start of the process, so no change of the wall clock moves it', () => {
  expect(Math.abs(realTimers.now() - performance.now())).toBeLessThan(60_000)
})
