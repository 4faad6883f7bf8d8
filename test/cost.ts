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
 * reader of quadratic time, which takes the part's time n² times for n parts, would keep to the limit. How large a
 * part that is for a reader of linear time is known from a small one.
 */
export async function readInTime(read: (size: number) => unknown, limit: number): Promise<void> {
  const small = 16
  const isProved = async (parts: number) => (await costOf(() => read(mebibyte / parts))) * parts ** 2 < limit
  const first = await costOf(() => read(mebibyte / small))
  if (first * small ** 2 < limit) return
  const parts = 2 ** Math.floor(Math.log2(limit / first / small / 1.3))
  if (parts > 1 && (await isProved(parts))) return
  expect(await costOf(() => read(mebibyte)), 'seconds of CPU for a mebibyte').toBeLessThan(limit)
}
