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
 * reader of quadratic time, which takes the part's time n² times for n parts, would keep to the limit.
 */
export async function readInTime(read: (size: number) => unknown, limit: number): Promise<void> {
  for (const parts of [16, 4]) {
    if ((await costOf(() => read(mebibyte / parts))) * parts ** 2 < limit) return
  }
  const seconds = await costOf(() => read(mebibyte))
  expect(seconds, 'seconds of CPU for a mebibyte').toBeLessThan(limit)
}
