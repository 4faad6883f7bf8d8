import { expect, test } from 'vitest'
import type { Event } from '../../harness/events.ts'
import {
  bash,
  confirms,
  custom,
  endTurn,
  interrupt,
  running,
  says,
  userSays,
  waitsFor,
} from '../../harness/events.ts'
import { parseLines } from '../../harness/run.ts'
import type { PostRule, ScriptEvents, SessionScript } from '../../harness/session-service.ts'
import { always, createSessionService, createSignalOptions, shown } from '../../harness/session-service.ts'

const inThread = { session_thread_id: 'th1' }
const threadStatus = (status: string, more: object = {}): Event => ({
  type: `session.thread_status_${status}`,
  ...inThread,
  agent_name: 'helper',
  ...more,
})
const threadWaits = (...ids: string[]) =>
  threadStatus('idle', { stop_reason: { type: 'requires_action', event_ids: ids } })
const terminated = threadStatus('terminated')

/** Events after which a child thread waits for a reply to t1 while the session runs. */
const childWaits: ScriptEvents = [
  running,
  { type: 'session.thread_created', ...inThread, agent_name: 'helper', workflow_run_id: null },
  threadStatus('running'),
  bash('t1', inThread),
  threadWaits('t1'),
]
const done: ScriptEvents = [
  threadStatus('running'),
  threadStatus('idle', { stop_reason: { type: 'end_turn' } }),
  says('done'),
  endTurn,
]

const task = (next: ScriptEvents) => ({ type: 'user.message', next })

/** Creates a session with the events `next` after a task. A confirmation ends the turn. */
const openWaiting = (next: ScriptEvents) =>
  createSessionService({ posts: [task(next), { type: 'user.tool_confirmation', next: done }] })
const runArguments = ['events', 'run', 'do it', '--last', '--policy', 'allow.json', '--audit', 'audit.ndjson']

test('events run replies to a waiting child thread while the main thread works', async () => {
  const service = openWaiting(childWaits)
  const { code, out } = await service.run([...runArguments, '--deadline', '1h'])
  expect([code, out, service.replies()]).toEqual([0, 'done\n', [[confirms('t1')]]])
})

test('events confirm --pending replies to a waiting child thread', async () => {
  const service = createSessionService({ history: [userSays('x'), ...childWaits] })
  const { code } = await service.run(['events', 'confirm', '--pending', '--allow'])
  expect({ code, posts: service.posts }).toEqual({ code: 0, posts: [[confirms('t1')]] })
})

test.each<[string, number, ScriptEvents, number, string]>([
  ['continues until the session is idle after a reply', 20_000, [confirms('t1'), ...done], 0, 'done\n'],
  ['exits with 12 if the session is idle without a reply', 60_000, [says('one'), endTurn], 12, ''],
])('events follow prints the waiting child thread, and %s', async (_, afterMs, next, exit, text) => {
  const service = createSessionService({ history: [userSays('x'), ...childWaits] })
  void service.timers.wait(afterMs).then(() => service.add(...next))
  const { code, out, err } = await service.run(['events', 'follow'])
  expect([code, out, err]).toEqual([exit, expect.stringContaining(text), expect.stringContaining('t1')])
  expect(err).toContain('events confirm')
})

test.each<[string, ScriptEvents]>([
  ['the thread continued without a reply', [threadStatus('running')]],
  ['an interrupt of the thread', [{ ...interrupt, ...inThread }]],
  ['an interrupt of all threads', [interrupt]],
  ['the end of the thread', [terminated]],
  ['a reply of another client', [confirms('t1')]],
])('events run and events confirm send no reply to a child thread after %s', async (_, next) => {
  const service = createSessionService({ posts: [task([...childWaits, ...next, says('done'), endTurn])] })
  await service.run(runArguments)
  expect(service.replies()).toEqual([])
  const pending = await service.run(['events', 'confirm', '--pending', '--allow'])
  expect(pending).toMatchObject({ code: 2, err: expect.stringContaining('no tool use waits') })
})

test.each<[string, string[], Event]>([
  ['allows a tool use', [], bash('t1', inThread)],
  ['runs a command', ['--tool', 'count=echo ran >> ran; cat ran'], custom('t1', inThread)],
])('events run %s once if its thread continues and then waits again', async (_, flags, use) => {
  const waits = [running, threadStatus('running'), use, threadWaits('t1'), threadStatus('running')]
  const service = createSessionService({
    posts: [task([...waits, shown(threadWaits('t1'), { after: 5_000 })]), { next: done }],
  })
  const { code, out, err } = await service.run([...runArguments, ...flags])
  expect([code, out, service.replies().length], err).toEqual([0, 'done\n', 1])
  expect(err).toContain('t1 is not answered by this run: the session does not wait for it any more')
  if (flags.length > 0) expect(service.replies()[0]).toMatchObject([{ content: [{ text: 'ran\n' }] }])
})

test('events run posts the result of a command if its thread continues and waits again before a retry (needs sh)', async () => {
  const waitAgain = async () => {
    await service.timers.wait(100)
    service.add(threadStatus('running'))
    await service.timers.wait(8_000)
    service.add(threadWaits('t1'))
  }
  const fault = { status: 429, headers: { 'retry-after': '3' } }
  const type = 'user.custom_tool_result'
  const posts = [task([...childWaits.slice(0, 3), custom('t1', inThread), threadWaits('t1')])]
  const service: ReturnType<typeof createSessionService> = createSessionService({
    posts: [...posts, { type, nth: 1, fault, act: () => void waitAgain() }, { next: done }],
  })
  const tool = ['--tool', 'count=echo ran >> ran; cat ran']
  const { code, err } = await service.run(['events', 'run', 'go', ...tool, '--deadline', '1m'])
  const result = [{ type, custom_tool_use_id: 't1', content: [{ type: 'text', text: 'ran\n' }] }]
  expect([code, service.replies()], err).toEqual([0, [result, result]])
})

test.each<[string, Event, string]>([
  ['a confirmation', bash('t1', inThread), 'deny bash {"command":"ls"} t1 (default)'],
  ['a result', custom('t1', inThread), 'deny count {} t1 (default)'],
])('events run exits with 14 if it denies a tool use from before the task by %s', async (_, use, denial) => {
  const history = [userSays('x'), ...childWaits.slice(0, 3), use, threadWaits('t1')]
  const service = createSessionService({ history, posts: [task([]), { next: [...done, running, ...done] }] })
  service.write('deny.json', always('deny'))
  const { code, err } = await service.run('events run go --policy deny.json --deadline 1m'.split(' '))
  expect(code).toBe(14)
  expect(err).toContain(`1 tool use was denied\n  ${denial}\n`)
})

test('events run exits with 14 if another client allows a tool use after the run denied it', async () => {
  const next = [confirms('t1'), running, says('done'), endTurn]
  const service = createSessionService({ posts: [task([running, bash('t1'), waitsFor('t1')]), { next }] })
  service.write('deny.json', always('deny'))
  const { code, err } = await service.run('events run go --policy deny.json --deadline 1m'.split(' '))
  expect([code, service.replies()], err).toEqual([14, [[confirms('t1', 'deny')]]])
})

test('a resumed run answers a waiting child thread if the earlier run left the tool use unanswered', async () => {
  const waits = [...childWaits, threadStatus('running'), shown(threadWaits('t1'), { after: 5_000 })]
  const service = openWaiting(waits)
  const first = await service.run([...runArguments, '--deadline', '3s'])
  expect({ code: first.code, replies: service.replies() }, first.err).toEqual({ code: 15, replies: [] })
  const { code, out, err } = await service.run(runArguments)
  expect([code, out, service.replies()], err).toEqual([0, 'done\n', [[confirms('t1')]]])
})

test('events run posts each tool result in its own request, and all confirmations in one request', async () => {
  const service = createSessionService({
    posts: [
      task([running, custom('t1'), custom('t2'), bash('t3'), bash('t4'), waitsFor('t1', 't2', 't3', 't4')]),
      { when: () => service.replies().flat().length === 4, next: [running, says('done'), endTurn] },
    ],
  })
  const rules = [{ tool: 'count', decision: 'deny', reason: 'no' }]
  service.write('allow.json', { rules, default: { decision: 'allow' } })
  await service.run(runArguments)
  const types = service.replies().map((events) => events.map(({ type }) => type))
  expect(types.toSorted((a, b) => a.length - b.length)).toEqual([
    ['user.custom_tool_result'],
    ['user.custom_tool_result'],
    ['user.tool_confirmation', 'user.tool_confirmation'],
  ])
})

const refused = bash('t1', {
  evaluated_permission: 'deny',
  evaluation: { type: 'auto', evaluated_permission: { type: 'deny', reason_code: 'high_risk' } },
})
const fails = (server: string, status: string): Event => ({
  type: 'session.error',
  error: {
    type: 'mcp_connection_failed_error',
    mcp_server_name: server,
    message: 'cannot be reached',
    retry_status: { type: status },
  },
})
const argv = [...runArguments, '-q', '--report', 'report.json']

test('events run warns about a refused tool use even with -q, and counts it in the report', async () => {
  const service = createSessionService({ posts: [task([running, refused, says('done'), endTurn])] })
  const { code, err } = await service.run(argv)
  expect({ code, replies: service.replies() }).toEqual({ code: 0, replies: [] })
  expect(err).toMatch(/warning.*refused.*bash.*t1|refused.*t1/)
  expect(err).toContain('high_risk')
  expect(service.report()).toMatchObject({ warnings: { refusedToolUses: 1 } })
})

test('events run warns once about an MCP server that failed for good, and not about a server that is retried', async () => {
  const service = createSessionService({
    posts: [
      task([
        ...[running, fails('jira', 'retrying'), fails('github', 'retrying')],
        ...[fails('github', 'exhausted'), fails('github', 'exhausted'), says('done'), endTurn],
      ]),
    ],
  })
  const { code, err } = await service.run(argv)
  expect({ code }).toEqual({ code: 0 })
  expect(err.match(/github/g)).toHaveLength(1)
  expect(err).not.toContain('jira')
  expect(err).toContain('cannot be reached')
  expect(service.report()).toMatchObject({ warnings: { failedServers: 1 } })
})

test('events run warns about an error of the session if the service does not retry', async () => {
  const fails = (status: string): Event => ({
    type: 'session.error',
    error: { type: 'model_overloaded_error', message: 'gave up', retry_status: { type: status } },
  })
  const runWith = async (...steps: ScriptEvents) => {
    const service = createSessionService({ posts: [task([running, ...steps, endTurn])] })
    const { code, err } = await service.run([...argv, '--last'])
    expect({ code }).toEqual({ code: 0 })
    const { warnings } = service.report() as { warnings: { sessionErrors: number } }
    const isWarned = err.includes('an error that the service does not retry: gave up')
    expect(warnings.sessionErrors).toBe(isWarned ? 1 : 0)
    return isWarned
  }
  expect(await runWith(says('partial'), fails('exhausted'))).toBe(true)
  expect(await runWith(says('partial'), fails('retrying'))).toBe(false)
  expect(await runWith(fails('exhausted'), says('done'))).toBe(true)
})

test('--errors json prints each warning on its own line', async () => {
  const steps = [running, refused, fails('github', 'terminal'), says('done'), endTurn]
  const { err } = await createSessionService({ posts: [task(steps)] }).run([...argv, '--errors', 'json'])
  const warnings = parseLines(err).map(({ warning }) => warning)
  expect(warnings).toEqual([expect.stringContaining('t1'), expect.stringContaining('github')])
})

test.each<[string, object, string]>([
  ['a redacted part', { type: 'redacted' }, 'redacted'],
  ['an image', { type: 'image', source: {} }, "a part of type 'image', which parley does not print; "],
])('events run marks %s of a message, and warns about it with --last', async (_, part, warning) => {
  const [before, after] = ['before', 'after'].map((text) => ({ type: 'text', text }))
  const answer = { type: 'agent.message', content: [before, part, after] }
  const service = createSessionService({ posts: [task([running, answer, endTurn])] })
  expect((await service.run(['events', 'run', 'do it'])).out).toMatch(/before\[(redacted|image)\]after\n/)
  const last = await service.run([...runArguments, '-q'])
  expect(last).toMatchObject({ code: 0, out: 'beforeafter\n', err: expect.stringContaining(warning) })
})

/** Runs a command that sends a task. The service then adds the events `next`, and measures the seconds. */
async function follow(next: ScriptEvents, argv: string[]) {
  const history = [userSays('x'), says('before'), endTurn]
  const service = createSessionService({ posts: [{ next }], history })
  const start = service.timers.now()
  const { code, err } = await service.run(argv)
  return { code, err, seconds: Math.floor((service.timers.now() - start) / 1000), posts: service.posts }
}
const withDeadline = ['--deadline', '1h']
const runTask = ['events', 'run', 'do it', ...withDeadline]
const send = ['events', 'send', 'do it', '--follow', ...withDeadline]

test.each([
  ['run', runTask],
  ['send --follow', send],
])('events %s exits with 12 if a child thread waits and nothing happens for 30 s', async (_, argv) => {
  const { code, err, seconds, posts } = await follow(childWaits, argv)
  expect({ code, posts: posts.length }).toEqual({ code: 12, posts: 1 })
  expect(seconds).toBeLessThan(60)
  expect(err).toContain('t1')
})

test('if a child thread waits for a reply, events run continues while another thread works', async () => {
  const other = { session_thread_id: 'th2' }
  const end = shown(threadStatus('idle', other), { after: 600_000 })
  const { code, seconds } = await follow([...childWaits, threadStatus('running', other), end], runTask)
  expect({ code }).toEqual({ code: 12 })
  expect(seconds).toBeGreaterThan(600)
  expect(seconds).toBeLessThan(660)
})

const created = (id: string, more: object = {}): Event => ({
  type: 'workflow_run.created',
  workflow_run_id: id,
  name: `review-${id}`,
  phases: [],
  ...more,
})
const ended = (id: string, type = 'completed', more: object = {}): Event => ({
  type: 'workflow_run.status_ended',
  workflow_run_id: id,
  result: { type, ...more },
})

/** Delays an event by two minutes. */
const later = (event: Event) => shown(event, { after: 120_000 })

const starts: ScriptEvents = [running, created('w1'), says('I started a run'), endTurn]

const openTask = (next: ScriptEvents, more: SessionScript = {}) =>
  createSessionService({ posts: [{ type: 'user.message', next }], ...more })
const runReported = ['events', 'run', 'do it', '--last', '--report', 'report.json']
test.each(['send do-it --follow', 'run do-it'])('events %s awaits the last workflow run', async (words) => {
  const second = [created('w2'), endTurn, later(ended('w2')), says('two'), endTurn]
  const service = openTask([running, created('w1'), says('one'), endTurn, later(ended('w1')), ...second])
  const { code, out, err } = await service.run(['events', ...words.split(' ')])
  expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/^two$/m) })
  expect(err.match(/^parley: waiting for the workflow run review-w1 \(w1\)/gm)).toHaveLength(1)
  expect(err.match(/^parley: waiting for the workflow run review-w2 \(w2\)/gm)).toHaveLength(1)
})

test("events run --last exits with 8 if another client's message comes before the end of the workflow run", async () => {
  const theirs = [userSays('other'), running, says('theirs')]
  const next = [...starts, ...theirs, ended('w1'), running, says('all'), endTurn]
  const { code, out, err } = await openTask(next).run([...runReported, '--deadline', '1h'])
  expect({ code, out, err }).toEqual({ code: 8, out: '', err: expect.stringContaining('another client') })
})

test("events run --last prints the answer if the workflow run ended before another client's message", async () => {
  const next = [...starts, ended('w1'), running, says('mine'), endTurn, userSays('other'), running, endTurn]
  expect(await openTask(next).run(runReported)).toMatchObject({ code: 0, out: 'mine\n' })
})

const next = [...starts, later(ended('w1'))]
test.each<[string, SessionScript]>([
  ['GET /v1/sessions/ID shows that the session is idle', {}],
  ['the service does not have GET /v1/sessions/ID', { session: () => ({ status: 404 }) }],
])('events run exits with 0 and warns if no event follows the last workflow run and %s', async (_, more) => {
  const { code, out, err } = await openTask(next, more).run(['events', 'run', 'do it', '--deadline', '1h'])
  expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining('I started a run') })
  expect(err).toContain('did not continue after its last workflow run')
})

test('events run --last exits with 8 if no event follows the last workflow run', async () => {
  const { code, out, err } = await openTask(next).run([...runReported, '--deadline', '1h'])
  expect({ code, out }).toEqual({ code: 8, out: '' })
  const text = 'parley: the answer may be missing: the session did not continue after its last workflow run'
  expect(err.split(text)).toHaveLength(2)
  expect(err).not.toContain('could not be followed')
})

const followQuiet = async (options = {}) => {
  const session = () => ({ id: 's1', status: 'running' })
  const service = openTask([...starts, later(ended('w1'))], { session })
  const { code, err } = await service.run([...runReported, '--deadline', '5m'], options)
  expect(code, err).toBe(15)
  return err.split('\n').filter((line) => line.startsWith('parley: '))
}

test('parley prints one note about the awaited workflow run, and each progress line names the last event', async () => {
  const after = 'the last event was workflow_run.status_ended'
  expect(await followQuiet()).toEqual([
    'parley: waiting for the workflow run review-w1 (w1) to end',
    'parley: still at work after 1 min: the last event was session.status_idle, 60 s ago',
    'parley: still at work after 2 min: the last event was session.status_idle, 2 min ago',
    `parley: still at work after 3 min: ${after}, 60 s ago`,
    `parley: still at work after 4 min: ${after}, 2 min ago`,
    `parley: still at work after 5 min: ${after}, 3 min ago`,
    'parley: the deadline passed while parley followed the session',
  ])
})

test.each(['send do-it --follow', 'run do-it'])(
  'with -q, the failure of events %s at the deadline names the open workflow run',
  async (words) => {
    const argv = `events ${words} -q --deadline 1m`
    const { code, err } = await openTask(starts).run(argv.split(' '))
    expect(code).toBe(15)
    expect(err).toMatch(/^parley: the deadline passed .* session; open workflow runs: review-w1 \(w1\)\n/)
  },
)

test('after a signal, the message of events run names the open workflow run', async () => {
  let printed = ''
  const { options, sendSignal } = createSignalOptions((text) => {
    if (text.includes('I started a run')) printed ||= sendSignal()
  })
  await openTask(starts).run(['events', 'run', 'do it', '-q', '--deadline', '1m'], options)
  expect(printed).toContain('; open workflow runs: review-w1 (w1); ')
})

test("events run warns about open runs after another client's interrupt", async () => {
  const service = openTask([...starts, { type: 'user.interrupt' }])
  const { code, err } = await service.run([...runReported, '-q'])
  expect(code).toBe(15)
  expect(err).toContain('these workflow runs are open and may continue to spend: review-w1 (w1)')
  expect(service.report()).toMatchObject({ warnings: { openWorkflowRuns: 1 } })
})

test('events run warns about a failed workflow run even with -q, and counts it in the report', async () => {
  const error = { type: 'program_error', message: 'its plan failed' }
  const service = openTask([...starts, ended('w1', 'error', { error }), says('done'), endTurn])
  const { code, out, err } = await service.run([...runReported, '-q'])
  expect({ code, out }).toEqual({ code: 0, out: 'done\n' })
  expect(err).toContain('review-w1 (w1)')
  expect(err).toContain('its plan failed')
  expect(service.report()).toMatchObject({ warnings: { failedWorkflowRuns: 1 } })
})

const spent: Event = { type: 'session.usage', usage: { input_tokens: 1000, output_tokens: 0 } }
const hidden = { listed: 'never', streamed: 'never' } as const
test.each<[string, ScriptEvents, PostRule]>([
  ['a working session', [running, created('w1'), spent], { next: [endTurn] }],
  ['an idle session, although the list hides the interrupt', [...starts, later(spent)], { posted: hidden }],
])('events run at a limit interrupts %s, and warns about open runs', async (_, next, rule) => {
  const interrupted = { type: 'user.interrupt', ...rule }
  const service = createSessionService({ posts: [{ type: 'user.message', next }, interrupted] })
  const { code, err } = await service.run([...runReported, '-q', '--max-total-tokens', '10'])
  expect({ code, replies: service.replies() }).toEqual({ code: 15, replies: [[interrupt]] })
  for (const words of ['review-w1 (w1)', 'may continue to spend', 'budget']) expect(err).toContain(words)
  expect(err).not.toContain('is not idle yet')
  expect(service.report()).toMatchObject({ exit: 15, warnings: { openWorkflowRuns: 1 } })
})
