import { expect, test } from 'vitest'
import type { Context } from '../../../src/context.ts'
import { CliError } from '../../../src/errors.ts'
import type { Follower } from '../../../src/sessions/following/follower.ts'
import { SeenEvents } from '../../../src/sessions/following/seen-events.ts'
import { createEventPrinter, followAndPrint } from '../../../src/sessions/following/transcript.ts'
import type { SessionClient } from '../../../src/sessions/session.ts'
import { type Event, endTurn, running, says, userSays } from '../../harness/events.ts'
import { readError } from '../../harness/run.ts'
import { createSessionService, type SessionScript, shown } from '../../harness/session-service.ts'

const formatError = (type: string) =>
  `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type, message: 'busy' } })}\n\n`
const work = [running, shown(says('done'), { after: 2_000 }), endTurn]
const brokenFrames = {
  'only an error event': () => formatError('overloaded_error'),
  'data that is not JSON': () => 'data: <html>\n\n',
}
const runLast = ['events', 'run', 'go', '--last', '--deadline', '1h']

test.each(Object.entries(brokenFrames))(
  'events run reads the answer from the list if streams deliver %s',
  async (_, frame) => {
    const streams = [{ replay: 1, events: [running], frame }]
    const service = createSessionService({ posts: [{ next: work }], streams })
    expect(await service.run(runLast)).toMatchObject({ code: 0, out: 'done\n' })
  },
)

test.each([404, 400, 500])('events run reads the answer in the list after a %i', async (status) => {
  const next = [running, says('done'), endTurn].map((step) => shown(step, { streamed: 'never' }))
  const posts = [{ next }]
  const streams = [{ nth: 1, events: [], cutAfter: 0 }, { fault: { status } }]
  const service = createSessionService({ posts, streams })
  expect(await service.run(runLast)).toMatchObject({ code: 0, out: 'done\n' })
})

test('events run exits with 8 if its second stream is refused and the list shows that the session works', async () => {
  const posts = [{ next: [running, shown(says('done'), { after: 3_600_000 })] }]
  const streams = [{ nth: 1, cutAfter: 1 }, { fault: { status: 400 } }]
  const service = createSessionService({ posts, streams })
  const { code, err } = await service.run(runLast)
  expect(code).toBe(8)
  expect(err).toContain('the session could not be followed')
})

test.each([
  ['run go', 3, 'authentication_error'],
  ['run go', 4, 'not_found_error'],
  ['send go --follow', 4, 'not_found_error'],
])('Y88: events %s exits with %i and reports the event as sent after the stream error %s', async (...row) => {
  const [words, exit, type] = row
  const service = createSessionService({
    posts: [{ next: work }],
    streams: [{ frame: () => formatError(type) }],
  })
  const { err } = await service.run(['events', ...words.split(' '), '--errors', 'json'])
  expect(readError(err)).toMatchObject({ exit, sent: 'yes', safeToRetry: false, retry: 'never' })
})

const fails = (status: string): Event => ({
  type: 'session.error',
  error: { type: 'api_error', message: 'boom', retry_status: { type: status } },
})
const argv = [
  ['run', ['events', 'run', 'do it', '--last']],
  ['send --follow', ['events', 'send', 'do it', '--follow']],
] as const

test.each(
  argv.flatMap(([name, words]) => ['idle', 'terminated'].map((status) => [name, status, words] as const)),
)('events %s exits with 13 after a final error if the session is %s', async (_, status, words) => {
  const session = () => ({ id: 's1', status })
  const service = createSessionService({ session, posts: [{ next: [running, fails('terminal')] }] })
  const { code, out, err } = await service.run([...words, '--deadline', '10m'])
  expect([code, err]).toEqual([13, expect.stringContaining('boom')])
  expect(out).not.toContain('done')
})

test('events run waits after an error that the service itself retries', async () => {
  const end = shown(says('the answer'), { after: 100_000 })
  const session = () => ({ id: 's1', status: 'idle' })
  const posts = [{ next: [running, fails('retrying'), end, endTurn] }]
  const words = [...argv[0][1], '--deadline', '10m']
  const { code, out } = await createSessionService({ session, posts }).run(words)
  expect([code, out]).toEqual([0, 'the answer\n'])
})

test('if the service fails and then stdout fails, followAndPrint throws the failure of the service', async () => {
  const { state, task } = new SeenEvents()
  const messages = {
    isHeld: true,
    note() {},
    release() {
      messages.isHeld = false
    },
    style: { dim: String },
  }
  const failed: string[] = []
  const write = () => {
    failed.push('stdout')
    return Promise.reject(new CliError('file', 'stdout cannot be written'))
  }
  const context = {
    flags: {},
    host: { stderr: { isTerminal: false }, stdout: { columns: 80 }, timers: { wallTime: () => 0 } },
    messages,
    output: { isTerminal: true, write },
    reportData: { figures: { warnings: {} } },
  } as unknown as Context
  async function* readNewEvents() {
    yield [{ event: { type: 'user.message', content: 'hi' }, text: '{}' }]
    throw new CliError('service', 'the service failed')
  }
  const follower = { state, task, readNewEvents } as unknown as Follower
  const printer = createEventPrinter(context, { isStdoutReserved: false, markdown: false })
  const access = { context, parts: { params: { session: 's1' } } } as SessionClient
  const end = followAndPrint(access, follower, { printer })
  await expect(end).rejects.toThrow('the service failed')
  expect(failed).toEqual(['stdout'])
})

const said = (out: string) => out.match(/^(one|two|three)$/gm)
const history = [userSays('go'), running, says('one'), says('two'), says('three'), endTurn]

test.each(['next_page', 'has_more'] as const)('an event on two pages is printed once: %s', async (form) => {
  const { run, requests } = createSessionService({ history, list: { form, pageSize: 2, overlap: 1 } })
  const follow = await run(['events', 'follow', '--history'])
  expect([follow.code, said(follow.out)], follow.err).toEqual([0, ['one', 'two', 'three']])
  expect(requests.filter(({ kind }) => kind === 'list').length).toBeGreaterThan(4)
  const list = await run(['events', 'list', '--ids'])
  expect({ code: list.code, out: list.out }, list.err).toEqual({ code: 0, out: 'e1\ne2\ne3\ne4\ne5\ne6\n' })
})

test('events list does not print event previews', async () => {
  const previews = [
    { id: undefined, type: 'event_start', event: { id: 'e5', type: 'agent.message' } },
    { id: undefined, type: 'event_delta', event_id: 'e5', delta: { type: 'content_delta' } },
  ]
  const { run } = createSessionService({ history: [...previews, says('one'), endTurn] })
  for (const argv of ['list', 'list --raw', 'list --order desc', 'follow --history']) {
    const { code, out } = await run(`events ${argv}`.split(' '))
    expect([code, out]).toEqual([0, expect.stringContaining('one')])
    expect(out).not.toContain('event_')
  }
})

test.each([
  [2000, 'does not limit', []],
  [1000, 'limits', ['held', 'released']],
])("for 1,001 events in pages of %i, parley %s V8's young generation", async (pageSize, _, expected) => {
  const history = [...Array.from({ length: 1000 }, () => says('one')), endTurn]
  const { run } = createSessionService({ history, list: { pageSize } })
  for (const argv of [['list'], ['follow', '--history']]) {
    const calls = new Set<string>()
    const { code } = await run(['events', ...argv], {
      limitYoungGeneration(cleanups) {
        calls.add('held')
        cleanups.add(() => void calls.add('released'))
      },
    })
    expect({ code, calls: [...calls] }).toEqual({ code: 0, calls: expected })
  }
})

test.each<[string, string[], string]>([
  ['events list', ['events', 'list', '--ids'], 'e1\ne2\ne3\ne4\ne5\ne6\n'],
  ['events run', ['events', 'run', '--last'], 'three\n'],
])('%s requests a cut page of a list again, and prints each event once', async (_, argv, expected) => {
  const cuts = new Set([1, 2])
  const service = createSessionService({
    history,
    list: { pageSize: 3 },
    lists: [1, 2].map((page) => ({ page, fault: 'cut', when: () => cuts.delete(page) })),
  })
  const { code, out } = await service.run([...argv, '--deadline', '60'])
  expect({ code, out, cuts: cuts.size }).toEqual({ code: 0, out: expected, cuts: 0 })
})

test('events list exits with 8 if every response is cut, also after the retries', async () => {
  const service = createSessionService({ history, lists: [{ fault: 'cut' }] })
  const { code, out } = await service.run(['events', 'list', '--retries', '1'])
  expect({ code, out, requests: service.requests.length }).toEqual({ code: 8, out: '', requests: 2 })
})

test('--retries limits the sum of cut lists and other failures', async () => {
  const lists = (['cut', { status: 500 }] as const).map((fault, index) => ({ nth: index + 1, fault }))
  const service = createSessionService({ history, lists })
  const { code } = await service.run(['events', 'list', '--retries', '1'])
  expect({ code, requests: service.requests.length }).toEqual({ code: 7, requests: 2 })
})

const page = '<title>Maintenance</title>'
const html = { status: 200, body: page, headers: { 'content-type': 'text/html' } }

test.each<[string, string, string[], SessionScript]>([
  ['events list', 'list', ['list'], { lists: [{ fault: html }] }],
  ['events list', 'list, even if the page is empty', ['list'], { lists: [{ fault: { ...html, body: '' } }] }],
  ['events run', 'first list', ['run', 'go'], { lists: [{ fault: html }] }],
  ['events run', 'first stream', ['run', 'go'], { streams: [{ fault: html }] }],
])('%s exits with 8 and "retry": "later" if a web page replaces its %s', async (_, _what, words, script) => {
  const service = createSessionService(script)
  const { code, err } = await service.run(['events', ...words, '--errors', 'json'])
  expect([code, service.posts]).toEqual([8, []])
  expect(readError(err)).toMatchObject({ retry: 'later', safeToRetry: true })
})

test('events run reconnects again if a reconnect returns a web page instead of a stream', async () => {
  const service = createSessionService({
    posts: [{ next: [running, shown(says('done'), { after: 10_000 }), endTurn] }],
    streams: [
      { nth: 1, cutAfter: 1 },
      { nth: 2, fault: html },
    ],
  })
  const { code, out } = await service.run(['events', 'run', 'go', '--last', '--deadline', '1h'])
  expect([code, out]).toEqual([0, 'done\n'])
  expect(service.requests.filter(({ kind }) => kind === 'stream').length).toBe(3)
})
