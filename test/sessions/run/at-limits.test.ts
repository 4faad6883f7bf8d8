import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { createSteadyClock } from '../../harness/clock.ts'
import {
  createSessionService,
  type Event,
  endTurn,
  running,
  says,
  waitsFor,
} from '../../harness/session-service.ts'

const spent: Event = { type: 'session.usage', usage: { input_tokens: 1000, output_tokens: 0 } }
const custom = (id: string, name: string): Event => ({
  id,
  type: 'agent.custom_tool_use',
  name,
  input: {},
})
const limited = ['events', 'run', 'do it', '--max-total-tokens', '10', '--audit', 'a.jsonl']

test('events run ends a --tool command 30 s after its interrupt, even if --tool-timeout is longer', async () => {
  // The clock of the service would stop while a command runs.
  const timers = createSteadyClock(50)
  let interruptedAt = Infinity
  const service: ReturnType<typeof createSessionService> = createSessionService({
    timers,
    posts: [
      { type: 'user.message', next: [running, custom('t1', 'slow'), waitsFor('t1')] },
      {
        type: 'user.interrupt',
        act: () => {
          interruptedAt = timers.now()
        },
      },
    ],
    session: () => ({
      id: 's1',
      status: 'idle',
      usage: { input_tokens: service.posts.length * 1000, output_tokens: 0 },
    }),
  })
  const { err } = await service.run([...limited, '--tool', 'slow=sleep 300', '--tool-timeout', '1h'])
  expect(service.posts.at(-1), err).toEqual([{ type: 'user.interrupt' }])
  expect((timers.now() - interruptedAt) / 1000, err).toBeLessThan(60)
})

test('events run starts no --tool command if a limit is reached while it reads a list', async () => {
  const service: ReturnType<typeof createSessionService> = createSessionService({
    posts: [
      {
        type: 'user.message',
        next: [running, custom('t1', 'one'), custom('t2', 'two'), waitsFor('t1', 't2')],
      },
      { type: 'user.interrupt', next: [endTurn] },
    ],
  })
  // The first result takes so long that the run reads a list before the second command. Meanwhile the stream
  // shows the usage.
  let isSpent = false
  const exchange: typeof service.exchange = async (request, onSent) => {
    if (request.method === 'POST' && service.posts.length === 1) await service.timers.wait(1500)
    if (request.method === 'GET' && service.posts.length === 2 && !isSpent) {
      isSpent = true
      service.add(spent)
      await service.timers.wait(500)
    }
    return service.exchange(request, onSent)
  }
  const tools = ['--tool', 'one=touch one', '--tool', 'two=touch two']
  const { err } = await service.run([...limited, ...tools], { exchange })
  expect(
    ['one', 'two'].map((name) => existsSync(join(service.cwd, name))),
    err,
  ).toEqual([true, false])
})

test('events run --last saves the answer if stdout fails', async () => {
  const service = createSessionService({
    posts: [{ type: 'user.message', next: [running, says('the paid answer'), endTurn] }],
  })
  const write = (_chunk: Buffer, _encoding: string, done: (error: Error) => void) =>
    done(Object.assign(new Error(), { code: 'ENOSPC' }))
  const stdout = { isTerminal: false, open: () => new Writable({ write }), writeSync: () => 0 }
  const world = { stdout, env: { TMPDIR: service.cwd } }
  const { code, err } = await service.run(['events', 'run', 'do it', '--last'], world)
  const files = readdirSync(service.cwd).filter((name) => name.startsWith('parley-'))
  const saved = files.map((name) => readFileSync(join(service.cwd, name), 'utf8'))
  expect({ code, saved }, err).toEqual({ code: 11, saved: ['the paid answer'] })
})
