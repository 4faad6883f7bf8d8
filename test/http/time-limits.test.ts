import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Deadline } from '../../src/deadline.ts'
import { createTimeLimits } from '../../src/http/time-limits.ts'
import { realTimers } from '../../src/timers.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const limited = (timeoutMs: number, deadline = Infinity) => {
  const ends: string[] = []
  const limits = createTimeLimits(timeoutMs, new Deadline(realTimers, deadline), (why) => void ends.push(why))
  return { limits, ends }
}

test('--timeout counts from the last received byte', () => {
  const { limits, ends } = limited(1000)
  limits.start()
  vi.advanceTimersByTime(900)
  limits.refresh()
  vi.advanceTimersByTime(900)
  expect(ends).toEqual([])
  vi.advanceTimersByTime(101)
  expect(ends).toEqual(['no byte arrived for 1 s'])
})

test('parley does not time out if bytes arrived while its process was suspended', () => {
  const { limits, ends } = limited(1000)
  limits.start()
  vi.advanceTimersByTime(1000)
  limits.refresh()
  vi.advanceTimersByTime(999)
  expect(ends).toEqual([])
  vi.advanceTimersByTime(2)
  expect(ends).toEqual(['no byte arrived for 1 s'])
})

test('the time in which a slow reader pauses a response counts for --deadline, but not for --timeout', async () => {
  const { limits, ends } = limited(1000, realTimers.now() + 5000)
  limits.start()
  limits.pause(true)
  limits.refresh()
  vi.advanceTimersByTime(4999)
  expect(ends).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  expect(ends).toEqual(['the deadline passed'])
})

test('a response that has ended leaves no timer behind, even if its reader pauses and resumes later', () => {
  const { limits } = limited(1000, realTimers.now() + 5000)
  limits.start()
  limits.pause(true)
  limits.end()
  limits.pause(false)
  limits.start()
  limits.refresh()
  expect(vi.getTimerCount()).toBe(0)
})

test('a deadline that is years away does not pass at once', async () => {
  const { ends } = limited(0, realTimers.now() + 2 ** 40)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(ends).toEqual([])
})
