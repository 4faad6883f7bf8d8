import { expect, test } from 'vitest'
import { createPolicyPauser, decideByPolicy } from '../../src/sessions/policy/policy.ts'
import { readPolicy } from '../../src/sessions/policy/policy-file.ts'

const starry = (decision: string, count: number) =>
  JSON.stringify({
    rules: Array.from({ length: count }, () => ({
      tool: 'bash',
      input: { command: `${'*a'.repeat(19)}*b` },
      decision,
    })),
  })

test.each([
  ['a command of 3 MiB, and rules that deny', 'deny', 10, 3 * 2 ** 20],
  ['a command of 98,000 characters, and rules that allow', 'allow', 1000, 98_000],
])(
  'policy check pauses regularly so that the process stays responsive: %s',
  async (_, decision, count, length) => {
    const policy = await readPolicy(starry(decision, count), 'policy.json')
    const input = { command: 'a'.repeat(length) }
    const call = { name: 'bash', input, inputText: JSON.stringify(input), isMcp: false, isUnclear: false }
    let pauses = 0
    const pace = createPolicyPauser(async () => void pauses++)
    expect(await decideByPolicy({ ...policy, pauser: pace }, call)).toEqual({ decision: 'ask' })
    // One pause per 4 Mi characters, at most one rule earlier or later.
    expect(pauses).toBeGreaterThanOrEqual(Math.floor((count * length) / (2 ** 22 + length)))
    let left = 2
    const ending = createPolicyPauser(async () => {
      if (left-- === 0) throw new Error('over')
    })
    await expect(decideByPolicy({ ...policy, pauser: ending }, call)).rejects.toThrow('over')
  },
)
