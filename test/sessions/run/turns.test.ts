import { expect, test } from 'vitest'
import type { Event } from '../../harness/events.ts'
import { bash, confirms, endTurn, running, says, userSays, waitsFor } from '../../harness/events.ts'
import { parseLines, readText } from '../../harness/run.ts'
import type { PostRule, ScriptEvents, SessionScript } from '../../harness/session-service.ts'
import { createSessionService, shown } from '../../harness/session-service.ts'

const task = ['events', 'run', 'do it', '--last', '--deadline', '300']

const results = [{ type: 'agent.tool_result', tool_use_id: 't1' }, says('the answer'), endTurn]
const begins = { type: 'user.message', next: [running, bash('t1'), waitsFor('t1')] }
const ends = { type: 'user.tool_result', next: results }
const withCommand = [...task, '--policy', 'allow.json', '--tool', 'bash=echo done']

test.each<[string, PostRule]>([
  ['the stream shows the confirmation before its response', { before: [confirms('t1'), waitsFor('t1')] }],
  ['the confirmation gets no response', { fault: 'reset', isAccepted: true, next: [waitsFor('t1')] }],
  ['the stream shows the next idle event after the response', { next: [waitsFor('t1')] }],
])('events run sends the result of an allowed tool use if %s', async (_, rule) => {
  const service = createSessionService({ posts: [begins, { type: confirms('t1').type, ...rule }, ends] })
  expect(await service.run(withCommand)).toMatchObject({ code: 0, out: 'the answer\n' })
  const types = [begins, confirms('t1'), ends].map(({ type }) => type)
  expect(service.posts.map(([event]) => event?.type)).toEqual(types)
})

const history = [userSays('theirs'), running, says('working')]
const theirs = [says('their answer'), endTurn]
const ours = [running, says('our answer'), endTurn]
const later = (event: Event) => shown(event, { after: 20_000 })
const queued = (processed: number | 'never', next: ScriptEvents) => ({ posted: { processed }, next })
const otherTurn = [bash('t1'), waitsFor('t1'), confirms('t1'), running, ...theirs]
const oneTurn = [shown(says('one answer'), { after: 2_000 }), endTurn]
test.each<[string, PostRule, number, string]>([
  ['exits with 8 if its turn has no message', queued(20_000, [...otherTurn, later(running), endTurn]), 8, ''],
  ['prints the answer of a turn that takes up its task at once', { next: oneTurn }, 0, 'one answer\n'],
  ['prints the answer of a turn that takes up its task later', queued(1_000, oneTurn), 0, 'one answer\n'],
  ['exits with 15 at the deadline if its task gets no turn', queued('never', theirs), 15, ''],
])('events run with a queued task %s', async (_, post, code, out) => {
  expect(await createSessionService({ history, posts: [post] }).run(task)).toMatchObject({ code, out })
})

const before = [userSays('before'), running, says('the answer before'), endTurn]
const now = [running, says('the answer'), endTurn]
const lag = { listed: 3_000 }

test('events run --audit prints the answer to its task when resumed, although the list lags', async () => {
  const service = createSessionService({
    history: before.map((event, i) => (i > 1 ? shown(event, { listed: 1_500 }) : event)),
    posts: [{ next: [shown(running, { after: 5_000 }), ...now.slice(1)] }],
    defaultVisibility: lag,
  })
  const audited = [...task.slice(0, 4), '--audit', 'audit', '--deadline']
  const cut = await service.run([...audited, '0.05'])
  expect([cut.code, service.posts.length]).toEqual([15, 1])
  expect(await service.run([...audited, '300'])).toMatchObject({ code: 0, out: 'the answer\n' })
})

test('events run without --audit prints no older answer when resumed while the session works', async () => {
  const late = [shown(says('the answer'), lag), shown(endTurn, { ...lag, streamed: 2_000 })]
  const service: ReturnType<typeof createSessionService> = createSessionService({
    history: [...before, shown(userSays('do it'), lag), shown(running, lag)],
    lists: [{ nth: 1, act: () => service.add(...late) }],
    defaultVisibility: lag,
    session: () => ({ id: 's1', type: 'session', status: 'running' }),
  })
  const { code, out } = await service.run(['events', 'run', '--last', '--deadline', '300'])
  expect([code, out]).toEqual([0, 'the answer\n'])
})

test.each([
  ['the audit file', ['--audit', 'audit']],
  ['--after', []],
])('events run exits with 15 at the deadline if no list shows the task of %s', async (_, words) => {
  const service = createSessionService({ posts: [{ next: now }], defaultVisibility: lag })
  const flags = [...words, '--report', 'r', '--deadline', '0.05']
  await service.run([...task.slice(0, 4), ...flags])
  const [{ resume: command }] = service.lines('r') as [{ resume: string[] }]
  const { code, err } = await service.run(command)
  expect(code, err).toBe(15)
  expect(service.lines('r')[0]).toMatchObject({ deadline: true, retry: 'later', resume: command })
  await service.timers.wait(lag.listed)
  const last = await service.run(command.map((word) => (word === '0.05' ? '300' : word)))
  expect(last).toMatchObject({ code: 0, out: 'the answer\n' })
  expect(service.posts).toHaveLength(1)
})

/** Runs a task until its deadline, and then executes the resume command of the report. */
async function resume(script: SessionScript, words = ['--last']) {
  const service = createSessionService({ history: before, ...script })
  const cut = await service.run(['events', 'run', 'do it', ...words, '--report', 'r', '--deadline', '0.05'])
  expect([cut.code, service.posts.length], cut.err).toEqual([15, 1])
  const [{ resume: command }] = service.lines('r') as [{ resume: string[] }]
  await service.timers.wait(1_500)
  const again = command.map((word) => (word === '0.05' ? '300' : word))
  return { ...(await service.run(again)), command, posts: service.posts, cwd: service.cwd }
}
const soon = [shown(running, { after: 1_000 }), ...now.slice(1)]

const twoMessages = [shown(running, { after: 1_000 }), says('early'), shown(says('late'), { after: 300 })]
test.each([
  ['--after ID', 'after the session became idle', []],
  ['--audit', 'after the session became idle', ['--audit', 'a']],
  ['--after ID', 'while the session works', [], 9_000],
  ['--audit', 'while the session works', ['--audit', 'a'], 9_000],
])('events run %s, resumed %s, prints each event after the task once', async (_, __, words, after = 0) => {
  const posts = [{ next: [...twoMessages, shown(endTurn, { after })] }]
  const { code, out, err } = await resume({ posts }, ['--raw', ...words])
  const events = parseLines(out) as Event[]
  expect([code, events.map(({ type }) => type)], err).toEqual([
    0,
    [running.type, 'agent.message', 'agent.message', endTurn.type],
  ])
})

test.each([
  ['--after ID', [], ['one', 'two', 'three']],
  ['--audit', ['--audit', 'a'], ['one', 'two', 'three']],
  ['--last', ['--last'], ['three']],
])('events run resumed without a task, with %s, prints all since its start', async (_, flags, texts) => {
  const service = createSessionService({ history: [...before, userSays('other'), running, says('zero')] })
  for (const [index, step] of [says('one'), says('two'), says('three'), endTurn].entries())
    void service.timers.wait(10_000 + 20_000 * index).then(() => service.add(step))
  const words = [...'events run --no-stdin --report r --deadline 15'.split(' '), ...flags]
  expect((await service.run(words)).code).toBe(15)
  await service.timers.wait(20_000)
  const [{ resume: command }] = service.lines('r') as [{ resume: string[] }]
  const { code, out } = await service.run(command.map((word) => (word === '15' ? '300' : word)))
  expect([code, out.match(/^[a-z]+$/gm)]).toEqual([0, texts])
})

test('events run --after ID prints the messages after ID as text, and with -o saves the last one', async () => {
  const posts = [{ next: [...twoMessages, endTurn] }]
  const { code, out, cwd } = await resume({ posts }, ['-o', 'answer.txt'])
  expect([code, out.match(/^(early|late)$/gm)]).toEqual([0, ['early', 'late']])
  expect(readText(cwd, 'answer.txt')).toBe('late\n')
})

test('events run --after ID reports that the session is idle if ID is the last event', async () => {
  const service = createSessionService({ history: before })
  const { code, out, err } = await service.run(['events', 'run', '--after', 'e4'])
  expect([code, out, err]).toEqual([0, '', expect.stringContaining('s1 is idle')])
})

const never = { listed: 'never', streamed: 'never' } as const
const unlisted = [{ response: 'other ids', posted: { listed: 'never' }, next: soon } as const]
test.each<[string, SessionScript, number, string]>([
  ['exits with 10 if the session never shows the id', { posts: [{ posted: never, next: [] }] }, 10, ''],
  ['needs no id if no list has events of clients', { history: ours, posts: unlisted }, 0, 'the answer\n'],
])('events run --after ID %s', async (_, script, exit, answer) => {
  const { code, out, err } = await resume(exit === 0 ? script : { ...script, defaultVisibility: never })
  expect([code, out, err.includes('e5')]).toEqual([exit, answer, exit !== 0])
})

test('events run without a task replies only to the unanswered tool uses of the last idle event', async () => {
  const history = [userSays('before'), running, bash('t1'), bash('t2'), waitsFor('t1', 't2'), confirms('t1')]
  const service = createSessionService({ history, posts: [{ next: [running, says('the answer'), endTurn] }] })
  const followed = await service.run(['events', 'follow', '--deadline', '60'])
  expect([followed.code, followed.err]).toEqual([12, expect.stringContaining('t2')])
  const { code, out } = await service.run('events run --last --policy allow.json --deadline 60'.split(' '))
  expect([code, out]).toEqual([0, 'the answer\n'])
  expect(service.posts.flat().map((event) => event.tool_use_id)).toEqual(['t2'])
})
