import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startEmulatorServer } from '../../../src/emulator/server.ts'
import { realTimers } from '../../../src/timers.ts'
import { bash, custom, says } from '../../harness/events.ts'
import { execute, start } from '../../harness/process.ts'
import { type Agent, type AgentScript, openAgent } from '../../harness/session-service.ts'

/** Serves a session on a port, and creates a folder with a policy that allows everything. */
async function serve(script: AgentScript) {
  const service = openAgent({ timers: realTimers, ...script })
  const { exchange } = service
  const server = await startEmulatorServer({ port: 0, host: '127.0.0.1', exchange, onRequest() {} })
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const { cwd } = service
  const env = {
    PARLEY_AGENTS_URL: `http://127.0.0.1:${server.port}`,
    XDG_CACHE_HOME: join(cwd, 'cache'),
    NODE_OPTIONS: `--require ${JSON.stringify(join(import.meta.dirname, '../../harness/steady.cjs'))}`,
  }
  return { service, cwd, env }
}

const argv = ['events', 'run', '-s', 's1', '--policy', 'p.json', '--audit', 'a.ndjson']

/** Returns the ids of tool uses, each with its number of replies. */
const countReplies = ({ acceptedReplies }: Agent) =>
  [...acceptedReplies].map(([id, answers]) => `${id} ${answers.length}`)

const readState = (pid: string) =>
  spawnSync('ps', ['-o', 'stat=', '-p', pid], { encoding: 'utf8' }).stdout.trim()

test.each([
  ['the task is sent', 100, 0],
  ['the task is accepted', 250, 1],
  ['a tool use is answered', 400, 1],
])('Y68: events run exits with 11 if its audit is full when %s (needs prlimit)', async (_, size, tasks) => {
  const { service, cwd, env } = await serve({ rounds: [[bash('t1')]] })
  const { code, err } = await execute([...argv, 'go'], { cwd, env, within: ['prlimit', `--fsize=${size}`] })
  expect({ code, tasks: service.tasks, posts: service.posts }).toEqual({ code: 11, tasks, posts: 0 })
  expect(err).toContain('the audit file a.ndjson: ')
  expect(err.includes('to resume:\n  parley events run -s s1')).toBe(tasks > 0)
})

test.each(['SIGINT', 'SIGTERM'] as const)(
  'Y65: %s to events run, also twice, ends the --tool command and prints the resume command (needs ps and signals)',
  async (signal) => {
    const { service, cwd, env } = await serve({ rounds: [[custom('c1')]] })
    // While parley ends the command, the command sends parley the signal once more.
    const again = `trap "kill -s ${signal.slice(3)} $PPID" TERM`
    const command = `count=trap "" TERM INT; sleep 100 & echo $! > begun; ${again}; echo $$ >> begun; wait; wait`
    const { child, ended } = start([...argv, 'go', '--tool', command, '--report', 'r.json'], { cwd, env })
    const pids = () =>
      existsSync(join(cwd, 'begun')) ? readFileSync(join(cwd, 'begun'), 'utf8').split('\n').slice(0, -1) : []
    while (pids().length < 2) await new Promise((resolve) => setTimeout(resolve, 10))
    child.kill(signal)
    const end = await ended
    expect(end.signal).toBe(signal)
    expect(end.err).toContain(
      'interrupted: the task was accepted; the session waits for an answer; the command for count (c1) was started and did not finish, so its effect is unknown; the resume command answers with an error; to resume:\n  parley events run -s s1 --no-stdin --policy p.json',
    )
    expect(service.posts).toBe(0)
    expect(JSON.parse(readFileSync(join(cwd, 'r.json'), 'utf8')).kind).toBe('signal')
    // A killed process may stay a zombie until its parent waits for it.
    const isAlive = (pid: string) => /^[^Z\s]/.test(readState(pid))
    await expect.poll(() => pids().filter(isAlive)).toEqual([])
  },
)

test("Y149: after a signal during a reply, events run saves the agent's text and prints the resume command (needs signals)", async () => {
  const { cwd, env } = await serve({
    rounds: [[says('half'), bash('t1')]],
    outcome: () => 'stalls',
    onPost: () => void child.kill('SIGTERM'),
  })
  writeFileSync(join(cwd, 'a.txt'), 'old')
  const { child, ended } = start([...argv, '-o', 'a.txt', '--report', 'r.json', 'go'], { cwd, env })
  const { signal, err } = await ended
  expect(signal).toBe('SIGTERM')
  const outputs = ['--output', 'a.txt', '--report', 'r.json']
  const resume = [...argv.slice(0, 4), '--no-stdin', ...argv.slice(4), ...outputs]
  expect(err).toMatch(
    /^parley: interrupted: .*may have been .*; the received data is saved as a\.txt\.part; /m,
  )
  expect(err).toContain(`to resume:\n  parley ${resume.join(' ')}\n`)
  expect(JSON.parse(readFileSync(join(cwd, 'r.json'), 'utf8')).resume).toEqual(resume)
  expect(readFileSync(join(cwd, 'a.txt'), 'utf8')).toBe('old')
  expect(readFileSync(join(cwd, 'a.txt.part'), 'utf8')).toBe('half')
})

test('Y66: events run still replies to tool uses and ends with 0 after its stdout was closed', async () => {
  const { service, cwd, env } = await serve({ rounds: [[bash('t1')], [custom('c1')]] })
  const { child, ended } = start([...argv, 'go', '--tool', 'count=echo 1'], { cwd, env })
  child.stdout?.destroy()
  expect((await ended).code).toBe(0)
  expect(countReplies(service)).toEqual(['t1 1', 'c1 1'])
})
