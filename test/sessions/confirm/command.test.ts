import { describe, expect, test } from 'vitest'
import { createEmulator } from '../../../src/emulator/emulator.ts'
import { run } from '../../harness/run.ts'

const world = { env: { PARLEY_SESSION: 'sesn_1' } }

type Event = { id: string; type: string } & Record<string, unknown>

const idle = (id: string, reason: object): Event => ({ id, type: 'session.status_idle', stop_reason: reason })
const done = (id: string) => idle(id, { type: 'end_turn' })
const asks = (id: string): Event => ({ id, type: 'agent.tool_use', name: 'bash', input: { command: 'ls' } })

describe('confirm', () => {
  const confirm = (argv: string[], more: Parameters<typeof run>[1] = {}) =>
    run(['events', 'confirm', ...argv], { ...world, ...more })
  const eventsOf = (ended: Awaited<ReturnType<typeof run>>) =>
    JSON.parse(ended.requests.at(-1)?.text ?? '{}').events

  test('answers the ids that are named, in one request', async () => {
    const ended = await confirm(['toolu_1', 'toolu_2', 'toolu_1', '--deny', '--message', 'no'])
    expect(ended).toMatchObject({ code: 0, requests: [{}] })
    expect(eventsOf(ended)).toEqual([
      { type: 'user.tool_confirmation', tool_use_id: 'toolu_1', result: 'deny', deny_message: 'no' },
      { type: 'user.tool_confirmation', tool_use_id: 'toolu_2', result: 'deny', deny_message: 'no' },
    ])
  })

  const waiting = idle('i', { type: 'requires_action', event_ids: ['t1', 't2', 't3', 't4'] })
  const list = [
    idle('old', { type: 'requires_action', event_ids: ['t0'] }),
    asks('t1'),
    { id: 't2', type: 'agent.mcp_tool_use' },
    { id: 't3', type: 'agent.custom_tool_use' },
    waiting,
  ]

  test.each([
    ['one idle event', JSON.stringify(waiting), ['t1', 't2', 't3', 't4']],
    ['a list', JSON.stringify(list), ['t1', 't2', 't4']],
    ['a page', JSON.stringify({ data: list, next_page: null }), ['t1', 't2', 't4']],
    ['one event a line', list.map((event) => JSON.stringify(event)).join('\n'), ['t1', 't2', 't4']],
  ])('answers what waits, from %s', async (_, stdin, ids) => {
    const ended = await confirm(['--allow'], { stdin })
    expect(ended.code).toBe(0)
    expect(eventsOf(ended).map((event: { tool_use_id: string }) => event.tool_use_id)).toEqual(ids)
    if (ids.length === 3) expect(ended.err).toContain('t3 is an agent.custom_tool_use')
  })

  test('confirmations that are given whole are sent as they are', async () => {
    const given = { type: 'user.tool_confirmation', tool_use_id: 't9', result: 'allow' }
    expect(eventsOf(await confirm([], { stdin: JSON.stringify(given) }))).toEqual([given])
  })

  test('--pending asks the service; --follow goes on', async () => {
    const exchange = createEmulator({})
    const sent = await run(['events', 'send', 'use two tools', '--follow', '--ids'], { ...world, exchange })
    expect(sent.code).toBe(12)
    expect(sent.out.trim().split('\n')).toHaveLength(2)
    const ended = await confirm(['--pending', '--allow', '--follow'], { exchange })
    expect(ended.code).toBe(0)
    expect(ended.out).toContain('The emulated agent is done.\n')
    expect(await confirm(['--pending', '--allow'], { exchange })).toMatchObject({ code: 2, out: '' })
  })

  test('asks on a terminal, showing what is known', async () => {
    const exchange = createEmulator({})
    await run(['events', 'send', 'use two tools', '--follow'], { ...world, exchange })
    const ended = await confirm(['--pending'], { exchange, tty: ['stdout', 'stderr'], typed: 'what\ny\nn\n' })
    const id = eventsOf(ended)[0].tool_use_id
    const shown = `  | id: ${id}\n  | tool: bash\n  | {\n  |   "command": "ls -l"\n  | }\n`
    const question = `  allow bash (${id})? [y/n] `
    expect(ended.err).toContain(
      `parley: tool use 1 of 2:\n${shown}${question}${question}parley: tool use 2 of 2:\n`,
    )
    expect(eventsOf(ended)).toMatchObject([{ result: 'allow' }, { result: 'deny' }])
  })

  test('given confirmations keep their spelling, and their verdict', async () => {
    const given =
      '{"type":"user.tool_confirmation","tool_use_id":"t","result":"deny","n":1.10,"big":12345678901234567890}'
    expect((await confirm([], { stdin: given })).requests[0]?.text).toBe(`{"events":[${given}]}`)
    expect(await confirm(['--allow'], { stdin: given })).toMatchObject({ code: 2, requests: [] })
  })

  test('answers given together end the turn of the emulated agent once', async () => {
    const exchange = createEmulator({})
    await run(['events', 'send', 'use two tools', '--follow'], { ...world, exchange })
    await confirm(['--pending', '--allow', '--follow'], { exchange })
    const { out } = await run(['events', 'list', '--type', 'session.status_idle'], { ...world, exchange })
    expect(out.match(/end_turn/g)).toHaveLength(1)
  })

  test.each([
    ['ids and --pending', ['t1', '--pending', '--allow'], undefined, 'exclude each other'],
    ['ids and -i', ['t1', '-i', 'x.json', '--allow'], undefined, 'exclude each other'],
    ['no verdict without a terminal', ['t1'], undefined, '--allow or --deny'],
    ['both verdicts', ['t1', '--allow', '--deny'], undefined, 'exclude each other'],
    [
      'a message with --allow',
      ['t1', '--allow', '--message', 'x'],
      undefined,
      '--message works only with --deny',
    ],
    ['nothing that waits', ['--allow'], JSON.stringify([done('x')]), 'nothing waits'],
    [
      'a session that was answered',
      ['--allow'],
      JSON.stringify([
        waiting,
        ...['t1', 't2', 't3', 't4'].map((id) => ({
          id: `c${id}`,
          type: 'user.tool_confirmation',
          tool_use_id: id,
        })),
      ]),
      'nothing waits',
    ],
    [
      'a message of 10001 characters',
      ['t1', '--deny', '--message', 'a'.repeat(10001)],
      undefined,
      'deny_message: must be at most 10000',
    ],
    ['an id of 129 characters', ['a'.repeat(129), '--allow'], undefined, 'tool_use_id: must be at most 128'],
    ['what is no event', ['--allow'], '"text"', 'session.status_idle'],
  ])('%s is exit 2, and nothing is sent', async (_, argv, stdin, said) => {
    const ended = await confirm(argv, stdin === undefined ? {} : { stdin })
    expect(ended).toMatchObject({ code: 2, out: '', requests: [] })
    expect(ended.err).toContain(said)
  })
})
