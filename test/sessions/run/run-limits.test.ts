import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createSteadyClock } from '../../harness/clock.ts'
import type { Event } from '../../harness/events.ts'
import { custom, endTurn, interrupt, running, says, userSays, waitsFor } from '../../harness/events.ts'
import { createFastClock, type RunOptions, run } from '../../harness/run.ts'
import type { PostRule, ScriptEvents, SessionScript } from '../../harness/session-service.ts'
import { createSessionService, createSignalOptions, shown } from '../../harness/session-service.ts'

const usage = (tokens: number, cents?: number, currency = 'USD') => ({
  input_tokens: tokens,
  output_tokens: 0,
  ...(cents === undefined ? {} : { list_cost: { amount: String(cents), currency } }),
})
const request = (tokens: number): Event => ({ type: 'span.model_request_end', model_usage: usage(tokens) })
/** Total usage of the session. */
const used = (tokens: number, cents?: number, currency?: string): Event => ({
  type: 'session.usage',
  usage: usage(tokens, cents, currency),
})
const soFar = says('so far')

const limit = ['--max-total-tokens', '100']
const audited = [...limit, '--audit', 'a.ndjson']

interface Script extends Omit<SessionScript, 'posts'> {
  /** Rules that come before the default rules. By default, an interrupt ends the turn. */
  posts?: PostRule[]
  /** If true, the task is queued, so an idle event does not end it. */
  isQueued?: boolean
}

/** Creates a session whose agent sends `work` after the task, until an interrupt ends the turn. */
function open(work: ScriptEvents, { posts = [], isQueued = false, ...script }: Script = {}) {
  const posted = isQueued ? { processed: 'never' as const } : {}
  const service = createSessionService({
    session: () => ({ status: 404 }),
    ...script,
    posts: [
      ...posts,
      { type: 'user.interrupt', response: 'no data', next: [endTurn] },
      { type: 'user.message', response: 'no data', posted, next: [running, ...work] },
    ],
  })
  return Object.assign(service, {
    runTask: (flags: string[] = limit, options?: RunOptions) =>
      service.run(['events', 'run', 'Do it', '--no-stdin', '--report', 'report.json', ...flags], options),
    countInterrupts: () => service.posts.filter(([event]) => event?.type === 'user.interrupt').length,
    listAuditEvents: () => service.lines('a.ndjson').map(({ event }) => event),
    /** Returns the events about a tool use in the audit file. */
    listSteps: (id: string) =>
      service.lines('a.ndjson').flatMap(({ toolUse, event }) => (toolUse === id ? [event] : [])),
  })
}

const firstInterrupt = (rule: PostRule): PostRule => ({ type: 'user.interrupt', nth: 1, ...rule })

test('events run over --max-total-tokens interrupts the session once, prints the later events, and exits with 15', async () => {
  const service = open([soFar, request(50), request(60)], {
    posts: [firstInterrupt({ next: [says('a late word'), endTurn] })],
  })
  const { code, out, err } = await service.runTask()
  expect([code, service.countInterrupts(), out]).toEqual([15, 1, expect.stringContaining('a late word\n')])
  expect(err.match(/the run used 110 tokens, and --max-total-tokens is 100/g)).toHaveLength(1)
  const resume = ['-s', 's1', '--no-stdin', '--report', 'report.json', '--max-total-tokens', '100']
  expect(err).toContain(`parley events run 'Go on' ${resume.join(' ')}\n`)
  expect(service.report()).toMatchObject({
    exit: 15,
    kind: 'stopped',
    sent: 'yes',
    retry: 'never',
    resume: ['events', 'run', 'Go on', ...resume],
    usage: { inputTokens: 110, outputTokens: 0, totalTokens: 110 },
    cost: null,
    sessionUsage: null,
    sessionCost: null,
  })
})

test('events run writes an interrupt to the audit file before it posts the interrupt', async () => {
  let before: Record<string, unknown> | undefined
  const readAudit = () => {
    before = service.lines('a.ndjson').at(-1)
  }
  const posts = [firstInterrupt({ act: readAudit, next: [endTurn] })]
  const service: ReturnType<typeof open> = open([request(200)], { posts })
  expect((await service.runTask(audited)).code).toBe(15)
  expect(before).toMatchObject({ session: 's1', toolUse: null, event: 'interrupt' })
  expect(service.listAuditEvents().filter((event) => event === 'interrupt')).toHaveLength(1)
})

const working = [request(200)]
const waiting = [custom('t1'), used(200), waitsFor('t1')]
const notAccepted = /still waits for an answer to t1, because the service/
test.each<[string, ScriptEvents, PostRule, number, RegExp]>([
  ['a lost response in a working session', working, { fault: 'reset' }, 1, /--max-total-tokens is 100;/],
  ['a 429 in a working session', working, { fault: { status: 429 } }, 2, /--max-total-tokens is 100\n/],
  ['a lost response in a waiting session', waiting, { fault: 'reset' }, 1, /not known whether it arrived/],
  ['a 400 in a waiting session', waiting, { fault: { status: 400 } }, 1, notAccepted],
  ['no idle event in a waiting session', waiting, { next: [] }, 1, /--max-total-tokens is 100\n/],
])('events run at its limit exits with 15 and repeats an interrupt only after a 429: %s', async (...row) => {
  const [, work, rule, count, text] = row
  const service = open(work, { posts: [firstInterrupt(rule)] })
  const { code, err } = await service.runTask()
  expect([code, service.countInterrupts()]).toEqual([15, count])
  expect(err).toMatch(text)
})

const limited = { status: 429, headers: { 'retry-after': '20' } }

test('events run prints the answer and does not repeat its interrupt if the turn ends during the wait of Retry-After', async () => {
  const work = [soFar, request(200), shown(endTurn, { after: 5_000 })]
  const service = open(work, { posts: [firstInterrupt({ fault: limited })] })
  const { code, out, err } = await service.runTask([...audited, '--last'])
  expect([code, out, service.countInterrupts()]).toEqual([0, 'so far\n', 1])
  expect(err).toContain('--max-total-tokens is 100; the agent has already finished\n')
  // The recorded refusal lets a later run interrupt its own turn.
  expect(service.listAuditEvents()).toEqual(['sent', 'accepted', 'interrupt', 'refused', 'done'])
})

test('events run prints the answer if the service refuses its interrupt because the turn has just ended', async () => {
  const service = open([soFar, request(200), shown(endTurn, { after: 1_200 })], {
    // The refusal arrives while parley reads the list after the idle event.
    latencyMs: 700,
    posts: [firstInterrupt({ fault: { status: 400 } })],
  })
  const { code, out, err } = await service.runTask([...limit, '--last'])
  expect([code, out, service.countInterrupts()], err).toEqual([0, 'so far\n', 1])
  expect(err).toContain('--max-total-tokens is 100; the agent has already finished\n')
})

test('events run exits with 15 at once if its interrupt is refused, and a rerun interrupts again', async () => {
  const service = open([request(200)], {
    posts: [firstInterrupt({ fault: { status: 400 } })],
    streams: [{ nth: 1 }, { act: () => setImmediate(() => service.add(request(200))) }],
  })
  const { code, err } = await service.runTask(audited)
  expect(code).toBe(15)
  expect(err).toContain('the session continues, because the service did not accept the interrupt')
  expect(err).not.toContain('broke off')
  expect(service.requests.at(-1)?.at).toBeLessThan(10_000)
  const again = await service.run(['events', 'run', '--no-stdin', ...audited])
  expect([again.code, service.countInterrupts()], again.err).toEqual([15, 2])
})

test.each<[string, ScriptEvents, isQueued: boolean, number, string, number]>([
  ['the turn ends by itself', [soFar, used(200), endTurn], false, 0, 'so far\n', 0],
  ['the session works again', [used(200), endTurn, running, request(50), used(200)], true, 15, '', 1],
])('events run over a limit interrupts only a working agent: %s', async (_, work, isQueued, ...expected) => {
  const service = open(work, { isQueued })
  const { code, out, err } = await service.runTask([...limit, '--last', '-q'])
  expect([code, out, service.countInterrupts()]).toEqual(expected)
  const end = code === 0 ? '; the agent has already finished' : ''
  expect(err).toContain(`the run used 200 tokens, and --max-total-tokens is 100${end}`)
})

test('events run over its limit starts no --tool command, but saves the result of a running one (needs sh)', async () => {
  const ids = ['c1', 'c2', 'c3']
  const isBegun = () => existsSync(join(service.cwd, 'c2'))
  const service: ReturnType<typeof open> = open([...ids.map((id) => custom(id)), waitsFor(...ids)], {
    // This clock advances while the command runs, so that the run queries the session meanwhile.
    timers: createFastClock(),
    session: () => ({ usage: usage(1, isBegun() ? 900 : 1) }),
    posts: [
      firstInterrupt({ act: () => writeFileSync(join(service.cwd, 'interrupted'), ''), next: [endTurn] }),
    ],
  })
  const isFirst = '[ "$PARLEY_TOOL_USE_ID" = c1 ]'
  const command = `touch "$PARLEY_TOOL_USE_ID"; ${isFirst} || until [ -e interrupted ]; do sleep 0.05; done; echo done`
  const flags = ['--max-cost', '1', '--audit', 'a.ndjson', '--tool', `count=${command}`]
  expect([(await service.runTask(flags)).code, service.countInterrupts()]).toEqual([15, 1])
  const results = service.events.filter(({ type }) => type === 'user.custom_tool_result')
  expect(results.map(({ custom_tool_use_id: id }) => id)).toEqual(['c1'])
  expect(service.listSteps('c2')).toEqual(['decision', 'start', 'end'])
  expect(service.listSteps('c3')).toEqual(['decision'])
})

test('events run starts no --tool command if a limit is reached while it reads a list before the command', async () => {
  const service: ReturnType<typeof open> = open([custom('c1'), custom('c2'), waitsFor('c1', 'c2')], {
    // The first result takes so long that the run reads a list before the second command.
    latencyMs: 1_500,
    lists: [{ when: () => service.posts.length === 2, act: () => service.add(used(200)) }],
  })
  await service.runTask([...limit, '--tool', 'count=touch "$PARLEY_TOOL_USE_ID"'])
  expect(['c1', 'c2'].map((id) => existsSync(join(service.cwd, id)))).toEqual([true, false])
})

test('at a limit, events run ends a --tool command 30 s after the interrupt, even if --tool-timeout is longer', async () => {
  // The default clock stops while a command runs, so the 30 s would never pass.
  const timers = createSteadyClock(50)
  let interruptedAt = Infinity
  const act = () => {
    interruptedAt = timers.now()
  }
  const service: ReturnType<typeof open> = open([custom('t1'), waitsFor('t1')], {
    timers,
    posts: [firstInterrupt({ act })],
    session: () => ({ id: 's1', status: 'idle', usage: usage(service.posts.length * 1000) }),
  })
  await service.runTask([...limit, '--tool', 'count=sleep 300', '--tool-timeout', '1h'])
  expect(service.posts.at(-1)).toEqual([interrupt])
  expect((timers.now() - interruptedAt) / 1000).toBeLessThan(60)
})

test('events run does not repeat a refused reply after a limit is reached (needs sh)', async () => {
  const type = 'user.custom_tool_result'
  const service: ReturnType<typeof open> = open([custom('c1'), waitsFor('c1')], {
    posts: [{ type, fault: limited, act: () => service.add(used(200)) }],
  })
  const { code } = await service.runTask([...audited, '--tool', 'count=echo done'])
  expect([code, service.posts.filter(([event]) => event?.type === type).length]).toEqual([15, 1])
  expect(service.listSteps('c1').slice(0, 5)).toEqual(['decision', 'start', 'end', 'sent', 'refused'])
})

test.each([
  ['during', 'to resume:', 'look-first'],
  ['after', 'the session was sent an interrupt; to resume:', 'never'],
] as const)('after a signal %s an interrupt, `resume` keeps the limit', async (moment, words, expected) => {
  let printed = ''
  const signal = (now: string) => {
    if (now === moment) printed ||= sendSignal()
  }
  const { options, sendSignal } = createSignalOptions((text) => {
    if (text.includes('late')) signal('after')
  })
  const service = open([used(200)], {
    posts: [firstInterrupt({ act: () => signal('during'), next: [says('late'), endTurn] })],
  })
  await service.runTask([...limit, '--errors', 'json'], options)
  const { message, resume, retry } = JSON.parse(printed).error
  expect(message).toContain(words)
  expect(message).toContain('--max-total-tokens 100')
  expect({ retry, resume }).toEqual({ retry: expected, resume: expect.arrayContaining(limit) })
  expect(service.report()).toMatchObject({ kind: 'signal', retry, resume })
})

test('after its interrupt, events run finds the idle event in the list although the stream stays silent', async () => {
  const service = open([soFar, request(200)], {
    defaultVisibility: { streamed: 'never' },
    posts: [firstInterrupt({ response: 'no data', next: [shown(endTurn, { after: 1_500 })] })],
  })
  const { code, err } = await service.runTask()
  expect([code, service.countInterrupts()]).toEqual([15, 1])
  expect(err).toContain('--max-total-tokens is 100\n')
  expect(service.requests.at(-1)?.at).toBeLessThan(10_000)
})

const before: Event[] = [running, { ...endTurn, id: 'r0' }]
const listed: Event[] = [userSays('x'), ...before, userSays('Do it')]

/** Resumes a task. According to the audit file, an earlier run has posted an interrupt. */
async function resume(history: Event[], flags: string[], since: ScriptEvents = []) {
  const service = open([], { history, streams: [{ act: () => setImmediate(() => service.add(...since)) }] })
  const time = new Date(service.timers.wallTime()).toISOString()
  const line = { time, session: 's1', toolUse: null, event: 'interrupt', rest: 'r0' }
  service.write('a.ndjson', `${JSON.stringify(line)}\n`)
  const argv = 'events run -s s1 --no-stdin --audit a.ndjson --errors json'.split(' ')
  const ended = await service.run([...argv, ...flags])
  const posts = service.requests.filter(({ kind }) => kind === 'post').map(({ at }) => at)
  return { ...ended, posts }
}

test.each<[string, Event[]]>([
  ['the list omits the events of clients', [...before, running, soFar, endTurn]],
  ['the list shows the interrupt', [...listed, running, soFar, interrupt, endTurn]],
])('events run exits with 15 if an earlier run interrupted the turn: %s', async (_, history) => {
  const { code, out, err, posts } = await resume(history, ['--last'])
  expect({ code, out, posts }).toEqual({ code: 15, out: '', posts: [] })
  const { retry, resume: command } = JSON.parse(err).error
  expect([retry, ...command.slice(0, 5)]).toEqual(['never', 'events', 'run', 'Go on', '-s', 's1'])
})

test('events run ignores the interrupt of an earlier run if the list has client events, but no interrupt', async () => {
  const { code, out } = await resume([...listed, running, soFar, endTurn], ['--last'])
  expect({ code, out }).toEqual({ code: 0, out: 'so far\n' })
})

test('events run at its limit interrupts the session after 1 s, although an earlier run has interrupted it', async () => {
  const { code, err, posts } = await resume([...listed, running, interrupt], limit, [request(200)])
  expect([code, posts.length], err).toEqual([15, 1])
  expect(posts[0]).toBeLessThan(5_000)
})

test("--max-cost queries the session's cost while the session works, and interrupts", async () => {
  let queries = 0
  const service = open([soFar, running], { session: () => ({ usage: usage(10, ++queries * 100) }) })
  const { code, err } = await service.runTask(['--max-cost', '2.5'])
  expect([code, service.countInterrupts(), queries]).toEqual([15, 1, 3])
  expect(err).toContain('the run cost $3.00, and --max-cost is 2.5')
  const cost = { amount: '300', currency: 'USD' }
  expect(service.report()).toMatchObject({ cost, sessionCost: cost })
})

test.each(['0', '-1', '1e3', '.', '', '٣'])('events run exits with 2 for --max-cost %j', async (amount) => {
  const { code, requests } = await run(['events', 'run', 'x', '-s', 's', `--max-cost=${amount}`])
  expect([code, requests]).toEqual([2, []])
})

test('the report has the usage and cost of the run and of the session, and a terminal shows those of the run', async () => {
  const history = [{ type: 'user.message' }, running, used(1000, 250), endTurn]
  const service = open([soFar, used(13_282, 437), endTurn], { history })
  const { code, err } = await service.runTask([], { tty: ['stderr'] })
  expect([code, err]).toEqual([0, expect.stringContaining('— 12,282 tokens in · 0 out · $1.87')])
  expect(service.report()).toMatchObject({
    usage: { inputTokens: 12_282, outputTokens: 0, totalTokens: 12_282 },
    cost: { amount: '187', currency: 'USD' },
    sessionUsage: { inputTokens: 13_282, totalTokens: 13_282 },
    sessionCost: { amount: '437', currency: 'USD' },
  })
})

const reached = { type: 'session.status_idle', stop_reason: { type: 'budget_reached' } }

test('events run and follow print commands that raise or remove a used-up budget', async () => {
  const service = open([soFar, used(10), reached])
  for (const { code, err } of [await service.runTask([]), await service.run(['events', 'follow'])]) {
    expect(code).toBe(13)
    expect(err).toContain('s1 stopped: budget_reached, its budget is used up\n')
    const budget = '{"type":"limit","max_list_cost":{"amount":"AMOUNT","currency":"CURRENCY"}}'
    expect(err).toContain(
      `used up\n  to raise it to AMOUNT in minor units, such as cents: parley api agents /v1/sessions/s1 --set 'budget=${budget}'\n`,
    )
    expect(err).toContain('  to remove it: parley api agents /v1/sessions/s1 --set budget=null\n')
  }
  expect((await service.runTask([])).err).toContain('parley events run -s s1 --no-stdin')
})
