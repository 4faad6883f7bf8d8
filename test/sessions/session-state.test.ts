import { expect, test } from 'vitest'
import { SessionState } from '../../src/sessions/session-state.ts'

const use = { id: 't1', type: 'agent.tool_use', name: 'bash', input: {} }
const answer = { id: 'a1', type: 'user.tool_confirmation', tool_use_id: 't1', result: 'allow' }
const done = { id: 'i2', type: 'session.status_idle', stop_reason: { type: 'end_turn' } }

test('an answer that is shown again, after what came of it, starts no work', () => {
  const state = new SessionState()
  for (const event of [use, answer, done, answer]) state.add(event)
  expect(state.stop).toEqual({ kind: 'done', reason: 'end_turn' })
})

test('a new answer does', () => {
  const state = new SessionState()
  for (const event of [use, done, answer]) state.add(event)
  expect(state.stop).toBeUndefined()
})

test('the text of a tool use is kept until it is answered', () => {
  const state = new SessionState()
  state.add(use, 'text')
  expect(state.toolUse('t1')?.text).toBe('text')
  state.add(answer)
  expect(state.toolUse('t1')?.text).toBeUndefined()
})
