import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bash, confirms, custom, type Event, endTurn, running, says, waitsFor } from '../../harness/events.ts'
import { readError } from '../../harness/run.ts'
import type { PostRule, ScriptEvents, SessionScript } from '../../harness/session-service.ts'
import { createSessionService, shown } from '../../harness/session-service.ts'

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

test('events run waits at most 30 s for the response to a reply, and finds the reply in the list', async () => {
  const stalls = { type: allowed.type, fault: 'stall', isAccepted: true, next: worked } as const
  const service = createSessionService({ posts: [waits, stalls] })
  const startMs = service.timers.now()
  const { code, out } = await service.run(line)
  expect({ code, out, replies: service.replies() }).toEqual({ code: 0, out: 'done\n', replies: [[allowed]] })
  expect(service.timers.now() - startMs).toBeLessThan(40_000)
  const steps = service.lines('audit.ndjson').map(({ event }) => event)
  expect(steps).toEqual(['sent', 'accepted', 'decision', 'sent', 'unknown', 'accepted', 'done'])
})

test.each([
  ['ours\n', 'accepted', 2000, ''],
  ['theirs', 'answered-elsewhere', Infinity, 'c1 is not answered by this run: it already has another result'],
])(
  'events run records its result of unknown delivery by the result %j in the session, as %s (needs sh)',
  async (text, event, limitMs, warning) => {
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
  },
)

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

test('Y67: events run exits with 10 if its deadline passes while it sends a reply, and reports the sent requests', async () => {
  const service = createSessionService({ posts: [waits, { type: allowed.type, fault: 'stall' }] })
  const { code, err, requests } = await service.run([...line, ...report, '--deadline', '4'])
  expect([code, err]).toEqual([10, expect.stringContaining('not known whether the answer to t1 arrived')])
  expect(service.report()).toMatchObject({ deadline: true, sent: 'unknown', attempts: requests.length })
})

test('if no idle event follows a reply that got a 500, events run exits with 10 and a resume command after 30 s', async () => {
  const service = createSessionService({ posts: [waits, fails, again] })
  const { run, replies, requests } = service
  const first = await run([...line, ...report, '--deadline', '10m'])
  expect({ code: first.code, replies: replies() }, first.err).toEqual({ code: 10, replies: [[allowed]] })
  expect(first.err).toMatch(/^parley: it is not known whether the answer to t1 arrived: .*500$/m)
  expect(first.err).toContain('answer with: parley events confirm -s s1 t1 --allow\n')
  // The 30 s begin with the response, 10 ms after the reply.
  const repliedAt = requests.findLast(({ kind }) => kind === 'post')?.at ?? Number.NaN
  expect(requests.at(-1)?.at).toBeLessThan(repliedAt + 30_010)
  const session = ['-s', 's1', '--no-stdin']
  const resume = ['events', 'run', ...session, ...line.slice(3), ...report, '--deadline', '10m']
  const toolUses = { allowed: 0, open: 1 }
  expect(service.report()).toMatchObject({ retry: 'look-first', sent: 'unknown', resume, toolUses })
  const second = await run(resume)
  expect({ code: second.code, replies: replies() }, second.err).toEqual({ code: 10, replies: [[allowed]] })
  expect(requests.at(-1)?.at).toBeLessThan(40_000)
  expect((await run(['events', 'confirm', 't1', '--allow'])).code).toBe(0)
  const third = await run(resume)
  expect([third.code, third.out, replies().length], third.err).toEqual([0, 'done\n', 2])
})

test('if an allowed tool use waits for its result, the report counts it as allowed, and the failure counts all requests', async () => {
  const service = createSessionService({ posts: [waits, { type: allowed.type, next: [waitsFor('t1')] }] })
  const { code, err, requests } = await service.run([...line, ...report, '--errors', 'json'])
  expect([code, service.replies()], err).toEqual([12, [[allowed]]])
  expect(service.report().toolUses).toMatchObject({ allowed: 1, denied: 0, run: 0, open: 1 })
  expect(readError(err)).toMatchObject({ kind: 'waiting', attempts: requests.length })
})

test('while the delivery of a reply is unknown, events run replies to the remaining tool uses', async () => {
  const other = confirms('t2')
  const since = [bash('t2'), waitsFor('t1', 't2')]
  const service = openFailing(since, [{ type: allowed.type, nth: 2, next: [waitsFor('t1')] }])
  const { code, out } = await service.run(line)
  expect([code, out, service.replies()]).toEqual([0, 'done\n', [[allowed], [other], [allowed]]])
  const [, , second] = service.requests.filter(({ kind }) => kind === 'post')
  expect(second?.at).toBeLessThan(5000)
})

const spent: Event = { type: 'session.usage', usage: { input_tokens: 1000, output_tokens: 0 } }

function removeLocks(cwd: string): void {
  for (const file of readdirSync(cwd, { recursive: true, encoding: 'utf8' }))
    if (file.endsWith('.parley-lock')) rmSync(join(cwd, file))
}

test.each(['user.message', 'user.interrupt'])('events run repeats no %s if it lost a lock', async (type) => {
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
})

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
])('if a %s request of %s then gets a %i, the exit code is %i', async (kind, _, status, exit, argv) => {
  const isSent = () => service.posts.length > 0
  const rule = { when: isSent, fault: { status } }
  const service: ReturnType<typeof createSessionService> = createSessionService({
    posts: [{ next: [running, shown(says('done'), { after: 60_000 }), endTurn] }],
    lists: kind === 'list' ? [rule] : [],
    streams: kind === 'list' ? [] : [rule, { cutAfter: 1 }],
  })
  const { code, err } = await service.run([...argv, '--deadline', '1h'])
  const error = readError(err)
  expect([code, error.sent, error.retry]).toEqual([exit, 'yes', 'never'])
  const fixes = error.hints.filter((hint: string) => hint.includes('refused secret is from'))
  expect(fixes).toHaveLength(status === 402 ? 0 : 1)
})

const acceptedBehind503: readonly PostRule[] = [
  {
    nth: 1,
    fault: { status: 503, headers: { 'retry-after': '1' } },
    isAccepted: true,
    next: [running, shown(says('done'), { after: 20_000 }), endTurn],
  },
  { fault: { status: 400 } },
]

test('a rerun with --audit resumes a task that the service may have accepted despite a 503 and a later refusal', async () => {
  const service = createSessionService({ posts: acceptedBehind503 })
  const argv = ['events', 'run', 'go', '--last', '--audit', 'a.jsonl', '--deadline', '1h']
  const refused = await service.run([...argv, '--errors', 'json'])
  const error = readError(refused.err)
  const hints = [expect.stringContaining('the event may have been accepted: ')]
  expect([refused.code, error.retry, error.hints]).toEqual([4, 'look-first', hints])
  const resumed = await service.run(argv)
  expect([resumed.code, resumed.out, service.posts.length], resumed.err).toEqual([0, 'done\n', 2])
})

const audited = ['--audit', 'audit.ndjson', '--report', 'report.json']

test('events run --last exits with 8 if the last list fails, and its resume command prints the answer', async () => {
  // The stream omits the last message, and each list after the task fails until the first run has ended.
  let isAway = true
  const service = createSessionService({
    posts: [{ next: [running, says('half'), shown(says('whole'), { streamed: 'never' }), endTurn] }],
    lists: [{ when: () => isAway && service.posts.length > 0, fault: { status: 503 } }],
  })
  const { code, out, err } = await service.run(['events', 'run', 'go', '--last', ...audited])
  expect({ code, out }).toEqual({ code: 8, out: '' })
  expect(err).toContain(
    'the answer may be incomplete: the list of events could not be read after the session stopped: ',
  )
  const [{ retry, resume }] = service.lines('report.json') as [{ retry: string; resume: string[] }]
  expect(retry).toBe('later')
  isAway = false
  expect(await service.run(resume)).toMatchObject({ code: 0, out: 'whole\n' })
  expect(service.posts).toHaveLength(1)
})

const createCommandSession = () =>
  createSessionService({
    posts: [
      { type: 'user.message', nth: 1, next: [running, custom('c1'), waitsFor('c1')] },
      { type: 'user.custom_tool_result', next: [running, shown(says('done'), { after: 10_000 }), endTurn] },
      { type: 'user.message', next: [running, says('done too'), endTurn] },
    ],
  })
const runCommand = (tool: string) => [
  ...'events run go --last --tool'.split(' '),
  `count=${tool}`,
  ...audited,
]
const countToolUses = ({ lines }: ReturnType<typeof createCommandSession>) =>
  lines('report.json')[0]?.toolUses

test('--fail-on-tool-error makes events run exit with 14 after the answer, also in a rerun, but not after the next task (needs sh)', async () => {
  const service = createCommandSession()
  const flags = [...runCommand('exit 3'), '--fail-on-tool-error']
  expect((await service.run([...flags, '--deadline', '5s'])).code).toBe(15)
  const { code, out, err } = await service.run(flags)
  expect({ code, out }).toEqual({ code: 14, out: 'done\n' })
  expect(err).toContain('s1 finished, but 1 --tool command failed\n  count c1: failed\n')
  expect(countToolUses(service)).toMatchObject({ run: 0, failedCommands: 1 })
  const next = await service.run(flags.map((word) => (word === 'go' ? 'next' : word)))
  expect({ code: next.code, out: next.out }, next.err).toEqual({ code: 0, out: 'done too\n' })
  expect(countToolUses(service)).toMatchObject({ failedCommands: 0 })
})

test('Y81: if an idle event lists no ids, events run replies to no tool use, and prints and counts those that are open', async () => {
  const silent = { type: 'session.status_idle', stop_reason: { type: 'requires_action' } }
  const service = createSessionService({ posts: [{ next: [running, bash('t1'), bash('t2'), silent] }] })
  const { code, err } = await service.run(['events', 'run', 'go', '--policy', 'allow.json', ...audited])
  expect([code, service.replies(), service.report().toolUses]).toMatchObject([12, [], { open: 2 }])
  for (const id of ['t1', 't2']) expect(err).toContain(`${id}: bash {"command":"ls"}`)
})

const search = bash('t2', { name: 'web_search', input: { query: 'parley' } })
const history = [bash('t1'), search, waitsFor('t1', 't2')]
const policy = { rules: [{ tool: 'web_search', decision: 'allow' }], default: { decision: 'ask' } }
const runSearch = ['events', 'run', '--policy', 'search.json', '--no-stdin', '--raw']

function openTwo(next: ScriptEvents) {
  const service = createSessionService({ history, posts: [{ type: confirms('t2').type, next }] })
  service.write('search.json', policy)
  return service
}

test.each([300, 4_000])(
  'events run prints work that starts %s ms after a reply to one of two tool uses',
  async (after) => {
    const worked = [says('found'), waitsFor('t1')]
    const { run, events, requests } = openTwo([shown(running, { after }), ...worked])
    const { code, out, err } = await run(runSearch)
    expect(code, err).toBe(12)
    const printed = events.slice(history.length)
    expect(out).toBe(printed.map((event) => `${JSON.stringify(event)}\n`).join(''))
    expect(printed.map(({ type }) => type)).toEqual([
      confirms('t2').type,
      ...[running, ...worked].map(({ type }) => type),
    ])
    expect(err).toContain('s1 waits for an answer\n  t1: bash')
    expect(requests.at(-1)?.at).toBeLessThan(after + 1_000)
  },
)

test('events send --follow prints the work that starts after a reply to one of two waiting tool uses', async () => {
  const { run } = openTwo([shown(running, { after: 300 }), says('found'), waitsFor('t1')])
  const { code, out, err } = await run([
    'events',
    'send',
    '--event',
    JSON.stringify(confirms('t2')),
    '--follow',
  ])
  expect(code, err).toBe(12)
  expect(out).toContain('\nfound\n')
})

test('events run exits 5 s after a reply to one of two waiting tool uses if the session stays idle', async () => {
  const { run, requests } = openTwo([])
  const { code, err } = await run(runSearch)
  expect(code, err).toBe(12)
  expect(err).toContain('s1 waits for an answer\n  t1: bash')
  expect(requests.at(-1)?.at).toBeGreaterThan(4_500)
  expect(requests.at(-1)?.at).toBeLessThan(6_000)
})
