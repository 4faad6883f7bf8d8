import { expect, test } from 'vitest'
import { createEmulator } from '../../../src/emulator/emulator.ts'
import { bash, type Event, endTurn, running, says } from '../../harness/events.ts'
import { answering, readError, run } from '../../harness/run.ts'
import type { RequestFault, SessionScript } from '../../harness/session-service.ts'
import { createSessionService, shown } from '../../harness/session-service.ts'

const say = (id: string, text: string) => says(text, { id })
const idle = (id: string, reason: object): Event => ({ id, type: 'session.status_idle', stop_reason: reason })
const done = (id: string): Event => ({ ...endTurn, id })
const sent: Event = { id: 'sent_1', type: 'user.message' }

/**
 * Creates a service with scripted lists and streams. `listed`: events of each list, or the status of a failed
 * list. `streams`: events of each stream, and the way it ends. The last list and the last stream repeat.
 */
function createScripted(
  listed: (Event[] | number)[],
  streams: [events: Event[], then: 'stay' | 'end' | 'reset'][],
  more: SessionScript = {},
) {
  const nth = (index: number, all: unknown[]) => (index < all.length - 1 ? { nth: index + 1 } : {})
  const service = createSessionService({
    posts: [{ isAccepted: false, fault: { status: 202, body: JSON.stringify({ data: [sent] }) } }],
    lists: listed.map((list, index) => ({
      ...nth(index, listed),
      ...(typeof list === 'number' ? { fault: { status: list } } : { events: list }),
    })),
    streams: streams.map(([events, then], index) => ({
      ...nth(index, streams),
      events,
      ...(then === 'stay' ? {} : { cut: then, cutAfter: events.length }),
    })),
    list: { pageSize: Infinity, ignores: ['order', 'types', 'limit'] },
    ...more,
  })
  const countLists = () => service.requests.filter(({ kind }) => kind === 'list').length
  return { ...service, countLists, events: (...words: string[]) => service.run(['events', ...words]) }
}

const terminated = { id: 'c', type: 'session.status_terminated' }
const needsAction = (...ids: string[]) => idle('b', { type: 'requires_action', event_ids: ids })
const asks =
  's1 waits for an answer\n  toolu_1: bash {"command":"ls"}\n  x\n  answer with: parley events confirm'
test.each<[number, string, Event[], string]>([
  [0, 'the turn has ended', [say('a', 'hi'), done('b')], 's1 is idle (end_turn); --stay waits for more'],
  [12, 'tool uses wait', [bash('toolu_1'), needsAction('toolu_1', 'x')], asks],
  [13, 'the idle event requires an action, but lists no ids', [needsAction()], 'requires_action'],
  [13, 'the session was terminated', [done('a'), terminated], 'terminated'],
])('events follow prints no event and exits with %i if %s', async (code, _, events, message) => {
  const followed = await createScripted([events], [[[], 'stay']]).events('follow')
  expect(followed).toMatchObject({ code, out: '', err: expect.stringContaining(message) })
})

test('events follow prints agent text as text and other events as lines, and exact JSON with --raw', async () => {
  const past = [say('a', 'before')]
  const thinking = { id: 'c', type: 'agent.thinking' }
  const live = [say('b', 'two\nlines'), thinking, { id: 'd', type: 'brand.new', x: 1 }, done('e')]
  expect(await createScripted([past], [[live, 'stay']]).events('follow')).toMatchObject({
    code: 0,
    out: 'two\nlines\nc\tagent.thinking\t\t\nd\tbrand.new\t\t\ne\tsession.status_idle\t\tend_turn\n',
  })
  const raw = await createScripted([past], [[live, 'stay']]).events('follow', '--history', '--raw')
  expect(raw.out).toBe([...past, ...live].map((event) => `${JSON.stringify(event)}\n`).join(''))
})

test('events follow --stay prints how to answer the tool uses of an idle session', async () => {
  const waiting = idle('b', { type: 'requires_action', event_ids: ['toolu_1'] })
  const scripted = createScripted([[bash('toolu_1'), waiting]], [[[], 'stay']])
  const { err } = await scripted.events('follow', '-s', 's1', '--stay', '--deadline', '5s')
  expect(err).toContain('toolu_1 waits for an answer; to answer: parley events confirm -s s1 --pending')
  expect(err).toContain('s1 waits for an answer to a tool use\n  answer with: parley events confirm')
})

const again = 'the session may continue; to follow it again: parley events follow --deadline 20s -s s1'
test.each([
  ['run', ['run', 'go'], 's1 may continue to work'],
  ['follow', ['follow'], again],
  ['send --follow', ['send', 'go', '--follow'], `the event was accepted\n  ${again} --history`],
])('after the deadline, events %s prints that the agent may continue', async (_, words, text) => {
  const service = createSessionService({ history: [running], posts: [{ next: [running] }] })
  const { code, err } = await service.run(['events', ...words, '--deadline', '20s'])
  expect(code).toBe(15)
  expect(err).toContain(`parley: the deadline passed while parley followed the session\n  ${text}\n`)
})

test.each<[string, SessionScript]>([
  ['as soon as the session is idle', {}],
  ['also if no list has the idle event', { lists: [{ hides: ({ type }) => type === endTurn.type }] }],
])('events follow --stay prints the events that the stream omitted, %s', async (_, script) => {
  const service = createSessionService({ history: [say('a', 'old'), endTurn], ...script })
  const work = (id: string) => service.add(running, shown(say(id, id), { streamed: 'never' }), endTurn)
  void service.timers.wait(1_000).then(() => work('b'))
  void service.timers.wait(20_000).then(() => work('c'))
  const { code, out } = await service.run(['events', 'follow', '--stay', '--deadline', '26s'])
  expect({ code, texts: out.match(/^.$/gm) }).toEqual({ code: 15, texts: ['b', 'c'] })
})

test('events send --follow sends a header from stdin in every request', async () => {
  const service = createScripted([[]], [[[sent, done('a')], 'stay']])
  const argv = ['events', 'send', 'x', '--follow', '-H', '@-']
  const { code, requests } = await service.run(argv, { stdin: 'X-Trace: 7\n', stdinKind: 'pipe' })
  expect(code).toBe(0)
  expect(requests.map(({ headers }) => headers['X-Trace'])).toEqual(requests.map(() => '7'))
})

test.each(['run go', 'run go --last', 'send go --follow'])(
  'events %s exits with 15 if the deadline passes before the list shows the idle event',
  async (words) => {
    const turn = [running, shown(says('answer'), { streamed: 'never' }), endTurn]
    const late = { listed: 3_000 }
    const service = createSessionService({ posts: [{ next: turn }], defaultVisibility: late })
    const { code, err } = await service.run(['events', ...words.split(' '), '--deadline', '2s'])
    expect([code, err]).toEqual([15, expect.stringMatching(/^parley: the deadline passed/)])
  },
)

test.each([
  ['send --follow', ['send', 'go', '--follow'], 'r\tsession.status_idle\t\tend_turn\nnew\n'],
  ['run --last', ['run', 'go', '--last'], 'new\n'],
])('Y240: events %s prints events that the stream omitted once a list shows them', async (_, words, out) => {
  const lists = [[], [sent], [sent, say('c', 'new'), done('r')]]
  const service = createScripted(lists, [[[sent, done('r')], 'stay']])
  expect(await service.events(...words)).toMatchObject({ code: 0, out })
  expect(service.countLists()).toBe(3)
})

test('events follow reads a long list from its newest event back to the known events', async () => {
  const at = (milliseconds: number) => ({ processed_at: new Date(milliseconds).toISOString() })
  const service: ReturnType<typeof createSessionService> = createSessionService({
    history: Array.from({ length: 60 }, (_, i) => says('x', at(i * 1000))),
    list: { pageSize: 10 },
    streams: [{ act: () => service.add(says('new'), endTurn) }],
  })
  const { out } = await service.run(['events', 'follow'])
  expect(out).toMatch(/^new\ne62\tsession\.status_idle\t.*\tend_turn\n$/)
  const lists = service.requests.filter(({ kind }) => kind === 'list').map(({ query }) => String(query))
  const pages = [1, 2, 3, 4, 5].map((page) => `order=asc&page=p${page}`)
  expect(lists.slice(0, 6)).toEqual(['order=asc', ...pages])
  expect(new Set(lists.slice(6))).toEqual(new Set(['order=desc']))
})

test('events send --follow repeats the list request for 5 s if the list lacks the idle event', async () => {
  const service = createScripted([[]], [[[sent, done('r')], 'stay']])
  expect(await service.events('send', 'go', '--follow')).toMatchObject({ code: 0 })
  expect(service.countLists()).toBe(8)
})

const deleted = { id: 'g', type: 'session.deleted' }
test.each<[string, (Event[] | number)[], Event, number, boolean]>([
  ['warns if the list cannot be read after the end of the turn', [[], 500], done('r'), 0, true],
  ['does not warn about a list that can be read later', [[], 500, [sent, done('r')]], done('r'), 0, false],
  ['does not warn about the list of a deleted session', [[], 404], deleted, 13, false],
])('events send --follow %s', async (_, lists, end, code, isWarned) => {
  const service = createScripted(lists, [[[sent, end], 'stay']])
  const ended = await service.events('send', 'go', '--follow')
  const warning = 'the list of events could not be read after the session stopped: '
  expect({ code: ended.code, isWarned: ended.err.includes(warning) }, ended.err).toEqual({ code, isWarned })
  expect(ended.out).toContain(`${end.id}\t${end.type}`)
})

test('events follow reconnects after a reset and prints nothing on stderr', async () => {
  const now = [say('a', 'hi'), done('b')]
  const lists = [[sent], [sent], [sent, ...now]]
  const service = createScripted(lists, [
    [[], 'reset'],
    [now, 'stay'],
  ])
  const { code, out, err } = await service.events('follow')
  expect([code, out, err]).toEqual([0, expect.stringContaining('hi'), ''])
})

test.each([['follow'], ['send', 'go', '--follow']])(
  'Y241: events %s exits with 4 if its session is gone',
  async (...words) => {
    const nothing = (how: 'end' | 'stay') => [[], how] as [Event[], 'end' | 'stay']
    const service = createScripted([[], 404], [nothing('end'), nothing('stay')])
    const { code, err } = await service.events(...words, '--errors', 'json')
    expect(code).toBe(4)
    expect(readError(err)).toMatchObject({ exit: 4, status: 404 })
  },
)

const stopped = { exit: 15, kind: 'stopped' }
const message = 'the deadline passed while parley followed the session'
test.each<[string, 'lists' | 'streams', string[], object]>([
  ['follow exits with 15 (no response to the list request)', 'lists', ['follow'], { ...stopped, message }],
  ['follow exits with 15 (no response to the stream request)', 'streams', ['follow'], stopped],
  ['send --follow exits with 9', 'streams', ['send', 'x', '--follow'], { exit: 9, sent: 'no' }],
])(
  'Y215: if the deadline passes before parley has received any event of the session, events %s',
  async (_, silent, argv, expected) => {
    const service = createSessionService({ [silent]: [{ fault: 'stall' }] })
    const { code, err } = await service.run(['events', ...argv, '--deadline', '60', '--errors', 'json'])
    const { error } = JSON.parse(err)
    const late = { retry: 'later', deadline: true, message: expect.stringContaining('the deadline passed') }
    expect(error).toMatchObject({ ...late, ...expected })
    expect(error.exit).toBe(code)
  },
)

test.each<[string, RequestFault]>([
  ['the second page of the list does not arrive', 'stall'],
  ['the service is unreachable after the first page', 'unreachable'],
])('Y215: events follow exits with 15 after the deadline, with "sent": "yes", if %s', async (_, fault) => {
  const service = createSessionService({
    history: [says('one'), says('two'), endTurn],
    list: { pageSize: 2 },
    lists: [{ page: 2, fault }],
  })
  const argv = ['events', 'follow', '--history', '--raw', '--retries', '99', '--deadline', '60']
  const { code, out, err } = await service.run([...argv, '--errors', 'json'])
  expect({ code, lines: out.split('\n').length - 1 }).toEqual({ code: 15, lines: 2 })
  const error = readError(err)
  expect(error).toMatchObject({ exit: 15, sent: 'yes', retry: 'later', deadline: true })
  expect(error.message).toContain(
    fault === 'stall' ? 'the deadline passed while parley followed the session' : 'past the deadline',
  )
  expect(error.hints).toBeUndefined()
})

const rawLines = (...events: Event[]) => events.map((event) => `${JSON.stringify(event)}\n`).join('')
const html = { status: 502, body: '<html>bad gateway</html>', headers: { 'content-type': 'text/html' } }

test.each([
  ['follow', ['follow', '--history'], [say('a', 'one'), say('b', 'two'), done('i')]],
  ['run', ['run', 'go on', '--no-stdin'], [say('b', 'two'), done('i')]],
])('events %s --raw prints no error bodies of repeated requests', async (_, argv, printed) => {
  const isRun = argv[0] === 'run'
  const before = [say('a', 'one'), ...(isRun ? [done('i0')] : [])]
  const now = [...before, ...(isRun ? [sent] : []), say('b', 'two')]
  let failing = 0
  const isFailing = () => hasBegun() && ++failing <= 4
  const firstCut = { nth: 1, cutAfter: 0, events: [] }
  const hasBegun = () => service.requests.filter(({ kind }) => kind === 'stream').length > 1
  const service: ReturnType<typeof createScripted> = createScripted([], [], {
    lists: [{ when: isFailing, fault: html }, { when: hasBegun, events: now }, { events: before }],
    streams: [firstCut, { when: isFailing, fault: html }, { events: [done('i')] }],
  })
  const { code, out, err } = await service.events(...argv, '--raw', '--retries', '0')
  expect({ code, out }).toEqual({ code: 0, out: rawLines(...printed) })
  expect(err).toContain('502')
  expect(failing).toBeGreaterThan(4)
})

const exchange = createEmulator({})
const world = { env: { PARLEY_SESSION: 'sesn_1' } }

test('events list prints all pages, in both orders, filtered by type, and up to a limit', async () => {
  const send = (i: number) => run(['events', 'send', '--follow', `message ${i}`], { ...world, exchange })
  for (let i = 0; i < 12; i++) await send(i)
  const all = await run(['events', 'list'], { ...world, exchange })
  expect(all.out.split('\n').length).toBeGreaterThan(40)
  expect(all.requests.length).toBeGreaterThan(2)
  const flags = ['--type', 'user.message', '--order', 'desc', '--limit', '11']
  const some = await run(['events', 'list', ...flags], { ...world, exchange })
  expect(some.out.match(/^[^\t]+\tuser\.message\t[^\t]+\tmessage \d+$/gm)).toHaveLength(11)
  expect(some.out).toMatch(/^[^\t]+\tuser\.message\t[^\t]+\tmessage 11\n/)
  expect(some.requests[0]?.url).toContain('?types%5B%5D=user.message&order=desc&limit=100')
  const ids = await run(['events', 'list', '--limit', '2', '--ids'], { ...world, exchange })
  expect(ids.out).toMatch(/^sevt_\w+\nsevt_\w+\n$/)
  const raw = await run(['events', 'list', '--limit', '2', '--raw'], { ...world, exchange })
  expect(raw.out).toMatch(/^\{"id".*\}\n\{"id".*\}\n$/)
})

test.each([
  ['the newest events, oldest first', [], 'e5 e6 e7'],
  ['the first events with --order asc', ['--order', 'asc'], 'e0 e1 e2'],
  ['the newest events first with --order desc', ['--order', 'desc'], 'e7 e6 e5'],
])('events list --limit 3 prints %s', async (_, flags, expected) => {
  const history = Array.from({ length: 8 }, (_, i) => ({
    ...say(`e${i}`, 'x'),
    processed_at: new Date(i * 1000).toISOString(),
  }))
  for (const ignores of [[], ['order']] as const) {
    const service = createSessionService({ history, list: { ignores } })
    const { out } = await service.run(['events', 'list', '--ids', '--limit', '3', ...flags])
    expect(out.trim().split('\n').join(' ')).toBe(expected)
  }
})

test.each([
  ['Y85: events list prints the first page', [], 'e1\n'],
  ['events list --limit prints nothing, because newer events could be missing,', ['--limit', '5'], ''],
])('%s and exits with 7 if the second page fails', async (_, flags, out) => {
  const service = createSessionService({
    history: [says('one'), says('two'), says('three')],
    list: { pageSize: 1, ignores: ['limit'] },
    lists: [{ page: 2, fault: { status: 500 } }],
  })
  const argv = ['events', 'list', '--ids', '--retries', '0', ...flags]
  expect(await service.run(argv)).toMatchObject({ code: 7, out })
})

test.each([
  ['Y45: keeps the order of a list if a single time is out of order', [6, 3, 4], 'e0 e1 e2'],
  ['Y86: reverses a list that is sorted newest first, except for 5 ms', [4, 3.995, 4, 1], 'e3 e2 e1 e0'],
])('%s', async (_, seconds, expected) => {
  const events = seconds.map((time, i) => ({
    ...say(`e${i}`, 'x'),
    processed_at: new Date(time * 1000).toISOString(),
  }))
  const argv = ['events', 'list', '--ids', '--order', 'asc']
  const { out } = await createSessionService({ lists: [{ events }] }).run(argv)
  expect(out.trim().split('\n').join(' ')).toBe(expected)
})

test('Y109: events list requests more events if a list does not show whether it is complete', async () => {
  const history = Array.from({ length: 150 }, () => running)
  const service = createSessionService({ history, list: { form: 'unmarked', pageSize: 1000 } })
  const { out, requests } = await service.run(['events', 'list', '--ids'])
  expect([out, requests.length]).toEqual([service.events.map(({ id }) => `${id}\n`).join(''), 2])
})

test('Y110: events send --follow sends nothing if a list of 1,000 events may be incomplete', async () => {
  const history = Array.from({ length: 1200 }, () => running)
  const service = createSessionService({ history, list: { form: 'unmarked', pageSize: 1000 } })
  const { err } = await service.run(['events', 'send', 'go', '--follow', '--errors', 'json'])
  const message = expect.stringContaining('ends after 1000 events, and does not show whether more')
  expect(readError(err)).toMatchObject({ exit: 8, sent: 'no', message })
  expect(service.posts).toEqual([])
})

test('Y102: events follow prints that it waits for the first event of an empty session', async () => {
  const service = createSessionService({})
  void service.timers.wait(1_000).then(() => service.add(endTurn))
  const err = expect.stringContaining('s1 has no events yet: waiting for its first event')
  expect(await service.run(['events', 'follow'])).toMatchObject({ code: 0, err })
})

test('Y103: events run without a task exits with 2 if the session has no events for 5 s', async () => {
  const service = createSessionService({})
  const { code, err } = await service.run(['events', 'run'])
  expect([code, err]).toEqual([2, expect.stringContaining('to give it a task: parley events run TASK -s s1')])
  expect(err).toContain('parley: looking for the first event of s1, for up to 5 s\n')
  expect(service.requests.at(-1)?.at).toBeGreaterThan(5_000)
})

test('Y30: events send --follow exits with 9 and sends nothing if the stream is reset', async () => {
  const service = createSessionService({ streams: [{ fault: 'reset' }] })
  const argv = ['events', 'send', 'go', '--follow', '--errors', 'json', '--retries', '0']
  const message = expect.stringContaining('the session cannot be followed')
  expect(readError((await service.run(argv)).err)).toMatchObject({ exit: 9, sent: 'no', message })
  expect(service.posts).toEqual([])
})

test.each([
  ['--order desc', 2500],
  ['--order desc --limit 1200', 1200],
  ['--order desc --type agent.message', 1250],
])('Y83: events list %s prints the newest first if the service ignores the order', async (flags, count) => {
  const events = Array.from({ length: 2500 }, (_, i) => ({
    ...(i % 2 === 0 ? says('x') : endTurn),
    id: `e${i}`,
    processed_at: new Date(i * 1000).toISOString(),
  }))
  const page = answering(JSON.stringify({ data: events }))
  const { out } = await run(['events', 'list', '--ids', ...flags.split(' ')], { ...world, exchange: page })
  const wanted = events.filter(({ type }) => type === 'agent.message' || !flags.includes('--type'))
  const newest = wanted.map(({ id }) => id).reverse()
  expect(out.trim().split('\n')).toEqual(newest.slice(0, count))
})
