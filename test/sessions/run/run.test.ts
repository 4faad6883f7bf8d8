import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createEmulator } from '../../../src/emulator/emulator.ts'
import { realTimers } from '../../../src/timers.ts'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { createIdleClock } from '../../harness/clock.ts'
import {
  answering,
  createFastClock,
  ownerOnlyMode,
  type RunOptions,
  run,
  temporaryFolder,
} from '../../harness/run.ts'
import { says, waitsFor } from '../../harness/session-service.ts'
import {
  type AgentScript,
  createAgentService as createService,
  type Event,
  getLockPath,
  type Outcome,
} from './agent-service.ts'

const clock = createIdleClock()

/** Creates an agent service with `clock`, which stops while a --tool command runs. */
const createAgentService = (script: AgentScript) => createService(Object.assign(script, { timers: clock }))

/** Returns `clock`, but a wait of `limit` milliseconds takes 50 ms, so a command that never ends is stopped. */
const withShort = (limit: number): typeof clock => ({
  ...clock,
  wait: (milliseconds, signal) =>
    milliseconds === limit ? realTimers.wait(50, signal) : clock.wait(milliseconds, signal),
})

const rules = {
  rules: [
    { tool: 'bash', input: { command: 'git status' }, decision: 'allow' },
    { tool: 'bash', input: { command: '*rm *' }, decision: 'deny', reason: 'no deleting' },
    { tool: 'create_issue', server: 'github', input: { title: '*' }, decision: 'allow' },
  ],
  default: { decision: 'deny', reason: 'not in CI' },
}

const allowAll = { rules: [], default: { decision: 'allow' } }
const askAll = { rules: [] }

const bash = (id: string, command: string, more: object = {}): Event => ({
  id,
  type: 'agent.tool_use',
  name: 'bash',
  input: { command },
  evaluated_permission: 'ask',
  ...more,
})
const custom = (id: string, name: string, input: object = {}): Event => ({
  id,
  type: 'agent.custom_tool_use',
  name,
  input,
})

interface Options {
  policy?: object
  words?: string[]
  cwd?: string
  world?: RunOptions
}

/** Runs events run with a policy and an audit file. */
async function runWithPolicy({
  policy = rules,
  words = ['do it'],
  cwd = temporaryFolder(),
  world = {},
}: Options = {}) {
  writeFileSync(join(cwd, 'p.json'), JSON.stringify(policy))
  const argv = ['events', 'run', '-s', 's1', '--policy', 'p.json', '--audit', 'audit.ndjson', ...words]
  const ended = await run(argv, { cwd, timers: clock, stdin: '', ...world })
  return { ...ended, cwd, audit: ended.code === 11 ? [] : readAudit(cwd) }
}

/** Returns the audit lines about tool uses. */
const readAudit = (cwd: string) =>
  existsSync(join(cwd, 'audit.ndjson'))
    ? readFileSync(join(cwd, 'audit.ndjson'), 'utf8')
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line))
        .filter(({ toolUse }) => toolUse !== null)
    : []

/** Returns the posted replies. */
const answersIn = (requests: { method: string; text: string }[]) =>
  requests
    .filter(({ method }) => method === 'POST')
    .flatMap(({ text }) => JSON.parse(text).events as Event[])
    .filter(({ type }) => type !== 'user.message')

test('events run sends the task once, replies to tool uses by the policy, and ends with the turn', async () => {
  const task = 'use bash {"command":"git status"}\nthen use mcp github create_issue {"title":"Fix it"}'
  const { code, out, requests, audit, cwd } = await runWithPolicy({
    words: [task],
    world: { exchange: createEmulator({}) },
  })
  expect(code).toBe(0)
  expect(answersIn(requests).map(({ type, result }) => [type, result])).toEqual([
    ['user.tool_confirmation', 'allow'],
    ['user.tool_confirmation', 'allow'],
  ])
  expect(out).toMatch(/The emulated agent is done\.\n.*\n.*end_turn\n$/)
  expect(audit.map(({ event, decision, rule }) => [event, decision, rule])).toEqual([
    ['decision', 'allow', 0],
    ['sent', undefined, undefined],
    ['accepted', undefined, undefined],
    ['decision', 'allow', 2],
    ['sent', undefined, undefined],
    ['accepted', undefined, undefined],
  ])
  expect(audit[0]).toMatchObject({
    session: 's1',
    name: 'bash',
    input: { command: 'git status' },
    by: 'rule',
  })
  expect(statSync(join(cwd, 'audit.ndjson')).mode & 0o777).toBe(ownerOnlyMode)
})

test('events run sends the reason of each denial, follows the turn to its end, and exits with 14', async () => {
  const task = 'use bash {"command":"rm -rf x"}\nuse bash {"command":"git status"}\nuse other {}'
  const { code, err, requests, audit } = await runWithPolicy({
    words: [task],
    world: { exchange: createEmulator({}) },
  })
  expect(code).toBe(14)
  expect(answersIn(requests).map(({ tool_use_id: _, ...answer }) => answer)).toEqual([
    { type: 'user.tool_confirmation', result: 'deny', deny_message: 'no deleting' },
    { type: 'user.tool_confirmation', result: 'allow' },
    { type: 'user.tool_confirmation', result: 'deny', deny_message: 'not in CI' },
  ])
  expect(requests.filter(({ method }) => method === 'POST')).toHaveLength(2)
  expect(err).toContain('s1 finished with 2 tool uses denied\n')
  expect(err).toContain('deny bash {"command":"rm -rf x"}')
  expect(err).toContain('(rules[1]: no deleting)')
  expect(audit.filter(({ event }) => event === 'decision').map(({ by }) => by)).toEqual([
    'rule',
    'rule',
    'default',
  ])
})

test('events run without a terminal leaves a tool use open, exits with 12 and prints the confirm command', async () => {
  const service = createAgentService({ rounds: [[bash('t1', 'ls'), bash('t2', 'git status')]] })
  const policy = { rules: [rules.rules[0]] }
  const { code, err, audit } = await runWithPolicy({ policy, world: { exchange: service.exchange } })
  expect(code).toBe(12)
  expect(err).toContain('answer with: parley events confirm -s s1 t1 --allow')
  expect([...service.acceptedReplies.keys()]).toEqual(['t2'])
  expect(
    audit.filter(({ event }) => event === 'decision').map(({ toolUse, decision }) => [toolUse, decision]),
  ).toEqual([
    ['t1', 'ask'],
    ['t2', 'allow'],
  ])
})

test('events run prompts a person on a terminal, and prints each decision with its rule', async () => {
  const service = createAgentService({
    rounds: [[bash('t1', 'ls'), bash('t2', 'git status')], [bash('t3', 'pwd')]],
  })
  const { code, out, err } = await runWithPolicy({
    policy: { rules: [rules.rules[0]] },
    world: {
      exchange: service.exchange,
      stdin: undefined,
      typed: 'y\nn because\n',
      tty: ['stdout', 'stderr'],
      env: { NO_COLOR: '1' },
    } as never,
  })
  expect(code).toBe(14)
  expect(
    [...service.acceptedReplies.values()].map(([answer]) => [answer?.tool_use_id, answer?.result]),
  ).toEqual([
    ['t1', 'allow'],
    ['t2', 'allow'],
    ['t3', 'deny'],
  ])
  expect(service.acceptedReplies.get('t3')?.[0]?.deny_message).toBe('because')
  expect(err).toContain('✓ bash allowed\n✓ bash allowed (rules[0])\n')
  expect(err).toContain('✗ bash denied: because\n')
  expect(out).toContain('\n· agent.tool_result bash: ok\n')
})

test('events run exits with 12 if a person skips a tool use', async () => {
  const service = createAgentService({ rounds: [[bash('t1', 'ls'), bash('t2', 'pwd')]] })
  const { code, err } = await runWithPolicy({
    policy: askAll,
    world: {
      exchange: service.exchange,
      stdin: undefined,
      typed: 's\ny\n',
      tty: ['stderr'],
      env: { NO_COLOR: '1' },
    },
  })
  expect(code).toBe(12)
  expect([...service.acceptedReplies.keys()]).toEqual(['t2'])
  expect(err).toContain('· bash stays open\n')
})

test('the key a at a prompt allows the same tool use for the rest of the run, but no other tool use', async () => {
  const service = createAgentService({
    rounds: [
      [bash('t1', 'ls'), bash('t2', 'ls')],
      [bash('t3', 'ls'), bash('t4', 'ls -a'), bash('t5', 'ls', { name: 'sh' })],
    ],
  })
  const cwd = temporaryFolder()
  const world = {
    exchange: service.exchange,
    stdin: undefined,
    tty: ['stderr' as const],
    env: { NO_COLOR: '1' },
  }
  const { code, err, audit } = await runWithPolicy({
    policy: askAll,
    cwd,
    world: { ...world, typed: 'a\nn\nn not this\n' },
  })
  expect(code, err).toBe(14)
  const results = [...service.acceptedReplies].map(([id, [event]]) => [id, event?.result])
  expect(results).toEqual([
    ['t1', 'allow'],
    ['t2', 'allow'],
    ['t3', 'allow'],
    ['t4', 'deny'],
    ['t5', 'deny'],
  ])
  expect(err.match(/ allow .*\? \[/g)).toEqual([
    ' allow bash (t1)? [',
    ' allow bash (t4)? [',
    ' allow sh (t5)? [',
  ])
  expect(err).toContain('  y allow, n deny, n REASON deny with a reason, a always allow this same call, s')
  expect(err).toContain('parley: t3 is allowed, because you always allow this call\n')
  const decisions = audit.filter(({ event }) => event === 'decision')
  expect(decisions.map(({ toolUse, decision, by }) => `${toolUse} ${decision} ${by}`)).toEqual([
    't1 allow person',
    't2 allow person',
    't3 allow person',
    't4 deny person',
    't5 deny person',
  ])
})

test('a deny rule overrides what a person allowed with the key a', async () => {
  const rm = bash('t2', 'ls; rm -r x')
  const service = createAgentService({ rounds: [[bash('t1', 'ls')], [rm]] })
  const { err } = await runWithPolicy({
    policy: { rules: [rules.rules[1]] },
    world: {
      exchange: service.exchange,
      stdin: undefined,
      typed: 'a\na\n',
      tty: ['stderr'],
      env: { NO_COLOR: '1' },
    },
  })
  expect([...service.acceptedReplies.keys()]).toEqual(['t1', 't2'])
  expect(service.acceptedReplies.get('t2')).toMatchObject([{ result: 'deny', deny_message: 'no deleting' }])
  expect(err).not.toContain('(t2)? ')
})

test('the key a cannot allow a tool use whose input repeats a key', async () => {
  const service = createAgentService({ rounds: [[bash('t1', 'TWICE')]] })
  const exchange: Exchange = async (request) => {
    const response = await service.exchange(request)
    return {
      ...response,
      body: replaceIn(response.body, '"command":"TWICE"', '"command":"ls","command":"rm"'),
    }
  }
  const { code, err } = await runWithPolicy({
    policy: askAll,
    world: { exchange, stdin: undefined, typed: 'a\ns\n', tty: ['stderr'], env: { NO_COLOR: '1' } },
  })
  expect(code, err).toBe(12)
  expect(err).toContain('[y/n/s/q] ')
  expect(service.acceptedReplies.size).toBe(0)
})

async function* replaceIn(body: AsyncIterable<Uint8Array>, text: string, other: string) {
  for await (const bytes of body) yield Buffer.from(Buffer.from(bytes).toString().replaceAll(text, other))
}

test('V62: events run prints an events send command, not events confirm, for a self-hosted tool use', async () => {
  const flag = '--tool-result c1=TEXT'
  const service = createAgentService({
    history: [bash('c1', 'ls', { evaluated_permission: 'allow' }), waitsFor('c1')],
    rounds: [],
  })
  const { code, err } = await runWithPolicy({
    policy: allowAll,
    words: [],
    world: { exchange: service.exchange },
  })
  expect(code).toBe(12)
  expect(err).toContain(`\n  to send a result: parley events send -s s1 ${flag}\n`)
  const followed = await run(['events', 'follow', '-s', 's1'], { exchange: service.exchange })
  expect(followed.code).toBe(12)
  expect(followed.err).toContain(`to send a result: parley events send -s s1 ${flag}`)
  expect(err + followed.err).not.toContain('confirm')
})

test('events run without a task replies to the tool uses for which the session waits', async () => {
  const service = createAgentService({ history: [bash('t1', 'git status'), waitsFor('t1')], rounds: [] })
  const { code, requests } = await runWithPolicy({ words: [], world: { exchange: service.exchange } })
  expect(code).toBe(0)
  expect(service.tasks).toBe(0)
  expect(answersIn(requests)).toHaveLength(1)
})

describe('--tool commands', () => {
  test('a --tool command gets its input on stdin, and no PARLEY_ variable of the user (needs sh)', async () => {
    const service = createAgentService({ rounds: [[custom('c1', 'deploy', { env: 'test' })]] })
    const command = 'cat; env | grep ^PARLEY_ | sort'
    const { code, audit } = await runWithPolicy({
      words: ['do it', '--tool', `deploy=${command}`],
      world: { exchange: service.exchange, env: { PARLEY_THING: 'canary', OTHER: 'x' } },
    })
    expect(code).toBe(0)
    expect(service.acceptedReplies.get('c1')).toEqual([
      {
        type: 'user.custom_tool_result',
        custom_tool_use_id: 'c1',
        content: [
          {
            type: 'text',
            text: '{"env":"test"}PARLEY_SESSION=s1\nPARLEY_TOOL_NAME=deploy\nPARLEY_TOOL_USE_ID=c1\n',
          },
        ],
      },
    ])
    expect(audit.map(({ event }) => event)).toEqual(['decision', 'start', 'end', 'sent', 'accepted'])
    expect(audit[0]).toMatchObject({ decision: 'allow', by: 'tool' })
  })

  test.each([
    ['fails', 'echo why >&2; exit 3', 'the command failed with exit code 3:\nwhy'],
    ['prints invalid UTF-8', String.raw`printf '\377'`, 'the command printed text that is not UTF-8'],
    ['takes too long', 'sleep 1000 & sleep 1000', 'the command did not end within 20 s'],
  ])(
    'Y60: events run sends the agent an error result if a --tool command %s (needs sh)',
    async (_, command, text) => {
      const service = createAgentService({ rounds: [[custom('c1', 'x')]] })
      const { code } = await runWithPolicy({
        words: ['do it', '--tool', `x=${command}`, '--tool-timeout', '20s'],
        // Only the command that never ends gets a short time limit.
        world: {
          exchange: service.exchange,
          timers: command.startsWith('sleep') ? withShort(20_000) : clock,
        },
      })
      expect(code).toBe(0)
      expect(service.acceptedReplies.get('c1')?.[0]).toMatchObject({ is_error: true, content: [{ text }] })
    },
  )

  test('events run does not run a --tool command if the policy denies the tool, and sends the reason', async () => {
    const service = createAgentService({ rounds: [[custom('c1', 'x')]] })
    const policy = { rules: [{ tool: 'x', decision: 'deny', reason: 'never' }] }
    const { code, audit } = await runWithPolicy({
      policy,
      words: ['do it', '--tool', 'x=touch made'],
      world: { exchange: service.exchange },
    })
    expect(code).toBe(14)
    expect(service.acceptedReplies.get('c1')?.[0]).toMatchObject({
      is_error: true,
      content: [{ text: 'never' }],
    })
    expect(audit.some(({ event }) => event === 'start')).toBe(false)
  })

  test('events run runs --tool commands only for tool uses that wait for a result (needs sh)', async () => {
    const self = { evaluated_permission: undefined }
    const mcp: Event = { id: 'm1', type: 'agent.mcp_tool_use', name: 'bash', input: {}, mcp_server_name: 'm' }
    const service = createAgentService({ rounds: [[bash('t1', 'a', self), bash('t2', 'b'), mcp]] })
    const { code } = await runWithPolicy({
      policy: askAll,
      words: ['do it', '--tool', 'bash=echo hi'],
      world: { exchange: service.exchange },
    })
    expect(code).toBe(12)
    expect([...service.acceptedReplies]).toEqual([
      ['t1', [{ type: 'user.tool_result', tool_use_id: 't1', content: [{ type: 'text', text: 'hi\n' }] }]],
    ])
  })

  test('events run leaves an allowed custom tool use without a command open, and exits with 12', async () => {
    const service = createAgentService({ rounds: [[custom('c1', 'x')]] })
    expect((await runWithPolicy({ policy: allowAll, world: { exchange: service.exchange } })).code).toBe(12)
    expect(service.acceptedReplies.size).toBe(0)
  })
})

test('Y61: events run warns, writes an audit line and exits with 14 if the service ran a denied tool', async () => {
  const ran = (id: string, more: object): Event[] => [
    bash(id, 'rm -rf x', more),
    { type: 'agent.tool_result', tool_use_id: id, content: 'gone' },
  ]
  const service = createAgentService({
    rounds: [
      [
        ...ran('t1', { evaluated_permission: 'allow' }),
        bash('t2', 'git status', { evaluated_permission: 'allow' }),
      ],
    ],
  })
  const { code, err, audit } = await runWithPolicy({
    words: ['do it', '-q'],
    world: { exchange: service.exchange },
  })
  expect(code).toBe(14)
  expect(err).toContain('the service ran a tool use that the policy denies: bash {"command":"rm -rf x"} t1')
  expect(audit.map(({ event, toolUse, decision }) => [event, toolUse, decision])).toEqual([
    ['not-asked', 't1', 'deny'],
  ])
})

const warning = 'the service ran a tool use that the policy denies: '

test('Y91: events run warns and exits with 14 if a denied tool use has a result that nobody confirmed', async () => {
  const service = createAgentService({
    rounds: [[bash('t1', 'rm x'), { type: 'agent.tool_result', tool_use_id: 't1', content: 'gone' }]],
  })
  const { code, err, audit } = await runWithPolicy({ world: { exchange: service.exchange } })
  expect(code).toBe(14)
  expect(err).toContain(`${warning}bash {"command":"rm x"} t1`)
  expect(audit.map(({ event, toolUse }) => [event, toolUse])).toEqual([['not-asked', 't1']])
})

test.each([true, false])(
  'Y91: events run does not warn about a denied tool use that another client allowed (the stream shows it: %s)',
  async (echoes) => {
    const service = createAgentService({
      rounds: [
        [
          bash('t1', 'rm x'),
          { type: 'user.tool_confirmation', tool_use_id: 't1', result: 'allow' },
          { type: 'agent.tool_result', tool_use_id: 't1', content: 'gone' },
        ],
      ],
      echoes,
    })
    const { code, err, audit } = await runWithPolicy({ world: { exchange: service.exchange } })
    expect({ code, audit }).toEqual({ code: 0, audit: [] })
    expect(err).not.toContain(warning)
  },
)

test.each([true, false])(
  'Y61: events run warns and exits with 14 if a denied tool ran before it started (has a result: %s)',
  async (hasResult) => {
    const result = { type: 'agent.tool_result', tool_use_id: 't1', content: 'gone' }
    const ran = bash('t1', 'rm x', { evaluated_permission: hasResult ? 'ask' : 'allow' })
    const end = { type: 'session.status_idle', stop_reason: { type: 'end_turn' } }
    const history = [{ type: 'user.message' }, ran, ...(hasResult ? [result] : []), end]
    const service = createAgentService({ history, rounds: [] })
    const { code, err, audit } = await runWithPolicy({ words: [], world: { exchange: service.exchange } })
    expect({ code, notes: audit.map(({ event }) => event) }).toEqual({ code: 14, notes: ['not-asked'] })
    expect(err).toContain(`${warning}bash {"command":"rm x"} t1`)
    const later = createAgentService({ history: [...history, { type: 'user.message' }, end], rounds: [] })
    expect((await runWithPolicy({ words: [], world: { exchange: later.exchange } })).code).toBe(0)
  },
)

describe('Y90: id with two inputs', () => {
  const allowBash = { rules: [{ tool: 'bash', decision: 'allow' }], default: { decision: 'allow' } }
  const twice = () => [bash('t1', 'git status'), bash('t1', 'rm -rf /')]

  test.each([
    ['by a rule', { rules: [rules.rules[0], { tool: 'bash', decision: 'allow' }] }, []],
    ['by --tool', askAll, ['--tool', 'bash=touch made']],
  ])('events run never allows an id with two inputs %s, and exits with 12', async (_, policy, words) => {
    const service = createAgentService({
      rounds: [
        twice().map((use) => ({ ...use, evaluated_permission: undefined })),
        [bash('t2', 'git status')],
      ],
    })
    const { code, cwd } = await runWithPolicy({
      policy,
      words: ['do it', ...words],
      world: { exchange: service.exchange },
    })
    expect({ code, posts: service.posts, isMade: existsSync(join(cwd, 'made')) }).toEqual({
      code: 12,
      posts: 0,
      isMade: false,
    })
  })

  test('events run never allows an id with two inputs from before the run', async () => {
    const accepting = createAgentService({ history: [...twice(), waitsFor('t1')], rounds: [] })
    const { code } = await runWithPolicy({
      policy: allowBash,
      words: [],
      world: { exchange: accepting.exchange },
    })
    expect({ code, posts: accepting.posts }).toEqual({ code: 12, posts: 0 })
  })

  test('events run denies an id with two inputs if a rule denies one of them', async () => {
    const service = createAgentService({ rounds: [twice()] })
    expect((await runWithPolicy({ world: { exchange: service.exchange } })).code).toBe(14)
    expect(service.acceptedReplies.get('t1')).toMatchObject([{ result: 'deny' }])
  })

  test('events run does not prompt about an id with two inputs, and prints why', async () => {
    const service = createAgentService({ rounds: [twice()] })
    const world = {
      exchange: service.exchange,
      stdin: undefined,
      typed: 'y\n',
      tty: ['stdout', 'stderr'],
    } as never
    const { code, err } = await runWithPolicy({ policy: askAll, world })
    expect({ code, posts: service.posts }).toEqual({ code: 12, posts: 0 })
    expect(err).toContain('t1 is not answered: the service sent it with two different inputs')
  })
})

describe('reply of unknown delivery', () => {
  const once = (outcome: Outcome) => {
    const outcomes: Outcome[] = [outcome]
    return () => outcomes.shift() ?? 'takes'
  }
  const begin = (outcome: Outcome) =>
    createAgentService({ rounds: [[bash('t1', 'git status')]], outcome: once(outcome) })

  test.each<Outcome>(['resets', 'fails late', 'cuts'])(
    'Y50: events run sends no second reply if the first arrived, but its response did not (the service %s)',
    async (outcome) => {
      const service = begin(outcome)
      const { code, audit } = await runWithPolicy({ world: { exchange: service.exchange } })
      expect({ code, posts: service.posts }).toEqual({ code: 0, posts: 1 })
      expect(audit.at(-1)).toMatchObject({ toolUse: 't1', event: 'accepted' })
    },
  )

  test('Y51: events run exits with 10, names the id and sends no second reply if no list shows the reply', async () => {
    const service = begin('loses')
    const { code, err, audit } = await runWithPolicy({ world: { exchange: service.exchange } })
    expect({ code, posts: service.posts }).toEqual({ code: 10, posts: 1 })
    expect(err).toContain('it is not known whether the answer to t1 arrived')
    expect(err).toContain("check with 'parley events list -s s1' before you answer again\n")
    expect(audit.map(({ event }) => event)).toEqual(['decision', 'sent', 'unknown'])
  })

  test.each(['rate_limit_error', 'forbidden'])(
    'the list, not an error in a 200, decides whether a reply arrived, and no second one is sent: %s',
    async (error) => {
      const accepting = begin({ status: 200, error, isAccepted: true })
      const ended = await runWithPolicy({ world: { exchange: accepting.exchange } })
      expect({ code: ended.code, posts: accepting.posts }).toEqual({ code: 0, posts: 1 })
      expect(ended.audit.map(({ event }) => event)).toEqual(['decision', 'sent', 'unknown', 'accepted'])

      const service = begin({ status: 200, error })
      const { code, err, cwd } = await runWithPolicy({ world: { exchange: service.exchange } })
      expect(err).toContain('it is not known whether the answer to t1 arrived')
      const next = await runWithPolicy({ words: [], cwd, world: { exchange: service.exchange } })
      expect({ codes: [code, next.code], posts: service.posts }).toEqual({ codes: [10, 10], posts: 1 })
    },
  )

  test('events run does not send a task again after an error in a 200, and a rerun exits with 10', async () => {
    const script = { rounds: [], taskOutcome: (): Outcome => ({ status: 200, error: 'rate_limit_error' }) }
    const service = createAgentService(script)
    const { code, err, cwd } = await runWithPolicy({ world: { exchange: service.exchange } })
    expect(err).toContain('the task may have been accepted')
    const next = await runWithPolicy({ cwd, world: { exchange: service.exchange } })
    expect({ codes: [code, next.code], tasks: service.tasks }).toEqual({ codes: [6, 10], tasks: 1 })
  })

  test('Y69: events run does not send a reply again if a newer idle event is listed before the reply', async () => {
    const outcomes: Outcome[] = ['takes', 'resets']
    const service = createService({
      rounds: [[bash('t1', 'git status'), custom('c1', 'x')]],
      outcome: () => outcomes.shift() ?? 'takes',
      onList(count) {
        if (service.posts !== 2 || count > 4) return undefined
        const answer = service.events.findIndex(({ custom_tool_use_id: id }) => id === 'c1')
        return count === 1 ? answer - 2 : answer
      },
    })
    const cwd = temporaryFolder()
    const words = ['do it', '--tool', 'x=until [ -e go ]; do sleep 0.01; done', '--tool-timeout', '1h']
    const running = runWithPolicy({
      words,
      cwd,
      world: { exchange: service.exchange, timers: createFastClock(4) },
    })
    // Before the command ends, the session becomes idle again and waits only for the command.
    while (service.events.filter(({ type }) => type === 'session.status_idle').length < 2)
      await new Promise((resolve) => setTimeout(resolve, 1))
    writeFileSync(join(cwd, 'go'), '')
    expect((await running).code).toBe(0)
    expect({ posts: service.posts, answers: service.acceptedReplies.get('c1')?.length }).toEqual({
      posts: 2,
      answers: 1,
    })
  })

  test('Y53: events run sends a reply again after several 429', async () => {
    const outcomes: Outcome[] = ['limits', 'limits', 'limits', 'limits', 'limits']
    const service = createAgentService({
      rounds: [[bash('t1', 'git status')]],
      outcome: () => outcomes.shift() ?? 'takes',
    })
    expect((await runWithPolicy({ world: { exchange: service.exchange } })).code).toBe(0)
    expect(service.acceptedReplies.get('t1')).toHaveLength(1)
  })

  const again = { 'retry-after': '0' }
  test.each<[number, number, Record<string, string>?]>([
    [400, 4],
    [429, 6, again],
  ])(
    'Y54: after %i, events run exits with %i and names the refused reply; the next run sends it again',
    async (status, exit, headers = {}) => {
      let outcome: Outcome = { status, headers }
      const service = createAgentService({ rounds: [[bash('t1', 'git status')]], outcome: () => outcome })
      const { code, err, audit, cwd } = await runWithPolicy({ world: { exchange: service.exchange } })
      expect(code).toBe(exit)
      expect(err).toContain('the reply to t1 was refused: ')
      expect(err).toContain(
        'the task was accepted\n  to resume:\n  parley events run -s s1 --no-stdin --policy p.json --audit audit.ndjson\n',
      )
      expect(audit.at(-1)).toMatchObject({
        toolUse: 't1',
        event: 'refused',
        reason: expect.stringContaining(`${status}`),
      })
      outcome = 'takes'
      expect((await runWithPolicy({ words: [], cwd, world: { exchange: service.exchange } })).code).toBe(0)
      expect(service.acceptedReplies.get('t1')).toHaveLength(1)
      expect(
        readAudit(cwd)
          .map(({ event }) => event)
          .slice(-3),
      ).toEqual(['decision', 'sent', 'accepted'])
    },
  )

  test('Y93: events run exits with 6 after one request if a 429 has x-should-retry: false', async () => {
    const outcome: Outcome = { status: 429, headers: { 'retry-after': '0', 'x-should-retry': 'false' } }
    const service = createAgentService({ rounds: [[bash('t1', 'git status')]], outcome: () => outcome })
    expect((await runWithPolicy({ world: { exchange: service.exchange } })).code).toBe(6)
    expect(service.posts).toBe(1)
  })

  test("Y94: events run saves a command's result if the reply is refused, and the next run sends it (needs sh)", async () => {
    let outcome: Outcome = { status: 400 }
    const service = createAgentService({ rounds: [[custom('c1', 'x')]], outcome: () => outcome })
    const cwd = temporaryFolder()
    const words = ['--tool', 'x=echo ran >> runs; echo out; exit 3']
    expect(
      (await runWithPolicy({ words: ['do it', ...words], cwd, world: { exchange: service.exchange } })).code,
    ).toBe(4)
    expect(readAudit(cwd).map(({ event }) => event)).toEqual(['decision', 'start', 'end', 'sent', 'refused'])
    expect(readAudit(cwd)[2].result).toEqual({
      type: 'user.custom_tool_result',
      custom_tool_use_id: 'c1',
      content: [{ type: 'text', text: 'the command failed with exit code 3' }],
      is_error: true,
    })
    outcome = 'takes'
    expect((await runWithPolicy({ words, cwd, world: { exchange: service.exchange } })).code).toBe(0)
    expect(service.acceptedReplies.get('c1')).toEqual([readAudit(cwd)[2].result])
    expect(readFileSync(join(cwd, 'runs'), 'utf8')).toBe('ran\n')
  })

  test('Y55: events run replies to the other tool uses if another client replied first to one', async () => {
    const service = createAgentService({
      rounds: [[bash('t1', 'git status'), bash('t2', 'git status')]],
      outcome: once('refuses'),
      onPost() {
        if (service.posts === 1)
          service.answer({ type: 'user.tool_confirmation', tool_use_id: 't1', result: 'allow' })
      },
    })
    expect((await runWithPolicy({ world: { exchange: service.exchange } })).code).toBe(0)
    expect([...service.acceptedReplies.values()].map((answers) => answers.length)).toEqual([1, 1])
  })
})

describe('events run continues from its audit file', () => {
  const line = (event: string, toolUse = 't1', session = 's1') =>
    `${JSON.stringify({ time: '', session, toolUse, name: 'bash', event })}\n`
  const createFolder = (text: string) => {
    const cwd = temporaryFolder()
    writeFileSync(join(cwd, 'audit.ndjson'), text)
    return cwd
  }
  const sentAt = (time: number, rest?: string) =>
    `${JSON.stringify({ time: new Date(time).toISOString(), session: 's1', toolUse: 't1', name: 'bash', event: 'sent', rest })}\n`
  const waiting = () =>
    createAgentService({ history: [bash('t1', 'git status'), waitsFor('t1')], rounds: [] })

  test('Y130: audit lines about a tool use contain its type and MCP server', async () => {
    const mcp = {
      id: 'm1',
      type: 'agent.mcp_tool_use',
      mcp_server_name: 'github',
      name: 'create_issue',
      input: { title: 'x' },
      evaluated_permission: 'ask',
    }
    const service = createAgentService({ rounds: [[mcp], [custom('c1', 'x')]] })
    const { code, audit } = await runWithPolicy({
      policy: allowAll,
      words: ['do it', '--tool', 'x=true'],
      world: { exchange: service.exchange },
    })
    expect(code).toBe(0)
    const createLines = (type: string, server: string | undefined, events: string[]) =>
      events.map((event) => [type, server, event])
    expect(audit.map(({ type, server, event }) => [type, server, event])).toEqual([
      ...createLines('agent.mcp_tool_use', 'github', ['decision', 'sent', 'accepted']),
      ...createLines('agent.custom_tool_use', undefined, ['decision', 'start', 'end', 'sent', 'accepted']),
    ])
    expect(Object.keys(audit[0])).toEqual(
      'time session toolUse type server name input event decision by'.split(' '),
    )
  })

  test('Y56: events run exits with 10 and sends no reply if an earlier run may have sent it', async () => {
    const service = waiting()
    const cwd = createFolder(line('decision') + line('sent'))
    const { code, err } = await runWithPolicy({ words: [], cwd, world: { exchange: service.exchange } })
    expect({ code, posts: service.posts }).toEqual({ code: 10, posts: 0 })
    expect(err).toContain('t1 arrived: an earlier run began to send it')
  })

  test("Y96: events run sends an earlier run's reply again if the idle event is an hour newer than the reply", async () => {
    const service = waiting()
    const cwd = createFolder(sentAt(clock.now() - 3_600_000))
    const { code } = await runWithPolicy({ words: [], cwd, world: { exchange: service.exchange } })
    expect({ code, answers: service.acceptedReplies.get('t1')?.length }).toEqual({ code: 0, answers: 1 })
  })

  test('Y96: events run exits with 10 and does not repeat the reply of an earlier run if the idle event is only 20 s newer than the reply', async () => {
    const service = waiting()
    const { code } = await runWithPolicy({
      words: [],
      cwd: createFolder((() => sentAt(clock.now() - 20_000))()),
      world: { exchange: service.exchange },
    })
    expect({ code, posts: service.posts }).toEqual({ code: 10, posts: 0 })
  })

  test('Y95: events run exits with 11 and names a lock file that it cannot create (needs POSIX files)', async () => {
    const cwd = temporaryFolder()
    const long = `${'a'.repeat(250)}`
    const argv = ['events', 'run', 'x', '-s', 's1', '--audit', long]
    const { code, err, requests } = await run(argv, { cwd, stdin: '' })
    expect({ code, requests }).toEqual({ code: 11, requests: [] })
    expect(err).toContain(`the lock of the audit file, ${getLockPath(long)}: the name is too long`)
  })

  const slog = '{"time":"2026-01-01T00:00:00Z","level":"INFO","msg":"x"}'
  test.each([
    [
      'Y97: events run exits with 11 and keeps the content and mode of a policy',
      '{"rules":[],"default":{"decision":"allow"}}',
    ],
    [
      'Y98: events run exits with 11 and keeps the content and mode of a file that ends with a line of another kind',
      `${line('sent')}${slog}`,
    ],
  ])('%s', async (_, text) => {
    const cwd = createFolder(text)
    const file = join(cwd, 'audit.ndjson')
    chmodSync(file, 0o644)
    const { mode } = statSync(file)
    const service = waiting()
    const { code, err } = await runWithPolicy({ cwd, words: [], world: { exchange: service.exchange } })
    expect({ code, posts: service.posts }).toEqual({ code: 11, posts: 0 })
    expect(err).toContain('the audit file audit.ndjson: it is not an audit file')
    expect([readFileSync(file, 'utf8'), statSync(file).mode]).toEqual([text, mode])
    expect(readdirSync(cwd).sort()).toEqual(['.cache', 'audit.ndjson', 'p.json'])
  })

  test('Y57: events run ignores audit lines of other sessions, and ends an incomplete line', async () => {
    const torn = sentAt(0).slice(0, -10)
    const cwd = createFolder(line('sent', 't1', 'other') + torn)
    const service = waiting()
    const argv = ['events', 'run', '-s', 's1', '--policy', 'p.json', '--audit', 'audit.ndjson']
    writeFileSync(join(cwd, 'p.json'), JSON.stringify(rules))
    expect((await run(argv, { cwd, exchange: service.exchange, timers: clock })).code).toBe(0)
    const lines = readFileSync(join(cwd, 'audit.ndjson'), 'utf8').split('\n')
    expect(lines[1]).toBe(torn)
    expect(lines.slice(2, -1).map((text) => JSON.parse(text).event)).toEqual(['decision', 'sent', 'accepted'])
  })

  test("Y58: events run replies that a command's effect is unknown if an earlier run started the command", async () => {
    const service = createAgentService({ history: [custom('c1', 'x'), waitsFor('c1')], rounds: [] })
    const cwd = createFolder(line('start', 'c1'))
    const {
      code,
      err,
      cwd: folder,
    } = await runWithPolicy({
      words: ['--tool', 'x=touch made', '-q', '--report', 'r.json'],
      cwd,
      world: { exchange: service.exchange },
    })
    expect(code).toBe(0)
    expect(err).toBe(
      'parley: the tool use c1 failed (x): an earlier run ended while its command ran: interrupted, effect unknown\n',
    )
    expect(JSON.parse(readFileSync(join(cwd, 'r.json'), 'utf8')).toolUses).toMatchObject({ run: 1, open: 0 })
    expect(service.acceptedReplies.get('c1')?.[0]).toMatchObject({
      is_error: true,
      content: [{ text: 'interrupted, effect unknown' }],
    })
    expect(existsSync(join(folder, 'made'))).toBe(false)
  })

  test('Y59: events run exits with 11 and sends nothing if the audit file is a FIFO (needs FIFOs)', async () => {
    const cwd = temporaryFolder()
    execFileSync('mkfifo', [join(cwd, 'audit.ndjson')])
    const { code, err, requests } = await runWithPolicy({ cwd })
    expect({ code, requests }).toEqual({ code: 11, requests: [] })
    expect(err).toContain('it is not a regular file')
  })
})

test('Y62: events run leaves a tool use open if its id has a colon or a dot, and prints why', async () => {
  const service = createAgentService({ rounds: [[bash('call:1.x', 'git status'), bash('t2', 'git status')]] })
  const { code, err } = await runWithPolicy({ world: { exchange: service.exchange } })
  expect(code).toBe(12)
  expect([...service.acceptedReplies.keys()]).toEqual(['t2'])
  const why = 'rules answer only ids of 1 to 128 letters, digits, _ and -'
  expect(err).toContain(`call:1.x is not answered: ${why}\n`)
  expect(err).toContain('answer with: parley events confirm -s s1 call:1.x --allow\n')
  const confirm = ['events', 'confirm', '-s', 's1', 'call:1.x', '--allow']
  expect((await run(confirm, { exchange: service.exchange })).code).toBe(0)
  expect([...service.acceptedReplies.keys()]).toEqual(['t2', 'call:1.x'])
})

test('Y63: events run stops a --tool command at the deadline, exits with 15 and sends no reply (needs sh)', async () => {
  const cwd = temporaryFolder()
  const hasBegun = () => existsSync(join(cwd, 'begun'))
  // The deadline passes once the command has started.
  const timers: typeof clock = {
    ...clock,
    now: () => clock.now() + (hasBegun() ? 100_000 : 0),
    async wait(milliseconds, signal) {
      // The deadline can pass before parley waits for it. The test clock would wait for the command.
      if (milliseconds < 0) return realTimers.wait(0, signal)
      const isDeadline = milliseconds > 50_000 && milliseconds <= 100_000
      if (!isDeadline) return clock.wait(milliseconds, signal)
      while (!hasBegun() && !signal?.aborted) await realTimers.wait(1)
    },
  }
  const service = createAgentService({ rounds: [[custom('c1', 'x')]] })
  const { code, audit } = await runWithPolicy({
    words: ['do it', '--deadline', '100', '--tool', 'x=touch begun; sleep 1000'],
    cwd,
    world: { exchange: service.exchange, timers },
  })
  expect({ code, posts: service.posts }).toEqual({ code: 15, posts: 0 })
  expect(audit.map(({ event }) => event)).toEqual(['decision', 'start'])
})

test('Y216: events run exits with 15 and does not repeat a reply if Retry-After exceeds the deadline', async () => {
  const outcome = () => ({ status: 429, headers: { 'retry-after': '60' } })
  const service = createAgentService({ rounds: [[bash('t1', 'git status')]], outcome })
  const { code, audit } = await runWithPolicy({
    words: ['do it', '--deadline', '30'],
    world: { exchange: service.exchange },
  })
  expect({ code, posts: service.posts }).toEqual({ code: 15, posts: 1 })
  expect(audit.map(({ event }) => event)).toEqual(['decision', 'sent', 'refused'])
})

test('after a deadline or an open tool use, --errors json and --report have "retry": "later" and `sent`', async () => {
  const readFailure = ({ err, cwd }: Awaited<ReturnType<typeof runWithPolicy>>) => {
    const { exit, sent, retry } = JSON.parse(err.split('\n').findLast((line) => line !== '') ?? '').error
    const report = JSON.parse(readFileSync(join(cwd, 'r.json'), 'utf8'))
    expect(report).toMatchObject({ exit, sent })
    return { exit, sent, retry }
  }
  const more = ['--errors', 'json', '--report', 'r.json']
  const working = createAgentService({ rounds: [], end: { type: 'session.status_running' } })
  const late = { words: ['do it', '--deadline', '60', ...more], world: { exchange: working.exchange } }
  expect(readFailure(await runWithPolicy(late))).toEqual({ exit: 15, sent: 'yes', retry: 'later' })

  const waiting = createAgentService({ rounds: [[bash('t1', 'ls')]] })
  const world = { exchange: waiting.exchange }
  const asking = { policy: askAll, words: ['do it', ...more], world, cwd: temporaryFolder() }
  expect(readFailure(await runWithPolicy(asking))).toEqual({ exit: 12, sent: 'yes', retry: 'later' })
  expect(readFailure(await runWithPolicy(asking))).toEqual({ exit: 12, sent: 'no', retry: 'later' })
  expect(readFailure(await runWithPolicy({ ...asking, words: more }))).toEqual({
    exit: 12,
    sent: 'no',
    retry: 'later',
  })
})

test('a later events run exits with 14 for a denial since the task, and with 0 for an allowed tool use', async () => {
  const service = createAgentService({ rounds: [[bash('t1', 'rm -rf x')]] })
  const cwd = temporaryFolder()
  expect((await runWithPolicy({ cwd, world: { exchange: service.exchange } })).code).toBe(14)
  // Without an audit file and a task, the run reads the denials from the session's events.
  const argv = ['events', 'run', '-s', 's1', '--no-stdin']
  const later = await run(argv, { cwd, timers: clock, exchange: service.exchange })
  expect({ code: later.code, err: later.err }).toMatchObject({
    code: 14,
    err: expect.stringContaining('deny t1 (by another client or run)'),
  })
  const byPerson = createAgentService({ rounds: [[bash('t1', 'ls')]] })
  expect((await runWithPolicy({ policy: askAll, world: { exchange: byPerson.exchange } })).code).toBe(12)
  byPerson.answer({ type: 'user.tool_confirmation', tool_use_id: 't1', result: 'allow' })
  expect((await run(argv, { timers: clock, exchange: byPerson.exchange })).code).toBe(0)
})

test.each([
  ['a broken policy', { p: '{"rules":' }, ['--policy', 'p'], 'not valid JSON'],
  ['two commands for one tool', {}, ['--tool', 'a=b', '--tool', 'a=c'], 'two commands for a'],
])('events run exits with 2 and sends nothing for %s', async (_, files, words, why) => {
  const cwd = temporaryFolder()
  for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text)
  const { code, err, requests } = await run(['events', 'run', 'x', '-s', 's1', ...words], { cwd, stdin: '' })
  expect({ code, requests }).toEqual({ code: 2, requests: [] })
  expect(err).toContain(why)
})

test('events run --dry-run checks the policy, prints the first request and writes no audit file', async () => {
  const { code, out, requests, cwd } = await runWithPolicy({ words: ['do it', '--dry-run'] })
  expect({ code, requests }).toEqual({ code: 0, requests: [] })
  expect(JSON.parse(out).body.events[0].content[0].text).toBe('do it')
  expect(existsSync(join(cwd, 'audit.ndjson'))).toBe(false)
  expect((await runWithPolicy({ words: ['--dry-run'] })).code).toBe(2)
})

describe('Y232: service that sends no idle event after a plain turn', () => {
  /** Answers of the session resource, one for each query. The last one repeats. */
  async function quiet(words: string[], answers: string[], more: Partial<AgentScript> = {}) {
    const end = { type: 'span.model_request_end' }
    const service = createAgentService({ rounds: [[says('the answer')]], end, ...more })
    let queries = 0
    const exchange: Exchange = (request) => {
      if (!request.url.endsWith('/sessions/s1')) return service.exchange(request)
      const answer = answers[Math.min(queries++, answers.length - 1)] ?? ''
      return answering(answer, { status: answer === '' ? 404 : 200 })(request)
    }
    const { code, out } = await run(['events', ...words, '-s', 's1'], {
      timers: clock,
      stdin: '',
      exchange,
    })
    return { code, out, asked: queries }
  }

  test('events run queries the session resource after a silent message, and ends if the session is idle', async () => {
    const ended = await quiet(['run', 'do it', '--last'], ['{"status":"running"}', '{"status":"idle"}'])
    expect(ended).toEqual({ code: 0, out: 'the answer\n', asked: 2 })
  })

  test.each([['{"status":["idle"]}'], ['']])(
    'events run exits with 15 at the deadline if the session resource is not clearly idle: %j',
    async (answer) => {
      const { code, out, asked } = await quiet(['run', 'do it', '--last', '--deadline', '2m'], [answer])
      expect({ code, out }).toEqual({ code: 15, out: '' })
      expect(asked).toBeGreaterThan(1)
    },
  )
})
