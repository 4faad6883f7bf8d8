import { beforeEach, describe, expect, test } from 'vitest'
import { createEmulator } from '../../src/emulator/emulator.ts'
import type { Exchange } from '../../src/wire/exchange.ts'
import { run } from '../harness/run.ts'

type Event = { id: string; type: string } & Record<string, unknown>

let exchange: Exchange
beforeEach(() => {
  exchange = createEmulator({})
})

const parley = (...argv: string[]) => run(argv, { exchange, env: { PARLEY_SESSION: 's1' } })
const send = (text: string) => parley('events', 'send', '--follow', '--message', text)
const event = (value: object) => parley('events', 'send', '--follow', '--event', JSON.stringify(value))

async function listed(): Promise<Event[]> {
  const { out } = await parley('events', 'list', '--raw')
  return out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}

const usesOf = async () => (await listed()).filter(({ type }) => type.endsWith('tool_use'))
const typesOf = async () => (await listed()).map(({ type }) => type)

test('each line of the help on serve is a tool use', async () => {
  const { out } = await run(['serve', '--help'])
  const lines = [...out.matchAll(/^ {2}(use .*\})/gm)].map(([, line]) => line)
  expect(lines).toHaveLength(3)
  expect(out).toContain('\n  say {')
  const ended = await send(`Please do this:\n${lines.join('\n')}`)
  expect(ended.code).toBe(12)
  const uses = await usesOf()
  expect(uses).toMatchObject([
    { type: 'agent.tool_use', name: 'bash', input: { command: 'git status' }, evaluated_permission: 'ask' },
    {
      type: 'agent.mcp_tool_use',
      mcp_server_name: 'github',
      name: 'create_issue',
      input: { title: 'x' },
      evaluated_permission: 'ask',
    },
    { type: 'agent.custom_tool_use', name: 'deploy', input: { env: 'test' } },
  ])
  expect((await listed()).at(-1)).toMatchObject({
    stop_reason: { type: 'requires_action', event_ids: uses.map(({ id }) => id) },
  })
})

test.each(['Use a tool: list the files', 'one tool, {please}', 'use a tool {"a":1}'])(
  'words that ask for a tool are as they were: %s',
  async (text) => {
    expect((await send(text)).code).toBe(12)
    const [use] = await usesOf()
    const { id, processed_at: _, ...fields } = use as Event
    expect(fields).toEqual({
      type: 'agent.tool_use',
      name: 'bash',
      input: { command: 'ls -l' },
      evaluated_permission: 'ask',
    })
    expect((await parley('events', 'confirm', id, '--allow', '--follow')).out).toContain('is done')
    expect(await typesOf()).toEqual([
      'user.message',
      'session.status_running',
      'agent.message',
      'agent.tool_use',
      'session.usage',
      'session.status_idle',
      'user.tool_confirmation',
      'session.status_running',
      'agent.tool_result',
      'agent.message',
      'session.usage',
      'session.status_idle',
    ])
  },
)

describe('what comes of an answer', () => {
  const confirm = async (...argv: string[]) =>
    parley('events', 'confirm', ((await usesOf()).at(-1) as Event).id, '--follow', ...argv)

  test('what is denied the agent does without, and says so with the reason', async () => {
    await send('use bash {"command":"rm -rf /"}')
    const ended = await confirm('--deny', '--message', 'no deleting')
    expect(ended.code).toBe(0)
    expect(ended.out).toContain('does without bash, which was denied: “no deleting”.\n')
    expect(ended.out).toContain('is done.\n')
    expect(await typesOf()).not.toContain('agent.tool_result')
  })

  test('an allowed tool of an MCP server has a result of its own kind', async () => {
    await send('use mcp github create_issue {}')
    expect((await confirm('--allow')).code).toBe(0)
    const [use] = await usesOf()
    expect(await listed()).toContainEqual(
      expect.objectContaining({
        type: 'agent.mcp_tool_result',
        mcp_tool_use_id: use?.id,
      }),
    )
  })

  test.each([
    ['custom-tool-result', 'use custom deploy {}', 'read what deploy gave: “v1.2 is out”'],
    ['custom-tool-error', 'use custom deploy {}', 'does without deploy, which failed: “v1.2 is out”'],
    ['tool-result', 'use bash {}', 'read what bash gave: “v1.2 is out”'],
    ['tool-error', 'use bash {}', 'does without bash, which failed: “v1.2 is out”'],
  ])('--%s is taken up in what it says', async (flag, task, said) => {
    await send(task)
    const [use] = await usesOf()
    const ended = await parley('events', 'send', '--follow', `--${flag}`, `${use?.id}=v1.2 is out`)
    expect(ended.code).toBe(0)
    expect(ended.out).toContain(`The emulated agent ${said}.\n`)
  })

  test('a result may be long, and cut in the middle of no character', async () => {
    await send('use custom deploy {}')
    const [use] = await usesOf()
    const content = [{ type: 'text', text: '🦜'.repeat(500_000) }]
    const ended = await event({ type: 'user.custom_tool_result', custom_tool_use_id: use?.id, content })
    expect(ended.out).toContain(`gave: “${'🦜'.repeat(40)}…”.\n`)
  })

  test('a tool use that was answered takes no second answer, and nothing is charged for one', async () => {
    await send('use bash {}')
    await confirm('--allow')
    const before = await listed()
    const [use] = await usesOf()
    const confirmation = { type: 'user.tool_confirmation', tool_use_id: use?.id, result: 'allow' }
    const again = await event(confirmation)
    expect(again).toMatchObject({ code: 4, out: '' })
    expect(again.err).toContain('events[0].tool_use_id: waits for no reply: it was answered or interrupted')
    expect(await listed()).toEqual(before)
    await send('use bash {}')
    const [, other] = await usesOf()
    const twice = [1, 2].map(() => ({ ...confirmation, tool_use_id: other?.id }))
    const both = await parley('events', 'send', ...twice.map((each) => `--event=${JSON.stringify(each)}`))
    expect(both).toMatchObject({ code: 4, err: expect.stringContaining('409') })
  })

  test.each<[string, string, (id: string) => object, string]>([
    [
      'a confirmation of a custom tool',
      'use custom deploy {}',
      (id) => ({ type: 'user.tool_confirmation', tool_use_id: id, result: 'allow' }),
      'events[0].tool_use_id: is an agent.custom_tool_use',
    ],
    [
      "a result for an MCP server's tool",
      'use mcp github x {}',
      (id) => ({ type: 'user.tool_result', tool_use_id: id }),
      'events[0].tool_use_id: is an agent.mcp_tool_use',
    ],
    [
      "a custom result for the agent's own tool",
      'use bash {}',
      (id) => ({ type: 'user.custom_tool_result', custom_tool_use_id: id }),
      'events[0].custom_tool_use_id: is an agent.tool_use',
    ],
  ])('%s is refused, and nothing is taken', async (_, task, answer, said) => {
    await send(task)
    const before = await listed()
    const [use] = await usesOf()
    const ended = await event(answer(use?.id ?? ''))
    expect(ended).toMatchObject({ code: 4, out: '' })
    expect(ended.err).toContain(said)
    expect(await listed()).toEqual(before)
  })
})

test('"run" asks nobody', async () => {
  const ended = await send('run bash {"command":"ls"}\nrun mcp github list {}')
  expect(ended.code).toBe(0)
  expect(await listed()).toMatchObject([
    { type: 'user.message' },
    { type: 'session.status_running' },
    { type: 'agent.message' },
    { type: 'agent.tool_use', evaluated_permission: 'allow' },
    { type: 'agent.tool_result' },
    { type: 'agent.mcp_tool_use', evaluated_permission: 'allow' },
    { type: 'agent.mcp_tool_result' },
    { type: 'agent.message' },
    { type: 'session.usage' },
    { type: 'session.status_idle', stop_reason: { type: 'end_turn' } },
  ])
})

test('"then" waits for the answers to the lines above, whatever they are', async () => {
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

test('answers in a row, before the agent moves, lose no round', async () => {
  exchange = createEmulator({ latency: 5 })
  await send('use a1 {}\nuse a2 {}\nthen use b {}')
  const [one, two] = (await usesOf()).map(({ id }) => id)
  await parley('events', 'confirm', one ?? '', '--allow')
  expect((await parley('events', 'confirm', two ?? '', '--allow', '--follow')).code).toBe(12)
  expect((await usesOf()).map(({ name }) => name)).toEqual(['a1', 'a2', 'b'])
})

test('an interrupt ends all rounds; one of a thread changes nothing', async () => {
  await send('use a {}\nuse b {}\nthen use c {}')
  const before = await typesOf()
  const rest = async () => {
    for (;;) {
      const last = (await listed()).at(-1)
      if (last?.type === 'session.status_idle') return last
      await new Promise(setImmediate)
    }
  }
  await parley('events', 'send', '--interrupt-thread', 't1')
  expect(await typesOf()).toEqual([...before, 'user.interrupt'])
  await parley('events', 'send', '--interrupt')
  expect(await rest()).toMatchObject({ stop_reason: { type: 'end_turn' } })
  expect(await usesOf()).toHaveLength(2)
})

test('an outcome is a task', async () => {
  expect((await parley('events', 'send', '--follow', '--outcome', 'use bash {}')).code).toBe(12)
})

describe('lines that are no tool use', () => {
  test.each([
    'use the right {words} here',
    'use bash {"a":',
    'use bash {}{}',
    'use one two {}',
    'use mcp x {}',
    'run custom x {}',
  ])('%s is told', async (line) => {
    const ended = await send(`Please:\n${line}`)
    expect(ended).toMatchObject({ code: 0, err: expect.not.stringContaining('wait') })
    expect(ended.out).toContain(`does not understand “${line}”`)
    expect(await usesOf()).toEqual([])
  })

  test.each(['use bash', 'Use bash {}', 'we use bash {}', 'thenuse bash {}'])(
    '%s is a text like any other',
    async (text) => {
      const ended = await send(text)
      expect(ended.code).toBe(0)
      expect(await usesOf()).toEqual([])
    },
  )

  test('an input of a thousand levels, of names from the prototype, of a megabyte', async () => {
    const inputs = ['{"__proto__":{"a":1},"constructor":2}', `{"text":"${'a'.repeat(1_000_000)}"}`]
    const deep = `${'{"a":'.repeat(2000)}1${'}'.repeat(2000)}`
    const body = [...inputs, deep].map((input) => `use bash ${input}`).join('\n')
    const ended = await run(['events', 'send', '--follow', '-s', 's1', '--message', '@-'], {
      exchange,
      stdin: body,
    })
    expect(ended.code).toBe(12)
    expect(ended.out).toContain('does not understand “use bash {"a":')
    expect((await usesOf()).map(({ input }) => JSON.stringify(input))).toEqual(inputs)
  })
})
