import { expect, onTestFinished, test, vi } from 'vitest'
import { Deadline } from '../src/deadline.ts'
import { realTimers } from '../src/timers.ts'

const dayMs = 86_400_000

/**
 * Replaces timers of at least a day. `run` fires them in order and sets the clock. Other timers stay real, because
 * earlier tests of this process may still use them. Like Node, a timer of more than 24 days fires after 1 ms.
 */
function replaceLongTimers() {
  const clock = { now: 0 }
  const waiting: { atMs: number; act: () => void }[] = []
  const { setTimeout: setRealTimeout } = globalThis
  const spy = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((act: () => void, ms = 0) => {
    if (ms < dayMs) return setRealTimeout(act, ms)
    waiting.push({ atMs: clock.now + (ms > 2 ** 31 - 1 ? 1 : ms), act })
    return setRealTimeout(() => {}, 0)
  }) as typeof setTimeout)
  onTestFinished(() => spy.mockRestore())
  const run = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      clock.now = next.atMs
      next.act()
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return { clock, run }
}

test('a deadline of 30 days does not pass after the 24 days that a timer of Node can last', async () => {
  const { clock, run } = replaceLongTimers()
  const timers = { ...realTimers, now: () => clock.now }
  const passedAfter: number[] = []
  new Deadline(timers, 30 * dayMs).onPass(() => passedAfter.push(clock.now / dayMs))
  await run()
  expect(passedAfter).toEqual([30])
})
