import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createPatternMatcher } from '../../../src/sessions/policy/pattern.ts'
import { run, temporaryFolder } from '../../harness/run.ts'
import { expectLinearWork } from '../../harness/steps.ts'

// Each text has the end and the literals of its pattern, because parley rejects other texts without a search.
test.each([
  ['*a*a*a*a*a*a*a*a*b', '*a*a*a*a*a*a*a*a*b', 'a', 'b'],
  ['*a{900}b', `*${'a'.repeat(900)}b`, 'a', 'b'],
  ['*..*', '*..*', '..', ''],
  ['**a;*a;*a;*a;*b', '**a;*a;*a;*a;*b', 'a;', 'b'],
  ['**a;*b*x', '**a;*b*x', 'a;', 'b;x'],
  ['**(ab){400}*x', `**${'ab'.repeat(400)}*x`, 'ab', 'x'],
])('parley matches the policy pattern %s in linear time', async (_, pattern, unit, end) => {
  for (const reach of ['narrow', 'any'] as const) {
    const matches = createPatternMatcher(pattern, reach)
    await expectLinearWork((size) => matches(unit.repeat(size) + end))
  }
})

test('policy check with 50 rules takes time linear in the number of tool uses', async () => {
  const rules = Array.from({ length: 50 }, (_, index) => ({
    tool: index % 2 ? 'x' : `y${index}*`,
    input: { t: '*a*b*' },
    decision: 'allow',
  }))
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, 'p.json'), JSON.stringify({ rules }))
  await expectLinearWork(async (size) => {
    const uses = Array.from({ length: size / 16 }, (_, index) => ({
      id: `t${index}`,
      type: 'agent.tool_use',
      name: 'x',
      input: { t: 'a' },
    }))
    const idle = { type: 'session.status_idle', stop_reason: { event_ids: uses.map(({ id }) => id) } }
    writeFileSync(join(cwd, 'e.ndjson'), [...uses, idle].map((event) => JSON.stringify(event)).join('\n'))
    expect(await run(['policy', 'check', 'p.json', 'e.ndjson'], { cwd })).toMatchObject({ code: 0 })
  })
})
