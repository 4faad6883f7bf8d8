import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { start } from '../harness/process.ts'
import { createRandom } from '../harness/random.ts'
import { parseLines, readText, temporaryFolder } from '../harness/run.ts'
import { getLockPath } from '../harness/session-service.ts'

const random = createRandom([process.env.SOAK_SEED ?? process.env.TEST_SEED ?? '1'])
const kills = Number(process.env.SOAK_DEMO_KILLS ?? 3)

/**
 * Program that kills its process before the nth change of a file, or halfway through that write, and counts
 * the changes.
 */
const killer = `
const fs = require('node:fs')
const { KILL_AT, KILLS_HALFWAY, KILL_COUNT } = process.env
let count = 0
for (const name of ['openSync', 'writeSync', 'renameSync', 'linkSync', 'rmSync', 'fsyncSync', 'mkdirSync']) {
  const act = fs[name]
  fs[name] = (...given) => {
    if (String(++count) === KILL_AT) {
      const [file, bytes] = given
      if (KILLS_HALFWAY && name === 'writeSync') act(file, Buffer.from(bytes).subarray(0, bytes.length >> 1))
      process.kill(process.pid, 'SIGKILL')
    }
    return act(...given)
  }
}
process.on('exit', () => KILL_COUNT && fs.appendFileSync(KILL_COUNT, String(count)))
`

/** Creates a home folder and a task that needs two replies. */
function open() {
  const cwd = temporaryFolder({
    'p.json': '{"rules":[],"default":{"decision":"allow"}}',
    'killer.cjs': killer,
  })
  const cache = join(cwd, 'cache')
  const parley = (words: string[], more: Record<string, string> = {}) => {
    const argv = ['events', ...words, '-s', 's1', '--profile', 'demo', '--no-stdin']
    const env = { XDG_CACHE_HOME: cache, LOCALAPPDATA: cache, NODE_DISABLE_COMPILE_CACHE: '1', ...more }
    return start(argv, { cwd, env }).ended
  }
  const task = 'use bash {"command":"ls"}\nthen use deploy {}'
  const read = (name: string) => (existsSync(join(cwd, name)) ? readText(cwd, name) : undefined)
  /**
   * Removes the locks of killed runs, because the next run would wait for them. Keeps the lock of the demo
   * sessions.
   */
  const removeLocks = () => {
    rmSync(join(cwd, getLockPath('a.ndjson')), { force: true })
    const folder = join(cache, 'parley')
    for (const name of existsSync(folder) ? readdirSync(folder) : [])
      if (name.endsWith('.parley-lock') && !name.startsWith('demo-sessions')) rmSync(join(folder, name))
  }
  return {
    read,
    removeLocks,
    list: () => parley(['list', '--raw']),
    run: (more?: Record<string, string>) =>
      parley(['run', task, '--policy', 'p.json', '--audit', 'a.ndjson'], {
        NODE_OPTIONS: `--require ${JSON.stringify(join(cwd, 'killer.cjs'))}`,
        ...more,
      }),
  }
}

test(
  `W34: the same command resumes a demo run that was killed at one of ${kills} file changes, and sends nothing twice (needs signals)`,
  async () => {
    const whole = open()
    expect((await whole.run({ KILL_COUNT: 'count' })).code).toBe(0)
    const changeCount = Number(whole.read('count'))
    const first = random() * (changeCount / kills)
    let survivors = 0
    for (let time = 0; time < kills; time++) {
      const { read, removeLocks, list, run } = open()
      const at = 1 + Math.floor((first + (time * changeCount) / kills) % changeCount)
      const killed = await run({ KILL_AT: String(at), KILLS_HALFWAY: random() < 0.5 ? 'yes' : '' })
      const where = `killed at ${at} of ${changeCount}: ${killed.err}`
      if (killed.signal === null) {
        // This run read less often than the counted run, so it finished before the kill.
        expect(killed.code, where).toBe(0)
        survivors++
        continue
      }
      expect(killed.signal, where).toBe('SIGKILL')
      const kept = read('cache/parley/demo-sessions.json')
      expect(() => kept === undefined || JSON.parse(kept), where).not.toThrow()
      const seen = await list()
      expect({ code: seen.code, err: seen.err.match(/damaged|new sessions/) }, where).toEqual({
        code: 0,
        err: null,
      })
      removeLocks()
      // After a finished task, the same command would start another task.
      const isDone = read('a.ndjson')?.includes('"event":"done"') ?? false
      const ended = isDone ? { code: 0, err: '' } : await run()
      expect([0, 10], `${where}\nthen: ${ended.err}`).toContain(ended.code)
      const events = parseLines((await list()).out)
      const countOf = (type: string, id?: string) =>
        events.filter((event) => event.type === type && (id === undefined || event.tool_use_id === id)).length
      const uses = events.filter(({ type }) => type === 'agent.tool_use').map(({ id }) => id)
      const replies = uses.map((id) => countOf('user.tool_confirmation', id))
      expect(new Set(events.map(({ id }) => id)).size, where).toBe(events.length)
      if (ended.code === 0) {
        expect({ tasks: countOf('user.message'), replies }, where).toEqual({ tasks: 1, replies: [1, 1] })
        expect(events.at(-1).stop_reason, where).toEqual({ type: 'end_turn' })
        continue
      }
      // The audit file has a request that was about to be sent, so the run cannot exclude that it arrived.
      expect(ended.err, where).toContain('an earlier run')
      expect(countOf('user.message'), where).toBeLessThan(2)
      expect(Math.max(0, ...replies), where).toBeLessThan(2)
    }
    expect(survivors).toBeLessThanOrEqual(kills / 4)
  },
  kills * 120_000,
)
