import { expect, test } from 'vitest'
import { createPolicyPauser, decideByPolicy, readPolicy } from '../../src/sessions/policy/policy.ts'
import { parseToolUse } from '../../src/sessions/policy/tool-use.ts'

/** Returns a policy whose rules have a pattern that is slow to match. */
const createSlowPolicy = (decision: string, count: number) => {
  const rule = { tool: 'bash', input: { command: `${'*a'.repeat(19)}*b` }, decision }
  return JSON.stringify({ rules: Array(count).fill(rule) })
}

test.each([
  ['10 deny rules with a command of 3 MiB', 'deny', 10, 3 * 2 ** 20],
  ['1,000 allow rules with a command of 98,000 characters', 'allow', 1000, 98_000],
])('parley pauses about every 4 Mi characters while it compares %s', async (_, decision, count, length) => {
  const policy = await readPolicy(createSlowPolicy(decision, count), 'policy.json')
  const input = { command: 'a'.repeat(length) }
  const use = parseToolUse(JSON.stringify({ type: 'agent.tool_use', name: 'bash', input }))
  let pauses = 0
  const pauser = createPolicyPauser(async () => void pauses++)
  expect(await decideByPolicy({ ...policy, pauser }, use)).toEqual({ decision: 'ask' })
  // The policy pauses only between rules, so a pause comes after at most 4 Mi characters and one rule.
  expect(pauses).toBeGreaterThanOrEqual(Math.floor((count * length) / (2 ** 22 + length)))
  let left = 2
  const failingPauser = createPolicyPauser(async () => {
    if (left-- === 0) throw new Error('over')
  })
  await expect(decideByPolicy({ ...policy, pauser: failingPauser }, use)).rejects.toThrow('over')
})
