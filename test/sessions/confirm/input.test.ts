import { describe, expect, test } from 'vitest'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { answering, type RunOptions, run } from '../../harness/run.ts'

const env = { PARLEY_SESSION: 'sesn_1' }

const idle = (stop_reason?: unknown) => ({ id: 'idle', type: 'session.status_idle', stop_reason })
const use = (id: string, more: object = {}) => ({
  id,
  type: 'agent.tool_use',
  name: 'bash',
  input: { command: 'ls' },
  ...more,
})
const confirmation = (id: string, result = 'allow') => ({
  type: 'user.tool_confirmation',
  tool_use_id: id,
  result,
})

/** Creates a session that lists these events and accepts posts. */
const listing = (events: object[]): Exchange => {
  const list = answering(JSON.stringify({ data: events }))
  const receipt = answering('{"data":[]}')
  const stream = answering('', { headers: { 'content-type': 'text/event-stream' } })
  return (request) =>
    (request.method === 'POST' ? receipt : request.url.endsWith('/stream') ? stream : list)(request)
}

async function confirm(argv: string[], world: RunOptions = {}) {
  const ended = await run(['events', 'confirm', ...argv], { env, exchange: listing([]), ...world })
  const posts = ended.requests.filter(({ method }) => method === 'POST').map(({ text }) => text)
  return { ...ended, posts, answered: posts.map((text) => JSON.parse(text).events) }
}

describe('stop reason with event_ids and without a type', () => {
  const events = [use('t1'), use('t2'), idle({ event_ids: ['t1'] })]

  test('Q01: events confirm replies only to the tool uses that the idle event in a file lists', async () => {
    const { code, answered } = await confirm(['--allow'], { stdin: JSON.stringify(events) })
    expect({ code, answered }).toEqual({ code: 0, answered: [[confirmation('t1')]] })
  })

  test('Q01: events confirm --pending replies only to the tool uses that the idle event lists', async () => {
    const { code, answered } = await confirm(['--pending', '--deny'], { exchange: listing(events) })
    expect({ code, answered }).toEqual({ code: 0, answered: [[confirmation('t1', 'deny')]] })
  })
})

describe.each([
  ['requires_action', { type: 'requires_action' }],
  ['no stop reason', undefined],
])('events confirm accepts an idle event that lists no ids: %s', (_, reason) => {
  const events = [use('t1'), use('t2', { type: 'agent.mcp_tool_use' }), idle(reason)]

  test('Q02: events confirm --pending --allow sends no reply, exits with 12 and names the tool uses', async () => {
    const { code, err, posts } = await confirm(['--pending', '--allow'], { exchange: listing(events) })
    expect({ code, posts }).toEqual({ code: 12, posts: [] })
    expect(err).toContain('t1: bash {"command":"ls"}')
    expect(err).toContain('to answer one: parley events confirm -s sesn_1 ID --allow')
  })

  test('Q02: events confirm ID replies although the idle event lists no ids', async () => {
    const { code, answered } = await confirm(['t2', '--allow'], { exchange: listing(events) })
    expect({ code, answered }).toEqual({ code: 0, answered: [[confirmation('t2')]] })
  })

  test('Q02: events confirm exits with 2 and sends nothing for a file whose idle event lists no ids', async () => {
    const { code, posts } = await confirm(['--allow'], { stdin: JSON.stringify(events) })
    expect({ code, posts }).toEqual({ code: 2, posts: [] })
  })
})

const text = (...events: object[]) => JSON.stringify(events)

describe('events on the stdin of events confirm', () => {
  const one = '{"type":"user.tool_confirmation", "tool_use_id":"t1","result":"allow","n":1.10}'
  const two = '{"type":"user.tool_confirmation","tool_use_id":"t2","result":"deny","deny_message":"no"}'

  test.each([
    [
      'a body, byte for byte',
      ` {"x":1.0,"events" : [${one},${two}],"big":12345678901234567890}\n`,
      undefined,
    ],
    ['a list', `[${one},${two}]`, `{"events":[${one},${two}]}`],
    ['events in lines', `${one}\n\n${two}\n`, `{"events":[${one},${two}]}`],
  ])('Q03: events confirm sends given confirmations unchanged: %s', async (_, stdin, sent) => {
    const { code, posts } = await confirm([], { stdin })
    expect({ code, posts }).toEqual({ code: 0, posts: [sent ?? stdin] })
  })

  test.each([
    [
      'a message next to a confirmation',
      `[${one},{"type":"user.message","content":[]}]`,
      'events[1] (user.message) is not a user.tool_confirmation',
    ],
    ['a message on line 3', `${one}\n\n{"type":"user.message","content":[]}`, 'line 3 (user.message) is not'],
    ['an empty list', '[]', 'no tool use waits'],
  ])('Q04: events confirm exits with 2 and sends nothing for %s', async (_, stdin, said) => {
    const { code, err, requests } = await confirm([], { stdin })
    expect({ code, requests }).toEqual({ code: 2, requests: [] })
    expect(err).toContain(said)
  })

  test('Q06: events confirm confirms unknown ids, but no tool use that needs a result', async () => {
    const listed = ['t1', 't2', 't3', 't4', 'm1']
    const events = text(
      use('t1'),
      use('t2', { type: 'agent.mcp_tool_use' }),
      use('t3', { type: 'agent.custom_tool_use' }),
      { id: 'm1', type: 'agent.message', content: 'x' },
      idle({ type: 'requires_action', event_ids: listed }),
    )
    const { code, answered, err } = await confirm(['--allow'], { stdin: events })
    expect({ code, answered }).toEqual({
      code: 0,
      answered: [['t1', 't2', 't4'].map((id) => confirmation(id))],
    })
    expect(err).toContain('t3 is an agent.custom_tool_use: it needs a result')
    expect(err).toContain('m1 cannot be confirmed: its type is agent.message')
  })
})

describe('id with two different tool uses', () => {
  const events = [
    use('t1'),
    use('t2'),
    use('t1', { input: { command: 'rm' } }),
    idle({ event_ids: ['t1', 't2'] }),
  ]

  test.each([
    ['input', events],
    ['name', events.with(2, use('t1', { name: 'rm' }))],
  ])(
    'Q07: events confirm refuses to allow, but denies, an id that has two tool uses with another %s',
    async (_, shown) => {
      for (const [argv, world] of [
        [['--allow'], { stdin: JSON.stringify(shown) }],
        [['--pending', '--allow'], { exchange: listing(shown) }],
        [['--pending'], { exchange: listing(shown), tty: ['stdout', 'stderr'], typed: 'y\ny\n' }],
      ] as const) {
        const { code, err, posts } = await confirm([...argv], world as RunOptions)
        expect({ code, posts }).toEqual({ code: 2, posts: [] })
        expect(err).toContain(
          't1: the service sent two different tool uses with this id, so you can only deny it',
        )
      }
      const { answered } = await confirm(['--deny'], { stdin: JSON.stringify(shown) })
      expect(answered).toEqual([[confirmation('t1', 'deny'), confirmation('t2', 'deny')]])
    },
  )

  test('events confirm exits with 12 and prints the tool use that stays open because it has no name', async () => {
    const shown = [use('t1'), use('t2', { name: ['bash'] }), idle({ event_ids: ['t1', 't2'] })]
    const tty: ('stdout' | 'stderr')[] = ['stdout', 'stderr']
    const { code, err, answered } = await confirm(['--pending'], {
      exchange: listing(shown),
      tty,
      typed: 'y\n',
    })
    expect({ code, answered }).toEqual({ code: 12, answered: [[confirmation('t1')]] })
    expect(err).toMatch(/sesn_1 waits for an answer\n {2}t2: /)
  })

  test('events confirm without arguments prompts on a terminal about all waiting tool uses', async () => {
    const shown = [use('t1'), idle({ event_ids: ['t1'] })]
    const world = { exchange: listing(shown), typed: 'y\n' }
    const { code, answered } = await confirm([], { ...world, tty: ['stdout', 'stderr'] })
    expect({ code, answered }).toEqual({ code: 0, answered: [[confirmation('t1', 'allow')]] })
    const refused = await confirm(['--allow'], { ...world, tty: ['stdout', 'stderr'] })
    expect({ code: refused.code, posts: refused.posts }).toEqual({ code: 2, posts: [] })
    expect(refused.err).toContain('no tool uses: give their ids, --pending,')
    const hidden = await confirm([], { ...world, tty: ['stdout'] })
    expect({ code: hidden.code, posts: hidden.posts }).toEqual({ code: 2, posts: [] })
  })
})
