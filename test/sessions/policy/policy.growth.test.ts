import { expect, test } from 'vitest'
import { decide } from '../../../src/sessions/policy/policy.ts'
import { readPolicy } from '../../../src/sessions/policy/policy-file.ts'
import { growsWithItsText } from '../../harness/steps.ts'

test.each([
  ['*a*a*a*a*a*a*a*a*b', 'a'],
  [`*${'a'.repeat(900)}b`, 'a'],
  ['*..*', '..'],
])('a pattern %.20s is looked for by work that grows as the text does', async (pattern, unit) => {
  for (const decision of ['allow', 'deny'] as const) {
    const rules = [{ tool: 'x', input: { t: pattern }, decision }]
    const policy = await readPolicy(JSON.stringify({ rules }), 'policy.json')
    await growsWithItsText((size) => {
      const input = { t: unit.repeat(size) }
      expect(decide(policy, { name: 'x', input, isMcp: false, isUnclear: false })).toBeDefined()
    })
  }
})
