import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { describe, expect, onTestFinished, test } from 'vitest'
import { realTimers } from '../../../src/timers.ts'
import { createIdleClock } from '../../harness/clock.ts'
import { run, temporaryFolder } from '../../harness/run.ts'
import { bash, custom, waitsFor } from '../../harness/session-service.ts'
import { type AgentScript, createAgentService } from './agent-service.ts'

const clock = createIdleClock()

/** Creates a session, and a function that runs parley on it. `tool` runs until the file `go` exists. */
function open(script: AgentScript) {
  const service = createAgentService(script)
  const cwd = temporaryFolder()
  // Ends the command also if the test fails.
  onTestFinished(() => writeFileSync(join(cwd, 'go'), ''))
  writeFileSync(join(cwd, 'p.json'), '{"rules":[],"default":{"decision":"allow"}}')
  const parley = (words: string[], { env = {} as Record<string, string>, timers = realTimers } = {}) =>
    run(['events', ...words, '--policy', 'p.json'], {
      cwd,
      env,
      timers,
      stdin: '',
      exchange: service.exchange,
    })
  return { service, cwd, parley, runs: () => readFileSync(join(cwd, 'runs'), 'utf8') }
}

const tool = [
  ...['--tool', 'count=echo ran >> runs; until [ -e go ]; do sleep 0.01; done'],
  ...['--tool-timeout', '1h'],
]

const until = async (isSo: () => boolean) => {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 1))
}

describe('Y131: session that another events run works on', () => {
  test('a second events run waits for the first even with another audit file, and then finds the work done (needs sh)', async () => {
    const { service, cwd, parley, runs } = open({ rounds: [[custom('c1')], [custom('c2')]] })
    const first = parley(['run', 'do it', '-s', 's1', ...tool, '--audit', 'a'])
    await until(() => existsSync(join(cwd, 'runs')))
    const other = ['run', '-s', 's1', ...tool, '--audit', 'b']
    const second = parley(other)
    const late = await parley([...other, '--deadline', '1'])
    expect({ code: late.code, requests: late.requests }).toEqual({ code: 11, requests: [] })
    expect(late.err).toMatch(
      /^parley: session s1: another parley has locked it: if none is running, remove \S+\.parley-lock\n {2}nothing was sent\n$/,
    )
    writeFileSync(join(cwd, 'go'), '')
    expect([(await first).code, (await second).code]).toEqual([0, 0])
    expect(runs()).toBe('ran\nran\n')
    expect([...service.acceptedReplies.values()].map(({ length }) => length)).toEqual([1, 1])
    expect(readdirSync(join(cwd, '.cache/parley'))).toEqual([])
  })

  test('events run locks each session of an address, and treats two forms of an address as one (needs sh)', async () => {
    const { cwd, parley } = open({ rounds: [[custom('c1')]] })
    const first = parley(['run', 'do it', '-s', 's1', ...tool])
    await until(() => existsSync(join(cwd, 'runs')))
    const other = ['run', '-s', 's1', '--deadline', '1', '--agents-url']
    expect((await parley([...other, 'https://other.test'])).code).toBe(12)
    expect((await parley([...other, 'https://AGENTS.test:443/'])).code).toBe(11)
    expect((await parley(['run', '-s', 's2', '--deadline', '1'])).code).toBe(12)
    writeFileSync(join(cwd, 'go'), '')
    expect((await first).code).toBe(0)
  })
})

describe('Y132: lock file that cannot be created', () => {
  const script: AgentScript = { history: [custom('c1'), waitsFor('c1')], rounds: [], timers: clock }
  const argv = ['run', '-s', 's1', '--tool', 'count=true']

  test.each([
    ['the user has no home folder', { HOME: '', XDG_CACHE_HOME: '', LOCALAPPDATA: '' }, 'no cache folder'],
    ['the cache folder is a symbolic link', { XDG_CACHE_HOME: 'LINKED' }, 'it is not a folder'],
  ])(
    'events run prints a note and continues without a lock if %s (needs POSIX files)',
    async (_, env: Record<string, string>, why) => {
      const { service, cwd, parley } = open(script)
      writeFileSync(join(cwd, 'FILE'), '')
      mkdirSync(join(cwd, 'LINKED'))
      symlinkSync(cwd, join(cwd, 'LINKED/parley'))
      const { XDG_CACHE_HOME: name } = env
      const place = { ...env, ...(name ? { XDG_CACHE_HOME: join(cwd, name) } : {}) }
      const { code, err } = await parley(argv, { env: place, timers: clock })
      expect({ code, posts: service.posts }).toEqual({ code: 0, posts: 1 })
      expect(err).toContain('parley: cannot lock s1, so two runs may work on it: ')
      expect(err).toContain(why)
      expect((await parley([...argv, '-q'], { env: place, timers: clock })).err).toBe('')
    },
  )
})

test('Y133: events run posts nothing and starts no further command after it lost its lock file (needs sh)', async () => {
  const { service, cwd, parley, runs } = open({ rounds: [[custom('c1')]] })
  const first = parley(['run', 'do it', '-s', 's1', ...tool])
  await until(() => existsSync(join(cwd, 'runs')))
  const [lock = ''] = readdirSync(join(cwd, '.cache/parley'))
  writeFileSync(join(cwd, '.cache/parley', `${lock}.new`), '')
  // A run that finds the owner of a lock dead replaces the lock file in the same way.
  renameSync(join(cwd, '.cache/parley', `${lock}.new`), join(cwd, '.cache/parley', lock))
  writeFileSync(join(cwd, 'go'), '')
  const { code, err } = await first
  expect({ code, posts: service.posts, runs: runs() }).toEqual({ code: 11, posts: 0, runs: 'ran\n' })
  expect(err).toContain('session s1: another parley process has taken it over')
  expect(err).toContain('parley events run -s s1 --no-stdin')
  expect(readdirSync(join(cwd, '.cache/parley'))).toEqual([lock])
})

test.each([
  ['with a lock', '.cache'],
  ['without a lock (needs POSIX files)', 'p.json'],
])('Y133: events run %s posts nothing after a signal has begun its cleanup', async (_, cache) => {
  const { service, cwd } = open({ rounds: [[bash('t1')]] })
  let clean: (exit: number) => string = () => ''
  const shown = new Writable({
    write(chunk, _, done) {
      if (String(chunk).includes('agent.tool_use')) clean(143)
      done()
    },
  })
  const { code } = await run(['events', 'run', 'do it', '-s', 's1', '--no-stdin', '--policy', 'p.json'], {
    cwd,
    env: { XDG_CACHE_HOME: join(cwd, cache) },
    timers: clock,
    exchange: service.exchange,
    stdout: { isTerminal: false, open: () => shown, writeSync: () => 0 },
    onSignal(act) {
      clean = act
    },
  })
  expect({ code, posts: service.posts }).toEqual({ code: 11, posts: 0 })
})
