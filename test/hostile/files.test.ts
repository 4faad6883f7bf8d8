import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { run, temporaryFolder } from '../harness/run.ts'
import { createAgentService, type Event } from '../sessions/run/agent-service.ts'

const custom = (id: string): Event => ({ id, type: 'agent.custom_tool_use', name: 'count', input: {} })

describe('an audit that somebody meddles with while a command runs stops the run (needs sh)', () => {
  test.each([
    ['removed', 'rm a.ndjson'],
    ['removed', 'mv a.ndjson b.ndjson'],
    ['replaced', 'cp a.ndjson b.ndjson; mv b.ndjson a.ndjson'],
    ['replaced', 'mv a.ndjson b.ndjson; ln -s b.ndjson a.ndjson'],
    ['made shorter', ': > a.ndjson'],
    ['made shorter', 'head -n 1 a.ndjson > b; cat b > a.ndjson'],
  ])('it is %s: %s', async (what, command) => {
    const cwd = temporaryFolder()
    const service = createAgentService({ rounds: [[custom('c1'), custom('c2')]] })
    const argv = ['events', 'run', 'go', '-s', 's1', '--no-stdin', '--audit', 'a.ndjson']
    const tool = `count=echo ran >> runs; ${command}`
    const { code, err } = await run([...argv, '--tool', tool], { cwd, exchange: service.exchange })
    expect(code).toBe(11)
    expect(err).toContain(`the audit file a.ndjson: it was ${what} while this run wrote it`)
    expect([service.posts, readFileSync(join(cwd, 'runs'), 'utf8')]).toEqual([0, 'ran\n'])
  })

  test('what another run of the same audit adds is no meddling', async () => {
    const cwd = temporaryFolder()
    const service = createAgentService({ rounds: [[custom('c1'), custom('c2')]] })
    const argv = ['events', 'run', 'go', '-s', 's1', '--no-stdin', '--audit', 'a.ndjson']
    const tool = `count=sed s/'"s1"'/'"s2"'/ a.ndjson > b; cat b >> a.ndjson`
    const { code } = await run([...argv, '--tool', tool], { cwd, exchange: service.exchange })
    expect([code, service.posts]).toEqual([0, 2])
  })
})
