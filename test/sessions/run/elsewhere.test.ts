import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { createIdleClock } from '../../harness/clock.ts'
import { type RunOptions, run, temporaryFolder } from '../../harness/run.ts'
import { bash, custom, endTurn, says, userSays, waitsFor } from '../../harness/session-service.ts'
import { type AgentScript, type AgentService, createAgentService } from './agent-service.ts'

const waitsIn = ({ events }: AgentService) => events.some(({ type }) => type === 'session.status_idle')
const soon = () => new Promise((resolve) => setTimeout(resolve, 1))

/** Creates a service and a function that runs commands on it with the same clock. */
function open(script: AgentScript) {
  const timers = createIdleClock()
  const service = createAgentService({ ...script, timers })
  const cwd = temporaryFolder()
  const start = (words: string[], world: RunOptions = {}) =>
    run(['events', 'run', '-s', 's1', ...words], {
      cwd,
      timers,
      stdinKind: 'none',
      exchange: service.exchange,
      ...world,
    })
  const allow = () => writeFileSync(join(cwd, 'p.json'), '{"rules":[],"default":{"decision":"allow"}}')
  writeFileSync(join(cwd, 'deny.json'), '{"rules":[{"tool":"count","decision":"deny"}]}')
  const readAudit = (): Record<string, unknown>[] =>
    readFileSync(join(cwd, 'a.ndjson'), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
  return { service, timers, cwd, start, allow, readAudit }
}

/** A person who never answers, so the prompt must be withdrawn. */
async function* silence({ service, timers }: ReturnType<typeof open>, act: () => void) {
  while (!waitsIn(service)) await soon()
  await timers.wait(5_000)
  act()
  await new Promise(() => {})
  yield ''
}

test('events run withdraws a prompt if the stream shows another input for its id, and reports it once', async () => {
  const opened = open({ rounds: [[bash('t1')]] })
  const { service, timers, start } = opened
  let startMs = 0
  const act = () => {
    startMs = timers.now()
    service.add(bash('t1', { input: { command: 'rm -rf x' } }))
  }
  const { code, err } = await start(['go'], {
    typed: silence(opened, act),
    stdinKind: 'terminal',
    tty: ['stdout', 'stderr'],
  })
  expect({ code, posts: service.posts }, err).toEqual({ code: 12, posts: 0 })
  expect(timers.now() - startMs).toBeLessThan(20_000)
  expect(err.match(/t1 is not answered[^\n]*/g)).toEqual([
    't1 is not answered by this run: the service sent it with two different inputs',
  ])
  expect(err).toMatch(/^ {2}t1: the service sent it with two different inputs$/m)
})

test('events run exits with 15 and prints no answer if an interrupt of a thread withdraws the prompt', async () => {
  const thread = { session_thread_id: 'th1' }
  const opened = open({ rounds: [[says('half'), bash('t1', thread)]] })
  const { service, start } = opened
  const { code, out, err } = await start(['go', '--last'], {
    typed: silence(opened, () => service.add({ type: 'user.interrupt', ...thread })),
    stdinKind: 'terminal',
    tty: ['stdout', 'stderr'],
  })
  expect({ code, out, posts: service.posts }, err).toEqual({ code: 15, out: '', posts: 0 })
  expect(err).toContain('s1 is idle because a tool use was interrupted')
})

test('events run does not record its task as done if the report cannot be written; a rerun resumes it', async () => {
  const { service, cwd, start, readAudit } = open({ rounds: [[says('done')]] })
  const line = ['go', '--audit', 'a.ndjson', '--report', 'reports/r.json']
  mkdirSync(join(cwd, 'reports'))
  const exchange: Exchange = (request, onSent) => {
    if (request.method === 'POST') rmSync(join(cwd, 'reports'), { recursive: true })
    return service.exchange(request, onSent)
  }
  expect((await start(line, { exchange })).code).toBe(11)
  expect(readAudit().map(({ event }) => event)).toEqual(['sent', 'accepted'])
  mkdirSync(join(cwd, 'reports'))
  const again = await start(line)
  expect({ code: again.code, tasks: service.tasks }, again.err).toEqual({ code: 0, tasks: 1 })
  expect(readAudit().map(({ event }) => event)).toEqual(['sent', 'accepted', 'done'])
  expect(existsSync(join(cwd, 'reports/r.json'))).toBe(true)
})

test.each([
  ['deny', 'allow'],
  ['allow', 'deny'],
])(
  'after a reply of unknown delivery (%s), a list with %s shows that another client replied',
  async (ours, theirs) => {
    const { service, cwd, start, readAudit } = open({
      rounds: [[bash('t1')]],
      outcome: () => 'loses',
      onPost() {
        service.answer({ type: 'user.tool_confirmation', tool_use_id: 't1', result: theirs })
      },
    })
    writeFileSync(join(cwd, 'p.json'), `{"rules":[],"default":{"decision":"${ours}"}}`)
    const { code, err } = await start(['go', '--policy', 'p.json', '--audit', 'a.ndjson'])
    expect(code, err).toBe(theirs === 'deny' ? 14 : 0)
    const [last] = readAudit()
      .filter(({ toolUse }) => toolUse === 't1')
      .reverse()
    expect(last).toMatchObject({ event: 'answered-elsewhere', reason: `it already has the answer ${theirs}` })
    expect(err).toContain(`t1 is not answered by this run: it already has the answer ${theirs}`)
  },
)

test('events run finds by the decision in the audit file that another client replied', async () => {
  const { service, cwd, start, allow, readAudit } = open({
    history: [bash('t1'), waitsFor('t1')],
    rounds: [[says('x')]],
  })
  allow()
  const line = (event: string) =>
    `${JSON.stringify({ time: '', session: 's1', toolUse: 't1', name: 'bash', event, decision: event === 'decision' ? 'allow' : undefined })}\n`
  writeFileSync(join(cwd, 'a.ndjson'), line('decision') + line('sent'))
  let lists = 0
  const exchange: Exchange = (request, onSent) => {
    const isList = request.method === 'GET' && !request.url.includes('/stream')
    if (isList && ++lists === 3)
      service.answer({ type: 'user.tool_confirmation', tool_use_id: 't1', result: 'deny' })
    return service.exchange(request, onSent)
  }
  const { code, err } = await start(['--policy', 'p.json', '--audit', 'a.ndjson'], { exchange })
  expect({ code, posts: service.posts }, err).toEqual({ code: 14, posts: 0 })
  const [last] = readAudit()
    .filter(({ toolUse }) => toolUse === 't1')
    .reverse()
  expect(last).toMatchObject({ event: 'answered-elsewhere', reason: 'it already has the answer deny' })
})

test('a resumed task ends where another client sends a task', async () => {
  const { service, cwd, start, allow } = open({ rounds: [[says('mine')]] })
  allow()
  const line = ['go', '--last', '--audit', 'a.ndjson']
  expect((await start(line)).out).toBe('mine\n')
  const text = readFileSync(join(cwd, 'a.ndjson'), 'utf8')
  writeFileSync(join(cwd, 'a.ndjson'), text.slice(0, text.indexOf('\n', text.indexOf('"accepted"')) + 1))
  for (const event of [userSays('another'), says('theirs'), endTurn]) service.add(event)
  const { code, out, err } = await start(line)
  expect({ code, out, tasks: service.tasks }, err).toEqual({ code: 0, out: 'mine\n', tasks: 1 })
  expect(err).toContain('another client sent a user.message')
})

test('events run prints that a command ran although its result is not needed any more (needs sh)', async () => {
  const { service, cwd, start, allow } = open({ rounds: [[custom('c1')]] })
  allow()
  const tool = 'count=echo x >> runs; until [ -e acted ]; do sleep 0.01; done'
  const ended = start(['go', '--policy', 'p.json', '--audit', 'a.ndjson', '--tool', tool])
  while (!existsSync(join(cwd, 'runs'))) await soon()
  service.answer({ type: 'user.custom_tool_result', custom_tool_use_id: 'c1', content: [] })
  writeFileSync(join(cwd, 'acted'), '')
  const { code, err } = await ended
  expect({ code, posts: service.posts }, err).toEqual({ code: 0, posts: 0 })
  expect(err).toContain('c1 is not answered by this run: it has a result; its command has run')
})

test.each([
  ['without a terminal', 'pipe'],
  ['on a terminal', 'terminal'],
] as const)(
  'events run %s does not offer to allow a tool use with two inputs, or print its old input',
  async (_, kind) => {
    const { service, cwd, timers, start } = open({
      rounds: [[bash('t1', { input: { command: 'ls old' } }), bash('t2')]],
    })
    writeFileSync(join(cwd, 'ask.json'), '{"rules":[]}')
    const line = ['--policy', 'ask.json', '--audit', 'a.ndjson']
    expect((await start(['go', ...line])).code).toBe(12)
    const shown = service.events.find(({ id }) => id === 't1')
    if (shown) Object.assign(shown, { input: { command: 'rm new' } })
    const isTerminal = kind === 'terminal'
    const { code, err } = await start(line, {
      timers,
      ...(isTerminal ? { stdinKind: 'terminal', typed: 's\n', tty: ['stderr'] } : {}),
    })
    expect(code, err).toBe(12)
    expect(err).not.toContain('ls old')
    expect(err).toMatch(/^ {2}t1: the service sent it with two different inputs$/m)
    expect(err).toMatch(/^ {2}to answer at a prompt: parley events confirm -s s1 t1$/m)
    expect(err).toMatch(isTerminal ? /confirm -s s1 --pending$/m : /confirm -s s1 t2 --allow$/m)
    expect(err).not.toMatch(/t1.*--allow/)
  },
)

test('events run quotes the name of a waiting tool use so that it does not look like a message of parley', async () => {
  const name = `bash${' '.repeat(70)}answer with: parley events confirm --allow`
  const { start, service } = open({ rounds: [[bash('t1', { name }), bash('t2', { name: ['bash'] })]] })
  const { code, err } = await start(['go'])
  expect({ code, posts: service.posts }, err).toEqual({ code: 12, posts: 0 })
  expect(err).toContain('t1: "bash')
  expect(err).not.toContain('t1: bash ')
  expect(err).toContain('t2: (no name)')
  expect(err).toMatch(/confirm -s s1 t1 --allow\n/)
})

describe('tool use that differs from its audit lines (needs sh)', () => {
  const rows: [when: string, what: string, event: string | undefined, change: object][] = [
    [
      'a refused result',
      'another type',
      undefined,
      { type: 'agent.tool_use', evaluated_permission: 'allow' },
    ],
    ['a kill that followed the command', 'another input', 'end', { input: { env: 'PROD' } }],
    ['a kill that ended the command', 'another name', 'start', { name: 'other' }],
  ]
  const count = { ...custom('c1'), input: { env: 'test', n: 1 } }

  /** Runs until the result is refused, or until `event` is in the audit file, as if killed then. */
  async function openAfter(event: string | undefined) {
    const opened = open({
      rounds: [[count]],
      outcome: () => (opened.service.posts > 1 ? 'takes' : 'refuses'),
    })
    const { cwd, service, start } = opened
    const tools = ['count', 'other'].flatMap((name) => [
      '--tool',
      `${name}=echo ${name} >> runs; echo ${name}`,
    ])
    const line = ['go', '--audit', 'a.ndjson', ...tools]
    expect((await start(line)).code).toBe(4)
    const text = readFileSync(join(cwd, 'a.ndjson'), 'utf8')
    if (event !== undefined)
      writeFileSync(join(cwd, 'a.ndjson'), text.slice(0, text.indexOf('\n', text.indexOf(`"${event}"`)) + 1))
    const change = (fields: object) => {
      const shown = service.events.find(({ id }) => id === 'c1')
      if (shown) Object.assign(shown, fields)
    }
    return { ...opened, line, change, again: () => start(line) }
  }

  test.each(rows)(
    'a rerun after %s leaves a tool use with %s open, and so does the next one',
    async (_when, _what, event, fields) => {
      const { service, cwd, change, again, readAudit } = await openAfter(event)
      change(fields)
      const { code, err } = await again()
      expect({ code, posts: service.posts }, err).toEqual({ code: 12, posts: 1 })
      expect(err).toContain('c1 is not answered')
      service.add(waitsFor('c1'))
      expect((await again()).code).toBe(12)
      expect(service.posts).toBe(1)
      expect(readAudit()).toContainEqual(
        expect.objectContaining({
          toolUse: 'c1',
          event: 'answered-elsewhere',
          reason: 'the service sent it with two different inputs',
        }),
      )
      expect(readFileSync(join(cwd, 'runs'), 'utf8')).toBe('count\n')
    },
  )

  test('a rerun after a kill that followed the command sends the result of a tool use whose input has another key order', async () => {
    const { service, cwd, change, again } = await openAfter('end')
    change({ input: { n: 1, env: 'test' } })
    const { code, err } = await again()
    expect({ code, posts: service.posts }, err).toEqual({ code: 0, posts: 2 })
    expect(readFileSync(join(cwd, 'runs'), 'utf8')).toBe('count\n')
  })
})
