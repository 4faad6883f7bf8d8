import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { StdStream } from '../../src/basic-context.ts'
import { createEmulator } from '../../src/emulator/emulator.ts'
import { CliError } from '../../src/errors.ts'
import type { Exchange } from '../../src/wire/exchange.ts'
import { createIdleClock } from '../harness/clock.ts'
import { bash, waitsFor } from '../harness/events.ts'
import { answerInOrder, breaking } from '../harness/responses.ts'
import { answering, type RunOptions, run, temporaryFolder } from '../harness/run.ts'
import { createSessionService } from '../harness/session-service.ts'
import { createFailingStdout } from '../harness/stdout.ts'

const first = {
  id: 'sesn_1',
  status: 'idle',
  title: 'a\tb\u001b[2J',
  created_at: '2026-11-01T00:00:00Z',
  updated_at: '2026-11-02T00:00:00Z',
}
const second = { id: 'sesn_2', status: 'running', title: null, created_at: '2026-11-03T00:00:00Z' }

const pages = () => answerInOrder({ data: [first], next_page: 'p 2' }, { data: [second], next_page: null })

test('sessions list prints id, status, title and time of the last change of the sessions on all pages', async () => {
  const { code, out, requests } = await run(['sessions', 'list'], { exchange: pages() })
  expect({ code, out }).toEqual({
    code: 0,
    out: 'sesn_1\tidle\ta\\tb\u001b[2J\t2026-11-02T00:00:00Z\nsesn_2\trunning\t\t2026-11-03T00:00:00Z\n',
  })
  expect(requests.map(({ method, url }) => [method, url])).toEqual([
    ['GET', 'https://agents.test/v1/sessions'],
    ['GET', 'https://agents.test/v1/sessions?page=p%202'],
  ])
  expect(requests[0]?.headers).toMatchObject({ 'vendor-beta': 'managed-agents-2026-04-01' })
})

test('sessions list prints ids with --ids, JSON lines with --raw, and a table without control characters on a terminal', async () => {
  expect((await run(['sessions', 'list', '--ids'], { exchange: pages() })).out).toBe('sesn_1\nsesn_2\n')
  const raw = await run(['sessions', 'list', '--raw'], { exchange: pages() })
  expect(raw.out).toBe(`${JSON.stringify(first)}\n${JSON.stringify(second)}\n`)
  const table = await run(['sessions', 'list'], { exchange: pages(), tty: ['stdout'] })
  expect(table.out).toMatch(/^ID +STATUS +CHANGED +TITLE\nsesn_1 +idle +2026-11-0\d \d\d:\d\d:\d\d +a/)
  expect(table.out).not.toContain('\u001b[2J')
})

test('sessions list on a narrow terminal puts the title of each session below its id', async () => {
  const exchange = answerInOrder({ data: [{ ...first, title: 'Review the change' }], next_page: null })
  const { out } = await run(['sessions', 'list'], { exchange, tty: ['stdout'], columns: 40 })
  expect(out).toContain('\nsesn_1  idle    2026-11-02 00:00:00\n  Review the change\n')
})

/** A service that ignores `statuses[]` and `limit`, and lists two sessions per page. */
const mixedPages = () => {
  const [a, b, c] = [
    { ...first, id: 'a', status: 'running' },
    { ...first, id: 'b', status: 'idle' },
    { ...first, id: 'c', status: 'terminated' },
  ]
  return answerInOrder(
    { data: [a, b], next_page: '2' },
    { data: [c, { ...b, id: 'd' }], next_page: '3' },
    { data: [{ ...b, id: 'e' }], next_page: null },
  )
}

const idleRaw = ['b', 'd'].map((id) => `${JSON.stringify({ ...first, id, status: 'idle' })}\n`).join('')
test.each([
  ['--ids --status idle --status terminated', 'b\nc\nd\ne\n', 'statuses[]=idle&statuses[]=terminated', 3],
  ['--ids --limit 3', 'a\nb\nc\n', 'limit=3', 2],
  ['--raw --status idle --limit 2', idleRaw, 'statuses[]=idle&limit=100', 2],
])('sessions list %s prints these sessions and reads no more pages: %j', async (flags, out, query, count) => {
  const ended = await run(['sessions', 'list', ...flags.split(' ')], { exchange: mixedPages() })
  expect(ended).toMatchObject({ code: 0, out })
  const queries = ['', '&page=2', '&page=3'].slice(0, count).map((page) => `?${query}${page}`)
  expect(ended.requests.map(({ url }) => decodeURIComponent(new URL(url).search))).toEqual(queries)
})

test.each([
  ['events', 'order=desc&limit=1000'],
  ['sessions', 'limit=1000'],
])('%s list --limit 5000 requests pages of 1,000, because a service may refuse more', async (noun, query) => {
  const { requests } = await run([noun, 'list', '--limit', '5000'], {
    env: { PARLEY_SESSION: 's1' },
    exchange: answering('{"data":[],"next_page":null}'),
  })
  expect(new URL(requests[0]?.url ?? '').search).toBe(`?${query}`)
})

test('sessions list --status prints the table from the first page that has a session with the status', async () => {
  const argv = ['sessions', 'list', '--status', 'terminated']
  const page = { data: [first], next_page: '2' }
  const wanted = { ...first, id: 'a-long-id-of-a-session', status: 'terminated', title: 'T' }
  const exchange = answerInOrder(page, { data: [wanted], next_page: null })
  const { out } = await run(argv, { exchange, tty: ['stdout'] })
  expect(out).toMatch(/^ID {22}STATUS {6}CHANGED +TITLE\na-long-id-of-a-session {2}terminated {2}2026/)
})

test('sessions list --status exits with 2 for an unknown status, names the known statuses and sends nothing', async () => {
  const { code, err, requests } = await run(['sessions', 'list', '--status', 'idle', '--status', 'idel'], {
    exchange: pages(),
  })
  expect({ code, requests }).toEqual({ code: 2, requests: [] })
  expect(err).toContain("--status: 'idel' is not one of idle, running, rescheduling, terminated\n")
})

test('sessions list --status prints a note if no session has the status', async () => {
  const argv = ['sessions', 'list', '--status', 'terminated', '--status', 'rescheduling']
  const { code, err } = await run(argv, { exchange: pages() })
  expect({ code, err }).toEqual({ code: 0, err: 'parley: no session is terminated or rescheduling\n' })
})

test('the emulator lists only sessions whose status the query parameter statuses[] names', async () => {
  const exchange = createEmulator({})
  await run(['events', 'send', 'hello', '-s', 'a', '--follow'], { exchange })
  const list = (status: string) => run(['api', 'agents', `/v1/sessions?statuses[]=${status}`], { exchange })
  expect((await list('running')).out).toContain('"data":[]')
  expect((await list('idle')).out).toContain('"data":[{')
})

test.each([
  ['a session without an id', { data: [{ status: 'idle' }] }, 'data[0] has no id'],
  ['a page that repeats the previous page', { data: [first], next_page: 'p' }, 'its pages repeat'],
])('sessions list exits with 8 for %s', async (_, body, said) => {
  const exchange = answering(JSON.stringify(body))
  const { code, err } = await run(['sessions', 'list'], { exchange })
  expect({ code, err }).toEqual({ code: 8, err: expect.stringContaining(said) })
})

test('sessions create sends the fields of its flags and prints the id', async () => {
  const argv = ['sessions', 'create', '--agent', 'agent_1', '--environment', 'env_1', '--title', 'T']
  const { code, out, requests } = await run(argv, { exchange: answerInOrder(first) })
  expect({ code, out }).toEqual({ code: 0, out: 'sesn_1\n' })
  expect(requests[0]).toMatchObject({
    method: 'POST',
    url: 'https://agents.test/v1/sessions',
    text: '{"agent":"agent_1","environment_id":"env_1","title":"T"}',
  })
})

test('sessions create sends the body of -i unchanged except for the fields of its flags', async () => {
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, 'body.json'), '{ "agent": "a", "x": 1.10, "environment_id":"e" }')
  const argv = ['sessions', 'create', '-i', 'body.json', '--agent', 'b']
  const { requests } = await run(argv, { cwd, exchange: answerInOrder(first) })
  expect(requests[0]?.text).toBe('{ "agent": "b", "x": 1.10, "environment_id":"e" }')
})

const needsIds = 'give --agent ID and --environment ID'
const emptyMessage = '{"agent":"a","environment_id":"e","initial_events":[{"type":"user.message"}]}'
test.each([
  ['a missing agent and environment', [], '{}', needsIds],
  ['a list as a body', ['-i', '-'], '[]', 'stdin: must be an object'],
  ['an initial event without content', ['-i', '-'], emptyMessage, 'initial_events[0].content'],
  ['empty ids', ['-i', '-'], '{"agent":{"id":""},"environment_id":""}', needsIds],
])('sessions create exits with 2 and sends nothing for %s', async (_, argv, stdin, said) => {
  const ended = await run(['sessions', 'create', ...argv], { stdin })
  expect(ended).toMatchObject({ code: 2, requests: [], err: expect.stringContaining(said) })
})

const create = ['sessions', 'create', '--agent', 'a', '--environment', 'e']

const closed = { ...createFailingStdout(0), isClosed: true }

const createFull = () => createFailingStdout(0, 'ENOSPC')
test.each<[string, StdStream, string[], string]>([
  ['the disk is full', createFull(), [], 'no space left on the disk'],
  ['the disk is full, with --raw', createFull(), ['--raw'], 'no space left on the disk'],
  ['stdout was closed from the start', closed, [], 'it was closed when parley started'],
  ['nobody reads stdout', createFailingStdout(0), ['--deadline', '5'], 'the deadline passed before'],
])('sessions create exits with 11 and prints the id on stderr if %s', async (_, stdout, flags, why) => {
  const cwd = temporaryFolder()
  const world = { cwd, exchange: answerInOrder(first), stdout, timers: createIdleClock() }
  const ended = await run([...create, ...flags, '--report', 'r'], world)
  expect(ended).toMatchObject({ code: 11, err: expect.stringContaining(`parley: stdout: ${why}`) })
  expect(ended.err).toContain('\n  the session sesn_1 was created, only the output failed\n')
  const report = JSON.parse(readFileSync(join(cwd, 'r'), 'utf8'))
  expect(report).toMatchObject({ exit: 11, session: 'sesn_1', sent: 'yes', retry: 'never' })
})

const whole = JSON.stringify(first)
const respondWith = (chunks: string[], end: 'cut' | 'open'): Exchange => {
  const failure = new CliError('response', 'the answer broke off', { isCutOff: true })
  return breaking(chunks, () => (end === 'cut' ? failure : new Promise(() => {})))
}

test.each<[string, string[], 'cut' | 'open']>([
  ['is cut after the complete JSON', [whole.slice(0, 20), whole.slice(20)], 'cut'],
  ['stays open after the complete JSON', [whole], 'open'],
])('sessions create prints the id if the response %s', async (_, chunks, end) => {
  const ended = await run(create, { exchange: respondWith(chunks, end) })
  expect(ended).toMatchObject({ code: 0, out: 'sesn_1\n', err: '' })
})

test('sessions create --raw prints the id of the new session on stderr if the response is cut', async () => {
  const world = { exchange: respondWith([whole], 'cut') }
  const ended = await run([...create, '--raw'], world)
  expect(ended).toMatchObject({ code: 8, out: '' })
  expect(ended.err).toBe('parley: the answer broke off\n  the session sesn_1 was created\n')
  const { err } = await run([...create, '--raw', '--errors', 'json'], world)
  expect(JSON.parse(err).error).toMatchObject({ session: 'sesn_1', sent: 'yes', retry: 'never' })
})

test('sessions create exits with 8 if the response is a web page that contains a session object', async () => {
  const page = '<script>x={"id":"sesn_1"}</script>'
  const ended = await run(create, { exchange: respondWith([page], 'cut') })
  expect(ended).toMatchObject({ code: 8, out: '' })
  expect(ended.err).toContain('the session may have been created')
})

test.each<[string, ReturnType<typeof answering>, number]>([
  ['an HTML page', answering('<html>'), 8],
  ['a status 500', answering('{}', { status: 500 }), 7],
])('after %s, sessions create prints that the session may have been created', async (_, exchange, code) => {
  const beta = ['--beta', 'files-api-2025-04-14']
  const argv = [...create, ...beta]
  const ended = await run(argv, { exchange })
  expect([ended.code, ended.out, ended.requests.length]).toEqual([code, '', 1])
  expect(ended.err).toContain(
    "\n  the session may have been created: check with 'parley sessions list --beta files-api-2025-04-14' before sending again\n",
  )
  const { err } = await run([...argv, '--errors', 'json'], { exchange })
  expect(JSON.parse(err).error).toMatchObject({ sent: code === 7 ? 'yes' : 'unknown', retry: 'look-first' })
})

test('sessions show prints the status, the usage, the waiting tool uses, and the command that answers them', async () => {
  const usage = { input_tokens: 1200, output_tokens: 30 }
  const page = { data: [bash('t1'), waitsFor('t1')], next_page: null }
  const exchange = () => answerInOrder({ ...first, title: null, usage }, page)
  const show = (world: RunOptions = {}, ...flags: string[]) =>
    run(['sessions', 'show', 'sesn_1', ...flags], { exchange: exchange(), ...world })
  const { code, out, err, requests } = await show()
  expect(code).toBe(0)
  expect(err).toBe('parley: answer with: parley events confirm -s sesn_1 t1 --allow\n  or with --deny\n')
  const atTerminal = await show({ tty: ['stdout', 'stderr'] })
  expect(atTerminal.err).toContain('parley: answer with: parley events confirm -s sesn_1 --pending\n')
  expect(atTerminal.out).toContain('\nchanged       2026-11-02 00:00:00\n')
  const head = 'id\tsesn_1\nstatus\tidle\nchanged\t2026-11-02T00:00:00Z\n'
  expect(out).toBe(`${head}usage\t1,200 tokens in · 30 out\nwaits for\tt1 bash {"command":"ls"}\n`)
  expect(requests.map(({ url }) => url)).toEqual([
    'https://agents.test/v1/sessions/sesn_1',
    'https://agents.test/v1/sessions/sesn_1/events?order=asc',
  ])
  const env = { PARLEY_SESSION: 'sesn_1' }
  expect((await run(['sessions', 'show'], { exchange: exchange(), env })).out).toBe(out)
  const narrow = await show({ tty: ['stdout'], columns: 36 })
  expect(narrow.out.endsWith('\nwaits for     t1 bash\n              {"command":"ls"}\n')).toBe(true)
  expect(narrow.out).toContain('\nusage         1,200 tokens in · 30\n              out\n')
  const raw = await show({}, '--raw')
  expect(JSON.parse(raw.out)).toMatchObject({ id: 'sesn_1', usage })
})

test.each([
  ['events list', 'use -s ID'],
  ['sessions show', 'add its id'],
])('%s without a session prints how to name the session: %s', async (command, how) => {
  const ended = await run(command.split(' '))
  expect(ended).toMatchObject({
    code: 2,
    err: `parley: no session was given: ${how} or set PARLEY_SESSION; 'parley sessions list' lists the ids\n`,
  })
})

test('sessions show and events follow cut no id of a waiting tool use on a narrow terminal', async () => {
  const id = `toolu_${'0123456789'.repeat(3)}`
  const service = createSessionService({ history: [bash(id), waitsFor(id)] })
  const terminal: RunOptions = { tty: ['stdout', 'stderr'], columns: 40 }
  const shown = await service.run(['sessions', 'show', 's1'], terminal)
  expect(shown.out).toContain(`\nwaits for     ${id}\n`)
  const followed = await service.run(['events', 'follow', '-s', 's1'], terminal)
  expect(followed.err).toContain(`\n  ${id}:\n`)
})

test('sessions show prints why a session needs help to continue', async () => {
  const history = [{ type: 'session.status_idle', stop_reason: { type: 'budget_reached' } }]
  const service = createSessionService({ history })
  const { out } = await service.run(['sessions', 'show', 's1'])
  expect(out).toContain('\nstopped\tbudget_reached\n')
})
