import { expect, test } from 'vitest'
import type { Context } from '../../../src/context.ts'
import { Deadline } from '../../../src/deadline.ts'
import { createEmulator } from '../../../src/emulator/emulator.ts'
import type { CliError } from '../../../src/errors.ts'
import type { Caller } from '../../../src/http/call.ts'
import { openFollower } from '../../../src/sessions/following/follower.ts'
import { realTimers } from '../../../src/timers.ts'
import { readBody } from '../../../src/wire/exchange.ts'

const parts = {
  params: { session: 'sesn_1' },
  headers: {},
  inspectCommand: '',
  deadline: new Deadline(realTimers),
}
const exchange = createEmulator({})
const url = 'https://agents.test/v1/sessions/sesn_1/events'
const headers = { 'x-api-key': 'k', 'content-type': 'application/json' }
const get = async (path: string) => ({
  ...(await exchange({ method: 'GET', url: url + path, headers })),
  attempts: 1,
  accept() {},
  fail: (error: unknown) => error as CliError,
})

/** Reads from the emulator's session without a network. */
const caller = {
  call: async (_, { query }, read) => read(await get(query ? `?${query}` : '')),
  open: async () => get('/stream'),
} as Pick<Caller, 'call' | 'open'> as Caller

async function send(...events: object[]): Promise<void> {
  const body = Buffer.from(JSON.stringify({ events }))
  const answer = await exchange({ method: 'POST', url, headers, body })
  expect(Buffer.from(await readBody(answer.body)).toString()).toContain('"data"')
}

test('a follower delivers the events that follow a reply to a tool use', async () => {
  const host = { timers: realTimers, stderr: { isTerminal: true } }
  const context = { messages: { note() {} }, host } as unknown as Context
  await send({ type: 'user.message', content: [{ type: 'text', text: 'use two tools' }] })
  const follower = await openFollower({ context, caller, parts })
  const { state } = follower
  const shown: string[] = []
  for await (const items of follower.readNewEvents()) {
    shown.push(...items.map(({ event }) => event.type).filter((type) => !/^span|usage$/.test(type)))
    if (state.stop?.kind !== 'waiting') continue
    const answers = state.stop.ids.map((id) => ({
      type: 'user.tool_confirmation',
      tool_use_id: id,
      result: 'allow',
    }))
    shown.push(`${answers.length} answers`)
    await send(...answers)
    for (const answer of answers) state.add(answer)
  }
  follower.close()
  expect(state.stop).toEqual({ kind: 'done', reason: 'end_turn' })
  expect(shown).toEqual([
    'session.status_running',
    'agent.message',
    'agent.tool_use',
    'agent.tool_use',
    'session.status_idle',
    '2 answers',
    'user.tool_confirmation',
    'user.tool_confirmation',
    'session.status_running',
    'agent.tool_result',
    'agent.tool_result',
    'agent.message',
    'session.status_idle',
  ])
})
