import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { decideByPolicy } from '../../../src/sessions/policy/policy.ts'
import { readPolicy } from '../../../src/sessions/policy/policy-file.ts'
import { run, temporaryFolder } from '../../harness/run.ts'
import { growsWithItsText } from '../../harness/steps.ts'

test.each([
  ['*a*a*a*a*a*a*a*a*b', 'a'],
  [`*${'a'.repeat(900)}b`, 'a'],
  ['*..*', '..'],
  ['**a;*a;*a;*a;*b', 'a;'],
  [`**${'ab'.repeat(400)}*x`, 'ab;'],
])('the search for the pattern %.20s takes linear time', async (pattern, unit) => {
  for (const decision of ['allow', 'deny'] as const) {
    const rules = [{ tool: 'x', input: { t: pattern }, decision }]
    const policy = await readPolicy(JSON.stringify({ rules }), 'policy.json')
    await growsWithItsText(async (size) => {
      const input = { t: unit.repeat(size) }
      const call = { name: 'x', input, inputText: JSON.stringify(input), isMcp: false, isUnclear: false }
      expect(await decideByPolicy(policy, call)).toBeDefined()
    })
  }
})

test('many rules on many tool uses take time linear in the number of tool uses', async () => {
  const rules = Array.from({ length: 50 }, (_, index) => ({
    tool: index % 2 ? 'x' : `y${index}*`,
    input: { t: '*a*b*' },
    decision: 'allow',
  }))
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, 'p.json'), JSON.stringify({ rules }))
  await growsWithItsText(async (size) => {
    const uses = Array.from({ length: size / 16 }, (_, index) => ({
      id: `t${index}`,
      type: 'agent.tool_use',
      name: 'x',
      input: { t: 'a' },
    }))
    const idle = { type: 'session.status_idle', stop_reason: { event_ids: uses.map(({ id }) => id) } }
    writeFileSync(join(cwd, 'e.ndjson'), [...uses, idle].map((event) => JSON.stringify(event)).join('\n'))
    const { code } = await run(['policy', 'check', 'p.json', 'e.ndjson'], { cwd })
    expect(code).toBe(0)
  })
})
