import { expect, test } from 'vitest'
import { SessionState } from '../../src/sessions/session-state.ts'

// A regular expression over such a long string overflows the stack, so the comparison must not use one.
test('parley compares two inputs of 16 million characters of the same tool use without a stack overflow', () => {
  const long = 'a\\n'.repeat(8e6)
  const state = new SessionState()
  for (const input of [`{"a":"${long}"}`, `{"a": "${long}"}`]) {
    const text = `{"id":"t1","type":"agent.tool_use","name":"bash","input":${input}}`
    state.add(JSON.parse(text), text)
  }
  expect(state.getToolUse('t1')?.isContradicted ?? false).toBe(false)
})
