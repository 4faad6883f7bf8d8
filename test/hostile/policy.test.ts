import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createPauser, decideByPolicy } from '../../src/sessions/policy/policy.ts'
import { readPolicy } from '../../src/sessions/policy/policy-file.ts'
import { createFastClock, run, temporaryFolder } from '../harness/run.ts'

const starry = (decision: string, count: number) =>
  JSON.stringify({
    rules: Array.from({ length: count }, () => ({
      tool: 'bash',
      input: { command: `${'*a'.repeat(19)}*b` },
      decision,
    })),
  })

const use = (command: string) => ({ id: 't1', type: 'agent.tool_use', name: 'bash', input: { command } })

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
    const pace = createPauser(async () => void pauses++)
    expect(await decideByPolicy(policy, call, pace)).toEqual({ decision: 'ask' })
    // One pause per 4 Mi characters, at most one rule earlier or later.
    expect(pauses).toBeGreaterThanOrEqual(Math.floor((count * length) / (2 ** 22 + length)))
    let left = 2
    const ending = createPauser(async () => {
      if (left-- === 0) throw new Error('over')
    })
    await expect(decideByPolicy(policy, call, ending)).rejects.toThrow('over')
  },
)

test('a deadline ends a long policy check with 9', async () => {
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, 'p.json'), starry('deny', 10))
  writeFileSync(join(cwd, 'e.ndjson'), `${JSON.stringify(use('a'.repeat(3 * 2 ** 20)))}\n`)
  let now = 0
  const timers = { ...createFastClock(), now: () => (now += 1000) }
  const { code, out, err } = await run(['policy', 'check', 'p.json', 'e.ndjson', '--deadline', '1'], {
    cwd,
    timers,
  })
  expect({ code, out }).toEqual({ code: 9, out: '' })
  expect(err).toContain('the deadline passed while the policy was checked')
})
