import { expect, test } from 'vitest'
import { createEmulator } from '../../src/emulator/emulator.ts'
import { run } from '../harness/run.ts'

const chat = ['chat', 'Say hello', '--retries', '0']

test('serve --fault rate:4 accepts four requests at once, then answers 429 until time has passed', async () => {
  let now = 0
  const exchange = createEmulator({ faults: ['rate:4'] }, () => now)
  const sendChats = async (count: number) => {
    const codes: number[] = []
    for (let i = 0; i < count; i++) codes.push((await run(chat, { exchange })).code)
    return codes
  }
  expect(await sendChats(6)).toEqual([0, 0, 0, 0, 6, 6])
  const failed = await run([...chat, '--errors', 'json'], { exchange })
  expect(JSON.parse(failed.err).error).toMatchObject({ kind: 'rate-limited', status: 429, retryAfter: 1 })
  now += 500
  expect(await sendChats(3)).toEqual([0, 0, 6])
  now += 60_000
  expect(await sendChats(5)).toEqual([0, 0, 0, 0, 6])
})
