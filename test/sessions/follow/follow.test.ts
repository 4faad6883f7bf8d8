import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { createEmulator } from '../../../src/emulator/emulator.ts'
import { createSteadyClock } from '../../harness/clock.ts'
import { childEnvironment } from '../../harness/environment.ts'
import { answering, hurried, run, temporaryFolder } from '../../harness/run.ts'
import { resetWhenRead, response, type ScriptedServer, serve } from '../../harness/server.ts'

const parley = join(import.meta.dirname, '../../../bin/parley.cjs')

const world = { env: { PARLEY_SESSION: 'sesn_1' } }

let server: ScriptedServer | undefined
afterEach(() => server?.close())

type Event = { id: string; type: string } & Record<string, unknown>

const say = (id: string, text: string): Event => ({
  id,
  type: 'agent.message',
  content: [{ type: 'text', text }],
})
const idle = (id: string, reason: object): Event => ({ id, type: 'session.status_idle', stop_reason: reason })
const done = (id: string) => idle(id, { type: 'end_turn' })
const usesTool = (id: string): Event => ({
  id,
  type: 'agent.tool_use',
  name: 'bash',
  input: { command: 'ls' },
})

const frame = (event: Event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`

/**
 * Serves a session over a socket. `listed` has the events of each list, or the status of its failure.
 * `streams` has the events of each stream, and how the stream ends.
 */
async function serveSession(
  listed: (Event[] | number)[],
  streams: [events: Event[], then: 'stay' | 'end' | 'reset'][],
  receipt = JSON.stringify({ data: [{ id: 'sent_1', type: 'user.message' }] }),
) {
  let lists = 0
  let opened = 0
  server = await serve((socket: Socket, request) => {
    if (/^GET \S+\/stream /.test(request)) {
      const [events, end] = streams[Math.min(opened++, streams.length - 1)] ?? [[], 'stay']
      socket.write(`HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n${events.map(frame).join('')}`)
      if (end === 'end') socket.end()
      if (end === 'reset') void resetWhenRead(socket, true)
    } else if (request.startsWith('GET')) {
      const data = listed[Math.min(lists++, listed.length - 1)] ?? []
      const body = JSON.stringify({ data, next_page: null })
      const status = typeof data === 'number' ? data : 200
      socket.end(`HTTP/1.1 ${status} OK\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
    } else {
      socket.end(`HTTP/1.1 202 OK\r\ncontent-length: ${Buffer.byteLength(receipt)}\r\n\r\n${receipt}`)
    }
  })
  return server
}

const over = (served: ScriptedServer, ...argv: string[]) =>
  run(['events', ...argv], {
    exchange: 'network',
    env: { ...world.env, PARLEY_AGENTS_URL: served.url },
  })

describe('events follow', () => {
  test('exits with 12 and prints entries of event_ids that are not ids', async () => {
    const shown = [usesTool('toolu_1'), idle('b', { event_ids: [5, null] })]
    const ended = await over(await serveSession([shown], [[[], 'stay']]), 'follow')
    expect(ended.code).toBe(12)
    expect(ended.err).toContain('event_ids has an entry that is not an id: 5 and 1 more')
    expect(ended.err).toContain('toolu_1: bash')
    const listed = await over(await serveSession([shown], []), 'list')
    expect(listed.out).toContain('b\tsession.status_idle\t\trequires_action 5 null\n')
  })

  test.each<[string, Event[], number, string]>([
    ['the end of a turn', [say('a', 'hi'), done('b')], 0, ''],
    [
      'tool uses that wait',
      [usesTool('toolu_1'), idle('b', { type: 'requires_action', event_ids: ['toolu_1', 'x'] })],
      12,
      'sesn_1 waits for an answer\n  toolu_1: bash {"command":"ls"}\n  x\n  answer with: parley events confirm',
    ],
    ['retries that ran out', [idle('b', { type: 'retries_exhausted' })], 13, 'retries_exhausted'],
    ['a termination', [done('a'), { id: 'c', type: 'session.status_terminated' }], 13, 'terminated'],
    ['a deletion', [{ id: 'c', type: 'session.deleted' }], 13, 'deleted'],
  ])('exits at once if the session has stopped before: %s', async (_, events, code, message) => {
    const ended = await over(await serveSession([events], [[[], 'stay']]), 'follow')
    expect(ended).toMatchObject({ code, out: '' })
    expect(ended.err).toContain(message)
  })

  test('ignores an idle event that a user event follows, and answered ids', async () => {
    const past = [
      usesTool('t1'),
      usesTool('t2'),
      idle('i1', { type: 'requires_action', event_ids: ['t1', 't2'] }),
      { id: 'c1', type: 'user.tool_confirmation', tool_use_id: 't1', result: 'allow' },
    ]
    const live = [idle('i2', { type: 'requires_action', event_ids: ['t1', 't2'] })]
    const ended = await over(await serveSession([past], [[live, 'stay']]), 'follow', '--ids')
    expect(ended).toMatchObject({ code: 12, out: 't2\n' })
    await server?.close()
    const evil = [idle('i3', { type: 'requires_action', event_ids: ['\u001b[2J'] })]
    const { url } = await serveSession([evil], [[[], 'stay']])
    const env = { ...world.env, PARLEY_AGENTS_URL: url }
    const shown = await run(['events', 'follow', '--ids'], { exchange: 'network', env, tty: ['stdout'] })
    expect(shown).toMatchObject({ code: 12, out: '^[[2J\n' })
  })

  test('prints agent text as text, other events as lines, older events with --history, and exact JSON with --raw', async () => {
    const past = [say('a', 'before')]
    const live = [
      say('b', 'two\nlines'),
      { id: 'c', type: 'agent.thinking' },
      { id: 'd', type: 'brand.new', x: 1 },
      done('e'),
    ]
    const plain = await over(await serveSession([past], [[live, 'stay']]), 'follow')
    expect(plain).toMatchObject({
      code: 0,
      out: 'two\nlines\nc\tagent.thinking\t\t\nd\tbrand.new\t\t\ne\tsession.status_idle\t\tend_turn\n',
    })
    await server?.close()
    const raw = await over(await serveSession([past], [[live, 'stay']]), 'follow', '--history', '--raw')
    expect(raw.out).toBe([...past, ...live].map((event) => `${JSON.stringify(event)}\n`).join(''))
  })

  test.each(['end', 'reset'] as const)(
    'connects again after a cut (%s), and loses and repeats no event',
    async (cut) => {
      const [a, b, c, d] = [say('a', 'one'), say('b', 'two'), say('c', 'three'), say('d', 'four')]
      const served = await serveSession(
        [[], [a, b, c], [a, b, c]],
        [
          [[a, b], cut],
          [[c, d, done('e')], 'stay'],
        ],
      )
      const ended = await over(served, 'follow')
      expect(ended.code).toBe(0)
      expect(ended.out).toBe('one\ntwo\nthree\nfour\ne\tsession.status_idle\t\tend_turn\n')
      expect(ended.err).toContain('connecting again')
    },
  )

  test('connects again after a silence, and prints from the list the events that the stream held back', async () => {
    const served = await serveSession([[], [say('a', 'one'), done('b')]], [[[], 'stay']])
    const ended = await over(served, 'follow', '--timeout', '0.2')
    expect(ended.code).toBe(0)
    expect(ended.out).toContain('one\n')
  })

  test('reads the list before the stream, and again once the stream is open', async () => {
    const served = await serveSession([[done('a')]], [[[], 'stay']])
    await over(served, 'follow')
    expect(served.requests.map((request) => request.split(' ')[1])).toEqual([
      '/v1/sessions/sesn_1/events?order=asc',
      '/v1/sessions/sesn_1/events/stream',
      '/v1/sessions/sesn_1/events?order=asc',
    ])
  })

  test('send --follow does not end at an older idle event', async () => {
    const sent = { id: 'sent_1', type: 'user.message' }
    const served = await serveSession(
      [
        [say('a', 'old'), done('b')],
        [say('a', 'old'), done('b'), sent, say('c', 'new')],
      ],
      [[[done('d')], 'stay']],
    )
    const ended = await over(served, 'send', 'go on', '--follow')
    expect(ended.code).toBe(0)
    expect(ended.out).toBe('new\nd\tsession.status_idle\t\tend_turn\n')
    await server?.close()
    // The service does not list the accepted event at once.
    const late = await serveSession([[say('a', 'old'), done('b')]], [[[say('c', 'new'), done('d')], 'stay']])
    expect((await over(late, 'send', 'go on', '--follow')).out).toContain('new\n')
  })

  test('does not repeat a request that the service refuses', async () => {
    server = await serve((socket) => socket.end('HTTP/1.1 404 No\r\ncontent-length: 2\r\n\r\n{}'))
    expect(await over(server, 'follow')).toMatchObject({ code: 4, out: '' })
    expect(server.requests).toHaveLength(1)
  })
})

describe('Y240: the list decides at an idle event', () => {
  const sent = { id: 'sent_1', type: 'user.message' }
  const lists = (served: ScriptedServer) =>
    served.requests.filter((request) => /^GET (?!\S+\/stream )/.test(request)).length

  test.each([
    ['send --follow', ['send', 'go', '--follow'], 'r\tsession.status_idle\t\tend_turn\nnew\n'],
    ['run', ['run', 'go'], 'r\tsession.status_idle\t\tend_turn\nnew\n'],
    ['run --last', ['run', 'go', '--last'], 'new\n'],
  ])('%s prints the events that the stream omitted, and exits by them', async (_, words, out) => {
    const served = await serveSession(
      [[], [sent], [sent, say('c', 'new'), done('r')]],
      [[[sent, done('r')], 'stay']],
    )
    expect(await over(served, ...words)).toMatchObject({ code: 0, out })
    expect(lists(served)).toBe(3)
  })

  test('reads a long list from its newest event back to the known events', async () => {
    const at = (i: number) => ({ processed_at: new Date(i * 1000).toISOString() })
    const past = Array.from({ length: 60 }, (_, i) => ({ ...say(`p${i}`, 'x'), ...at(i) }))
    const asked: string[] = []
    server = await serve((socket: Socket, request) => {
      const { pathname, searchParams } = new URL(request.split(' ')[1] ?? '', 'http://x')
      if (pathname.endsWith('/stream'))
        return void socket.write(
          `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n${frame(done('r'))}`,
        )
      asked.push(searchParams.toString())
      const isFirst = asked.length <= 6
      const all = isFirst
        ? [...past]
        : [...past, { ...say('c', 'new'), ...at(60) }, { ...done('r'), ...at(61) }]
      if (searchParams.get('order') === 'desc') all.reverse()
      const start = Number(searchParams.get('page') ?? 0)
      const next = start + 10 < all.length ? String(start + 10) : null
      const body = JSON.stringify({ data: all.slice(start, start + 10), next_page: next })
      socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
    })
    expect((await over(server, 'follow')).out).toMatch(/^new\nr\tsession\.status_idle\t.*\tend_turn\n$/)
    expect(asked.slice(0, 6)).toEqual([
      'order=asc',
      ...[1, 2, 3, 4, 5].map((page) => `order=asc&page=${page}0`),
    ])
    expect(
      asked.slice(6).filter((query) => query !== 'order=desc&page=10' && query !== 'order=desc'),
    ).toEqual([])
  })

  test('exits by an event that the stream omitted and the list shows', async () => {
    const missed = { id: 'o', type: 'span.outcome_evaluation_end', result: 'failed' }
    const served = await serveSession([[], [sent, missed, done('r')]], [[[sent, done('r')], 'stay']])
    expect((await over(served, 'send', 'go', '--follow')).code).toBe(13)
  })

  test('follows further if the list shows a newer message', async () => {
    const other = { id: 'other', type: 'user.message', content: [{ type: 'text', text: 'and this' }] }
    const served = await serveSession(
      [[], [sent, done('r'), other], [sent, done('r'), other, say('d', 'more'), done('q')]],
      [
        [[sent, done('r')], 'end'],
        [[], 'stay'],
      ],
    )
    expect((await over(served, 'send', 'go', '--follow')).out).toMatch(/^r\t.*^more\n.*^q\t/ms)
  })

  test('does not read the list again if it shows the idle event', async () => {
    const served = await serveSession([[], [sent, say('c', 'x'), done('r')]], [[[], 'stay']])
    expect((await over(served, 'send', 'go', '--follow')).out).toContain('x\n')
    expect(lists(served)).toBe(2)
  })

  test('reads a list without the idle event for 5 s', async () => {
    const served = await serveSession([[]], [[[sent, done('r')], 'stay']])
    expect(await over(served, 'send', 'go', '--follow')).toMatchObject({ code: 0 })
    expect(lists(served)).toBe(8)
  })

  test('warns if the list cannot be read at the end', async () => {
    const served = await serveSession([[], 500], [[[sent, done('r')], 'stay']])
    const { code, err } = await over(served, 'send', 'go', '--follow')
    expect(code).toBe(0)
    expect(err).toContain('the list could not be read at the end: ')
    const again = await serveSession([[], 500, [sent, done('r')]], [[[sent, done('r')], 'stay']])
    expect((await over(again, 'send', 'go', '--follow')).err).not.toContain('could not be read')
  })

  test('does not warn about the list of a deleted session', async () => {
    const gone = { id: 'g', type: 'session.deleted' }
    const served = await serveSession([[], 404], [[[sent, gone], 'stay']])
    const { code, err } = await over(served, 'send', 'go', '--follow')
    expect({ code, isWarned: err.includes('could not be read') }).toEqual({ code: 13, isWarned: false })
  })
})

test.each([[['follow']], [['send', 'go', '--follow']], [['run', 'go']]])(
  'Y241: exits with 4 if the followed session is gone: %j',
  async (words) => {
    const served = await serveSession(
      [[], 404],
      [
        [[], 'end'],
        [[], 'stay'],
      ],
    )
    const { code, err } = await over(served, ...words, '--errors', 'json')
    expect(code).toBe(4)
    expect(JSON.parse(err.trim().split('\n').at(-1) ?? '').error).toMatchObject({ exit: 4, status: 404 })
  },
)

describe('events follow with failures', () => {
  test('prints once an event that arrived between two lists', async () => {
    const [a, b] = [say('a', 'one'), done('b')]
    const resting = await over(await serveSession([[], [a, b]], [[[a, b], 'stay']]), 'follow')
    expect(resting).toMatchObject({ code: 0, out: 'one\nb\tsession.status_idle\t\tend_turn\n' })
    await server?.close()
    const busy = await over(await serveSession([[], [a]], [[[a, b], 'stay']]), 'follow')
    expect(busy.out).toBe('one\nb\tsession.status_idle\t\tend_turn\n')
  })

  test('send --follow without ids in the receipt does not end at an older idle event', async () => {
    const served = await serveSession(
      [[done('old')]],
      [[[{ id: 'x', type: 'agent.thinking' }, done('new')], 'stay']],
      '',
    )
    const ended = await over(served, 'send', 'go', '--follow')
    expect(ended).toMatchObject({
      code: 0,
      out: 'x\tagent.thinking\t\t\nnew\tsession.status_idle\t\tend_turn\n',
    })
  })

  test('exits with 13 for requires_action without ids', async () => {
    const ended = await over(
      await serveSession([[idle('a', { type: 'requires_action', event_ids: [] })]], [[[], 'stay']]),
      'follow',
    )
    expect(ended.code).toBe(13)
    expect(ended.err).toContain('requires_action')
  })

  test('follows a quiet agent although the stream is cut seven times', async () => {
    const cuts = Array.from({ length: 7 }, (): [Event[], 'end'] => [[], 'end'])
    const served = await serveSession([[]], [...cuts, [[done('a')], 'stay']])
    expect((await over(served, 'follow')).code).toBe(0)
  })

  test('exits with 8 after an error in the stream', async () => {
    server = await serve((socket, request) =>
      socket.end(
        request.includes('/stream')
          ? 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: error\ndata: {"type":"error","error":{"message":"no more"}}\n\n'
          : 'HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{"data":[]}',
      ),
    )
    const ended = await over(server, 'follow')
    expect(ended.code).toBe(8)
    expect(ended.err).toContain('no more')
  })

  test('exits with 15 if the deadline passes while the session works', async () => {
    const { url } = await serveSession([[]], [[[], 'stay']])
    const ended = await run(['events', 'follow', '--deadline', '1'], {
      exchange: 'network',
      env: { ...world.env, PARLEY_AGENTS_URL: url },
      timers: createSteadyClock(),
    })
    expect(ended.code).toBe(15)
    expect(ended.err).toContain('the deadline passed')
  })

  test.each([
    ['15 while the list is requested', '', ['follow'], { exit: 15, kind: 'stopped', sent: 'unknown' }],
    ['15 while the stream is requested', '/stream', ['follow'], { exit: 15, kind: 'stopped' }],
    ['15 for a run without a task', '', ['run'], { exit: 15, resume: expect.arrayContaining(['run']) }],
    ['9 for a run whose task was not sent', '', ['run', 'x'], { exit: 9, sent: 'no', safeToRetry: true }],
    ['9 for an event that was not sent', '/stream', ['send', 'x', '--follow'], { exit: 9, sent: 'no' }],
  ])('Y215: a deadline before the session is shown exits with %s', async (_, silent, argv, expected) => {
    server = await serve((socket, request) => {
      const [path = ''] = request.split('?')
      if (path.includes('/stream') === (silent !== '')) return
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{"data":[]}')
    })
    const flags = ['--deadline', '1', '--no-stdin', '--errors', 'json']
    const ended = await run(['events', ...argv, ...flags], {
      exchange: 'network',
      env: { ...world.env, PARLEY_AGENTS_URL: server.url },
      timers: createSteadyClock(),
    })
    const { error } = JSON.parse(ended.err)
    expect({ code: ended.code, error }).toMatchObject({
      code: expected.exit,
      error: {
        ...expected,
        retry: 'later',
        deadline: true,
        message: expect.stringContaining('the deadline passed'),
      },
    })
  })

  test('Y217: the deadline passes although the wall clock is set back', async () => {
    const steady = createSteadyClock()
    let isOpened = false
    server = await serve((socket, request) => {
      if (!request.includes('/stream')) {
        socket.end('HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{"data":[]}')
        return
      }
      isOpened = true
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n')
    })
    const ended = await run(['events', 'follow', '--deadline', '2'], {
      exchange: 'network',
      env: { ...world.env, PARLEY_AGENTS_URL: server.url },
      timers: { ...steady, wallTime: () => steady.wallTime() - (isOpened ? 3_600_000 : 0) },
    })
    expect(ended.code).toBe(15)
    expect(ended.err).toContain('the deadline passed while the session was followed')
  })

  test('no failure after an accepted event looks like a reason to send the event again', async () => {
    let posted = 0
    server = await serve((socket, request) => {
      if (request.startsWith('POST')) {
        posted++
        socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}')
      } else if (request.includes('/stream')) {
        socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n')
      } else if (posted === 0) socket.end('HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{"data":[]}')
      else socket.end('HTTP/1.1 429 No\r\ncontent-length: 2\r\n\r\n{}')
    })
    const argv = ['events', 'send', 'x', '--follow', '--retries', '0', '--errors', 'json']
    const env = { ...world.env, PARLEY_AGENTS_URL: server.url }
    const ended = await run(argv, { exchange: 'network', timers: hurried(2000), env })
    expect(ended.code).toBe(8)
    expect(JSON.parse(ended.err).error).toMatchObject({ exit: 8, sent: 'yes', safeToRetry: false })
    expect(posted).toBe(1)
  })

  test('reads a header from stdin once, for all requests', async () => {
    const served = await serveSession([[]], [[[done('a')], 'stay']])
    const ended = await run(['events', 'send', 'x', '--follow', '-H', '@-'], {
      exchange: 'network',
      stdin: 'X-Trace: 7\n',
      env: { ...world.env, PARLEY_AGENTS_URL: served.url },
    })
    expect(ended.code).toBe(0)
    expect(served.requests.map((request) => /X-Trace: 7/i.test(request))).toEqual(
      served.requests.map(() => true),
    )
  })

  test('exits with 8 if the next page of a list is the same page', async () => {
    server = await serve((socket) => {
      const body = '{"data":[{"id":"a","type":"b"}],"next_page":"p"}'
      socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
    })
    expect((await over(server, 'list')).code).toBe(8)
    expect(server.requests).toHaveLength(2)
  })

  const envelope = '{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}'
  test.each([['send', 'x'], ['list'], ['follow'], ['confirm', '--pending', '--allow']])(
    'exits with 6 for a rate limit error in a 200: events %s',
    async (...argv) => {
      server = await serve((socket, request) =>
        request.includes('/stream')
          ? socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n')
          : socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${envelope.length}\r\n\r\n${envelope}`),
      )
      expect(await over(server, ...argv)).toMatchObject({ code: 6, out: '' })
    },
  )

  test.each([
    ['a refused list', ['follow'], 4],
    ['a refused event', ['send', 'x', '--follow'], 4],
  ])('the process ends although a stream is open: %s', async (_, argv, code) => {
    server = await serve((socket, request) =>
      request.includes('/stream')
        ? socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n')
        : socket.write('HTTP/1.1 404 No\r\ncontent-length: 2\r\n\r\n{}'),
    )
    const child = spawn(
      process.execPath,
      [parley, 'events', ...argv, '-s', 's', '--agents-url', server.url],
      {
        env: { ...childEnvironment, HOME: temporaryFolder(), PARLEY_API_KEY: 'k' },
        stdio: 'ignore',
      },
    )
    expect(await once(child, 'exit')).toEqual([code, null])
  })
})

describe('failures with --raw', () => {
  const rawLines = (...events: Event[]) => events.map((event) => `${JSON.stringify(event)}\n`).join('')
  const html = response('<html>bad gateway</html>', '502 Bad Gateway', ['content-type: text/html'])
  const pageOf = (next: object, ...data: Event[]) => response(JSON.stringify({ data, ...next }))

  test.each([
    ['follow', ['follow', '--history'], [say('a', 'one'), say('b', 'two'), done('i')]],
    ['run', ['run', 'go on', '--no-stdin'], [say('b', 'two'), done('i')]],
  ])('%s --raw prints nothing for a repeated list and stream', async (_, argv, printed) => {
    const sent: Event = { id: 'sent_1', type: 'user.message', content: [{ type: 'text', text: 'go on' }] }
    const isRun = argv[0] === 'run'
    let hasBegun = false
    let failing = 0
    const before = [say('a', 'one'), ...(isRun ? [done('i0')] : [])]
    const now = [...before, ...(isRun ? [sent] : []), say('b', 'two')]
    server = await serve((socket, request) => {
      const isStream = /^GET \S+\/stream /.test(request)
      if (request.startsWith('POST')) return void socket.write(response(JSON.stringify({ data: [sent] })))
      if (isStream && !hasBegun) {
        hasBegun = true
        return void socket.end('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: hi\n\n')
      }
      if (hasBegun && failing++ < 4) return void socket.write(html)
      if (!isStream) return void socket.write(pageOf({}, ...(hasBegun ? now : before)))
      const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n'
      socket.write(`${head}${frame(done('i'))}`)
    })
    const ended = await over(server, ...argv, '--raw', '--retries', '0')
    expect(ended).toMatchObject({ code: 0, out: rawLines(...printed) })
    expect(ended.err).toContain('502')
    expect(failing).toBeGreaterThan(4)
  })

  test('--raw prints the failure that ends the following on stderr only', async () => {
    const gone = '{"type":"error","error":{"type":"not_found_error","message":"gone"}}'
    server = await serve((socket, request) => {
      const isStream = /^GET \S+\/stream /.test(request)
      socket.write(isStream ? response(gone, '404 Not Found') : pageOf({}, say('a', 'one')))
    })
    const ended = await over(server, 'follow', '--history', '--raw')
    expect(ended).toMatchObject({ code: 4, out: rawLines(say('a', 'one')) })
    expect(ended.err).toMatch(
      /404 Not Found\n {2}'parley sessions list' lists the sessions; .*\n {2}the service says: gone\n/,
    )
  })

  test('--raw prints the failure that ends a list on stderr only', async () => {
    let lists = 0
    const pages = [pageOf({ next_page: 'p1' }, say('a', 'one'), say('b', 'two')), html]
    server = await serve((socket) => void socket.write(pages[lists++] ?? html))
    const ended = await over(server, 'list', '--order', 'asc', '--raw', '--retries', '0')
    expect(ended).toMatchObject({ code: 7, out: rawLines(say('a', 'one'), say('b', 'two')) })
    expect(ended.err).toContain('502 Bad Gateway\n')
  })

  test('--raw prints nothing for a refused larger page', async () => {
    let lists = 0
    const events = Array.from({ length: 100 }, (_, i) => say(`e${i}`, 'x'))
    const refused = response('{"error":"no such limit"}', '400 Bad Request')
    server = await serve((socket) => void socket.write(lists++ === 0 ? pageOf({}, ...events) : refused))
    expect(await over(server, 'list', '--raw')).toMatchObject({ code: 0, out: rawLines(...events) })
  })
})

describe('events list', () => {
  const exchange = createEmulator({})

  test('prints all pages, in both orders, by type, and up to a limit', async () => {
    for (let i = 0; i < 30; i++)
      await run(['events', 'send', '--follow', `message ${i}`], { ...world, exchange })
    const all = await run(['events', 'list'], { ...world, exchange })
    expect(all.out.split('\n').length).toBeGreaterThan(90)
    expect(all.requests.length).toBeGreaterThan(2)
    const some = await run(['events', 'list', '--type', 'user.message', '--order', 'desc', '--limit', '21'], {
      ...world,
      exchange,
    })
    expect(some.out.match(/^[^\t]+\tuser\.message\t[^\t]+\tmessage \d+$/gm)).toHaveLength(21)
    expect(some.out).toMatch(/^[^\t]+\tuser\.message\t[^\t]+\tmessage 29\n/)
    expect(some.requests[0]?.url).toContain('?types%5B%5D=user.message&order=desc&limit=100')
    const ids = await run(['events', 'list', '--limit', '2', '--ids'], { ...world, exchange })
    expect(ids.out).toMatch(/^sevt_\w+\nsevt_\w+\n$/)
    const raw = await run(['events', 'list', '--limit', '2', '--raw'], { ...world, exchange })
    expect(raw.out).toMatch(/^\{"id".*\}\n\{"id".*\}\n$/)
  })

  test.each([
    ['the newest, oldest first', [], ['e5', 'e6', 'e7']],
    ['the first with --order asc', ['--order', 'asc'], ['e0', 'e1', 'e2']],
    ['the newest, newest first, with --order desc', ['--order', 'desc'], ['e7', 'e6', 'e5']],
  ])('--limit 3 prints three events: %s', async (_, flags, expected) => {
    const events = Array.from({ length: 8 }, (_, i) => ({
      ...say(`e${i}`, 'x'),
      processed_at: new Date(i * 1000).toISOString(),
    }))
    const isDescending = (url: string) => /order=desc/.test(url)
    for (const isHonored of [true, false]) {
      const ended = await run(['events', 'list', '--ids', '--limit', '3', ...flags], {
        ...world,
        exchange: (request, onSent) => {
          const data = isHonored && isDescending(request.url) ? events.toReversed() : events
          return answering(JSON.stringify({ data }))(request, onSent)
        },
      })
      expect(ended.out.trim().split('\n')).toEqual(expected)
    }
  })

  describe('events list of a service without times', () => {
    const unproved = 'parley: the times of the events do not prove their order:'
    const events = Array.from({ length: 8 }, (_, i) => say(`e${i}`, 'x'))
    const list = (flags: string[], isHonored: boolean, listed: object[] = events) =>
      run(['events', 'list', '--ids', ...flags], {
        ...world,
        exchange: (request, onSent) => {
          const data = isHonored && /order=desc/.test(request.url) ? listed.toReversed() : listed
          return answering(JSON.stringify({ data }))(request, onSent)
        },
      })

    test.each<[flags: string, out: string, doubt: string]>([
      ['--limit 3', 'e5 e6 e7', 'these may not be the newest events'],
      ['--limit 3 --order desc', 'e7 e6 e5', 'these may not be the newest events'],
      ['--limit 3 --order asc', 'e0 e1 e2', 'these may not be the oldest events'],
      ['--limit 8 --order desc', 'e7 e6 e5 e4 e3 e2 e1 e0', 'it may be wrong'],
    ])(
      'reads the whole list for the newest events, and prints that no time proves them: %s',
      async (...row) => {
        const [flags, out, doubt] = row
        for (const isHonored of [true, false]) {
          const ended = await list(flags.split(' '), isHonored)
          expect([ended.out.trim().split('\n').join(' '), ended.err]).toEqual([out, `${unproved} ${doubt}\n`])
        }
      },
    )

    test('prints that the order of the whole list is not proved', async () => {
      expect((await list(['--order', 'desc'], false)).err).toBe(`${unproved} it may be wrong\n`)
      expect((await list([], false)).err).toBe('')
    })

    test.each([
      ['one event', ['--limit', '1'], [say('a', 'x')]],
      ['one event of the type', ['--limit', '1', '--type', 'agent.message'], [say('a', 'x'), done('b')]],
      [
        'two events with times',
        ['--order', 'asc'],
        [1, 2].map((i) => ({ ...say(`a${i}`, 'x'), processed_at: new Date(i * 1000).toISOString() })),
      ],
    ])('prints no note about %s', async (_, flags, listed) => {
      expect(await list(flags, true, listed)).toMatchObject({ code: 0, err: '' })
    })
  })

  test('--limit prints the newest received events, oldest first, if the list is cut', async () => {
    const data = ['e9', 'e8', 'e7'].map((id, i) => ({
      ...say(id, 'x'),
      processed_at: new Date(9000 - i * 1000).toISOString(),
    }))
    let calls = 0
    const ended = await run(['events', 'list', '--ids', '--limit', '5', '--retries', '0'], {
      ...world,
      exchange: (request, onSent) =>
        calls++ === 0
          ? answering(JSON.stringify({ data, next_page: 'p2' }))(request, onSent)
          : answering('{}', { status: 500 })(request, onSent),
    })
    expect({ code: ended.code, out: ended.out }).toEqual({ code: 7, out: 'e7\ne8\ne9\n' })
  })

  test.each([
    [[], 2500, 0],
    [['--limit', '1200'], 1200, 0],
    [['--type', 'agent.message'], 1250, 1],
  ])('--order desc prints a long ascending list from its end: %j', async (flags, count, last) => {
    const events = Array.from({ length: 2500 }, (_, i) => ({
      ...(i % 2 === 0 ? say(`e${i}`, 'x') : done(`e${i}`)),
      processed_at: new Date(i * 1000).toISOString(),
    }))
    const page = answering(JSON.stringify({ data: events }))
    const { out } = await run(['events', 'list', '--order', 'desc', '--ids', ...flags], {
      ...world,
      exchange: page,
    })
    const ids = out.trim().split('\n')
    expect([ids.length, ids[0], new Set(ids).size]).toEqual([count, `e${2499 - last}`, count])
    expect(
      ids.map((id) => Number(id.slice(1))).every((id, i, all) => i === 0 || id < Number(all[i - 1])),
    ).toBe(true)
  })

  test('prints one table on a terminal, also if the width is unknown', async () => {
    const shown = await run(['events', 'list'], { ...world, exchange, tty: ['stdout'], columns: 0 })
    expect(shown.requests.length).toBeGreaterThan(2)
    const [head = '', ...lines] = shown.out.split('\n')
    expect(head).toMatch(/^ID +TYPE +TIME +TEXT$/)
    expect(lines.join('\n')).not.toMatch(/TYPE|TIME|TEXT/)
    expect(lines.filter((line) => line.indexOf('user.message') === head.indexOf('TYPE'))).toHaveLength(30)
    expect(Math.max(...lines.map(({ length }) => length))).toBe(80)
  })

  test('escapes control characters in an id on a terminal', async () => {
    const evil = answering(JSON.stringify({ data: [{ id: '\u001b[2J\u009b', type: 't' }] }))
    const ended = await run(['events', 'list', '--ids'], { ...world, exchange: evil, tty: ['stdout'] })
    expect(ended.out).toBe('^[[2J\\u009b\n')
  })
})
