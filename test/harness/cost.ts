import { expect } from 'vitest'

const mebibyte = 2 ** 20

/** Seconds of processor time, which others on the machine do not lengthen. */
export async function costOf(work: () => unknown): Promise<number> {
  const start = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1e6
}

/**
 * Checks that a mebibyte is read within so many seconds of processor time. A part of it is enough where even a
 * reader of quadratic time, which takes the part's time n² times for n parts, or twice that where the whole no
 * longer fits a cache, would keep to the limit. How large a part that is for a reader of linear time is known from
 * a small one.
 */
export async function readInTime(read: (size: number) => unknown, limit: number): Promise<void> {
  const small = 16
  const costs = (parts: number) => costOf(() => read(mebibyte / parts))
  const first = await costs(small)
  if (first * small ** 2 < limit / 2) return
  const parts = 2 ** Math.floor(Math.log2(limit / 2 / first / small))
  if (parts > 1 && (await costs(parts)) * parts ** 2 < limit / 2) return
  expect(await costs(1), 'seconds of CPU for a mebibyte').toBeLessThan(limit)
}
