import { expect } from 'vitest'

const mebibyte = 2 ** 20
const share = 8

/** Seconds of processor time, which others on the machine do not lengthen. */
export async function costOf(work: () => unknown): Promise<number> {
  const start = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1e6
}

/**
 * Checks that a mebibyte is read within so many seconds of processor time. An eighth of it says so where a reader
 * whose time is quadratic, 64 times as long for the whole, would be quick enough too; otherwise the whole is read.
 */
export async function readInTime(read: (size: number) => unknown, limit: number): Promise<void> {
  if ((await costOf(() => read(mebibyte / share))) * share ** 2 < limit) return
  const seconds = await costOf(() => read(mebibyte))
  expect(seconds, 'seconds of CPU for a mebibyte').toBeLessThan(limit)
}
