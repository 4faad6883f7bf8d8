import { expect, test } from 'vitest'
import type { Exchange } from '../../src/wire/exchange.ts'
import { answering, type RunOptions, run } from '../harness/run.ts'
import { createSessionService, endTurn, running, userSays } from '../harness/session-service.ts'

const session = 'sesn_011CZkZAtmR3yMPDzynEDxu7'
const message = { id: 'm', type: 'user.message', content: 'go on' }
const idle = (fields: object = {}) => ({ id: 'i', type: 'session.status_idle', ...fields })
const use = (id: string, input: object) => ({ id, type: 'agent.tool_use', name: 'bash', input })

/** Follows a session that is idle or becomes idle in its stream. */
async function follow(
  { listed, live = [] }: { listed: object[]; live?: object[] },
  { argv = [], ...world }: { argv?: string[] } & RunOptions = {},
) {
  const frames = live.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
  const stream = answering(`: open\n\n${frames}`, { headers: { 'content-type': 'text/event-stream' } })
  const list = answering(JSON.stringify({ data: listed }))
  const exchange: Exchange = (request) => (request.url.endsWith('/stream') ? stream : list)(request)
  const env = { PARLEY_SESSION: session }
  return run(['events', 'follow', ...argv], { exchange, env, tty: ['stdout', 'stderr'], ...world })
}

const now = new Date().toISOString()
const clock = /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/.source

const waiting = { type: 'requires_action', event_ids: ['toolu_1'] }
const isIdle = `${session} is idle since ${clock}`
test.each<[string, object[], object[], string]>([
  [
    'names the session',
    [message],
    [idle({ stop_reason: 'end_turn' })],
    `following ${session}; Ctrl-C stops following, the session continues`,
  ],
  [
    'shows since when and why a session is idle',
    [message, idle({ processed_at: now, stop_reason: { type: 'end_turn' } })],
    [],
    `${isIdle} \\(end_turn\\); --stay waits for more events`,
  ],
  [
    'shows that an idle session waits for answers to tool uses',
    [use('toolu_1', {}), idle({ processed_at: now, stop_reason: waiting })],
    [],
    `${isIdle} \\(tool uses wait for an answer\\)\\n`,
  ],
  [
    'shows when a terminated session ended',
    [{ id: 't', type: 'session.status_terminated', processed_at: now }],
    [],
    `${session} ended at ${clock} \\(terminated\\)\\n`,
  ],
])('V57: the first line of events follow %s', async (_, listed, live, said) => {
  const { err } = await follow({ listed, live }, { env: { PARLEY_SESSION: session, NO_COLOR: '1' } })
  expect(err).toMatch(new RegExp(`^parley: ${said}`))
  const piped = await follow({ listed, live }, { tty: [] })
  expect(piped.err).not.toContain('following')
})

const long = { command: 'x y '.repeat(2000), more: '日本語' }

test('V58: on a terminal, events follow prints an event without text as one dim line that is cut to fit', async () => {
  const listed = [use('toolu_1', long), { id: 'a', type: 'agent.message', content: 'two\nlines' }, idle()]
  const shown = await follow({ listed }, { argv: ['--history'], columns: 60 })
  const [first = '', ...rest] = shown.out.split('\n')
  expect(first).toMatch(/^\x1b\[2m· agent\.tool_use bash \{"command":"x y .*…\x1b\[22m$/)
  expect(first.replaceAll(/\x1b\[\d+m/g, '').length).toBeGreaterThan(55)
  expect(first.replaceAll(/\x1b\[\d+m/g, '').length).toBeLessThanOrEqual(60)
  expect(rest).toEqual(['two', 'lines', '\x1b[2m· session.status_idle\x1b[22m', ''])
  const piped = await follow({ listed }, { argv: ['--history'], tty: [] })
  expect(piped.out).toContain(`bash ${JSON.stringify(long)}`)
})

const exchange = answering(JSON.stringify({ data: [message, { id: 'n', type: 'brand.new' }] }))
const list = (...argv: string[]) =>
  run(['events', 'list', ...argv], { exchange, env: { PARLEY_SESSION: session } })

test('V60: events list --type prints a note if no event has the type', async () => {
  const { code, out, err } = await list('--type', 'agent.mesage', '--type', 'status_idle')
  expect({ code, out }).toEqual({ code: 0, out: '' })
  expect(err).toBe('parley: no event has the type agent.mesage or status_idle\n')
  expect(await list('--type', 'brand.new')).toMatchObject({ code: 0, err: '' })
})

const source = '# Result\n\n- **all good** and `code`\n\n|a|b|\n|-|-|\n|1|2|'
const laidOut = 'Result\n\n• all good and code\n\na │ b\n──┼──\n1 │ 2\n'
const said = { id: 'a', type: 'agent.message', content: [{ type: 'text', text: source }] }
const live = [message, said, idle({ stop_reason: 'end_turn' })]
const env = { PARLEY_SESSION: session, NO_COLOR: '1' }

test("events follow lays out an agent's message as Markdown on a terminal, also with --history", async () => {
  expect((await follow({ listed: [], live }, { env })).out).toContain(`\n${laidOut}`)
  expect((await follow({ listed: live }, { env, argv: ['--history'] })).out).toContain(`\n${laidOut}`)
  const { out } = await follow({ listed: [], live })
  expect(out).toContain('\x1b[1;4;35mResult\x1b[0m')
})

test("events follow escapes control characters in an agent's message", async () => {
  const hostile = { ...said, content: 'a\x1b[2J\u202eb' }
  for (const PARLEY_MARKDOWN of ['true', 'false']) {
    const world = { env: { ...env, PARLEY_MARKDOWN } }
    const { out } = await follow({ listed: [], live: [message, hostile, idle()] }, world)
    expect(out).toContain('a^[[2J\\u202eb\n')
  }
})

test.each([
  ['omits status and usage events', [], ['agent.thinking', 'session.status_idle']],
  [
    'prints status and usage events with -v',
    ['-v'],
    ['session.status_running', 'agent.thinking', 'session.usage', 'session.status_idle'],
  ],
])('on a terminal, events follow %s', async (_, flags, types) => {
  const history = [
    userSays('x'),
    running,
    { type: 'agent.thinking' },
    { type: 'session.usage', usage: { input_tokens: 1 } },
    endTurn,
  ]
  const service = createSessionService({ history })
  const { out } = await service.run(['events', 'follow', '--history', ...flags], { tty: ['stdout'] })
  expect(
    [...out.matchAll(/· ([a-z._]+)/g)].flatMap(([, type]) => (type === 'user.message' ? [] : type)),
  ).toEqual(types)
})
