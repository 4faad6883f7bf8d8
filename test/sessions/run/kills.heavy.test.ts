import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createRandom } from '../../../src/emulator/random.ts'
import { start } from '../../harness/process.ts'
import { answered, argv, custom, forgetLock, serve, use } from './served-agent.ts'

const random = createRandom([process.env.SOAK_SEED ?? '1'])
const kills = Number(process.env.SOAK_KILLS ?? 6)

test(
  `Y64: killed at any moment, ${kills} times, the same line again sends and answers nothing twice (needs sh)`,
  async () => {
    for (let time = 0; time < kills; time++) {
      const { service, cwd, env } = await serve({
        rounds: [[use('t1'), custom('c1'), use('t2')], [custom('c2')], [use('t3')]],
      })
      const world = { cwd, env }
      // The command's runs are counted by the lines that it adds.
      const words = ['--tool', 'count=echo $PARLEY_TOOL_USE_ID >> runs; sleep 0.05', '--deadline', '6']
      let ended = { code: null as number | null, err: '' }
      for (let attempt = 0; ended.code === null; attempt++) {
        const { child, ended: end } = start([...argv, 'go', ...words], world)
        const timer = attempt < 4 ? setTimeout(() => child.kill('SIGKILL'), 150 + random() * 500) : undefined
        ended = await end
        clearTimeout(timer)
        forgetLock(cwd)
      }
      expect([0, 10], ended.err).toContain(ended.code)
      const isDone = service.events.at(-1)?.type === 'session.status_idle' && service.taken.size === 5
      expect(ended.code, ended.err).toBe(isDone ? 0 : 10)
      expect(service.tasks).toBeLessThanOrEqual(1)
      expect(answered(service).filter((text) => !text.endsWith(' 1'))).toEqual([])
      const runs = existsSync(join(cwd, 'runs'))
        ? readFileSync(join(cwd, 'runs'), 'utf8').trim().split('\n')
        : []
      expect(runs).toEqual([...new Set(runs)])
    }
  },
  kills * 120_000,
)
