import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createEmulator } from '../../../src/emulator/emulator.ts'
import { realTimers, type Timers } from '../../../src/timers.ts'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { createIdleClock } from '../../harness/clock.ts'
import type { Event } from '../../harness/events.ts'
import { bash, confirms, custom, endTurn, running, says, userSays, waitsFor } from '../../harness/events.ts'
import type { RunOptions } from '../../harness/run.ts'
import {
  answering,
  createInterrupt,
  ownerOnlyMode,
  readError,
  run,
  temporaryFolder,
} from '../../harness/run.ts'
import type { Outcome } from '../../harness/session-service.ts'
import {
  always,
  atTerminal,
  createSessionService,
  getLockPath,
  openAgent,
  shown,
  typeAndWait,
} from '../../harness/session-service.ts'

const allowStatus = { tool: 'bash', input: { command: 'git status' }, decision: 'allow' }
const denyRm = { tool: 'bash', input: { command: '*rm *' }, decision: 'deny', reason: 'no deleting' }
const allowIssue = { tool: 'create_issue', server: 'github', input: { title: '*' }, decision: 'allow' }
const orDeny = { decision: 'deny', reason: 'not in CI' }
const policy = { rules: [allowStatus, denyRm, allowIssue], default: orDeny }
const askAll = always('ask')

/** Returns a tool use of bash. The policy allows the default command. */
const uses = (id: string, command = 'git status', more = {}) => bash(id, { input: { command }, ...more })
const mcpType = 'agent.mcp_tool_use'
const resultOf = (id: string): Event => ({ type: 'agent.tool_result', tool_use_id: id, content: 'gone' })

/** Returns the id and the decision of each accepted reply. */
const repliesTo = ({ acceptedReplies }: ReturnType<typeof openAgent>) =>
  [...acceptedReplies].map(([id, [reply]]) => [id, reply?.result])

/** Returns the id, the decision and the decider of each decision in the audit file. */
const decisionsOf = (agent: ReturnType<typeof openAgent>) => {
  const decisions = agent.audit().filter(({ event }) => event === 'decision')
  return decisions.map(({ toolUse, decision, by }) => `${toolUse} ${decision} ${by}`)
}

const eventsOf = (agent: ReturnType<typeof openAgent>) => agent.audit().map(({ event }) => event)

test('Y130: events run sends the task once, replies to tool uses by the policy, and exits with 14 after denials', async () => {
  const uses = 'use bash {"command":"rm -rf x"}\nuse bash {"command":"git status"}\nuse other {}'
  const agent = openAgent({ rounds: [], policy })
  const task = `${uses}\nthen use mcp github create_issue {"title":"Fix it"}`
  const { code, out, err, requests } = await agent.runTask([task], { exchange: createEmulator({}) })
  expect(code).toBe(14)
  const posts = requests.filter(({ method }) => method === 'POST').map(({ text }) => JSON.parse(text).events)
  expect(posts.map((events: Event[]) => events.map(({ type, result }) => result ?? type))).toEqual([
    ['user.message'],
    ['deny', 'allow', 'deny'],
    ['allow'],
  ])
  const denial = { type: 'user.tool_confirmation', result: 'deny' }
  expect(posts[1][0]).toMatchObject({ ...denial, deny_message: 'no deleting' })
  expect(posts[1][2]).toMatchObject({ ...denial, deny_message: 'not in CI' })
  expect(out).toMatch(/The emulated agent is done\.\n.*\n.*end_turn\n$/)
  expect(err).toContain('s1 finished, but 2 tool uses were denied\n')
  expect(err).toMatch(/deny bash {"command":"rm -rf x"} \S+ \(rules\[1\]: no deleting\)/)
  const audit = agent.audit()
  expect(audit.flatMap(({ by, rule }) => (by ? [rule ?? by] : []))).toEqual([1, 0, 'default', 2])
  expect(audit.slice(-3).map(({ event }) => event)).toEqual(['decision', 'sent', 'accepted'])
  const input = { command: 'git status' }
  expect(audit[1]).toMatchObject({ session: 's1', type: 'agent.tool_use', name: 'bash', input, by: 'rule' })
  for (const line of audit.slice(-3)) expect(line).toMatchObject({ type: mcpType, server: 'github' })
  const fields = 'time session toolUse type server name input event decision by rule'
  expect(Object.keys(audit.at(-3) ?? {})).toEqual(fields.split(' '))
  expect(statSync(join(agent.cwd, 'a.ndjson')).mode & 0o777).toBe(ownerOnlyMode)
})

const redirected: RunOptions = { stdinKind: 'terminal', tty: ['stdout'] }
test.each<[string, string[], RunOptions]>([
  ['stdin', ['-'], { stdin: 'do it', tty: ['stderr'], env: { NO_COLOR: '1' } }],
  ['stderr', ['go'], redirected],
])(
  'events run prints that it cannot prompt because of %s, but not with --no-stdin',
  async (name, words, options) => {
    const agent = openAgent({ rounds: [[uses('t1', 'ls'), uses('t2', 'pwd')]], policy: askAll })
    const { code, err } = await agent.runTask(words, options)
    const text = `n: ${name} is not a terminal.* connect ${name} to the terminal\n`
    expect([code, err]).toEqual([12, expect.stringMatching(text)])
    expect((await agent.runTask(['--no-stdin'], redirected)).err).not.toContain('prompt')
  },
)

test('events run exits with 15 and names the waiting tool uses if its deadline passes at a question', async () => {
  const agent = openAgent({ rounds: [[uses('t1'), uses('t2')]], policy: askAll })
  const words = ['do it', '--deadline', '100', '--errors', 'json']
  const { code, err } = await agent.runTask(words, atTerminal(typeAndWait('y\n')))
  const { error } = JSON.parse(err.split('\n').at(-2) ?? '')
  expect({ code, posts: agent.posts }).toEqual({ code: 15, posts: 0 })
  expect(error).toMatchObject({ deadline: true, retry: 'later', pending: ['t1', 't2'] })
  expect(error.message).toContain('your answer to 1 of 2 tool uses was not sent; s1 waits for an answer to 2')
})

/** Answers y to the first of two questions. `act` gets the number of each later list, before its response. */
async function answerFirst(
  { act, ...script }: { act?: (count: number) => Exchange | undefined; outcome?: () => Outcome },
  options?: RunOptions,
) {
  const timers = createIdleClock()
  const agent = openAgent({ rounds: [[uses('t1'), uses('t2')]], policy: askAll, timers, ...script })
  let lists = -1
  async function* typed() {
    lists = 0
    yield 'y\n'
    yield 's\n'
  }
  const exchange: Exchange = async (request) => {
    if (lists < 0 || request.method === 'POST') return agent.exchange(request)
    const other = act?.(++lists)
    // A list over a second old is read again before the post.
    await timers.wait(1_500)
    return (other ?? agent.exchange)(request)
  }
  const ended = await agent.runTask(undefined, { ...atTerminal(typed()), exchange, ...options })
  return { ...ended, posts: agent.posts, events: eventsOf(agent) }
}
const lost = 'your answer to 1 of 2 tool uses was not sent'

test.each([
  [1, []],
  [2, ['decision', 'decision']],
])('events run reports an answer as not sent if a signal arrives at list %s', async (nth, audited) => {
  const { onSignal, interrupt } = createInterrupt()
  let said = ''
  const act = (count: number) => {
    if (count === nth) said = interrupt()
    return undefined
  }
  const { posts, err, events } = await answerFirst({ act }, { onSignal })
  expect([posts, events]).toEqual([0, audited])
  expect(said).toContain(`interrupted: the task was accepted; ${lost}; the session waits for an answer;`)
  expect(err).not.toContain('allowed')
})

test('events run reports an answer as not sent if a list request fails after it', async () => {
  const { code, posts, err } = await answerFirst({ act: () => answering('', { status: 403 }) })
  expect({ code, posts }).toEqual({ code: 3, posts: 0 })
  expect(err).toMatch(new RegExp(`^parley: .*; ${lost}$`, 'm'))
  expect(err).not.toContain('allowed')
})

test('events run prints a refused answer neither as a decision nor as not sent', async () => {
  const { code, posts, err } = await answerFirst({ outcome: () => 'refuses' })
  expect({ code, posts }).toEqual({ code: 4, posts: 1 })
  expect(err).toContain('the answer to t1 was refused')
  expect(err).not.toMatch(/allowed|was not sent/)
})

test('events run prints that --tool does not answer a tool use that needs an approval', async () => {
  const agent = openAgent({ rounds: [[uses('t1', 'ls'), custom('c1')]], policy: askAll })
  const { code, err } = await agent.runTask(['go', '--tool', 'bash=cat', '--tool', 'count=cat'])
  expect({ code, replies: repliesTo(agent) }).toEqual({ code: 12, replies: [['c1', undefined]] })
  const note =
    "--tool does not answer it, because it needs an approval: use --policy or 'parley events confirm'"
  expect(err.match(/.* stays open.*/gm)).toEqual([`parley: t1 (bash) stays open: ${note}`])
})

test('events run prompts a person on a terminal, and prints each decision with its rule', async () => {
  const rounds = [[uses('t1', 'ls'), uses('t2')], [uses('t3', 'pwd')]]
  const agent = openAgent({ rounds, policy: { rules: [allowStatus] } })
  const person = atTerminal('y\nn because\n', ['stdout', 'stderr'])
  const { code, out, err } = await agent.runTask(undefined, person)
  expect(code).toBe(14)
  expect(Object.fromEntries(repliesTo(agent))).toEqual({ t1: 'allow', t2: 'allow', t3: 'deny' })
  expect(agent.acceptedReplies.get('t3')?.[0]?.deny_message).toBe('because')
  expect(err).toContain('✓ bash allowed\n✓ bash allowed (rules[0])\n')
  expect(err).toContain('✗ bash denied: because\n')
  expect(out).toContain('\n· agent.tool_result ok\n')
})

test('the key a at a prompt allows each equal call for the rest of the run, but no different call', async () => {
  const others = [uses('t3', 'ls'), uses('t4', 'ls -a'), uses('t5', 'ls', { name: 'sh' })]
  const agent = openAgent({ rounds: [[uses('t1', 'ls'), uses('t2', 'ls')], others], policy: askAll })
  const { code, err } = await agent.runTask(undefined, atTerminal('a\nn\nn not this\n'))
  expect(code).toBe(14)
  const questions = [' allow bash (t1)? [', ' allow bash (t4)? [', ' allow sh (t5)? [']
  expect(err.match(/ allow .*\? \[/g)).toEqual(questions)
  expect(err).toContain('  y allow, n deny, n REASON deny with a reason, a allow this same call until this')
  expect(err).toContain('parley: t3 is allowed, because you chose to always allow this call\n')
  const allowed = ['t1 allow person', 't2 allow person', 't3 allow person']
  expect(decisionsOf(agent)).toEqual([...allowed, 't4 deny person', 't5 deny person'])
  expect(repliesTo(agent).map(([, result]) => result)).toEqual(['allow', 'allow', 'allow', 'deny', 'deny'])
})

test('a deny rule denies a tool use without a prompt, even after a person pressed a (always allow)', async () => {
  const rounds = [[uses('t1', 'ls')], [uses('t2', 'ls; rm -r x')]]
  const agent = openAgent({ rounds, policy: { rules: [denyRm] } })
  const { err } = await agent.runTask(undefined, atTerminal('a\na\n'))
  expect(Object.fromEntries(repliesTo(agent))).toEqual({ t1: 'allow', t2: 'deny' })
  expect(err).not.toContain('(t2)? ')
})

test('the key a at a prompt does not allow a tool use whose input contains a JSON key twice', async () => {
  const agent = openAgent({ rounds: [[uses('t1', 'TWICE')]], policy: askAll })
  async function* replace(body: AsyncIterable<Uint8Array>) {
    for await (const bytes of body)
      yield Buffer.from(String(bytes).replaceAll('"command":"TWICE"', '"command":"ls","command":"rm"'))
  }
  const exchange: Exchange = async (request) => {
    const response = await agent.exchange(request)
    return { ...response, body: replace(response.body) }
  }
  const { code, err } = await agent.runTask(undefined, { exchange, ...atTerminal('a\ns\n') })
  expect({ code, replies: repliesTo(agent) }).toEqual({ code: 12, replies: [] })
  expect(err).toContain('[y/n/s/q] ')
  expect(err).toContain('parley: t1 (bash) stays open\n')
})

test('V62: events run prints an events send command, not events confirm, if a client must execute the tool', async () => {
  const history = [uses('c1', 'ls', { evaluated_permission: 'allow' }), waitsFor('c1')]
  const agent = openAgent({ history, rounds: [] })
  const ran = await agent.runTask([])
  const followed = await agent.run(['events', 'follow'])
  for (const { code, err } of [ran, followed]) {
    expect(code).toBe(12)
    expect(err).toContain('to send a result: parley events send -s s1 --tool-result c1=TEXT')
    expect(err).not.toContain('confirm')
  }
})

test.each([
  ['deploy', true],
  ['ls', false],
])(
  'if a custom tool use waits, events run prints the names of --tool: %s waits, %s',
  async (name, isHinted) => {
    const agent = openAgent({
      rounds: [[custom('c1', { name }), custom('c2', { name: 'dploy' })]],
      policy: askAll,
    })
    const { code, err } = await agent.runTask(['go', '--tool', 'dploy=cat', '--tool', 'ls=cat'])
    const hint =
      '  to send a result: parley events send -s s1 --custom-tool-result c1=TEXT\n  --tool has commands only for dploy, ls\n'
    expect([code, err.includes(hint)]).toEqual([isHinted ? 12 : 0, isHinted])
  },
)

test('a --tool command gets the input on stdin, and no PARLEY_ variable of the user (needs sh)', async () => {
  const agent = openAgent({ rounds: [[custom('c1', { name: 'deploy', input: { env: 'test' } })]], policy })
  const words = ['do it', '--tool', 'deploy=cat; env | grep ^PARLEY_ | sort']
  const { code } = await agent.runTask(words, { env: { PARLEY_THING: 'canary', OTHER: 'x' } })
  expect(code).toBe(0)
  const text = '{"env":"test"}PARLEY_SESSION=s1\nPARLEY_TOOL_NAME=deploy\nPARLEY_TOOL_USE_ID=c1\n'
  expect(agent.acceptedReplies.get('c1')).toEqual([
    { type: 'user.custom_tool_result', custom_tool_use_id: 'c1', content: [{ type: 'text', text }] },
  ])
  expect(eventsOf(agent)).toEqual(['decision', 'start', 'end', 'sent', 'accepted'])
  expect(agent.audit()[0]).toMatchObject({ decision: 'allow', by: 'tool' })
})

test.each([
  ['fails', 'echo why >&2; exit 3', 'the command failed with exit code 3:\nwhy'],
  ['prints invalid UTF-8', String.raw`printf '\377'`, 'the command printed text that is not UTF-8'],
  ['prints more than 1 MiB', 'head -c 1100000 /dev/zero', 'the command printed more than 1 MiB'],
  ['takes too long', 'sleep 1000 & sleep 1000', 'the command did not end within 20 s'],
])(
  'Y60: events run sends an error result and warns with -q if a --tool command %s (needs sh)',
  async (...row) => {
    const [, command, text] = row
    const agent = openAgent({ rounds: [[custom('c1')]], policy })
    // The clock stops while the command runs, so the time limit of the command takes 50 real milliseconds.
    const wait: Timers['wait'] = (milliseconds, signal) =>
      milliseconds === 20_000 ? realTimers.wait(50, signal) : agent.timers.wait(milliseconds, signal)
    const timers = command.startsWith('sleep') ? { ...agent.timers, wait } : agent.timers
    const flags = ['--tool', `count=${command}`, '--tool-timeout', '20s', '-q', '--report', 'report.json']
    const { code, err } = await agent.runTask(['do it', ...flags], { timers })
    expect([code, err]).toEqual([0, expect.stringContaining('the tool use c1 failed (count): ')])
    expect(agent.acceptedReplies.get('c1')?.[0]).toMatchObject({ is_error: true, content: [{ text }] })
    const toolUses = { allowed: 1, denied: 0, run: 1, failedCommands: 1, open: 0 }
    expect(agent.report().toolUses).toEqual(toolUses)
  },
)

test('events run runs --tool commands only for tool uses that wait for a result (needs sh)', async () => {
  const selfHosted = uses('t1', 'a', { evaluated_permission: undefined })
  const mcp: Event = { id: 'm1', type: mcpType, name: 'bash', input: {}, mcp_server_name: 'm' }
  const agent = openAgent({ rounds: [[selfHosted, uses('t2', 'b'), mcp, custom('c1')]], policy: askAll })
  expect(await agent.runTask(['do it', '--tool', 'bash=echo hi'])).toMatchObject({ code: 12 })
  expect([...agent.acceptedReplies]).toEqual([
    ['t1', [{ type: 'user.tool_result', tool_use_id: 't1', content: [{ type: 'text', text: 'hi\n' }] }]],
  ])
})

/** Runs a task whose deadline passes once the command has started. */
async function stopInCommand(flags: string[], history: Event[] = []) {
  const agent = openAgent({ history, rounds: [[custom('c1')]], policy: askAll })
  const hasBegun = () => existsSync(join(agent.cwd, 'begun'))
  const timers: Timers = {
    ...agent.timers,
    now: () => agent.timers.now() + (hasBegun() ? 100_001 : 0),
    async wait(milliseconds, signal) {
      // A negative wait means that the deadline has passed. It ends at once, not when the command ends.
      if (milliseconds < 0) return realTimers.wait(0, signal)
      const isDeadline = milliseconds > 50_000 && milliseconds <= 100_000
      if (!isDeadline) return agent.timers.wait(milliseconds, signal)
      while (!hasBegun() && !signal?.aborted) await realTimers.wait(1)
    },
  }
  const words = ['--deadline', '100', '--errors', 'json', '--tool', 'count=touch begun; sleep 1000']
  const { code, err } = await agent.run(['events', 'run', '-s', 's1', ...words, ...flags], { timers })
  return { agent, code, error: JSON.parse(err).error }
}

test('Y63: events run stops a --tool command at the deadline, exits with 15 and sends no reply (needs sh)', async () => {
  const { agent, code, error } = await stopInCommand(['do it', '--audit', 'a.ndjson'])
  expect({ code, posts: agent.posts, retry: error.retry }).toEqual({ code: 15, posts: 0, retry: 'later' })
  expect(eventsOf(agent)).toEqual(['decision', 'start'])
  expect(error.hints[0]).toBe(
    'the command for count (c1) was started and did not finish, so its effect is unknown; the resume command answers with an error',
  )
  expect(error.resume).toContain('--tool')
})

test.each([
  [
    'disappears',
    'rm a.ndjson',
    'it was removed while this run wrote it',
    'may not have arrived; the result is saved as FILE; the resume command does not start it again; if the session still waits, answer with --custom-tool-result c1=@FILE',
  ],
  [
    'cannot be written',
    'rm -r a.ndjson.*.parley-lock',
    'lock',
    'could not be recorded; the result is saved as FILE; answer with --custom-tool-result c1=@FILE before you resume, because the resume command answers with an error',
  ],
])(
  'if the audit file %s while a --tool command runs, events run saves the result of the command (needs sh)',
  async (_, command, message, hint) => {
    const agent = openAgent({ rounds: [[custom('c1')]], policy: askAll })
    const flags = ['--errors', 'json', '--report', 'r.json', '--tool', `count=${command}; echo ran`]
    const { code, err } = await agent.runTask(['do it', ...flags])
    const error = readError(err)
    expect([code, error.message]).toEqual([11, expect.stringContaining(message)])
    const [file = ''] = /[^ ]*parley-[^ ]*\.txt/.exec(String(error.hints[0])) ?? []
    expect(readFileSync(file, 'utf8')).toBe('ran\n')
    expect(error.hints[0].replaceAll(file, 'FILE')).toBe(
      `the command for count (c1) has run, but its result ${hint}`,
    )
    expect(agent.lines('r.json')[0]?.toolUses).toMatchObject({ allowed: 1, run: 1 })
    expect(error.resume.includes('--tool')).toBe(command !== 'rm a.ndjson')
  },
)

test('without --audit, the resume command of events run does not start an unfinished --tool command again (needs sh)', async () => {
  const { agent, code, error } = await stopInCommand(['do it', '--tool-timeout', '5m'])
  expect({ code, posts: agent.posts, retry: error.retry }).toEqual({ code: 15, posts: 0, retry: 'never' })
  expect(error.hints).toEqual([
    'the command for count (c1) was started and did not finish, so its effect is unknown; the resume command does not start it again; if it failed, answer with --custom-tool-error c1=TEXT',
    's1 waits for an answer to a tool use',
    'to send a result: parley events send -s s1 --custom-tool-result c1=TEXT',
  ])
  const words = 'events run -s s1 --no-stdin --deadline 100 --errors json --after e1'.split(' ')
  expect(error).toMatchObject({ resume: words, pending: ['c1'] })
})

test('if the deadline stops a --tool command, events run without a task and without --audit reports "retry": "look-first" (needs sh)', async () => {
  const { error } = await stopInCommand([], [userSays('go'), custom('c1'), waitsFor('c1')])
  expect(error).toMatchObject({ retry: 'look-first', safeToRetry: false })
})

const denied = (permission = 'ask') => uses('t1', 'rm x', { evaluated_permission: permission })
const old = (...events: Event[]) => [{ type: 'user.message' }, ...events, endTurn]

const silent: Event = { type: 'session.status_idle', stop_reason: { type: 'requires_action' } }

test.each<[exit: number, when: string, history: Event[], round: Event[]]>([
  [14, 'Y61: ran because it needed no confirmation', [], [denied('allow'), resultOf('t1')]],
  [14, 'Y91: ran although no client confirmed it', [], [denied(), resultOf('t1')]],
  [14, 'needed no confirmation and has no result', [], [denied('allow'), endTurn]],
  [14, 'ran before the run, because it needed no confirmation', old(denied('allow')), []],
  [14, 'ran before the run, although no client confirmed it', old(denied(), resultOf('t1')), []],
  [0, 'ran before the last task', [...old(denied('allow')), ...old()], []],
  [0, 'ran after another client allowed it', [], [denied(), confirms('t1'), resultOf('t1')]],
  [0, 'has a result although the service denied it', [], [denied('deny'), resultOf('t1')]],
  [13, 'may wait, because the idle event has no ids', [], [denied('allow'), silent]],
])('events run exits with %i if a tool use that the policy denies %s', async (exit, _, history, round) => {
  for (const echoes of [true, false]) {
    const agent = openAgent({ history, rounds: [round], echoes, policy })
    const { code, err } = await agent.runTask(round.length > 0 ? ['do it', '-q'] : ['-q'])
    const lines = agent.audit().map(({ event, toolUse }) => `${event} ${toolUse}`)
    expect([code, lines]).toEqual([exit, exit === 14 ? ['not-asked t1'] : []])
    const warning = 'the service ran a tool use that the policy denies: bash {"command":"rm x"} t1'
    expect(err.includes(warning)).toBe(exit === 14)
    expect(err.includes('1 tool use was denied or ran despite the policy\n')).toBe(exit === 14)
  }
})

test('events run warns before the session is idle if a tool use that the policy denies has run', async () => {
  const agent = openAgent({ rounds: [[denied('allow'), resultOf('t1')]], end: running, policy })
  expect((await agent.runTask(['do it', '--deadline', '60'])).code).toBe(15)
  expect(eventsOf(agent)).toEqual(['not-asked'])
})

test('events run warns that a tool use ran if the session waits only for another tool use', async () => {
  const agent = openAgent({ rounds: [[denied('allow'), uses('t2', 'ls')]], policy: { rules: [denyRm] } })
  expect((await agent.runTask()).code).toBe(12)
  expect(eventsOf(agent)).toContain('not-asked')
})

test('events run denies a tool use that waits for its result, and does not warn that it ran', async () => {
  const agent = openAgent({ history: old(), rounds: [[denied('allow'), waitsFor('t1')]], policy })
  expect((await agent.runTask()).code).toBe(14)
  expect(eventsOf(agent)).toEqual(['decision', 'sent', 'accepted'])
})

test('events run waits for the list before it warns that a tool use ran without a confirmation', async () => {
  const allowed = shown(confirms('t1'), { streamed: 'never' })
  const next = [running, denied(), allowed, resultOf('t1'), shown(endTurn, { after: 5_000 })]
  const service = createSessionService({ posts: [{ next }] })
  service.write('p.json', policy)
  const { code, err } = await service.run(['events', 'run', 'do it', '--policy', 'p.json'])
  expect([code, err]).toEqual([0, expect.not.stringContaining('that the policy denies')])
})

const twice = (more?: object) => [uses('t1', 'git status', more), uses('t1', 'rm -rf /', more)]
const selfHosted = { evaluated_permission: undefined }
const allowBash = { rules: [{ tool: 'bash', decision: 'allow' }], default: { decision: 'allow' } }

test.each<[string, Parameters<typeof openAgent>[0], string[], RunOptions?]>([
  ['a person types y', { rounds: [twice()], policy: askAll }, ['do it'], atTerminal('y\n')],
  ['a rule allows it', { rounds: [twice(selfHosted), [uses('t2')]], policy: allowBash }, ['do it']],
  ['--tool allows it', { rounds: [twice(selfHosted)], policy: askAll }, ['go', '--tool', 'bash=touch made']],
  ['both precede the run', { history: [...twice(), waitsFor('t1')], rounds: [], policy: allowBash }, []],
])('Y90: events run does not answer an id with two inputs, even if %s', async (_, script, words, world) => {
  const agent = openAgent(script)
  const { code, err } = await agent.runTask(words, world)
  expect(err).toContain('t1: the service sent it with two different inputs')
  const isMade = existsSync(join(agent.cwd, 'made'))
  expect({ code, posts: agent.posts, isMade }).toEqual({ code: 12, posts: 0, isMade: false })
})

test('events run denies a tool use id with two inputs if a rule denies one input', async () => {
  const agent = openAgent({ rounds: [twice()], policy })
  expect((await agent.runTask()).code).toBe(14)
  expect(repliesTo(agent)).toEqual([['t1', 'deny']])
})

/** Creates an agent that waits for t1. The posted replies get these outcomes, in order. */
const open = (...outcomes: Outcome[]) =>
  openAgent({ rounds: [[uses('t1')]], outcome: () => outcomes.shift() ?? 'takes', policy })

test('events run does not repeat a reply after an error in a 200, and exits with 10 unless the list shows the reply', async () => {
  const error = 'rate_limit_error'
  const accepting = open({ status: 200, error, isAccepted: true })
  expect([(await accepting.runTask()).code, accepting.posts]).toEqual([0, 1])
  expect(eventsOf(accepting)).toEqual(['decision', 'sent', 'unknown', 'accepted'])

  const agent = open({ status: 200, error })
  const { code, err } = await agent.runTask()
  expect(err).toContain('it is not known whether the answer to t1 arrived')
  expect(err).toContain("check with 'parley events list -s s1' before you answer again\n")
  expect([code, (await agent.runTask([])).code, agent.posts]).toEqual([10, 10, 1])
})

test('events run does not send a task again after an error in a 200, and a rerun exits with 10', async () => {
  const taskOutcome = (): Outcome => ({ status: 200, error: 'rate_limit_error' })
  const agent = openAgent({ rounds: [], taskOutcome })
  const { code, err } = await agent.runTask()
  expect(err).toContain('the event may have been accepted')
  expect([code, (await agent.runTask()).code, agent.tasks]).toEqual([6, 10, 1])
})

test.each<[string, Outcome, string[], number]>([
  ['two 429 responses', 'limits', [], 3],
  ['--retries 0', 'limits', ['--retries', '0'], 1],
  ['a 429 with x-should-retry: false', { status: 429, headers: { 'x-should-retry': 'false' } }, [], 1],
  ['a 429 with a long Retry-After', { status: 429, headers: { 'retry-after': '61' } }, [], 1],
  ['a 503 with Retry-After', { status: 503, headers: { 'retry-after': '1' } }, [], 3],
])('events run retries a refused reply like a refused task: %s', async (_, outcome, flags, posts) => {
  const expected = { code: 6, posts }
  const replying = openAgent({ rounds: [[uses('t1')]], outcome: () => outcome, policy })
  const { code, err, requests } = await replying.runTask(['do it', ...flags, '--errors', 'json'])
  expect({ code, posts: replying.posts }).toEqual(expected)
  const error = readError(err)
  const resume = expect.arrayContaining(['run', '-s', 's1'])
  expect(error).toMatchObject({ retry: 'later', attempts: requests.length, pending: ['t1'], resume })
  const sending = openAgent({ rounds: [], taskOutcome: () => outcome })
  const { code: taskCode } = await sending.runTask(['do it', ...flags])
  expect({ code: taskCode, posts: sending.tasks }).toEqual(expected)
})

test.each<[number, number, Record<string, string>]>([
  [400, 4, {}],
  [401, 3, {}],
  [429, 6, { 'retry-after': '0' }],
])('Y54: a reply that gets a %i (exit %i) is sent again by the next run', async (status, exit, headers) => {
  let outcome: Outcome = { status, headers }
  const agent = openAgent({ rounds: [[uses('t1')]], outcome: () => outcome, policy })
  const { code, err } = await agent.runTask(['do it', '--report', 'report.json'])
  expect(code).toBe(exit)
  expect(agent.report().toolUses).toMatchObject({ allowed: 0, denied: 0, run: 0, open: 1 })
  expect(err).toContain('the answer to t1 was refused: ')
  const resume = 'events run -s s1 --no-stdin --policy p.json --audit a.ndjson --report report.json'
  const secret = status === 401 ? '  the refused secret is from PARLEY_API_KEY: change it there\n' : ''
  expect(err).toContain(`the task was accepted\n${secret}  to resume:\n  parley ${resume}\n`)
  const reason = expect.stringContaining(`${status}`)
  expect(agent.audit().at(-1)).toMatchObject({ toolUse: 't1', event: 'refused', reason })
  outcome = 'takes'
  expect((await agent.runTask([])).code).toBe(0)
  expect(agent.acceptedReplies.get('t1')).toHaveLength(1)
  expect(eventsOf(agent).slice(-3)).toEqual(['decision', 'sent', 'accepted'])
})

test("Y94: if the service refuses a command's result, the next run sends the saved result (needs sh)", async () => {
  let outcome: Outcome = { status: 400 }
  const agent = openAgent({ rounds: [[custom('c1')]], outcome: () => outcome })
  const tool = ['--tool', 'count=echo ran >> runs; echo out; exit 3']
  expect((await agent.runTask(['do it', ...tool])).code).toBe(4)
  expect(eventsOf(agent)).toEqual(['decision', 'start', 'end', 'sent', 'refused'])
  const content = [{ type: 'text', text: 'the command failed with exit code 3' }]
  const result = { type: 'user.custom_tool_result', custom_tool_use_id: 'c1', content, is_error: true }
  expect(agent.audit()[2]?.result).toEqual(result)
  outcome = 'takes'
  expect((await agent.runTask(tool)).code).toBe(0)
  expect(agent.acceptedReplies.get('c1')).toEqual([result])
  expect(readFileSync(join(agent.cwd, 'runs'), 'utf8')).toBe('ran\n')
})

test('Y55: if another client replies first to one of two tool uses, events run still replies to the second', async () => {
  const outcomes: Outcome[] = ['refuses']
  const agent = openAgent({
    rounds: [[uses('t1'), uses('t2')]],
    outcome: () => outcomes.shift() ?? 'takes',
    onPost() {
      if (agent.posts === 1) agent.answer(confirms('t1'))
    },
    policy,
  })
  expect((await agent.runTask()).code).toBe(0)
  expect([...agent.acceptedReplies.values()].map(({ length }) => length)).toEqual([1, 1])
})

test('Y216: events run exits with 15 and does not repeat a reply if Retry-After exceeds the deadline', async () => {
  const agent = open({ status: 429, headers: { 'retry-after': '60' } })
  const { code } = await agent.runTask(['do it', '--deadline', '30'])
  expect({ code, posts: agent.posts }).toEqual({ code: 15, posts: 1 })
  expect(eventsOf(agent)).toEqual(['decision', 'sent', 'refused'])
})

const line = (event: string, toolUse = 't1', more: object = {}) =>
  `${JSON.stringify({ time: '', session: 's1', toolUse, name: 'bash', event, ...more })}\n`
/** Creates an audit file with this text, and an agent that waits for a reply to `use`. */
function openWith(text: string, use = uses('t1')) {
  const agent = openAgent({ history: [use, waitsFor(String(use.id))], rounds: [], policy })
  agent.write('a.ndjson', text)
  return agent
}

test("Y96: events run repeats an earlier run's reply if a later idle event than that of the reply lists the tool use", async () => {
  const waits = (id: string) => ({ ...waitsFor('t1'), id })
  const history = [{ type: 'user.message' }, uses('t1'), waits('r1'), running, waits('r2')]
  const agent = openAgent({ history, rounds: [], policy })
  const time = new Date(agent.timers.wallTime() - 3_600_000).toISOString()
  agent.write('a.ndjson', line('sent', 't1', { time, rest: 'r1' }))
  const { code } = await agent.runTask([])
  expect([code, agent.acceptedReplies.get('t1')?.length]).toEqual([0, 1])
})

test('Y95: events run exits with 11 and names a lock file that it cannot create (needs POSIX files)', async () => {
  const long = 'a'.repeat(250)
  const argv = ['events', 'run', 'x', '-s', 's1', '--audit', long]
  const { code, err, requests } = await run(argv, { cwd: temporaryFolder(), stdin: '' })
  expect({ code, requests }).toEqual({ code: 11, requests: [] })
  expect(err).toContain(`audit file, ${getLockPath(long)}: the name is too long\n  nothing was sent\n`)
})

const slog = '{"time":"2026-01-01T00:00:00Z","level":"INFO","msg":"x"}'
test.each([
  ['a policy file', JSON.stringify(always('allow')), 1],
  ['a log whose last line is not an audit line', line('sent') + slog, 2],
])('Y97: events run exits with 11 and keeps the --audit file if it is %s', async (_, text, badLine) => {
  const agent = openWith(text)
  const file = join(agent.cwd, 'a.ndjson')
  chmodSync(file, 0o644)
  const { mode } = statSync(file)
  const { code, err } = await agent.runTask([])
  expect({ code, posts: agent.posts }).toEqual({ code: 11, posts: 0 })
  const why = `a.ndjson: line ${badLine} is not an audit line; name another file\n  nothing was sent\n`
  expect(err).toContain(why)
  expect([readFileSync(file, 'utf8'), statSync(file).mode]).toEqual([text, mode])
  expect(readdirSync(agent.cwd).sort()).toEqual(['.cache', 'a.ndjson', 'allow.json', 'p.json'])
})

test('Y58: events run sends "effect unknown" as the result of a command that an earlier run did not finish', async () => {
  const agent = openWith(line('start', 'c1'), custom('c1'))
  const { code, err } = await agent.runTask(['--tool', 'count=touch made', '-q', '--report', 'r.json'])
  const why = 'an earlier run ended while the command ran: interrupted, effect unknown'
  expect([code, err]).toEqual([0, `parley: the tool use c1 failed (count): ${why}\n`])
  expect(agent.lines('r.json')[0]?.toolUses).toMatchObject({ run: 0, failedCommands: 1, open: 0 })
  const reply = agent.acceptedReplies.get('c1')?.[0]
  expect(reply).toMatchObject({ is_error: true, content: [{ text: 'interrupted, effect unknown' }] })
  expect(existsSync(join(agent.cwd, 'made'))).toBe(false)
})

test('Y59: events run exits with 11 and sends nothing if the audit file is a FIFO (needs FIFOs)', async () => {
  const agent = openAgent({ rounds: [] })
  execFileSync('mkfifo', [join(agent.cwd, 'a.ndjson')])
  const { code, err, requests } = await agent.runTask()
  expect({ code, requests }).toEqual({ code: 11, requests: [] })
  expect(err).toContain('it is not a regular file')
})

test('Y62: events run leaves a tool use open if its id has a colon or a dot, and prints why', async () => {
  const agent = openAgent({ rounds: [[uses('call:1.x'), uses('t2')]], policy })
  const { code, err } = await agent.runTask()
  expect({ code, replies: repliesTo(agent) }).toEqual({ code: 12, replies: [['t2', 'allow']] })
  const why = 'events run answers only tool uses whose id has 1 to 128 letters, digits, _ or -'
  expect(err).toContain(`call:1.x is not answered: ${why}\n`)
  expect(err).toContain('answer with: parley events confirm -s s1 call:1.x --allow\n')
  expect((await agent.run(['events', 'confirm', '-s', 's1', 'call:1.x', '--allow'])).code).toBe(0)
  expect([...agent.acceptedReplies.keys()]).toEqual(['t2', 'call:1.x'])
})

test('events run and confirm quote and shorten an unusual id of the service in their messages', async () => {
  const id = `t1 is denied; ${'x'.repeat(1_000)}`
  const quoted = `"t1 is denied; ${'x'.repeat(46)}…"`
  const agent = openAgent({ rounds: [[custom(id)]] })
  expect((await agent.runTask()).err).toContain(`parley: ${quoted} is not answered: `)
  const confirmed = await agent.run(['events', 'confirm', '-s', 's1', '--pending', '--allow'])
  expect(confirmed.err).toContain(`${quoted} is an agent.custom_tool_use: `)
})

test('events run without a task exits with 14 if the last task has a denied tool use, and with 0 if all are allowed', async () => {
  // Without an audit file and a task, the run reads the denials from the session's events.
  const later = ['events', 'run', '-s', 's1', '--no-stdin']
  const denied = openAgent({ rounds: [[uses('t1', 'rm -rf x')]], policy })
  expect((await denied.runTask()).code).toBe(14)
  const err = expect.stringContaining('deny bash t1 (by another client or run)')
  expect(await denied.run(later)).toMatchObject({ code: 14, err })
  const open = openAgent({ rounds: [[uses('t1')]], policy: askAll })
  expect((await open.runTask()).code).toBe(12)
  open.answer(confirms('t1'))
  expect((await open.run(later)).code).toBe(0)
})

test('events run --dry-run checks the policy, prints the first request and writes no audit file', async () => {
  const agent = openAgent({ rounds: [] })
  const { code, out, requests } = await agent.runTask(['do it', '--dry-run'])
  expect({ code, requests }).toEqual({ code: 0, requests: [] })
  expect(JSON.parse(out).body.events[0].content[0].text).toBe('do it')
  expect(existsSync(join(agent.cwd, 'a.ndjson'))).toBe(false)
  expect((await agent.runTask(['--dry-run'])).code).toBe(2)
})

test.each([
  ['ends once the session is idle', [{ status: 'running' }, { status: 'idle' }], 0, 'the answer\n'],
  ['exits with 15 at the deadline if the status is not a text', [{ status: ['idle'] }], 15, ''],
  ['exits with 15 at the deadline if the service has no such request', [{ status: 404 }], 15, ''],
])(
  'Y232: if the service sends no idle events, events run queries the session and %s',
  async (_, sessions, expected, answer) => {
    let queries = 0
    const service = createSessionService({
      posts: [{ next: [running, says('the answer'), { type: 'span.model_request_end' }] }],
      session: () => sessions[Math.min(queries++, sessions.length - 1)] ?? {},
    })
    const { code, out } = await service.run(['events', 'run', 'do it', '--last', '--deadline', '2m'])
    expect({ code, out }).toEqual({ code: expected, out: answer })
    expect(queries).toBeGreaterThan(1)
  },
)
