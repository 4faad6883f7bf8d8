import { expect, test } from 'vitest'
import { SessionState } from '../../src/sessions/session-state.ts'
import { expectLinearWork } from '../harness/steps.ts'

const listIds = (size: number) => Array.from({ length: size / 16 }, (_, index) => `t${index}`)
const use = (id: string) => ({ type: 'agent.tool_use', id, evaluated_permission: 'ask' })
const confirm = (id: string) => ({ type: 'user.tool_confirmation', tool_use_id: id, result: 'allow' })
const idle = (ids?: string[]) => ({
  type: 'session.status_idle',
  stop_reason: { type: 'requires_action', event_ids: ids },
})

test.each([
  ['replies to many tool uses of an idle event', (ids: string[]) => [idle(ids), ...ids.map(confirm)]],
  ['replies to many tool uses that no event lists', (ids: string[]) => [idle(), ...ids.map(confirm)]],
  [
    'many interrupts of the tool uses of an idle event',
    (ids: string[]) => [idle(ids), ...ids.map(() => ({ type: 'user.interrupt' }))],
  ],
])('parley computes the state of a session in linear time after %s', async (_, create) => {
  await expectLinearWork((size) => {
    const ids = listIds(size)
    const state = new SessionState()
    for (const event of [...ids.map(use), ...create(ids)]) state.add(event)
    expect(state.pending).toEqual([])
  })
})
