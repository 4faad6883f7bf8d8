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

test.each([
  ['end_turn', ['t1'], { kind: 'waiting', ids: ['t1'] }],
  ['a_reason_of_tomorrow', ['t1'], { kind: 'waiting', ids: ['t1'] }],
  ['end_turn', [], { kind: 'done', reason: 'end_turn' }],
  ['budget_reached', ['t1'], { kind: 'stuck', reason: 'budget_reached' }],
])('the ids that a rest lists wait, whatever its type says: %s and %j', (type, event_ids, stop) => {
  const state = new SessionState()
  for (const event of [use, { ...done, stop_reason: { type, event_ids } }]) state.add(event)
  expect(state.stop).toMatchObject(stop)
})

const long = 'a\\n'.repeat(8e6)

test.each([
  ['the same', '{"a":1,"b":[true,"x"]}', '{"a":1,"b":[true,"x"]}', false],
  [
    'keys in another order, other blanks and escapes',
    '{"a":1,"b":"x"}',
    '{ "b" : "\\u0078", "a" : 1 }',
    false,
  ],
  ['another value', '{"a":1}', '{"a":2}', true],
  ['one more field', '{"a":1}', '{"a":1,"b":null}', true],
  [
    'two long numbers that JavaScript takes for one',
    '{"a":12345678901234567890}',
    '{"a":12345678901234567891}',
    true,
  ],
  ['a key that is there twice', '{"a":1}', '{"a":2,"a":1}', true],
  ['a prototype', '{"a":1}', '{"__proto__":{"a":1}}', true],
  ['a text of 16 million characters, spelled in two ways', `{"a":"${long}"}`, `{"a": "${long}"}`, false],
  [
    'a nesting of 100,000 levels',
    `${'['.repeat(1e5)}${']'.repeat(1e5)}`,
    `${'['.repeat(1e5)} ${']'.repeat(1e5)}`,
    true,
  ],
])('one id with two inputs is contradicted: %s', (_, one, other, isContradicted) => {
  const state = new SessionState()
  for (const input of [one, other]) {
    const text = `{"id":"t1","type":"agent.tool_use","name":"bash","input":${input}}`
    state.add(JSON.parse(text), text)
  }
  expect(state.toolUse('t1')?.isContradicted ?? false).toBe(isContradicted)
})
