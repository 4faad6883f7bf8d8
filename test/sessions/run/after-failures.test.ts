import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readError } from '../../harness/run.ts'
import {
  bash,
  createSessionService,
  type Event,
  endTurn,
  type PostRule,
  running,
  type ScriptEvents,
  type SessionScript,
  says,
  shown,
  waitsFor,
} from '../../harness/session-service.ts'

const spent: Event = { type: 'session.usage', usage: { input_tokens: 1000, output_tokens: 0 } }

function removeLocks(cwd: string): void {
  for (const file of readdirSync(cwd, { recursive: true, encoding: 'utf8' }))
    if (file.endsWith('.parley-lock')) rmSync(join(cwd, file))
}

test.each(['user.message', 'user.interrupt'])(
  'events run repeats no %s after it lost its lock',
  async (type) => {
    const fault = { status: 429, headers: { 'retry-after': '20' } }
    const service: ReturnType<typeof createSessionService> = createSessionService({
      posts: [
        { type, nth: 1, fault, act: () => removeLocks(service.cwd) },
        { type: 'user.message', next: [running, spent] },
      ],
    })
    const flags = '--audit a.jsonl --max-total-tokens 10 --deadline 1h'.split(' ')
    await service.run(['events', 'run', 'go', ...flags])
    expect(service.posts.filter(([event]) => event?.type === type)).toHaveLength(1)
  },
)

test('after a reset, events run finds its reply in the list, although no list is JSON for 10 s', async () => {
  let isBusy = false
  const reply: PostRule = {
    type: 'user.tool_confirmation',
    fault: 'reset',
    isAccepted: true,
    posted: { streamed: 'never' },
    act() {
      isBusy = true
      void service.timers.wait(10_000).then(() => {
        isBusy = false
      })
    },
    next: [shown(running, { after: 15_000 }), says('done'), endTurn],
  }
  const service: ReturnType<typeof createSessionService> = createWaitingSession({
    posts: [reply],
    lists: [{ when: () => isBusy, fault: { status: 200, body: '<html>busy</html>' } }],
  })
  const argv = ['events', 'run', 'go', '--last', '--policy', 'allow.json', '--audit', 'a.jsonl']
  expect(await service.run(argv)).toMatchObject({ code: 0, out: 'done\n' })
})

const allowing = ['events', 'run', 'go', '--policy', 'allow.json', '--audit', 'a.jsonl', '--deadline', '1h']

/** Creates a session whose agent waits for a reply to t1 after the task, or sends the events of `work`. */
function createWaitingSession({ work = [running, bash('t1'), waitsFor('t1')], ...script }: WaitingScript) {
  const posts = [{ type: 'user.message', next: work }, ...(script.posts ?? [])]
  return createSessionService({ ...script, posts })
}
type WaitingScript = Omit<SessionScript, 'posts'> & { work?: ScriptEvents; posts?: readonly PostRule[] }

test('events run waits for the Retry-After of a 503 before it repeats its last list', async () => {
  const fault = { status: 503, headers: { 'retry-after': '5' } }
  const isLast = () => service.events.some(({ type }) => type === endTurn.type)
  let failed = 0
  const service = createWaitingSession({
    work: [running, says('done'), shown(endTurn, { streamed: 10 })],
    streams: [{ omits: ({ type }) => type === 'agent.message' }],
    lists: [{ when: () => isLast() && failed < 2, act: () => failed++, fault }],
  })
  const { code, out } = await service.run(['events', 'run', 'go', '--last', '--deadline', '1h'])
  expect({ code, out }).toEqual({ code: 0, out: 'done\n' })
  const [first = 0, second = 0, third = 0] = service.requests
    .filter(({ kind }) => kind === 'list')
    .slice(-3)
    .map(({ at }) => at)
  expect([second - first >= 5_000, third - second >= 5_000]).toEqual([true, true])
})

test('if events run interrupts at a limit, it reports that a reply without a response may have arrived', async () => {
  const service: ReturnType<typeof createSessionService> = createWaitingSession({
    posts: [
      { type: 'user.tool_confirmation', fault: 'stall', act: () => service.add(running, spent) },
      { type: 'user.interrupt' },
    ],
  })
  const { code, err } = await service.run([...allowing, '--max-total-tokens', '10'])
  expect({ code }).toEqual({ code: 15 })
  expect(err).toContain(
    'parley: the answer to t1 was sent, but it is not known whether it arrived: check with ',
  )
  expect(err).not.toContain('not answered by this run')
  const lines = service.lines('a.jsonl').filter(({ toolUse }) => toolUse === 't1')
  expect(lines.map(({ event }) => event)).toEqual(['decision', 'sent', 'unknown'])
})

test.each([
  ['may have arrived if the turn ends by itself', [says('done'), endTurn], true],
  ['counts as arrived once the session shows it', [{ type: 'user.interrupt' }, endTurn], false],
])('an interrupt of events run that gets no response %s', async (_, end, isUnknown) => {
  const service = createWaitingSession({
    work: [running, spent, shown(running, { after: 3_000 }), ...end],
    posts: [{ type: 'user.interrupt', fault: 'reset', isAccepted: false }],
  })
  const { code, err } = await service.run([...allowing, '--max-total-tokens', '10'])
  expect({ code }).toEqual({ code: 15 })
  const warning = 'an interrupt was sent, but it is not known whether it arrived; it may stop the next task'
  expect(err.includes(warning)).toBe(isUnknown)
})

const resuming = ['events', 'run', 'go', '--audit', 'a.jsonl', '--errors', 'json']

test.each([
  ['list', 'events run', 401, 3, resuming],
  ['list', 'events run', 403, 3, resuming],
  ['list', 'events run', 402, 5, resuming],
  ['stream', 'events run', 401, 3, resuming],
  ['list', 'events send --follow', 401, 3, ['events', 'send', 'go', '--follow', '--errors', 'json']],
])('if a %s of %s after the task gets a %i, the exit code is %i', async (kind, _, status, exit, argv) => {
  const isSent = () => service.posts.length > 0
  const rule = { when: isSent, fault: { status } }
  const service: ReturnType<typeof createSessionService> = createSessionService({
    posts: [{ next: [running, shown(says('done'), { after: 60_000 }), endTurn] }],
    lists: kind === 'list' ? [rule] : [],
    streams: kind === 'list' ? [] : [rule, { cutAfter: 1 }],
  })
  const { code, err } = await service.run([...argv, '--deadline', '1h'])
  const error = readError(err)
  expect([code, error.sent, error.retry]).toEqual([exit, 'yes', 'look-first'])
  const fixes = error.hints.filter((hint: string) => hint.includes('refused secret is from'))
  expect(fixes).toHaveLength(status === 402 ? 0 : 1)
})

const acceptedBehind503 = (): readonly PostRule[] => [
  {
    nth: 1,
    fault: { status: 503, headers: { 'retry-after': '1' } },
    isAccepted: true,
    next: [running, shown(says('done'), { after: 20_000 }), endTurn],
  },
  { fault: { status: 400 } },
]

test('a rerun with --audit resumes a task that the service may have accepted despite a 503 and a later refusal', async () => {
  const service = createSessionService({ posts: acceptedBehind503() })
  const argv = ['events', 'run', 'go', '--last', '--audit', 'a.jsonl', '--deadline', '1h']
  const refused = await service.run([...argv, '--errors', 'json'])
  const error = readError(refused.err)
  const hints = [expect.stringContaining('the task may have been accepted: ')]
  expect([refused.code, error.retry, error.hints]).toEqual([4, 'look-first', hints])
  const resumed = await service.run(argv)
  expect([resumed.code, resumed.out, service.posts.length], resumed.err).toEqual([0, 'done\n', 2])
})

test('events send reports that an event may have been accepted if its repetition after a 503 is refused', async () => {
  const service = createSessionService({ posts: acceptedBehind503() })
  const { code, err } = await service.run(['events', 'send', 'go'])
  expect([code, err]).toEqual([4, expect.stringContaining('the event may have been accepted: check')])
})
