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
/** The agent's last message matches the schema. */
const rounds = (): Event[][] => [
  [says('I begin'), bash('t1'), custom('c1')],
  [bash('t2')],
  [says('once more'), bash('t3')],
  [says('{"verdict": 1.0}')],
]

const flags = [
  ...['--tool', 'count=echo $PARLEY_TOOL_USE_ID >> runs; sleep 0.02', '--deadline', '6'],
  ...['--schema', 's.json', '-o', 'a.json', '--last'],
]

/** Returns the resume command that a run with these flags prints after SIGTERM. */
async function getResumeCommand(flags: string[]): Promise<string[]> {
  // The agent never stops working.
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

const points = Number(process.env.SOAK_POINTS ?? 20)

test(
  `Y64: events run killed at ${points} points sends nothing twice if its resume command runs (needs sh)`,
  async () => {
    const resume = await getResumeCommand(flags)
    let killed = 0
    while (killed < points) {
      // A run makes about fourteen requests.
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
      // The delivery of a task may stay unknown.
      expect(ended.code === 10 ? [0, 1] : [1], ended.err).toContain(tasks.length)
      expect(countReplies(service).filter((text) => !text.endsWith(' 1'))).toEqual([])
      // The kill may come before the command's first action.
      if (existsSync(join(cwd, 'runs'))) expect(readFileSync(join(cwd, 'runs'), 'utf8')).toBe('c1\n')
      // The delivery of a reply may stay unknown if the kill preceded its response.
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

/** Agent that works until it is interrupted. */
const endless = {
  rounds: [[bash('t1'), custom('c1')], [bash('t2')], [says('half')]],
  end: { type: 'session.status_running' },
}

const limited = [...flags.slice(0, 4), '--last', '--max-total-tokens', '400']

const interrupts = Number(process.env.SOAK_INTERRUPTS ?? 20)

test(
  `Y64: events run killed at ${interrupts} points near a limit interrupts at most once when resumed (needs sh)`,
  async () => {
    const resume = await getResumeCommand(limited)
    let killed = 0
    const ends: string[] = []
    while (killed < interrupts) {
      let left = 0
      let strike = () => {}
      const { service, cwd, env } = await serve(endless, () => {
        if (--left === 0) setTimeout(() => strike(), random() * 1100)
      })
      // A run counts only the usage since its start.
      let tokens = 0
      const work = setInterval(() => {
        const has = (wanted: string) => service.events.some(({ type }) => type === wanted)
        if (has('user.interrupt') || !has('agent.message')) return
        tokens += 500
        service.add({ type: 'session.usage', usage: { input_tokens: tokens } })
      }, 50)
      let ended = { code: null as number | null, err: '', out: '' }
      for (let attempt = 0; ended.code === null; attempt++) {
        left = attempt < 2 ? 3 + Math.floor(random() * 4) : Infinity
        const isNew = service.tasks === 0
        const { child, ended: end } = start(isNew ? [...argv, 'go', ...limited] : resume, { cwd, env })
        strike = () => child.kill('SIGKILL')
        ended = await end
        strike = () => {}
        if (ended.code === null) killed++
        removeLocks(cwd)
        expect(ended.out).toBe('')
      }
      clearInterval(work)
      const count = (type: string) => service.events.filter((event) => event.type === type).length
      expect([15, 10], ended.err).toContain(ended.code)
      // The delivery of a task may stay unknown.
      expect(count('user.message')).toBeLessThan(2)
      expect(count('user.interrupt'), ended.err).toBeLessThan(2)
      expect(countReplies(service).filter((text) => !text.endsWith(' 1'))).toEqual([])
      ends.push(`${ended.code} ${count('user.interrupt')}`)
    }
    expect(ends).toContain('15 1')
  },
  interrupts * 120_000,
)
