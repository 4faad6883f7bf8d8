import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createPatience } from '../src/client/patience.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const patient = (timeout: number, deadline = 0) => {
  const ends: string[] = []
  const patience = createPatience({ timeout, deadline, onEnd: (why) => void ends.push(why) })
  return { patience, ends }
}

test('a silence runs out, counted from the last byte', () => {
  const { patience, ends } = patient(1000)
  patience.start()
  vi.advanceTimersByTime(900)
  patience.refresh()
  vi.advanceTimersByTime(900)
  expect(ends).toEqual([])
  vi.advanceTimersByTime(100)
  expect(ends).toEqual(['no byte came for 1 s'])
})

test('a silence of our own making counts against nobody, but the deadline does', () => {
  const { patience, ends } = patient(1000, Date.now() + 5000)
  patience.start()
  patience.hold(true)
  patience.refresh()
  vi.advanceTimersByTime(4999)
  expect(ends).toEqual([])
  vi.advanceTimersByTime(1)
  expect(ends).toEqual(['the deadline passed'])
})

test('nothing is waited for after the end, though a late reader still takes up what was held', () => {
  const { patience } = patient(1000, Date.now() + 5000)
  patience.start()
  patience.hold(true)
  patience.end()
  patience.hold(false)
  patience.start()
  patience.refresh()
  expect(vi.getTimerCount()).toBe(0)
})

test('a deadline of years does not pass at once', () => {
  const { ends } = patient(0, Date.now() + 2 ** 40)
  vi.advanceTimersByTime(60_000)
  expect(ends).toEqual([])
})
