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
  ['answers to a long list of tool uses', (ids: string[]) => [idle(ids), ...ids.map(confirm)]],
  ['answers to many tool uses without a list', (ids: string[]) => [idle(), ...ids.map(confirm)]],
  [
    'many interrupts of a long list of tool uses',
    (ids: string[]) => [idle(ids), ...ids.map(() => ({ type: 'user.interrupt' }))],
  ],
])('the state of a session takes linear time for %s', async (_, create) => {
  await expectLinearWork((size) => {
    const ids = listIds(size)
    const state = new SessionState()
    for (const event of [...ids.map(use), ...create(ids)]) state.add(event)
    expect(state.pending).toEqual([])
  })
})
