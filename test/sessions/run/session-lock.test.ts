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
import { expect, onTestFinished, test } from 'vitest'
import { realTimers } from '../../../src/timers.ts'
import { bash, custom, waitsFor } from '../../harness/events.ts'
import type { RunOptions } from '../../harness/run.ts'
import type { AgentScript } from '../../harness/session-service.ts'
import { always, atTerminal, createSignalOptions, openAgent } from '../../harness/session-service.ts'

/** Creates an agent on a real clock, and a function that runs parley on it. */
function open(script: AgentScript) {
  const agent = openAgent({ timers: realTimers, ...script })
  // Ends the command of `tool` also if the test fails.
  onTestFinished(() => agent.write('go', ''))
  const parley = (words: string[], options?: RunOptions) =>
    agent.run(['events', ...words, '--policy', 'p.json'], options)
  return { agent, cwd: agent.cwd, parley, runs: () => readFileSync(join(agent.cwd, 'runs'), 'utf8') }
}

/** A command that runs until the file `go` exists. */
const command = 'echo ran >> runs; until [ -e go ]; do sleep 0.01; done'
const tool = ['--tool', `count=${command}`, '--tool-timeout', '1h']

const until = async (isSo: () => boolean) => {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 1))
}

test('Y131: a second events run waits for the first run, even with another audit file, and then finds the work done (needs sh)', async () => {
  const { agent, cwd, parley, runs } = open({ rounds: [[custom('c1')], [custom('c2')]] })
  const first = parley(['run', 'do it', '-s', 's1', ...tool, '--audit', 'a'])
  await until(() => existsSync(join(cwd, 'runs')))
  const other = ['run', '-s', 's1', ...tool, '--audit', 'b']
  const second = parley(other)
  const late = await parley([...other, '--deadline', '1'])
  expect({ code: late.code, requests: late.requests }).toEqual({ code: 11, requests: [] })
  expect(late.err).toMatch(
    /^parley: session s1: the deadline passed while (another|it was locked).*\n {2}nothing was sent\n$/m,
  )
  writeFileSync(join(cwd, 'go'), '')
  expect([(await first).code, (await second).code]).toEqual([0, 0])
  expect(runs()).toBe('ran\nran\n')
  expect([...agent.acceptedReplies.values()].map(({ length }) => length)).toEqual([1, 1])
  expect(readdirSync(join(cwd, '.cache/parley'))).toEqual([])
})

test('Y131: events run locks each session of an address, and treats two forms of an address as one (needs sh)', async () => {
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

const script: AgentScript = { history: [custom('c1'), waitsFor('c1')], rounds: [] }
type Env = Record<string, string>
const argv = ['events', 'run', '-s', 's1', '--policy', 'p.json', '--tool', 'count=true']

test.each([
  ['the user has no home folder', { HOME: '', XDG_CACHE_HOME: '', LOCALAPPDATA: '' }],
  ['the cache folder is a symbolic link', { XDG_CACHE_HOME: 'LINKED' }],
  ['the parent of the cache folder is missing', { XDG_CACHE_HOME: 'missing/cache' }, 'missing: no such file'],
])(
  'Y132: events run continues without a lock if %s (needs POSIX files)',
  async (_, env: Env, reason = '') => {
    const agent = openAgent(script)
    const { cwd } = agent
    mkdirSync(join(cwd, 'LINKED'))
    symlinkSync(cwd, join(cwd, 'LINKED/parley'))
    const { XDG_CACHE_HOME: name } = env
    const options = { env: { ...env, ...(name ? { XDG_CACHE_HOME: join(cwd, name) } : {}) } }
    const { code, err } = await agent.run(argv, options)
    expect({ code, posts: agent.posts }).toEqual({ code: 0, posts: 1 })
    expect(err).toContain('parley: cannot lock s1, so two runs may work on it: no safe cache folder')
    expect(err).toContain(reason)
    expect((await agent.run([...argv, '-q'], options)).err).toBe('')
  },
)

/** Replaces the lock file of a session as a run does that finds the owner of the lock dead. */
function replaceLock(cwd: string): string {
  const [lock = ''] = readdirSync(join(cwd, '.cache/parley'))
  writeFileSync(join(cwd, '.cache/parley', `${lock}.new`), '')
  renameSync(join(cwd, '.cache/parley', `${lock}.new`), join(cwd, '.cache/parley', lock))
  return lock
}

test('events run that lost its lock file at a question prints that the answer was not sent', async () => {
  const agent = openAgent({ rounds: [[bash('t1')]], policy: always('ask') })
  async function* typed() {
    replaceLock(agent.cwd)
    yield 'y\n'
  }
  const { code, err } = await agent.runTask(undefined, atTerminal(typed()))
  expect({ code, posts: agent.posts, audit: agent.audit() }).toEqual({ code: 11, posts: 0, audit: [] })
  expect(err).toContain('another parley process took over its lock; your answer was not sent\n')
  expect(err).not.toContain('allowed')
})

test('Y133: events run posts nothing and starts no further command after it lost its lock file (needs sh)', async () => {
  const { agent, cwd, parley, runs } = open({ rounds: [[custom('c1')]] })
  const first = parley(['run', 'do it', '-s', 's1', ...tool])
  await until(() => existsSync(join(cwd, 'runs')))
  const lock = replaceLock(cwd)
  writeFileSync(join(cwd, 'go'), '')
  const { code, err } = await first
  expect({ code, posts: agent.posts, runs: runs() }).toEqual({ code: 11, posts: 0, runs: 'ran\n' })
  expect(err).toContain('session s1: another parley process took over its lock')
  expect(err).toContain('parley events run -s s1 --no-stdin')
  expect(readdirSync(join(cwd, '.cache/parley'))).toEqual([lock])
})

test.each([
  ['with a lock', '.cache'],
  ['without a lock (needs POSIX files)', 'p.json'],
])('Y133: events run %s posts nothing after a signal has started the cleanup', async (_, cache) => {
  const agent = openAgent({ rounds: [[bash('t1')]] })
  const { options, sendSignal } = createSignalOptions((text) => {
    if (text.includes('agent.tool_use')) sendSignal()
  })
  const env = { XDG_CACHE_HOME: join(agent.cwd, cache) }
  const { code } = await agent.run(['events', 'run', 'do it', '--policy', 'p.json'], { ...options, env })
  expect({ code, posts: agent.posts }).toEqual({ code: 11, posts: 0 })
})
