import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { start } from '../../harness/process.ts'
import { createRandom } from '../../harness/random.ts'
import { bash, custom, says } from '../../harness/session-service.ts'
import type { Event } from './agent-service.ts'
import { argv, countReplies, isDone, removeLocks, serve } from './served-agent.ts'

const random = createRandom([process.env.SOAK_SEED ?? process.env.TEST_SEED ?? '1'])
/** The last message matches the schema. */
const rounds = (): Event[][] => [
  [says('I begin'), bash('t1'), custom('c1')],
  [bash('t2')],
  [says('once more'), bash('t3')],
  [says('{"verdict": 1.0}')],
]

const flags = [
  ...['--tool', 'count=echo $PARLEY_TOOL_USE_ID >> runs; sleep 0.02', '--deadline', '30'],
  ...['--schema', 's.json', '-o', 'a.json', '--last'],
]

/** Returns the resume command that a run with these flags prints after SIGTERM. */
async function readResumeCommand(flags: string[]): Promise<string[]> {
  // The agent never stops working, so SIGTERM always arrives during the run.
  const { service, cwd, env } = await serve({ rounds: [], end: { type: 'session.status_running' } })
  writeFileSync(join(cwd, 's.json'), '{"required":["verdict"]}')
  const { child, ended } = start([...argv, 'go', ...flags], { cwd, env })
  while (service.tasks === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  await new Promise((resolve) => setTimeout(resolve, 200))
  child.kill('SIGTERM')
  const { err } = await ended
  const [, line] = /^ *parley (events run .*)$/m.exec(err) ?? []
  const words = execFileSync('sh', ['-c', `printf '%s\\0' ${line}`], { encoding: 'utf8' })
  return words.split('\0').slice(0, -1)
}

const points = Number(process.env.SOAK_POINTS ?? 12)

test(
  `Y64: events run killed at ${points} points sends nothing twice if its resume command follows (needs sh)`,
  async () => {
    const resume = await readResumeCommand(flags)
    let killed = 0
    while (killed < points) {
      /** Number of requests until the kill. A run makes about fourteen. */
      let left = 0
      let strike = () => {}
      const { service, cwd, env } = await serve({ rounds: rounds() }, () => {
        if (--left === 0) setTimeout(() => strike(), random() * 40)
      })
      writeFileSync(join(cwd, 's.json'), '{"type":"object","required":["verdict"]}')
      let ended = { code: null as number | null, err: '' }
      for (let attempt = 0; ended.code === null; attempt++) {
        left = attempt < 5 ? 1 + Math.floor(random() * 8) : Infinity
        // With an audit file the same command resumes the run, too.
        const isSame = service.tasks === 0 || random() < 0.3
        const { child, ended: end } = start(isSame ? [...argv, 'go', ...flags] : resume, { cwd, env })
        strike = () => child.kill('SIGKILL')
        ended = await end
        strike = () => {}
        if (ended.code === null) killed++
        if (isDone(cwd)) ended = { ...ended, code: 0 }
        removeLocks(cwd)
        const written = existsSync(join(cwd, 'a.json')) ? readFileSync(join(cwd, 'a.json'), 'utf8') : ''
        expect(['', '{"verdict": 1.0}\n']).toContain(written)
      }
      const tasks = service.events.filter(({ type }) => type === 'user.message')
      // A task of unknown delivery (exit 10) may be missing.
      expect(ended.code === 10 ? [0, 1] : [1], ended.err).toContain(tasks.length)
      expect(countReplies(service).filter((text) => !text.endsWith(' 1'))).toEqual([])
      // A kill before the command's first action leaves no file.
      if (existsSync(join(cwd, 'runs'))) expect(readFileSync(join(cwd, 'runs'), 'utf8')).toBe('c1\n')
      // A kill before the response to a reply leaves its delivery unknown.
      if (ended.code === 10) {
        expect(ended.err).toContain('an earlier run')
        continue
      }
      expect(ended.code, ended.err).toBe(0)
      expect(countReplies(service)).toEqual(['t1 1', 'c1 1', 't2 1', 't3 1'])
      expect(readFileSync(join(cwd, 'a.json'), 'utf8')).toBe('{"verdict": 1.0}\n')
    }
  },
  points * 60_000,
)
