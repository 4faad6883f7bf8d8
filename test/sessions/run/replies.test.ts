import { expect, test } from 'vitest'
import {
  bash,
  confirms,
  createSessionService,
  custom,
  type Event,
  endTurn,
  type PostRule,
  running,
  says,
  waitsFor,
} from '../../harness/session-service.ts'

const line = ['events', 'run', 'go', '--last', '--policy', 'allow.json', '--audit', 'audit.ndjson']

/** The agent accepts the task and waits for a reply to t1. */
const waits = { type: 'user.message', next: [running, bash('t1'), waitsFor('t1')] }
const allowed = confirms('t1')
const worked = [running, says('done'), endTurn]

const fails = { type: allowed.type, nth: 1, fault: { status: 500 } } as const
const again = { type: allowed.type, next: worked }
const report = ['--report', 'report.json']

test('if a confirmation gets a 500 and no list shows it, events run continues once the session no longer waits', async () => {
  const hidden = { listed: 'never', streamed: 'never' } as const
  const { run, replies, requests } = createSessionService({
    posts: [waits, { ...fails, isAccepted: true, posted: hidden, next: worked }],
  })
  const { code, out } = await run(line)
  expect({ code, out, replies: replies() }).toEqual({ code: 0, out: 'done\n', replies: [[allowed]] })
  expect(requests.at(-1)?.at).toBeLessThan(5000)
})

test('events run waits at most 1 s for the response to a reply that the session shows', async () => {
  const stalls = { type: allowed.type, fault: 'stall', isAccepted: true, next: worked } as const
  const service = createSessionService({ posts: [waits, stalls] })
  const { code, out } = await service.run(line)
  expect({ code, out, replies: service.replies() }).toEqual({ code: 0, out: 'done\n', replies: [[allowed]] })
  expect(service.requests.at(-1)?.at).toBeLessThan(2000)
  const steps = service.lines('audit.ndjson').map(({ event }) => event)
  expect(steps).toEqual(['sent', 'accepted', 'decision', 'sent', 'unknown', 'accepted', 'done'])
})

test.each([
  ['ours\n', 'accepted', 2000, ''],
  ['theirs', 'answered-elsewhere', Infinity, 'c1 is not answered by this run: it already has another result'],
])('if the session shows the result %j, ours is %s (needs sh)', async (text, event, limitMs, warning) => {
  const result = {
    type: 'user.custom_tool_result',
    custom_tool_use_id: 'c1',
    content: [{ type: 'text', text }],
  }
  const service = createSessionService({
    posts: [
      { type: 'user.message', next: [running, custom('c1'), waitsFor('c1')] },
      { type: result.type, fault: 'stall', before: [result, ...worked] },
    ],
  })
  const { code, err } = await service.run([...line, '--tool', 'count=echo ours', '--deadline', '8'])
  expect({ code, replies: service.replies().length }).toEqual({ code: 0, replies: 1 })
  expect(service.lines('audit.ndjson').at(-2)).toMatchObject({ event, toolUse: 'c1' })
  expect(service.requests.at(-1)?.at).toBeLessThan(limitMs)
  expect(err).toContain(warning)
})

test('at the deadline, a reply that only the stream shows counts as accepted', async () => {
  const posted = { listed: 'never', streamed: 3500 } as const
  const stalls = { type: allowed.type, fault: 'stall', isAccepted: true, posted } as const
  const service: ReturnType<typeof createSessionService> = createSessionService({
    posts: [waits, stalls],
    lists: [{ when: () => service.replies().length > 0, fault: 'stall' }],
  })
  const { code, err } = await service.run([...line, '--deadline', '4'])
  expect({ code, posts: service.replies().length }, err).toEqual({ code: 15, posts: 1 })
  expect(err).not.toContain('not known')
  expect(service.lines('audit.ndjson').at(-1)).toMatchObject({ event: 'accepted', toolUse: 't1' })
})

/** Creates a session in which these events follow 2 s after the first reply, which gets a 500. */
function openFailing(since: Event[], posts: PostRule[] = []) {
  const act = () => void service.timers.wait(2000).then(() => service.add(...since))
  const service: ReturnType<typeof createSessionService> = createSessionService({
    posts: [waits, { ...fails, act }, ...posts, again],
  })
  return service
}

test('Y52: after a 500, events run repeats a confirmation 5 s after a newer idle event lists the tool use', async () => {
  const service = openFailing([waitsFor('t1')])
  const { code, out } = await service.run(line)
  expect([code, out, service.replies()]).toEqual([0, 'done\n', [[allowed], [allowed]]])
  const [, , second] = service.requests.filter(({ kind }) => kind === 'post')
  expect(second?.at).toBeGreaterThan(7000)
})

test('if no idle event follows a reply that got a 500, events run exits with 10 and a resume command after 30 s', async () => {
  const service = createSessionService({ posts: [waits, fails, again] })
  const { run, replies, requests } = service
  const first = await run([...line, ...report, '--deadline', '10m'])
  expect({ code: first.code, replies: replies() }, first.err).toEqual({ code: 10, replies: [[allowed]] })
  expect(first.err).toMatch(/^parley: it is not known whether the answer to t1 arrived: .*500$/m)
  expect(first.err).toContain('answer with: parley events confirm -s s1 t1 --allow\n')
  expect(requests.at(-1)?.at).toBeLessThan(31_000)
  const session = ['-s', 's1', '--no-stdin']
  const resume = ['events', 'run', ...session, ...line.slice(3), ...report, '--deadline', '10m']
  expect(service.lines('report.json')).toMatchObject([{ retry: 'look-first', sent: 'unknown', resume }])
  const second = await run(resume)
  expect({ code: second.code, replies: replies() }, second.err).toEqual({ code: 10, replies: [[allowed]] })
  expect(requests.at(-1)?.at).toBeLessThan(40_000)
  expect((await run(['events', 'confirm', 't1', '--allow'])).code).toBe(0)
  const third = await run(resume)
  expect([third.code, third.out, replies().length], third.err).toEqual([0, 'done\n', 2])
})

test.each([401, 404, 409])(
  'a reply that the service refuses with %d leaves its tool use open',
  async (status) => {
    const service = createSessionService({ posts: [waits, { ...fails, fault: { status } }] })
    const { err } = await service.run([...line, ...report])
    const { toolUses } = service.report()
    expect(toolUses, err).toMatchObject({ allowed: 0, denied: 0, run: 0, open: 1 })
    const hint = '\n  the task was accepted\n  the refused secret is from PARLEY_API_KEY'
    expect(err.includes(hint), err).toBe(status === 401)
  },
)

test('while the delivery of a reply is unknown, events run replies to the remaining tool uses', async () => {
  const other = confirms('t2')
  const since = [bash('t2'), waitsFor('t1', 't2')]
  const service = openFailing(since, [{ type: allowed.type, nth: 2, next: [waitsFor('t1')] }])
  const { code, out } = await service.run(line)
  expect([code, out, service.replies()]).toEqual([0, 'done\n', [[allowed], [other], [allowed]]])
  const [, , second] = service.requests.filter(({ kind }) => kind === 'post')
  expect(second?.at).toBeLessThan(5000)
})
