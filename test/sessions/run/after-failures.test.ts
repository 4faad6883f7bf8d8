import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  asks,
  bash,
  createSessionService,
  type Event,
  endTurn,
  running,
  says,
  shown,
  waitsFor,
} from '../../harness/session-service.ts'

const spent: Event = { type: 'session.usage', usage: { input_tokens: 1000, output_tokens: 0 } }

/** Runs a task whose lock is removed while the first request of this type waits for its retry. */
async function loseLockDuring(type: string) {
  const service: ReturnType<typeof createSessionService> = createSessionService({
    posts: [
      {
        of: type,
        nth: 1,
        fault: { status: 429, headers: { 'retry-after': '20' } },
        act() {
          const files = readdirSync(service.cwd, { recursive: true, encoding: 'utf8' })
          for (const file of files) if (file.endsWith('.parley-lock')) rmSync(join(service.cwd, file))
        },
      },
      { of: 'user.message', next: [running, spent] },
    ],
  })
  const argv = [
    'events',
    'run',
    'do it',
    '--audit',
    'a.jsonl',
    '--max-total-tokens',
    '10',
    '--deadline',
    '1h',
  ]
  const { code, err } = await service.run(argv)
  const posted = service.posts.filter(([event]) => event?.type === type).length
  return { code, posted, err }
}

test.each(['user.message', 'user.interrupt'])('a run that lost its lock posts no %s again', async (type) => {
  const { posted, err } = await loseLockDuring(type)
  expect(posted, err).toBe(1)
})

test('Retry-After of an old list does not delay a later stream', async () => {
  const service: ReturnType<typeof createSessionService> = createSessionService({
    history: [asks('go'), running],
    lists: [{ nth: 3, fault: { status: 503, headers: { 'retry-after': '120' } } }],
    streams: [{ nth: 1, cutAfter: 4, act: () => void play() }],
  })
  async function play() {
    const { timers, add } = service
    for (const text of ['one', 'two', 'three', 'four', 'five']) {
      await timers.wait(5_000)
      add(says(text))
    }
    await timers.wait(1_000)
    add(endTurn)
  }
  const { code, err } = await service.run(['events', 'follow', '--deadline', '1h'])
  expect({ code }, err).toEqual({ code: 0 })
  const [, second] = service.requests.filter(({ kind }) => kind === 'stream').map(({ at }) => at)
  expect(second).toBeLessThan(40_000)
})

test('a reply in doubt survives 10 s of lists that are not JSON', async () => {
  let since = Infinity
  const service: ReturnType<typeof createSessionService> = createSessionService({
    posts: [
      { of: 'user.message', next: [running, bash('t1'), waitsFor('t1')] },
      {
        of: 'user.tool_confirmation',
        fault: 'reset',
        isTaken: true,
        posted: { streamed: 'never' },
        act: () => {
          since = service.timers.now()
        },
        next: [shown(running, { after: 15_000 }), says('done'), endTurn],
      },
    ],
    lists: [
      {
        when: () => service.timers.now() < since + 10_000 && since < Infinity,
        fault: { status: 200, body: '<html>busy</html>' },
      },
    ],
  })
  service.write('allow.json', { rules: [], default: { decision: 'allow' } })
  const argv = ['events', 'run', 'go', '--last', '--policy', 'allow.json', '--audit', 'a.jsonl']
  const { code, out, err } = await service.run(argv)
  expect({ code, out }, err).toEqual({ code: 0, out: 'done\n' })
})
