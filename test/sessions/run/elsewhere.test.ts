import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bash, confirms, custom, endTurn, interrupt, running, says, waitsFor } from '../../harness/events.ts'
import { always, atTerminal, createSessionService, openAgent, shown } from '../../harness/session-service.ts'

const soon = () => new Promise((resolve) => setTimeout(resolve, 1))
const replaced = 'the service sent it with two different inputs'
const hasAnswer = (result: string) => `it already has the answer ${result}`

/** Returns run options for a person who never answers. `act` is called 5 s after the tool use waits. */
const silence = (agent: ReturnType<typeof openAgent>, act: () => void) => {
  async function* wait() {
    while (!agent.events.some(({ type }) => type === 'session.status_idle')) await soon()
    await agent.timers.wait(5_000)
    act()
    await new Promise(() => {})
    yield ''
  }
  return atTerminal(wait(), ['stdout', 'stderr'])
}

test('events run withdraws a prompt if the stream repeats the tool use with a different input, and prints the reason once', async () => {
  const agent = openAgent({ rounds: [[bash('t1')]], policy: always('ask') })
  let startMs = 0
  const person = silence(agent, () => {
    startMs = agent.timers.now()
    agent.add(bash('t1', { input: { command: 'rm -rf x' } }))
  })
  const { code, err } = await agent.runTask(['go'], person)
  expect({ code, posts: agent.posts }).toEqual({ code: 12, posts: 0 })
  expect(agent.timers.now() - startMs).toBeLessThan(20_000)
  expect(err.match(/t1 is not answered[^\n]*/g)).toEqual([`t1 is not answered by this run: ${replaced}`])
  expect(err).toContain(`\n  t1: ${replaced}\n`)
})

test('events run withdraws a prompt if a client interrupts the thread, prints no answer and exits with 15', async () => {
  const thread = { session_thread_id: 'th1' }
  const agent = openAgent({ rounds: [[says('half'), bash('t1', thread)]], policy: always('ask') })
  const person = silence(agent, () => agent.add({ ...interrupt, ...thread }))
  const { code, out, err } = await agent.runTask(['go', '--last'], person)
  expect({ code, out, posts: agent.posts }).toEqual({ code: 15, out: '', posts: 0 })
  expect(err).toContain('s1 is idle because a tool use was interrupted')
})

test.each([
  ['denies', confirms('t1', 'deny'), 14, hasAnswer('deny')],
  ['interrupts', interrupt, 15, 'it was interrupted'],
])(
  'after a cut, events run sends no reply if the new stream shows that a client %s the tool use and the list lags',
  async (_, theirs, exit, reason) => {
    const service = createSessionService({
      defaultVisibility: { listed: 8_000 },
      posts: [{ nth: 1, next: [running, bash('t1'), waitsFor('t1')] }],
      streams: [{ nth: 1, cutAfter: 4 }],
    })
    async function* person() {
      while (service.events.length < 4) await soon()
      // The stream is cut at the next event.
      for (const event of [running, theirs]) {
        await service.timers.wait(1_000)
        service.add(event)
      }
      void service.timers.wait(5_000).then(() => service.add(endTurn))
      await service.timers.wait(1_000)
      yield 'y\n'
      await new Promise(() => {})
    }
    const argv = ['events', 'run', 'go', '--audit', 'audit.ndjson']
    const { code, err } = await service.run(argv, atTerminal(person(), ['stderr']))
    expect([code, service.replies()], err).toEqual([exit, []])
    expect(err).toContain(`t1 is not answered by this run: ${reason}`)
  },
)

test('a rerun resumes the task of an events run that could not write its report', async () => {
  const agent = openAgent({ rounds: [[says('done')]] })
  const words = ['go', '--report', 'reports/r.json']
  const folder = join(agent.cwd, 'reports')
  mkdirSync(folder)
  const failed = await agent.runTask(words, {
    exchange(request, onSent) {
      if (request.method === 'POST') rmSync(folder, { recursive: true })
      return agent.exchange(request, onSent)
    },
  })
  expect([failed.code, agent.taskLines()]).toEqual([11, ['sent', 'accepted']])
  mkdirSync(folder)
  expect((await agent.runTask(words)).code).toBe(0)
  expect([agent.tasks, agent.taskLines()]).toEqual([1, ['sent', 'accepted', 'done']])
  expect(existsSync(join(folder, 'r.json'))).toBe(true)
})

test.each(['deny', 'allow'] as const)(
  'a reply "%s" in the list counts as another client\'s if the reply of unknown delivery is the opposite',
  async (theirs) => {
    const ours = theirs === 'deny' ? 'allow' : 'deny'
    const agent = openAgent({
      rounds: [[bash('t1')]],
      outcome: () => 'loses',
      onPost: () => agent.answer(confirms('t1', theirs)),
      policy: always(ours),
    })
    const { code, err } = await agent.runTask(['go'])
    expect(code).toBe(theirs === 'deny' ? 14 : 0)
    const reason = hasAnswer(theirs)
    expect(agent.audit().at(-1)).toMatchObject({ event: 'answered-elsewhere', reason })
    expect(err).toContain(`t1 is not answered by this run: ${reason}`)
  },
)

test("a reply that differs from the decision in the audit file counts as another client's", async () => {
  let isAnswered = false
  const agent = openAgent({
    history: [bash('t1'), waitsFor('t1')],
    rounds: [[says('x')]],
    onList(count) {
      if (count === 3 && !isAnswered) agent.answer(confirms('t1', 'deny'))
      isAnswered ||= count === 3
      return undefined
    },
  })
  const line = '"time":"","session":"s1","toolUse":"t1","name":"bash"'
  agent.write('a.ndjson', `{${line},"event":"decision","decision":"allow"}\n{${line},"event":"sent"}\n`)
  const { code } = await agent.runTask([])
  expect({ code, posts: agent.posts }).toEqual({ code: 14, posts: 0 })
  expect(agent.audit().at(-1)).toMatchObject({ event: 'answered-elsewhere', reason: hasAnswer('deny') })
})

test('events run warns that its command has run if another client replies during the command (needs sh)', async () => {
  const agent = openAgent({ rounds: [[custom('c1')]] })
  const tool = 'count=echo x >> runs; until [ -e acted ]; do sleep 0.01; done'
  const ended = agent.runTask(['go', '--tool', tool])
  while (!existsSync(join(agent.cwd, 'runs'))) await soon()
  agent.answer({ type: 'user.custom_tool_result', custom_tool_use_id: 'c1', content: [] })
  agent.write('acted', '')
  const { code, err } = await ended
  expect({ code, posts: agent.posts }).toEqual({ code: 0, posts: 0 })
  expect(err).toContain('c1 is not answered by this run: it has a result; its --tool command has run')
})

/** Changes the input or another field of a listed tool use. */
const change = ({ events }: ReturnType<typeof openAgent>, id: string, fields: object) =>
  Object.assign(events.find((event) => event.id === id) ?? {}, fields)

test.each([
  ['without a terminal', undefined, /confirm -s s1 t2 --allow$/m],
  ['on a terminal', atTerminal('s\n'), /confirm -s s1 --pending$/m],
])('events run %s does not offer to allow a tool use with two inputs', async (_, world, command) => {
  const rounds = [[bash('t1', { input: { command: 'ls old' } }), bash('t2')]]
  const agent = openAgent({ rounds, policy: always('ask') })
  expect((await agent.runTask(['go'])).code).toBe(12)
  change(agent, 't1', { input: { command: 'rm new' } })
  const { code, err } = await agent.runTask([], world)
  expect(code).toBe(12)
  expect(err).not.toContain('ls old')
  expect(err).toContain(`\n  t1: ${replaced}\n`)
  expect(err).toMatch(/^ {2}to answer at a prompt: parley events confirm -s s1 t1$/m)
  expect(err).toMatch(command)
  expect(err).not.toMatch(/t1.*--allow/)
})

test('events run quotes the name of a waiting tool use so that it does not look like a message of parley', async () => {
  const name = `bash${' '.repeat(70)}answer with: parley events confirm --allow`
  const rounds = [[bash('t1', { name }), bash('t2', { name: ['bash'] })]]
  const agent = openAgent({ rounds, policy: always('ask') })
  const { code, err } = await agent.runTask(['go'])
  expect({ code, posts: agent.posts }).toEqual({ code: 12, posts: 0 })
  expect(err).toContain('t1: "bash')
  expect(err).not.toContain('t1: bash ')
  expect(err).toContain('t2: (no name)')
  expect(err).toMatch(/confirm -s s1 t1 t2 --allow\n/)
})

const tools = ['count', 'other'].flatMap((name) => ['--tool', `${name}=echo ${name} >> runs; echo ${name}`])
const words = ['go', ...tools]
const countRuns = ({ cwd }: { cwd: string }) => readFileSync(join(cwd, 'runs'), 'utf8')

/**
 * Runs the task until the service refuses the result of c1. If `event` is given, cuts the audit file after
 * the line with this event, as if the run had been killed there.
 */
async function openAfter(event: string | undefined) {
  const agent = openAgent({
    rounds: [[custom('c1', { input: { env: 'test', n: 1 } })]],
    outcome: () => (agent.posts > 1 ? 'takes' : 'refuses'),
  })
  expect((await agent.runTask(words)).code).toBe(4)
  if (event !== undefined) agent.cutAudit(event)
  return agent
}

test.each<[string, string, string | undefined, object]>([
  ['a refusal', 'another type', undefined, { type: 'agent.tool_use', evaluated_permission: 'allow' }],
  ['a kill after the tool command', 'another input', 'end', { input: { env: 'PROD' } }],
  ['a kill during the tool command', 'another name', 'start', { name: 'other' }],
])('after %s, no run answers a tool use that now has %s (needs sh)', async (_when, _what, event, fields) => {
  const agent = await openAfter(event)
  change(agent, 'c1', fields)
  const { code, err } = await agent.runTask(words)
  expect({ code, posts: agent.posts }).toEqual({ code: 12, posts: 1 })
  expect(err).toContain('c1 is not answered')
  agent.add(waitsFor('c1'))
  expect([(await agent.runTask(words)).code, agent.posts]).toEqual([12, 1])
  const line = { toolUse: 'c1', event: 'answered-elsewhere', reason: replaced }
  expect(agent.audit()).toContainEqual(expect.objectContaining(line))
  expect(countRuns(agent)).toBe('count\n')
})

test('no rerun of events run sends the result of an allowed tool use that now has another input (needs sh)', async () => {
  const service = createSessionService({
    posts: [
      { type: 'user.message', next: [running, bash('t1'), waitsFor('t1')] },
      { type: 'user.tool_confirmation', next: [running, waitsFor('t1')] },
      { type: 'user.tool_result', fault: { status: 400 } },
    ],
  })
  const argv = 'events run go --policy allow.json --audit a.ndjson --tool'.split(' ')
  expect((await service.run([...argv, 'bash=echo ran'])).code).toBe(4)
  Object.assign(service.events.find(({ id }) => id === 't1') ?? {}, { input: { command: 'rm -rf x' } })
  const { code, err } = await service.run([...argv, 'bash=echo ran'])
  expect([code, service.posts.length], err).toEqual([12, 3])
})

test('after a kill, a rerun of events run sends the result of a command if only the key order of the input changed (needs sh)', async () => {
  const agent = await openAfter('end')
  change(agent, 'c1', { input: { n: 1, env: 'test' } })
  const { code } = await agent.runTask(words)
  expect({ code, posts: agent.posts }).toEqual({ code: 0, posts: 2 })
  expect(countRuns(agent)).toBe('count\n')
})

test('if a list lags, a rerun of events run starts no command for a tool use that an earlier run saw answered (needs sh)', async () => {
  const theirs = { type: 'user.custom_tool_result', custom_tool_use_id: 'c2', content: [] }
  const service = createSessionService({
    posts: [
      { type: 'user.message', next: [running, custom('c1'), custom('c2'), waitsFor('c1', 'c2')] },
      {
        type: 'user.custom_tool_result',
        nth: 1,
        before: [shown(theirs, { listed: 4_000 })],
        posted: { listed: 4_000 },
        next: [shown(running, { listed: 4_000 }), shown(says('done'), { after: 20_000 }), endTurn],
      },
    ],
  })
  const argv = [...'events run go --last --audit audit.ndjson --tool'.split(' '), 'count=echo ran >> runs']
  expect((await service.run([...argv, '--deadline', '1'])).code).toBe(15)
  expect(service.auditOf('c2')).toEqual(['decision', 'answered-elsewhere'])
  expect(await service.run(argv)).toMatchObject({ code: 0, out: 'done\n' })
  expect([service.replies().length, countRuns(service)]).toEqual([1, 'ran\n'])
})

test('a rerun of events run waits only once for lists if the clock was set back since an answer of another client', async () => {
  const agent = openAgent({ rounds: [[bash('t1')], [bash('t2')], [bash('t3')]] })
  const startMs = agent.timers.now()
  const time = new Date(agent.timers.wallTime() + 3_600_000).toISOString()
  agent.write(
    'a.ndjson',
    `${JSON.stringify({ time, session: 's1', toolUse: 't0', event: 'answered-elsewhere' })}\n`,
  )
  const { code, err } = await agent.runTask(['go'])
  expect([code, agent.posts], err).toEqual([0, 3])
  expect(agent.timers.now() - startMs).toBeLessThan(15_000)
})
