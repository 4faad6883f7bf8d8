import { expect, test } from 'vitest'
import { createEmulator } from '../../src/emulator/emulator.ts'
import { readBody } from '../../src/wire/exchange.ts'
import { expectLinearWork } from '../harness/steps.ts'

const events = '/v1/sessions/sesn_1/events'
const chat = '/alpha_cli/v1beta/models/alpha-2.5-pro:generateContent'
const headers = { 'content-type': 'application/json', 'x-api-key': 'k', authorization: 'Bearer t' }

test.each([
  ['invalid events', events, '{"events":[', '{"type":"user.mesage"},', '5]}'],
  ['numbers instead of events', events, '{"events":[', '5,', '5]}'],
  ['invalid content blocks', events, '{"events":[{"type":"user.message","content":[', '5,', '5]}]}'],
  ['invalid turns', chat, '{"contents":[', '5,', '5]}'],
  ['nested arrays', events, '{"events":[{"type":"user.interrupt","a":', '[', ''],
  ['an unclosed string', events, '{"events":["', '\\"', ''],
])('W30: the emulator refuses a request full of %s in linear time', async (_, path, start, unit, end) => {
  const exchange = createEmulator({})
  await expectLinearWork(async (size) => {
    const body = Buffer.from(start + unit.repeat(size / unit.length) + end)
    const response = await exchange({ method: 'POST', url: `http://emulator${path}`, headers, body })
    expect(response.status).toBe(400)
    expect((await readBody(response.body)).length).toBeLessThan(10_000)
  })
})
