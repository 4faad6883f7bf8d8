import { beforeEach, describe, expect, test } from 'vitest'
import { createEmulator } from '../../src/emulator/emulator.ts'
import type { Exchange } from '../../src/wire/exchange.ts'
import { bash } from '../harness/events.ts'
import { parseLines, run } from '../harness/run.ts'

type Event = { id: string; type: string } & Record<string, unknown>

let exchange: Exchange
beforeEach(() => {
  exchange = createEmulator({})
})

const parley = (...argv: string[]) => run(argv, { exchange, env: { PARLEY_SESSION: 's1' } })
const send = (text: string) => parley('events', 'send', '--follow', '--message', text)

async function listed(): Promise<Event[]> {
  const { out } = await parley('events', 'list', '--raw')
  return parseLines(out)
}

const ends = ['session.usage', 'session.status_idle']
const turn = (...types: string[]) => ['session.status_running', ...types, ...ends]

const usesOf = async () => (await listed()).filter(({ type }) => type.endsWith('tool_use'))
const typesOf = async () => (await listed()).map(({ type }) => type)

test('the emulated agent uses a tool if the task has the words "use a tool"', async () => {
  expect((await send('use a tool {"a":1}')).code).toBe(12)
  const [use] = await usesOf()
  const { id, processed_at: _, ...fields } = use as Event
  expect(fields).toEqual({ ...bash(''), id: undefined, input: { command: 'ls -l' } })
  expect((await parley('events', 'confirm', id, '--allow', '--follow')).out).toContain('is done')
  expect(await typesOf()).toEqual([
    ...['user.message', ...turn('agent.message', 'agent.tool_use')],
    ...['user.tool_confirmation', ...turn('agent.tool_result', 'agent.message')],
  ])
})

test.each([
  [
    'use bash {}',
    ['confirm', 'ID', '--deny', '--message', 'v1'],
    'does without bash, which was denied: “v1”',
  ],
  ['use custom deploy {}', ['send', '--custom-tool-result', 'ID=v1.2'], 'read the result of deploy: “v1.2”'],
  ['use bash {}', ['send', '--tool-error', 'ID=v1.2'], 'does without bash, which failed: “v1.2”'],
])('the emulated agent quotes the reply to "%s": events %j', async (task, words, expectedText) => {
  await send(task)
  const [use] = await usesOf()
  const argv = words.map((word) => word.replace('ID', `${use?.id}`))
  const ended = await parley('events', ...argv, '--follow')
  expect(ended.code).toBe(0)
  expect(ended.out).toContain(`The emulated agent ${expectedText}.\n`)
  expect(ended.out).toContain('is done.\n')
  expect(await typesOf()).not.toContain('agent.tool_result')
})

test('the emulator refuses a confirmation of a custom tool use and adds no event to the session', async () => {
  await send('use custom deploy {}')
  const before = await listed()
  const [use] = await usesOf()
  const confirmation = { type: 'user.tool_confirmation', tool_use_id: use?.id, result: 'allow' }
  const ended = await parley('events', 'send', '--follow', '--event', JSON.stringify(confirmation))
  expect(ended).toMatchObject({ code: 4, out: '' })
  expect(ended.err).toContain('events[0].tool_use_id: is an agent.custom_tool_use')
  expect(await listed()).toEqual(before)
})

test('the emulated agent executes a line that starts with "then" after all replies to the lines above it', async () => {
  const names = async () => (await usesOf()).map(({ name }) => name)
  const all = (verdict: string) => parley('events', 'confirm', '--pending', verdict, '--follow')
  expect((await send('use a1 {}\nuse a2 {}\nthen use b {}\nthen run c {}\nthen use d {}')).code).toBe(12)
  expect(await names()).toEqual(['a1', 'a2'])
  expect((await all('--allow')).code).toBe(12)
  expect(await names()).toEqual(['a1', 'a2', 'b'])
  expect((await all('--deny')).code).toBe(12)
  expect(await names()).toEqual(['a1', 'a2', 'b', 'c', 'd'])
  const last = await all('--allow')
  expect(last.code).toBe(0)
  expect(last.out.match(/is done/g)).toHaveLength(1)
})

test('an interrupt ends all waiting tool uses of the emulated agent, but an interrupt of a thread ends none', async () => {
  await send('use a {}\nuse b {}\nthen use c {}')
  const before = await typesOf()
  const waitForIdle = async () => {
    for (;;) {
      const last = (await listed()).at(-1)
      if (last?.type === 'session.status_idle') return last
      await new Promise(setImmediate)
    }
  }
  await parley('events', 'send', '--interrupt-thread', 't1')
  expect(await typesOf()).toEqual([...before, 'user.interrupt'])
  await parley('events', 'send', '--interrupt')
  expect(await waitForIdle()).toMatchObject({ stop_reason: { type: 'end_turn' } })
  expect(await usesOf()).toHaveLength(2)
})

test.each(['use bash {"a":', 'fail a b {}', 'start a {"phases":"b"}'])(
  'the emulated agent does not understand the line %s',
  async (line) => {
    const ended = await send(`Please:\n${line}`)
    expect(ended).toMatchObject({ code: 0, err: expect.not.stringContaining('wait') })
    expect(ended.out).toContain(`does not understand “${line.slice(0, 40)}`)
    expect(await usesOf()).toEqual([])
  },
)

describe('the emulated agent starts threads and workflow runs', () => {
  // With a store, the emulated agent finishes its work before it answers a request, so no test has to wait.
  beforeEach(() => {
    const store = { read: () => [], change: async (change: () => unknown) => void change() }
    exchange = createEmulator({ store })
  })
  const post = (text: string) => parley('events', 'send', '--message', text)
  const reply = (fields: object) => parley('events', 'send', '--event', JSON.stringify(fields))
  const confirm = (id = '') => reply({ type: 'user.tool_confirmation', tool_use_id: id, result: 'allow' })
  const statusOf = async () => JSON.parse((await parley('api', 'agents', '/v1/sessions/s1')).out).status

  test('the emulated agent understands every task line that serve --help lists', async () => {
    const { out } = await run(['serve', '--help'])
    const lines = out.match(/(?<=^ {2})(use|say|thread|refuse|fail|start) .*?\}(?= {2})/gm)
    expect(lines).toHaveLength(8)
    await post(lines?.join('\n') ?? '')
    expect((await parley('events', 'list', '--raw')).out).not.toContain('does not understand')
  })

  test('the emulated agent answers after its workflow run has ended', async () => {
    await post('start review {"phases":["read","write"]}\nthen say {"text":"all is well"}')
    const phase = ['workflow_run.phase_started', 'workflow_run.phase_ended']
    expect(await typesOf()).toEqual([
      'user.message',
      ...turn('workflow_run.created', 'workflow_run.status_running', 'agent.message'),
      ...phase,
      ...phase,
      'workflow_run.status_ended',
      ...turn('agent.message', 'agent.message'),
    ])
    const runs = (await listed()).filter(({ type }) => type.startsWith('workflow_run.'))
    const [created] = runs as [Event & { phases: { id: string }[] }]
    expect(created).toMatchObject({ name: 'review', phases: [{ name: 'read' }, { name: 'write' }] })
    expect(new Set(runs.map((event) => event.workflow_run_id)).size).toBe(1)
    const started = runs.filter(({ type }) => type === 'workflow_run.phase_started')
    expect(started.map((event) => event.workflow_run_phase_id)).toEqual(created.phases.map(({ id }) => id))
    expect(runs.at(-1)).toMatchObject({ result: { type: 'completed' } })
    const last = (await listed()).findLast(({ type }) => type === 'agent.message')
    expect(last).toMatchObject({ content: [{ text: 'all is well' }] })
  })

  test('a tool use of a child thread waits while the emulated session is running', async () => {
    await post('thread use bash {"command":"ls"}')
    const [use] = await usesOf()
    const events = await listed()
    expect(events.map(({ type }) => type)).toEqual([
      ...['user.message', 'session.status_running', 'agent.message', 'session.thread_created'],
      ...['session.thread_status_running', 'agent.tool_use', 'session.thread_status_idle'],
    ])
    const thread = events[3]?.session_thread_id
    expect(use).toMatchObject({ session_thread_id: thread, evaluated_permission: 'ask' })
    expect(events.at(-1)).toMatchObject({
      session_thread_id: thread,
      stop_reason: { type: 'requires_action', event_ids: [use?.id] },
    })
    expect(await statusOf()).toBe('running')
    await confirm(use?.id)
    expect((await typesOf()).slice(events.length)).toEqual([
      ...['user.tool_confirmation', 'session.thread_status_running', 'agent.tool_result'],
      ...['session.thread_status_idle', 'agent.message', ...ends],
    ])
    expect(await statusOf()).toBe('idle')
  })

  test('the emulator does not wait for a reply to a tool use that it refused', async () => {
    await post('refuse bash {"command":"rm -rf /"}')
    const [use] = await usesOf()
    expect(use).toMatchObject({
      evaluated_permission: 'deny',
      evaluation: { type: 'auto', evaluated_permission: { type: 'deny', reason_code: 'high_risk' } },
    })
    const events = await listed()
    const result = { type: 'agent.tool_result', tool_use_id: use?.id, is_error: true }
    expect(events).toContainEqual(expect.objectContaining(result))
    expect(events.at(-1)).toMatchObject({ stop_reason: { type: 'end_turn' } })
    expect(await confirm(use?.id)).toMatchObject({ code: 4, err: expect.stringContaining('409') })
  })

  test('the emulator refuses a message to a waiting session if the request has no reply and no interrupt', async () => {
    await post('use bash {}')
    const [use] = await usesOf()
    const before = await listed()
    const refused = await post('hello')
    expect(refused).toMatchObject({ code: 4, out: '', err: expect.stringContaining(`400`) })
    expect(refused.err).toContain(`the session waits for an answer to ${use?.id}`)
    expect(await listed()).toEqual(before)
    const reply = ['--tool-result', `${use?.id}=x`]
    expect((await parley('events', 'send', ...reply, '--message', 'use bash {}')).code).toBe(0)
    expect((await parley('events', 'send', '--interrupt', '--message', 'hello')).code).toBe(0)
  })

  test('an emulated session stops at its budget and then refuses messages', async () => {
    const budget = { type: 'limit', max_list_cost: { amount: '1', currency: 'USD' } }
    const stdin = JSON.stringify({ agent: 'a', environment_id: 'e', budget })
    const created = await run(['api', 'agents', '/v1/sessions', '-i', '-'], { exchange, stdin })
    const env = { PARLEY_SESSION: JSON.parse(created.out).id }
    const first = await run(['events', 'send', '--follow', 'hello'], { exchange, env })
    expect(first).toMatchObject({ code: 13, err: expect.stringContaining('budget_reached') })
    const second = await run(['events', 'send', 'hello'], { exchange, env })
    expect(second).toMatchObject({ code: 4, err: expect.stringContaining('over its budget') })
    const raise = /to raise it to AMOUNT in minor units, such as cents: parley (.*) '(budget=.*)'$/m
    const [, command = '', assignment = ''] = raise.exec(first.err) ?? []
    const raised = await run([...command.split(' '), assignment.replace('AMOUNT', '16')], { exchange })
    expect(JSON.parse(raised.out).budget.max_list_cost.amount).toBe('16')
    expect((await run(['events', 'run', '--no-stdin'], { exchange, env })).code).toBe(0)
    expect((await run(['events', 'send', 'hello'], { exchange, env })).code).toBe(0)
  })
})
