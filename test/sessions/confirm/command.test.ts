import { expect, test } from 'vitest'
import { createEmulator } from '../../../src/emulator/emulator.ts'
import { bash, confirms, custom, type Event, interrupt, waitsFor } from '../../harness/events.ts'
import type { SessionScript } from '../../harness/session-service.ts'
import { atTerminal, createSessionService, typeAndWait } from '../../harness/session-service.ts'

const waitsWith = (reason: object): Event => ({ type: 'session.status_idle', stop_reason: reason })
const both = ['stdout', 'stderr'] as ('stdout' | 'stderr')[]

/** Creates a session with this history. If omitted, the session waits for replies to t1, t2 and t3. */
function open(history?: Event[], script: SessionScript = {}) {
  const service = createSessionService({
    history: history ?? [bash('t1'), bash('t2'), bash('t3'), waitsFor('t1', 't2', 't3')],
    ...script,
  })
  const confirm = (argv: string[], options?: Parameters<typeof service.run>[1]) =>
    service.run(['events', 'confirm', '-s', 's1', ...argv], options)
  return Object.assign(service, {
    confirm,
    pipe(events: object[] | string, ...argv: string[]) {
      const stdin = typeof events === 'string' ? events : JSON.stringify(events)
      return confirm(argv, { stdinKind: 'pipe', stdin })
    },
    prompt: (typed: string, ...argv: string[]) => confirm(argv, atTerminal(typed, both)),
  })
}

test('events confirm replies to all given ids in one request, and to a repeated id once', async () => {
  const { confirm, posts } = open()
  expect((await confirm(['t1', 't2', 't1', '--deny', '--message', 'no'])).code).toBe(0)
  expect(posts).toEqual([[confirms('t1', 'deny', 'no'), confirms('t2', 'deny', 'no')]])
})

const mcp = bash('t2', { type: 'agent.mcp_tool_use' })
const listed = [waitsFor('t0'), bash('t1'), mcp, custom('t3'), waitsFor('t1', 't2', 't3', 't4', 't1')]
test.each([
  ['a page of events', JSON.stringify({ data: listed, next_page: null })],
  ['one event per line', listed.map((event) => JSON.stringify(event)).join('\n')],
])('Q06: from %s on stdin, events confirm confirms each waiting tool use once', async (_, stdin) => {
  const { pipe, posts } = open()
  const { code, err } = await pipe(stdin, '--allow')
  expect({ code, posts }).toEqual({ code: 0, posts: [['t1', 't2', 't4'].map((id) => confirms(id))] })
  expect(err).toContain('t3 is an agent.custom_tool_use: it needs a result')
})

test.each([{ next_page: 'p2' }, { has_more: true }])(
  'events confirm sends nothing and exits with 2 if the input is a page with %j',
  async (next) => {
    const { pipe, confirm, write, posts } = open()
    const page = JSON.stringify({ data: listed, ...next })
    write('page.json', page)
    const missing = 'later pages of the list are missing'
    for (const ended of [await pipe(page, '--allow'), await confirm(['-i', 'page.json', '--deny'])])
      expect([ended.code, ended.err]).toEqual([2, expect.stringContaining(missing)])
    expect(posts).toEqual([])
    const last = JSON.stringify({ data: [], next_page: null })
    expect((await pipe(`${page}\n${last}`, '--allow')).code).toBe(0)
  },
)

test('events confirm --pending --allow exits with 12 if a custom tool use stays open', async () => {
  const { confirm, posts } = open([bash('t1'), custom('c2'), waitsFor('t1', 'c2')])
  const { code, err } = await confirm(['--pending', '--allow', '--errors', 'json'])
  expect({ code, posts }).toEqual({ code: 12, posts: [[confirms('t1')]] })
  const lines = err.trimEnd().split('\n')
  expect(JSON.parse(lines.at(-1) ?? '').error).toMatchObject({
    sent: 'yes',
    retry: 'never',
    pending: ['c2'],
    hints: ['to send a result: parley events send -s s1 --custom-tool-result c2=TEXT'],
  })
})

test('events confirm names the command that prints events as JSON if its input is text', async () => {
  const { pipe, posts } = open()
  const ended = await pipe('toolu_1\tagent.tool_use\tbash', '--allow')
  expect({ code: ended.code, posts }).toEqual({ code: 2, posts: [] })
  expect(ended.err).toContain("value expected; 'parley events list --raw' prints a session's events\n")
})

test('Q01, Y80: events confirm replies only to tool uses that the stop reason lists, even if the stop reason has no type', async () => {
  const { pipe, posts } = open()
  expect((await pipe([bash('t1'), bash('t2'), waitsWith({ event_ids: ['t1'] })], '--allow')).code).toBe(0)
  expect(posts).toEqual([[confirms('t1')]])
})

test('Q02: if the idle event lists no ids, events confirm replies only to tool uses that the user names', async () => {
  const events = [bash('t1'), mcp, waitsWith({ type: 'requires_action' })]
  const { confirm, pipe, posts } = open(events)
  const pending = await confirm(['--pending', '--allow'])
  expect({ code: pending.code, posts }).toEqual({ code: 12, posts: [] })
  expect(pending.err).toContain('t1: bash {"command":"ls"}')
  expect(pending.err).toContain('to answer one: parley events confirm -s s1 ID --allow')
  const piped = await pipe(events, '--allow')
  expect({ code: piped.code, posts }).toEqual({ code: 2, posts: [] })
  expect(piped.err).toContain('does not name the tool uses that wait: give their ids, or --pending')
  expect((await confirm(['t2', '--allow'])).code).toBe(0)
  expect(posts).toEqual([[confirms('t2')]])
})

const one = '{"type":"user.tool_confirmation", "tool_use_id":"t1","result":"allow","n":1.10}'
const denial = '{"type":"user.tool_confirmation","tool_use_id":"t2","result":"deny","deny_message":"no"}'
const listOfTwo = `{"events":[${one},${denial}]}`
const body = ` {"x":1.0,"events" : [${one},${denial}],"big":12345678901234567890}\n`
test.each([
  ['a body, byte for byte', body, body],
  ['a list', `[${one},${denial}]`, listOfTwo],
  ['one event per line', `${one}\n\n${denial}\n`, listOfTwo],
])('Q03: events confirm sends confirmations from stdin unchanged: %s', async (_, stdin, sent) => {
  const { code, requests } = await open().pipe(stdin)
  expect({ code, sent: requests.map(({ text }) => text) }).toEqual({ code: 0, sent: [sent] })
})

const message = '{"type":"user.message","content":[]}'
const recorded = JSON.stringify([bash('t1'), waitsFor('t1')])
const hasDecisions = 'the input already has the decisions: leave out --allow and --deny'
const isElsewhere = "unknown flag '--policy': 'parley events run' has this flag; without a task, it answers"
test.each<[what: string, argv: string[], said: string, stdin?: string, tty?: typeof both]>([
  ['a message next to a confirmation', [], 'events[1] (user.message) is not', `[${one},${message}]`],
  ['a message on line 3', [], 'line 3 (user.message) is not', `${one}\n\n${message}`],
  ['an empty list', [], 'no tool use waits', '[]'],
  ['confirmations next to --allow', ['--allow'], hasDecisions, one],
  ['events without a decision', [], 'give --allow or --deny: stderr is not a terminal, so', recorded],
  ['events on stdin of a terminal', [], 'connect stdin to the terminal', recorded, both],
  ['a pipe next to --pending', ['--pending'], 'connect stdin to the terminal', '', both],
  ['--no-stdin and no decision', ['t1', '--no-stdin'], 'with --no-stdin, parley cannot prompt', '', both],
  ['a value that is not an event', ['--allow'], 'events[0]: is not an event', '"text"'],
  ['ids and --pending', ['t1', '--pending', '--allow'], '--pending and TOOL-USE-ID exclude each other'],
  ['a message with --allow', ['t1', '--allow', '--message', 'x'], '--message works only with --deny'],
  ['--policy', ['t1', '--policy', 'x.json'], isElsewhere],
])('Q04: events confirm exits with 2, sends nothing for %s', async (_, argv, said, stdin = '', tty = []) => {
  const { code, out, err, requests } = await open().confirm(argv, { stdinKind: 'pipe', stdin, tty })
  expect({ code, out, requests }).toEqual({ code: 2, out: '', requests: [] })
  expect(err).toContain(said)
})

test.each([
  ['inputs', { input: { command: 'rm' } }],
  ['names', { name: 'rm' }],
])('Q07: events confirm can deny, but not allow, a tool use with two %s', async (_, more) => {
  const events = [bash('t1'), bash('t2'), bash('t1', more), waitsFor('t1', 't2')]
  const { pipe, confirm, prompt, posts } = open(events)
  for (const ended of [
    await pipe(events, '--allow'),
    await confirm(['--pending', '--allow']),
    await prompt('y\ny\n', '--pending'),
  ]) {
    expect({ code: ended.code, posts }).toEqual({ code: 2, posts: [] })
    const said = 't1: the service sent two different tool uses with this id, so you can only deny it'
    expect(ended.err).toContain(said)
  }
  await pipe(events, '--deny')
  expect(posts).toEqual([[confirms('t1', 'deny'), confirms('t2', 'deny')]])
})

test('events confirm --pending reads the waiting tool uses from the service, and --follow prints the rest of the turn', async () => {
  const exchange = createEmulator({})
  const service = createSessionService({})
  const parley = (...words: string[]) => service.run(['events', ...words], { exchange })
  expect((await parley('send', 'use two tools', '--follow')).code).toBe(12)
  const ended = await parley('confirm', '--pending', '--allow', '--follow')
  expect(ended).toMatchObject({ code: 0, out: expect.stringContaining('The emulated agent is done.\n') })
  expect(await parley('confirm', '--pending', '--allow')).toMatchObject({ code: 2, out: '' })
})

const deniesAll = ['t1', 't2', 't3'].map((id) => confirms(id, 'deny'))
test.each([
  [
    'accepts the answers "n" and "no", and a reason after "n"',
    'n  not on a Friday \nno\ny\n',
    [confirms('t1', 'deny', 'not on a Friday'), confirms('t2', 'deny'), confirms('t3')],
  ],
  ['appears again after any other input', '\ny es\nyy\ns q\na\nn\nn\nn\n', deniesAll],
])('V64: a prompt of events confirm %s', async (_, typed, expected) => {
  const { prompt, posts } = open()
  const { code, out } = await prompt(typed, '--pending')
  expect({ code, posts }).toEqual({ code: 0, posts: [expected] })
  expect(out).toMatch(/^ID +TYPE +TIME +TEXT\n(.*\n)?e5 +user\.tool_confirmation/)
})

test.each([
  ['skips one of three tool uses', 's\ny\nn\n', [[confirms('t2'), confirms('t3', 'deny')]], ['t1']],
  ['skips two tool uses and quits', 's\nskip\nquit\n', [], ['t1', 't2', 't3']],
])('V65: events confirm sends the answers and exits with 12 if a person %s', async (_, typed, sent, left) => {
  const { prompt, posts } = open()
  const { code, err } = await prompt(typed, '--pending')
  expect({ code, posts }).toEqual({ code: 12, posts: sent })
  expect(err).toContain('answer with: parley events confirm -s s1 --pending\n')
  expect(err).not.toContain('to see the answer')
  const json = await open().prompt(typed, '--pending', '--errors', 'json')
  const { error } = JSON.parse(/\{"error":.*$/m.exec(json.err)?.[0] ?? '')
  expect(error).toMatchObject({ exit: 12, pending: left, sent: sent.length > 0 ? 'yes' : 'no' })
})

test('V65: events confirm prompts again if the reason for a denial is too long', async () => {
  const { prompt, posts } = open()
  const { err } = await prompt(`n ${'x'.repeat(10_001)}\nn ${'x'.repeat(10_000)}\n`, 't1')
  expect(posts).toEqual([[confirms('t1', 'deny', 'x'.repeat(10_000))]])
  expect(err).toContain('the reason has more than 10000 characters\n')
})

test('V66: events confirm ID reads the tool use from the session and prompts about it', async () => {
  const { prompt, posts } = open()
  const { code, err, requests } = await prompt('y\nn\n', 't2', 't1', 't2')
  expect({ code, posts }).toEqual({ code: 0, posts: [[confirms('t2'), confirms('t1', 'deny')]] })
  expect(err).toContain('  | id: t2\n  | tool: bash\n  | command: ls\n')
  expect(requests.map(({ method }) => method)).toEqual(['GET', 'GET', 'POST'])
})

test('V66: events confirm exits with 2 for ids that are unknown to the session or need no confirmation', async () => {
  const history = [bash('t1'), bash('t2'), waitsFor('t1', 't2'), custom('c1')]
  const { prompt, posts, add } = open([...history, confirms('t2', 'deny')])
  const { code, err } = await prompt('y\ny\ny\n', 't1', 't9', 'c1', 't2')
  expect({ code, posts }).toEqual({ code: 2, posts: [] })
  expect(err.split('\n')).toEqual([
    'parley: s1: 3 problems',
    '  there is no tool use t9',
    '  c1 is an agent.custom_tool_use: it needs a result, not a confirmation; to send it: parley events send -s s1 --custom-tool-result c1=TEXT',
    '  t2 needs no answer: it already has the answer deny',
    '',
  ])
  add(interrupt)
  const interrupted = 'parley: s1: t1 needs no answer: it was interrupted\n'
  expect(await prompt('y\n', 't1')).toMatchObject({ code: 2, err: interrupted })
})

const two = [bash('t1'), bash('t2'), waitsFor('t1', 't2')]
const inThread = { session_thread_id: 'th' }
const rm = bash('t1', { input: { command: 'rm -rf /' } })
const changed = 'stays open: its input has changed'
const threaded = [bash('t1', inThread), ...two.slice(1)]
test.each<[string, Event[], Event[], number, string]>([
  ['another client denied', two, [...two, confirms('t1', 'deny')], 0, 'it already has the answer deny'],
  ['disappeared', two, [bash('t2'), waitsFor('t2')], 0, 'the session does not wait for it any more'],
  ['was interrupted', threaded, [...threaded, { ...interrupt, ...inThread }], 0, 'it was interrupted'],
  ['gets a second input', two, [...two, rm], 12, changed],
  ['gets a different input', two, [rm, ...two.slice(1)], 12, changed],
  ['gets a different name', two, [bash('t1', { name: 'write' }), ...two.slice(1)], 12, changed],
])('events confirm replies to all tool uses except one that %s', async (_, first, latest, expected, said) => {
  const { prompt, posts } = open([], { lists: [{ nth: 1, events: first }, { events: latest }] })
  const { code, err } = await prompt('y\ny\n', '--pending')
  expect({ code, posts }).toEqual({ code: expected, posts: [[confirms('t2')]] })
  expect(err).toContain(`parley: t1 ${said === changed ? '' : 'is not answered: '}${said}\n`)
})

const terminated: Event = { type: 'session.status_terminated' }
test.each<[how: string, end: string, argv: string[], event: Event, why: string]>([
  ['--pending', 'interrupted', ['--pending'], interrupt, 'it was interrupted'],
  ['with ids', 'interrupted', ['t1', 't2'], interrupt, 'it was interrupted'],
  ['--pending', 'terminated', ['--pending'], terminated, 'the session is terminated'],
])('events confirm %s sends nothing if the session is %s meanwhile', async (_how, _end, argv, event, why) => {
  const { prompt, posts } = open(two, { lists: [{ nth: 2, before: [event] }] })
  const { code, err } = await prompt('y\nn\n', ...argv)
  expect({ code, posts }).toEqual({ code: 0, posts: [] })
  for (const id of ['t1', 't2']) expect(err).toContain(`parley: ${id} is not answered: ${why}\n`)
  expect(err).toMatch(/parley: nothing was sent\n$/)
})

test('events confirm prints that an answer was not sent if the list request after the prompt fails', async () => {
  const { prompt } = open(two, { lists: [{ nth: 2, fault: { status: 503 } }] })
  const { code, err } = await prompt('y\ns\n', '--pending', '--retries', '0')
  expect(code).toBe(7)
  expect(err).toContain('answered 503; your answer to 1 of 2 tool uses was not sent\n')
})

test('events confirm -i FILE prompts with the tool input of the session, not of the file', async () => {
  const { prompt, posts, write } = open([rm, waitsFor('t1')])
  write('record.json', [bash('t1', { input: { command: 'git status' } }), waitsFor('t1')])
  const { code, err } = await prompt('n\n', '-i', 'record.json')
  expect({ code, posts }).toEqual({ code: 0, posts: [[confirms('t1', 'deny')]] })
  expect(err).toContain('command: rm -rf /\n')
  expect(err).not.toContain('git status')
  write('record.json', [bash('t9'), waitsFor('t9')])
  const unknown = 'parley: s1: there is no tool use t9\n'
  expect(await prompt('y\n', '-i', 'record.json')).toMatchObject({ code: 2, err: unknown })
})

test('V43: events confirm without arguments prompts on a terminal about all waiting tool uses', async () => {
  const { prompt, confirm, posts } = open([bash('t1'), waitsFor('t1')])
  const noUses = expect.stringContaining('no tool uses: give their ids, --pending,')
  expect(await prompt('y\n', '--allow')).toMatchObject({ code: 2, err: noUses })
  const redirected = expect.stringContaining('connect stderr to the terminal')
  expect(await confirm([], atTerminal('y\n', ['stdout']))).toMatchObject({ code: 2, err: redirected })
  expect(posts).toEqual([])
  expect((await prompt('y\n')).code).toBe(0)
  expect(posts).toEqual([[confirms('t1')]])
})

test('events confirm exits with 12 and names the open tool uses if its deadline passes at a question', async () => {
  const { confirm, posts } = open()
  const { code, err } = await confirm(
    ['t1', 't2', '--deadline', '100', '--errors', 'json'],
    atTerminal(typeAndWait('y\n'), both),
  )
  expect({ code, posts }).toEqual({ code: 12, posts: [] })
  const { error } = JSON.parse(err.split('\n').at(-2) ?? '')
  expect(error).toMatchObject({ kind: 'waiting', deadline: true, pending: ['t1', 't2'], sent: 'no' })
  const what = 'the deadline passed while a question was open; your answer to 1 of 2 tool uses was not sent'
  expect(error.message).toContain(`s1 waits for an answer: ${what}`)
})

test('events confirm --pending leaves a tool use open that the session does not show, and exits with 12', async () => {
  const { prompt, posts } = open([bash('t1', { name: ['sh'] }), waitsFor('t1', 't2')])
  const { code, err } = await prompt('y\n', '--pending')
  expect({ code, posts }).toEqual({ code: 12, posts: [[confirms('t1')]] })
  expect(err).toContain('  | tool: ["sh"]\n')
  expect(err).toContain('t2 stays open: the session does not show this tool use')
  expect(err).toMatch(/s1 waits for an answer\n {2}t2/)
})
