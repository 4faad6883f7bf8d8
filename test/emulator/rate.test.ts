import { describe, expect, test } from 'vitest'
import { createEmulator, faultEndpoints } from '../../src/emulator/emulator.ts'
import { parseFaults } from '../../src/emulator/faults.ts'
import { run } from '../harness/run.ts'

const once = ['chat', 'Say hello', '--retries', '0']
const codes = (ended: { code: number }[]) => ended.map(({ code }) => code)

const emulate = (specs: string[], now: () => number) =>
  createEmulator({ faults: parseFaults(specs, faultEndpoints) }, now)

/** Runs the requests one after the other. */
async function runInOrder<T>(count: number, ask: () => Promise<T>): Promise<T[]> {
  const all: T[] = []
  for (let i = 0; i < count; i++) all.push(await ask())
  return all
}

describe('--fault rate:N', () => {
  test('serve --fault rate:4 accepts four requests at once, then answers 429 until time has passed', async () => {
    let now = 0
    const exchange = emulate(['rate:4'], () => now)
    const ask = () => run(once, { exchange })
    const ended = await runInOrder(6, ask)
    expect(codes(ended)).toEqual([0, 0, 0, 0, 6, 6])
    const failed = await run([...once, '--errors', 'json'], { exchange })
    expect(JSON.parse(failed.err).error).toMatchObject({ kind: 'rate-limited', status: 429, retryAfter: 1 })
    now += 500
    expect(codes(await runInOrder(3, ask))).toEqual([0, 0, 6])
    now += 60_000
    expect(codes(await runInOrder(5, ask))).toEqual([0, 0, 0, 0, 6])
  })
})
