import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { listen } from '../../../src/emulator/listen.ts'
import { createRandom } from '../../../src/emulator/random.ts'
import { canRun, execute, start } from '../../harness/process.ts'
import { temporaryFolder } from '../../harness/run.ts'
import { canType, type } from '../../harness/typing.ts'
import { type AgentScript, type AgentService, createAgentService, type Event } from './agent-service.ts'

const closings: (() => void)[] = []
afterEach(() => {
  for (const close of closings.splice(0)) close()
})

/** A session service on a port, and a folder with a policy that allows everything. */
async function serve(script: AgentScript) {
  const service = createAgentService(script)
  const server = await listen({ port: 0, host: '127.0.0.1', exchange: service.exchange, onRequest() {} })
  closings.push(() => {
    server.close()
    server.closeAllConnections()
  })
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, 'p.json'), '{"rules":[],"default":{"decision":"allow"}}')
  return { service, cwd, env: { PARLEY_AGENTS_URL: `http://127.0.0.1:${server.port}` } }
}

const argv = ['events', 'run', '-s', 's1', '--policy', 'p.json', '--audit', 'a.ndjson']

const use = (id: string): Event => ({
  id,
  type: 'agent.tool_use',
  name: 'bash',
  input: {},
  evaluated_permission: 'ask',
})
const custom = (id: string): Event => ({ id, type: 'agent.custom_tool_use', name: 'count', input: {} })

/** Ids of tool uses, and how often each was answered. */
const answered = ({ taken }: AgentService) => [...taken].map(([id, answers]) => `${id} ${answers.length}`)

/** What a killed run leaves is otherwise waited for. */
const forgetLock = (cwd: string) => rmSync(join(cwd, 'a.ndjson.s1.lock'), { force: true })

const random = createRandom([process.env.SOAK_SEED ?? '1'])
const kills = Number(process.env.SOAK_KILLS ?? 6)

test(
  `Y64: killed at any moment, ${kills} times, and run again, it answers nothing twice`,
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
        const { child, ended: end } = start(
          [...argv, ...(service.tasks === 0 ? ['go'] : []), ...words],
          world,
        )
        const timer = attempt < 4 ? setTimeout(() => child.kill('SIGKILL'), 150 + random() * 500) : undefined
        ended = await end
        clearTimeout(timer)
        forgetLock(cwd)
      }
      expect([0, 10], ended.err).toContain(ended.code)
      const isDone = service.events.at(-1)?.type === 'session.status_idle' && service.taken.size === 5
      expect(ended.code, ended.err).toBe(isDone ? 0 : 10)
      expect(answered(service).filter((text) => !text.endsWith(' 1'))).toEqual([])
      const runs = existsSync(join(cwd, 'runs'))
        ? readFileSync(join(cwd, 'runs'), 'utf8').trim().split('\n')
        : []
      expect(runs).toEqual([...new Set(runs)])
    }
  },
  kills * 30_000,
)

test('Y64: killed while its answer was on the way, it does not send it again', async () => {
  const { service, cwd, env } = await serve({
    rounds: [[use('t1')]],
    fate: () => 'loses',
    onPost: () => void killed.child.kill('SIGKILL'),
  })
  const killed = start([...argv, 'go'], { cwd, env })
  expect((await killed.ended).signal).toBe('SIGKILL')
  forgetLock(cwd)
  const { code, err } = await execute([...argv, '--deadline', '2'], { cwd, env })
  expect({ code, posts: service.posts }).toEqual({ code: 10, posts: 1 })
  expect(err).toContain('the answer to t1')
})

test('Y67: the deadline passes while an answer is on the way: 10', async () => {
  const { service, cwd, env } = await serve({ rounds: [[use('t1')]], fate: () => 'stalls' })
  const { code, err } = await execute([...argv, 'go', '--deadline', '2'], { cwd, env })
  expect({ code, posts: service.posts }).toEqual({ code: 10, posts: 1 })
  expect(err).toContain('it is not known whether the answer to t1 arrived')
})

test.skipIf(!canRun('prlimit', '--version'))(
  'Y68: an audit that cannot be written any more is 11, and nothing is answered (needs prlimit)',
  async () => {
    const { service, cwd, env } = await serve({ rounds: [[use('t1')]] })
    const { code, err } = await execute([...argv, 'go'], { cwd, env, within: ['prlimit', '--fsize=100'] })
    expect({ code, posts: service.posts }).toEqual({ code: 11, posts: 0 })
    expect(err).toContain('the audit file a.ndjson: ')
    expect(err).toContain('to go on:\n  parley events run -s s1')
  },
)

test.each(['SIGINT', 'SIGTERM'] as const)(
  'Y65: %s ends the command too, and says how to go on',
  async (signal) => {
    const { service, cwd, env } = await serve({ rounds: [[custom('c1')]] })
    const command = 'count=trap "" TERM INT; (sleep 0.8; touch late) & touch begun; sleep 100'
    const { child, ended } = start([...argv, 'go', '--tool', command], { cwd, env })
    while (!existsSync(join(cwd, 'begun'))) await new Promise((resolve) => setTimeout(resolve, 10))
    child.kill(signal)
    const end = await ended
    expect(end.signal).toBe(signal)
    expect(end.err).toContain(
      'interrupted: the task was accepted; the session goes on; to go on:\n  parley events run -s s1 --no-stdin --policy p.json',
    )
    expect(service.posts).toBe(0)
    await new Promise((resolve) => setTimeout(resolve, 1000))
    expect(existsSync(join(cwd, 'late'))).toBe(false)
  },
)

test('Y65: a signal while an answer is sent says how to go on, too, with the flags that were given', async () => {
  let child: ReturnType<typeof start>['child'] | undefined
  const onPost = () => void child?.kill('SIGTERM')
  const { cwd, env } = await serve({ rounds: [[use('t1')]], fate: () => 'stalls', onPost })
  const started = start([...argv, '--no-stdin', 'go'], { cwd, env })
  child = started.child
  const { signal, err } = await started.ended
  expect(signal).toBe('SIGTERM')
  expect(err).toMatch(
    /^parley: interrupted: .*may have been .*; to go on:\n {2}parley events run -s s1 --no-stdin --policy p\.json --audit a\.ndjson$/m,
  )
})

test('Y66: a reader of stdout that goes away stops the printing only', async () => {
  const { service, cwd, env } = await serve({ rounds: [[use('t1')], [custom('c1')]] })
  const { child, ended } = start([...argv, 'go', '--tool', 'count=echo 1'], { cwd, env })
  child.stdout?.destroy()
  expect((await ended).code).toBe(0)
  expect(answered(service)).toEqual(['t1 1', 'c1 1'])
})

test.skipIf(!canType)('each question waits for its own answer, turn after turn (needs script)', async () => {
  const { service, cwd, env } = await serve({ rounds: [[use('t1')], [use('t2')]] })
  const command = '"$NODE" "$PARLEY" events run go -s s1'
  const { screen, code } = await type(
    command,
    cwd,
    [
      ['(t1)? [y/n] ', 'y\ny\n'],
      ['(t2)? [y/n] ', 'n\n'],
    ],
    { ...env, PARLEY_API_KEY: 'k' },
  )
  expect(code).toBe(14)
  expect([...service.taken.values()].flat().map(({ result }) => result)).toEqual(['allow', 'deny'])
  expect(screen).toContain('deny bash {} t2 (you)')
})
