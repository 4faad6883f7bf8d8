import { writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { expect } from 'vitest'
import { response, type Script } from '../harness/server.ts'
import { event, makeHead, resetting, sseHead } from './answers.ts'
import { faultsInside, type Row } from './rows.ts'

const follow = ['events', 'follow']
const sendAndFollow = ['events', 'send', 'go on', '--follow']

const say = (id: string, text: string) => ({ id, type: 'agent.message', content: text })
const done = (id: string) => ({ id, type: 'session.status_idle', stop_reason: { type: 'end_turn' } })
const list = (...data: object[]) => response(JSON.stringify({ data, next_page: null }))
const page = (next: object, ...data: object[]) => response(JSON.stringify({ data, ...next }))
const html = response('<title>Sign in</title>', '200 OK', ['content-type: text/html'])

const isStream = (request: string) => /^GET \S+\/stream /.test(request)
const isPost = (request: string) => request.startsWith('POST')
const kindOf = (request: string) => (isStream(request) ? 'stream' : isPost(request) ? 'post' : 'list')

interface Service {
  /** Answers to the lists, in this order. The last one repeats. */
  lists: (Buffer | string)[]
  /** Answers a request for the stream. `count` is the number of the stream, from 1. */
  stream?(socket: Socket, count: number): void
  receipt?: Buffer
}

/**
 * Simulates a session service. Without `stream`, its streams stay empty. One row may run on several servers
 * at once.
 */
function session({ lists, stream, receipt = list({ id: 'sent_1', type: 'user.message' }) }: Service): Script {
  return (socket, request, _, requests) => {
    const count = requests.filter((each) => kindOf(each) === kindOf(request)).length
    const answers = { list: lists[Math.min(count, lists.length) - 1], post: receipt, stream: sseHead }
    if (stream && isStream(request)) stream(socket, count)
    else socket.write(answers[kindOf(request)] ?? '')
  }
}

const streaming =
  (...events: object[]) =>
  (socket: Socket) =>
    void socket.write(sseHead + events.map((value) => event(value, 'message')).join(''))

/** Fields of a row that may differ. By default a row exits with 0. */
type Expected = Omit<Row, 'name' | 'argv' | 'script' | 'code'> & { code?: Row['code'] }

const row = (name: string, argv: string[], service: Service | Script, expected: Expected): Row => ({
  name,
  argv,
  script: typeof service === 'function' ? service : session(service),
  code: 0,
  ...expected,
})

const follows = (name: string, service: Service | Script, expected: Expected): Row =>
  row(name, follow, service, expected)

const lists = (name: string, service: Service | Script, expected: Expected): Row =>
  row(name, ['events', 'list', '--ids'], service, expected)

/** Sends a message and follows its turn. Only the posts are counted: the number of lists depends on the timing. */
const sends = (name: string, service: Partial<Service>, expected: Expected = {}): Row =>
  row(
    name,
    sendAndFollow,
    { lists: [list(...old)], ...service },
    { out: `new\n${ended}`, reqs: expect.any(Number), check: postsOnce, ...expected },
  )

faultsInside('Y: responses that are not a session', [
  ...[
    ['HTML', html, ['is not a stream of events: it is text/html', 'Sign in']],
    ['plain JSON', response('{"data":[]}'), ['is not a stream of events: it is application/json']],
  ].map(
    ([name, answer, err]): Row => ({
      name: `Y01: parley exits with 8, without a retry, if the stream is ${name}`,
      argv: follow,
      script: session({ lists: [list()], stream: (socket) => void socket.write(answer as Buffer) }),
      code: 8,
      reqs: 2,
      err: err as string[],
    }),
  ),
  ...[
    ['application/json', '{"data":['],
    ['text/plain', event(say('e1', 'new'))],
  ].map(
    ([type, begin]): Row => ({
      name: `Y01: parley exits with 8 at once if the stream is ${type} and never ends`,
      argv: follow,
      script: session({
        lists: [list()],
        stream: (socket) => {
          socket.write(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\nconnection: close\r\n\r\n${begin}`)
          const timer = setInterval(() => socket.write('\n'), 50)
          socket.on('close', () => clearInterval(timer))
        },
      }),
      code: 8,
      reqs: 2,
      err: [`is not a stream of events: it is ${type}`],
    }),
  ),
  follows(
    'Y02: parley exits with 4 if a not_found_error answers the request for a stream',
    {
      lists: [list()],
      stream: (socket) =>
        void socket.write(response('{"type":"error","error":{"type":"not_found_error","message":"gone"}}')),
    },
    { code: 4, reqs: 2, err: ['the service says: gone'] },
  ),
  ...[
    ['an error without an error object', '{"message":"slow down"}', 'slow down'],
    ['null', 'null', "the list of events has no field 'data'"],
  ].map(
    ([name, body = '', message = '']): Row => ({
      name: `Y03: parley does not take ${name} for an empty list`,
      argv: ['events', 'list'],
      script: session({ lists: [response(body)] }),
      code: 8,
      reqs: 1,
      err: [message],
    }),
  ),
])

const a = page({ next_page: 'p1' }, { id: 'a', type: 't' })
const b = page({ next_page: 'p2' }, { id: 'b', type: 't' })

faultsInside('Y: lists', [
  lists(
    'Y10: parley exits with 8 if the pages of a list repeat',
    { lists: [a, b, a, b, a] },
    { code: 8, out: 'a\nb\n', reqs: 3, err: ['does not end: its pages repeat'] },
  ),
  row(
    'Y11: parley exits with 8 if empty pages never end',
    ['events', 'list'],
    (socket, _, count) => void socket.write(page({ next_page: `p${count}` })),
    { code: 8, reqs: 21, err: ['does not end: 21 pages in a row are empty'] },
  ),
  lists(
    'Y12: parley continues a list with has_more after its last id',
    {
      lists: [
        page({ has_more: true, last_id: 'a' }, { id: 'a', type: 't' }),
        page({ has_more: false }, { id: 'b', type: 't' }),
      ],
    },
    {
      out: 'a\nb\n',
      reqs: 2,
      check: ({ server }) => {
        if (!server.requests[1]?.includes('?after_id=a ')) throw new Error(server.requests[1])
      },
    },
  ),
  lists(
    'Y12: parley exits with 8 if a list has more but names no next page',
    { lists: [page({ has_more: true }, { type: 't' })] },
    { code: 8, out: '\n', reqs: 1, err: ['has more items, but no cursor for the next page'] },
  ),
  row(
    'Y13: parley applies type, order and limit if the service ignores them',
    ['events', 'list', '--type', 'agent.message', '--order', 'desc', '--limit', '2', '--ids'],
    {
      lists: [
        list(...[1, 2, 3].map((i) => ({ ...say(`m${i}`, 'x'), processed_at: `2026-01-01T00:00:0${i}Z` })), {
          ...done('end'),
          processed_at: '2026-01-01T00:00:04Z',
        }),
      ],
    },
    { out: 'm3\nm2\n', reqs: 1 },
  ),
  row(
    'Y14: parley prints a bare array of events with --raw, one event per line',
    ['events', 'list', '--raw'],
    {
      lists: [response('[\n{"id":"a",\n"type":"t","content":"x\\n","n":1.10},{"id":"b","type":"t"}]\n')],
    },
    { out: '{"id":"a","type":"t","content":"x\\n","n":1.10}\n{"id":"b","type":"t"}\n', reqs: 1 },
  ),
])

const old = [{ id: 'm0', type: 'user.message', content: 'before' }, say('old', 'old'), done('i0')]
const sent = { id: 'sent_1', type: 'user.message', content: 'go on' }
const ended = 'i1\tsession.status_idle\t\tend_turn\n'

/** The number of lists depends on the timing, so only the posts are counted. */
const postsOnce: Row['check'] = ({ server }) => expect(server.requests.filter(isPost)).toHaveLength(1)

faultsInside('Y: following', [
  sends('Y20: parley prints only new events if the stream starts with the whole history', {
    stream: streaming(...old, sent, say('new', 'new'), done('i1')),
  }),
  sends(
    'Y21: parley finds the sent message by its text if the response is empty',
    {
      stream: streaming(...old, sent, say('new', 'new'), done('i1')),
      receipt: response('', '202 Accepted'),
    },
    { err: ['the events were accepted, but the response does not list them'] },
  ),
  sends('Y22: parley ignores the end of another turn before the sent message', {
    stream: streaming(say('other', 'another turn'), done('i9'), sent, say('new', 'new'), done('i1')),
  }),
  sends('Y23: parley ignores partial events before the whole event', {
    stream: streaming(
      sent,
      { type: 'event_start', event: { id: 'new', type: 'agent.message' } },
      { type: 'event_delta', event_id: 'new', delta: { text: 'ne' } },
      say('new', 'new'),
      done('i1'),
    ),
  }),
  sends('Y24: parley follows a session that continues after it was terminated', {
    lists: [list(...old, { id: 'x', type: 'session.status_terminated' })],
    stream: streaming(sent, say('new', 'new'), done('i1')),
  }),
  row(
    'Y25: parley exits if an interrupt of an idle session has no consequence',
    ['events', 'send', '--interrupt', '--follow'],
    {
      lists: [list(...old), list(...old, { id: 'sent_1', type: 'user.interrupt' })],
      receipt: list({ id: 'sent_1', type: 'user.interrupt' }),
    },
    { reqs: 3 },
  ),
  follows(
    'Y26: parley exits from an idle session although its stream sends comments',
    {
      lists: [list(...old)],
      stream: (socket) => {
        socket.write(sseHead)
        const timer = setInterval(() => socket.write(': keepalive\n\n'), 50)
        socket.on('close', () => clearInterval(timer))
      },
    },
    { reqs: 4 },
  ),
  sends('Y27: parley finds the sent message in the list if the stream never shows it', {
    lists: [list(...old), list(...old, say('late', 'late'), sent, say('new', 'new'))],
    stream: streaming(say('new', 'new'), done('i1')),
  }),
  sends('Y28: parley skips keep-alive data in a stream', {
    stream: (socket) =>
      void socket.write(
        `${sseHead}${event('ping')}${event('null')}event: heartbeat\ndata: 17\n\n${[sent, say('new', 'new'), done('i1')].map((value) => event(value)).join('')}`,
      ),
  }),
  row(
    'Y29: parley treats all unanswered tool uses as waiting if the idle event lists no ids',
    [...follow, '--ids'],
    {
      lists: [
        list(
          { id: 't1', type: 'agent.tool_use', name: 'bash', input: {} },
          { id: 't2', type: 'agent.tool_use', name: 'bash', input: {}, evaluated_permission: 'allow' },
          { id: 't3', type: 'agent.tool_use', name: 'bash', input: {} },
          { id: 'c', type: 'user.tool_confirmation', tool_use_id: 't3', result: 'allow' },
          { id: 'i', type: 'session.status_idle', stop_reason: 'requires_action' },
        ),
      ],
    },
    { code: 12, out: 't1\n', reqs: 4 },
  ),
])

const sendInSteps = (socket: Socket, ...steps: object[][]) => {
  socket.write(sseHead)
  for (const [step, events] of steps.entries()) {
    const text = events.map((value) => event(value)).join('')
    setTimeout(() => socket.write(text), 300 * step)
  }
}
const messageA = { id: 'A', type: 'user.message', content: 'A' }
const messageB = { id: 'B', type: 'user.message', content: 'B' }
const interrupt = { id: 'int', type: 'user.interrupt' }
const running = { id: 'r', type: 'session.status_running' }

faultsInside('Y: idle events before the end', [
  row(
    'Y40: parley follows until the second of two messages is answered',
    ['events', 'send', '--message', 'A', '--message', 'B', '--follow'],
    {
      lists: [list(...old)],
      stream: (socket) =>
        sendInSteps(
          socket,
          [messageA, say('a', 'to A'), done('i1')],
          [messageB, running, say('b', 'to B'), done('i2')],
        ),
      receipt: list(messageA, messageB),
    },
    { reqs: expect.any(Number), check: postsOnce, out: (out) => /to A[\s\S]*to B/.test(out.toString()) },
  ),
  row(
    'Y41: parley follows a new task that is sent with an interrupt',
    ['events', 'send', '--interrupt', 'B', '--follow'],
    {
      lists: [list(...old, running)],
      stream: (socket) =>
        sendInSteps(socket, [interrupt, done('i1')], [messageB, running, say('b', 'to B'), done('i2')]),
      receipt: response('', '202 Accepted'),
    },
    { reqs: expect.any(Number), check: postsOnce, out: (out) => out.includes('to B') },
  ),
  row(
    'Y42: parley follows a queued message until its own turn ends',
    sendAndFollow,
    {
      lists: [list(...old, running), list(...old, running, { ...sent, processed_at: null }, done('i1'))],
      stream: (socket) =>
        sendInSteps(
          socket,
          [{ ...sent, processed_at: null }, say('o', 'earlier'), done('i1')],
          [
            { ...running, id: 'r2' },
            { ...sent, processed_at: '2026-01-01T00:00:00Z' },
            say('n', 'new'),
            done('i2'),
          ],
        ),
    },
    {
      out: 'earlier\ni1\tsession.status_idle\t\tend_turn\nr2\tsession.status_running\t\t\nnew\ni2\tsession.status_idle\t\tend_turn\n',
      reqs: expect.any(Number),
      check: postsOnce,
    },
  ),
  follows(
    'Y43: parley reads a list that is sorted newest first',
    {
      lists: [
        list(
          ...[done('i0'), say('o', 'old'), { id: 'm0', type: 'user.message', content: 'x' }].map(
            (value, i) => ({
              ...value,
              processed_at: `2026-01-01T00:00:0${3 - i}Z`,
            }),
          ),
        ),
      ],
    },
    { reqs: 3 },
  ),
  follows(
    'Y45: parley keeps the order of a list with a single time out of order',
    {
      lists: [
        list(
          { id: 'm0', type: 'user.message', content: 'x', processed_at: '2026-01-01T00:00:06Z' },
          { ...running, processed_at: '2026-01-01T00:00:03Z' },
          { ...done('i0'), processed_at: '2026-01-01T00:00:04Z' },
        ),
      ],
    },
    { reqs: 4 },
  ),
  row(
    'Y44: parley replies once to a tool use that event_ids contains twice',
    ['events', 'confirm', '--allow'],
    { lists: [] },
    {
      stdin:
        '{"type":"session.status_idle","stop_reason":{"type":"requires_action","event_ids":["a","a",7,""]}}',
      out: 'sent_1\tuser.message\t\t\n',
      reqs: 1,
      check: ({ server }) => expect(server.requests[0]?.match(/tool_use_id/g)).toHaveLength(1),
    },
  ),
])

const use = (id: string) => ({ id, type: 'agent.tool_use', name: 'bash', input: {} })
const waits = (reason: unknown) => ({ id: 'i', type: 'session.status_idle', stop_reason: reason })
/** A session whose idle event has `event_ids` without a type, and lists only one of two tool uses. */
const typeless = session({ lists: [list(use('t1'), use('t2'), waits({ event_ids: ['t1'] }))] })
const unlisted = session({ lists: [list(use('t1'), use('t2'), waits({ type: 'requires_action' }))] })

const allowAll = (folder: string) =>
  writeFileSync(
    join(folder, 'cwd', 'allow.json'),
    '{"rules":[{"tool":"*","decision":"allow"}],"default":{"decision":"allow"}}',
  )

faultsInside('Y: tool uses of an idle event', [
  row(
    'Y80: parley treats the tool uses in event_ids as waiting if the stop reason has no type (confirm --pending)',
    ['events', 'confirm', '--pending', '--allow'],
    typeless,
    {
      out: 'sent_1\tuser.message\t\t\n',
      reqs: 2,
      check: ({ server }) =>
        expect(server.requests[1]?.match(/"tool_use_id":"\w+"/g)).toEqual(['"tool_use_id":"t1"']),
    },
  ),
  follows(
    'Y80: parley treats no tool use as waiting if event_ids is empty and the stop reason has no type',
    { lists: [list(use('t1'), waits({ event_ids: [] }))] },
    { reqs: 4 },
  ),
  row(
    'Y81: parley sends no reply and names the unanswered tool uses if event_ids is missing (confirm --pending)',
    ['events', 'confirm', '--pending', '--allow'],
    unlisted,
    {
      code: 12,
      reqs: 1,
      err: ['t1: bash {}', 't2: bash {}', 'the service does not report which of these tool uses wait'],
    },
  ),
  row(
    'Y81: parley sends no reply and names the unanswered tool uses if event_ids is missing (run)',
    ['events', 'run', '--policy', 'allow.json'],
    unlisted,
    { prepare: allowAll, files: ['cwd/allow.json'], code: 12, reqs: 4, err: ['t1: bash {}', 't2: bash {}'] },
  ),
  follows('Y81: parley names the unanswered tool uses if event_ids is missing (follow)', unlisted, {
    code: 12,
    reqs: 4,
    err: ['t1: bash {}', 't2: bash {}', 'to answer one: parley events confirm -s'],
  }),
  follows(
    'Y111: parley names --custom-tool-result for a custom tool use that waits',
    {
      lists: [
        list({ ...use('t1'), type: 'agent.custom_tool_use' }, use('t2'), waits({ event_ids: ['t1', 't2'] })),
      ],
    },
    {
      code: 12,
      reqs: 4,
      err: [
        /answer with: parley events confirm .* t2 --allow/,
        /parley events send .* --custom-tool-result t1=TEXT/,
      ],
    },
  ),
  follows(
    "Y82: parley prints the session's error if the session was terminated",
    {
      lists: [
        list(
          { id: 'e', type: 'session.error', error: { message: 'no credit is left' } },
          { id: 'x', type: 'session.status_terminated' },
        ),
      ],
    },
    { code: 13, reqs: 4, err: ['stopped: terminated', 'the service says: no credit is left'] },
  ),
])

const at = (seconds: number, value: object) => ({
  ...value,
  processed_at: new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString(),
})
const messages = (...seconds: number[]) => seconds.map((second) => at(second, say(`m${second}`, 'x')))
const newestFirst = [
  done('i0'),
  say('o2', 'old'),
  say('o1', 'old'),
  { id: 'm0', type: 'user.message', content: 'x' },
]
const refused = 'HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n'

/** Returns pages with a tenth of the requested limit, as the service does. */
const paging =
  (...events: object[]): Script =>
  (socket, request) => {
    const { searchParams } = new URL(request.split(' ')[1] ?? '', 'http://x')
    const start = Number(searchParams.get('page') ?? 0)
    const end = start + Number(searchParams.get('limit') ?? 10) / 10
    socket.write(page({ next_page: end < events.length ? String(end) : null }, ...events.slice(start, end)))
  }
const many = Array.from({ length: 40 }, (_, i) =>
  at(i, i % 8 === 7 ? say(`s${i}`, 'x') : { id: `r${i}`, type: 'session.status_running' }),
)

faultsInside('Y: order, limit and errors of lists', [
  row(
    'Y83: parley lists the newest events if the service ignores the order but not the limit',
    ['events', 'list', '--order', 'desc', '--limit', '2', '--ids'],
    paging(...messages(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)),
    { out: 'm12\nm11\n', reqs: 2 },
  ),
  row(
    'Y84: parley stops at --limit before an invalid event',
    ['events', 'list', '--order', 'asc', '--limit', '1', '--ids'],
    { lists: [list({ id: 'a', type: 't' }, { id: 'b' })] },
    { out: 'a\n', reqs: 1 },
  ),
  row(
    'Y85: parley prints the first page of a list if the second page fails',
    ['events', 'list', '--ids', '--retries', '0'],
    { lists: [a, refused] },
    { code: 7, out: 'a\n', reqs: 2 },
  ),
  lists(
    'Y85: parley prints the events before an invalid event and exits with 8',
    { lists: [list({ id: 'a', type: 't' }, { id: 'b' })] },
    { code: 8, out: 'a\n', reqs: 1, err: ['the list of events: [1]: type'] },
  ),
  row(
    'Y85: parley prints the first page with --raw if RST cuts the second one',
    ['events', 'list', '--raw', '--retries', '0'],
    (socket, request, count, requests) => {
      const start = '{"data":[{"id":"b",\n"type":"t","n":1.0},{"id":"c"'
      if (count === 1) socket.write(page({ next_page: 'p1' }, { id: 'a', type: 't' }))
      else resetting(makeHead('200 OK', 'content-length: 900') + start)(socket, request, count, requests)
    },
    { code: 8, out: '{"id":"a","type":"t"}\n', reqs: 2 },
  ),
  row(
    'Y85: parley prints no error body among the events of a list with --raw',
    ['events', 'list', '--raw', '--retries', '0'],
    { lists: [a, response('{"error":{"message":"boom"}}', '500 Oh')] },
    { code: 7, out: '{"id":"a","type":"t"}\n', reqs: 2, err: ['boom'] },
  ),
  row(
    'Y85: parley prints the error body of the first page with --raw',
    ['events', 'list', '--raw', '--retries', '0'],
    { lists: [response('{"error":{"message":"boom"}}', '500 Oh')] },
    { code: 7, out: '{"error":{"message":"boom"}}', reqs: 1 },
  ),
  follows(
    'Y86: parley reads a history that is sorted newest first with a time 5 ms out of order',
    { lists: [list(...newestFirst.map((value, i) => at([4, 3.995, 4, 1][i] ?? 0, value)))] },
    { reqs: 3 },
  ),
  row(
    'Y87: parley requests pages of 100 if parley, not the service, filters by type',
    ['events', 'list', '--type', 'agent.message', '--order', 'asc', '--limit', '3', '--ids'],
    paging(...many),
    {
      out: 's7\ns15\ns23\n',
      reqs: 3,
      check: ({ server }) =>
        expect(server.requests.map((request) => /limit=\d+/.exec(request)?.[0])).toEqual(
          Array.from({ length: 3 }, () => 'limit=100'),
        ),
    },
  ),
])

const gone = '{"type":"error","error":{"type":"not_found_error","message":"the session is gone"}}'
const busy = '{"type":"error","error":{"type":"overloaded_error","message":"come back"}}'
const message0 = { id: 'm', type: 'user.message', content: 'x' }

/** Sends these streams in this order, and ends each one. The last one repeats. */
const streams =
  (...texts: string[]) =>
  (socket: Socket, count: number) =>
    void socket.end(sseHead + texts[Math.min(count, texts.length) - 1])

faultsInside('Y: errors in a stream', [
  ...[
    ['as an event named error', event(gone, 'error')],
    ['as bare JSON', `${gone}\n`],
  ].map(
    ([name, text = '']): Row => ({
      name: `Y88: parley exits with 4 on a not_found_error in a stream, ${name}`,
      argv: follow,
      script: session({ lists: [list(message0)], stream: streams(text) }),
      code: 4,
      reqs: 3,
      err: ['the stream of events ended with an error', 'the service says: the session is gone'],
    }),
  ),
  ...(
    [
      ['permission_error', 3],
      ['billing_error', 5],
    ] as const
  ).flatMap(([type, code]) =>
    [sendAndFollow, ['events', 'run', 'go on', '--no-stdin']].map(
      (argv): Row => ({
        name: `Y88: parley exits with ${code} on ${type} in the stream and reports the event as sent (${argv[1]})`,
        argv: [...argv, '--errors', 'json'],
        script: session({
          lists: [list(message0)],
          stream: streams(event({ type: 'error', error: { type, message: 'the session is gone' } }, 'error')),
        }),
        code,
        reqs: 3,
        err: [
          '"message":"the stream of events ended with an error',
          'the session is gone',
          '"sent":"yes","safeToRetry":false,"retry":"look-first"',
        ],
      }),
    ),
  ),
  follows(
    'Y89: parley prints a temporary error of a stream and retries',
    {
      lists: [list(message0), list(message0), list(message0, done('i1'))],
      stream: streams(event(busy, 'error'), event('out of order', 'error'), ''),
    },
    { out: ended, reqs: expect.any(Number), err: ['ended with an error: come back; trying again'] },
  ),
])

faultsInside('Y: empty sessions', [
  follows(
    'Y102: parley follows an empty session until its first event',
    { lists: [list(), list(done('i1'))] },
    { out: ended, reqs: 3 },
  ),
  follows(
    'Y102: parley announces that it waits for the first event of an empty session',
    { lists: [list(), list(), list(done('i1'))], stream: streaming(done('i1')) },
    { out: ended, reqs: 4, err: ['sesn_1 has no events yet: waiting for its first event'] },
  ),
  row(
    'Y103: parley exits with 2 if a session without events is to be resumed (run)',
    ['events', 'run'],
    { lists: [list()] },
    {
      code: 2,
      reqs: 7,
      atLeast: 5,
      err: ['this session has no events yet\n  to give it a task: parley events run TASK -s sesn_1'],
    },
  ),
])

/** The service stores the sent message under an id that the receipt does not have. */
const stored = { id: 'evt_9', type: 'user.message', content: [{ type: 'text', text: 'go on' }] }
const listsAtMost =
  (most: number): Row['check'] =>
  ({ server }) =>
    expect(server.requests.filter((request) => !isStream(request) && !isPost(request)).length).toBeLessThan(
      most,
    )

faultsInside('Y: receipts with other ids', [
  sends(
    'Y104: parley finds the sent message by its content if the response has another id (in the stream)',
    {
      lists: [
        list(...old),
        list(...old, stored),
        list(...old, stored, say('new', 'new')),
        list(...old, stored, say('new', 'new'), done('i1')),
      ],
      stream: streaming(stored, say('new', 'new'), done('i1')),
    },
    { check: listsAtMost(13) },
  ),
  sends(
    'Y104: parley finds the sent message by its content if the response has another id (only in the list)',
    {
      lists: [
        list(...old),
        list(...old, stored, say('new', 'new')),
        list(...old, stored, say('new', 'new'), done('i1')),
      ],
      stream: streaming(say('new', 'new'), done('i1')),
    },
    { check: listsAtMost(13) },
  ),
  row(
    'Y105: parley matches each of two equal messages once by its content',
    ['events', 'send', '--message', 'go on', '--message', 'go on', '--follow'],
    {
      lists: [list(...old)],
      stream: streaming(
        stored,
        say('a', 'one'),
        done('i1'),
        { ...stored, id: 'evt_10' },
        say('b', 'two'),
        done('i2'),
      ),
      receipt: list({ id: 'r1', type: 'user.message' }, { id: 'r2', type: 'user.message' }),
    },
    {
      reqs: expect.any(Number),
      out: (out) => /one[\s\S]*two/.test(out.toString()) && !out.includes('go on'),
      // The list never shows the idle event, so parley polls it for 5 s.
      check: listsAtMost(20),
    },
  ),
  sends('Y106: parley prefers the id in the response to an equal message of another client', {
    lists: [list(...old), list(...old, stored), list(...old, stored, say('x', 'not mine'), done('i9'), sent)],
    stream: streaming(stored, say('x', 'not mine'), done('i9'), sent, say('new', 'new'), done('i1')),
  }),
])

const withoutIds = (...events: object[]) => events.map((value) => ({ ...value, id: undefined }))
const turn1 = [{ type: 'user.message', content: 'go on' }, { ...running }, say('', 'old'), done('')]

faultsInside('Y: reconnecting, and events without ids', [
  follows(
    'Y107: parley polls the list until it shows events that no stream has sent',
    {
      lists: [
        ...Array.from({ length: 8 }, () => list(message0)),
        list(message0, say('a', 'one'), say('b', 'two'), done('i1')),
      ],
      stream: (socket, count) =>
        count === 1 ? void socket.end(sseHead + event(say('a', 'one'))) : void socket.write(sseHead),
    },
    { out: `one\ntwo\n${ended}`, reqs: expect.any(Number) },
  ),
  follows(
    'Y108: parley prints events without ids once if a second stream repeats them',
    {
      lists: [list(...withoutIds(message0)), list(...withoutIds(message0, say('', 'one')))],
      stream: streams(
        event(withoutIds(say('', 'one'))[0]),
        withoutIds(message0, say('', 'one'), say('', 'two'), done(''))
          .map((value) => event(value))
          .join(''),
      ),
    },
    { out: 'one\ntwo\n\tsession.status_idle\t\tend_turn\n', reqs: expect.any(Number) },
  ),
  row(
    'Y108: parley prints new events without ids even if they equal earlier ones',
    [...sendAndFollow, '--raw'],
    {
      lists: [
        list(...withoutIds(...turn1)),
        list(...withoutIds(...turn1, ...turn1.map((value, i) => (i === 2 ? say('', 'new') : value)))),
      ],
      stream: streaming(...withoutIds(turn1[0] ?? {}, running, say('', 'new'), done(''))),
      receipt: response('', '202 Accepted'),
    },
    {
      out: `${withoutIds(running, say('', 'new'), done(''))
        .map((value) => JSON.stringify(value))
        .join('\n')}\n`,
      reqs: expect.any(Number),
    },
  ),
])

const numbered = Array.from({ length: 150 }, (_, i) =>
  i === 149 ? done('i1') : { id: `r${i}`, type: 'session.status_running' },
)
/** Lists at most `limit` events (100 by default, 1,000 at most), without a sign that there are more. */
const withoutNextPage =
  (...events: object[]): Script =>
  (socket, request) => {
    if (isStream(request)) return void socket.write(sseHead)
    if (isPost(request)) return void socket.write(list({ id: 'sent_1', type: 'user.message' }))
    const limit = Math.min(1000, Number(/limit=(\d+)/.exec(request)?.[1] ?? 100))
    socket.write(page({}, ...events.slice(0, limit)))
  }

faultsInside('Y: lists that may be incomplete', [
  follows(
    'Y109: parley requests more events if a list does not say whether it is complete, and then follows',
    withoutNextPage(...numbered),
    { reqs: 7 },
  ),
  lists(
    'Y109: parley requests more events from a list that does not say whether it is complete, and prints each once',
    withoutNextPage(...numbered),
    { out: numbered.map(({ id }) => `${id}\n`).join(''), reqs: 2 },
  ),
  row(
    'Y110: parley sends nothing if a list ends after 1,000 events without a sign of completeness',
    [...sendAndFollow, '--errors', 'json'],
    withoutNextPage(
      ...Array.from({ length: 1200 }, (_, i) => ({ id: `r${i}`, type: 'session.status_running' })),
    ),
    {
      code: 8,
      reqs: 2,
      err: ['ends after 1000 events, and does not show whether more follow', '"sent":"no"'],
    },
  ),
  row(
    'Y110: parley sends nothing if a list has more but names no usable next page',
    [...sendAndFollow, '--errors', 'json'],
    { lists: [page({ has_more: true, last_seq: 1 }, { seq: 1, type: 't' })] },
    { code: 8, reqs: 1, err: ['has more items, but no cursor for the next page', '"sent":"no"'] },
  ),
])

faultsInside('Y: an unavailable service', [
  row(
    'Y34: parley waits for the time of Retry-After while it follows a session',
    [...follow, '--retries', '0'],
    {
      lists: [
        list({ id: 'm', type: 'user.message', content: 'x' }),
        list({ id: 'm', type: 'user.message', content: 'x' }),
        'HTTP/1.1 429 Slow\r\nretry-after: 2\r\ncontent-length: 0\r\n\r\n',
        list({ id: 'm', type: 'user.message', content: 'x' }, done('i1')),
      ],
      stream: (socket) => void socket.end(sseHead),
    },
    { out: ended, reqs: 7, atLeast: 2, err: ['429 Slow; trying again'] },
  ),
  row(
    'Y35: parley exits with 6 if Retry-After exceeds the maximum wait while it follows a session',
    [...follow, '--retries', '0'],
    {
      lists: [list(), list(), 'HTTP/1.1 429 Slow\r\nretry-after: 3600\r\ncontent-length: 0\r\n\r\n'],
      stream: (socket) => void socket.end(sseHead),
    },
    { code: 6, reqs: 5 },
  ),
  row(
    'Y36: parley reports that the event was accepted if its credentials are rejected afterwards',
    [...sendAndFollow, '--retries', '0', '--errors', 'json'],
    {
      lists: [list(...old), 'HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n'],
      stream: (socket) => void socket.end(sseHead),
    },
    { code: 8, reqs: 5, err: ['"safeToRetry":false', '"sent":"yes"'] },
  ),
  row(
    'Y30: parley sends nothing if the session cannot be followed',
    [...sendAndFollow, '--errors', 'json', '--retries', '0'],
    (socket, request) =>
      isStream(request) ? void socket.resetAndDestroy() : void socket.write(list(...old)),
    { code: 9, reqs: 2, err: ['the session cannot be followed', '"sent":"no"'] },
  ),
  row(
    'Y31: parley reconnects if the service fails after it has answered once',
    [...follow, '--retries', '0'],
    {
      lists: [
        list({ id: 'm', type: 'user.message', content: 'x' }),
        list({ id: 'm', type: 'user.message', content: 'x' }),
        'HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n',
        'HTTP/1.1 503 Away\r\ncontent-length: 0\r\n\r\n',
        list({ id: 'm', type: 'user.message', content: 'x' }, done('i1')),
      ],
      stream: (socket) => void socket.end(sseHead),
    },
    { listen: {}, out: ended, reqs: 9, err: ['502 Bad Gateway; trying again', 'connecting again'] },
  ),
  row(
    'Y32: parley runs the command of a secret again once after a 401 (needs sh)',
    [...follow, '--retries', '0'],
    {
      lists: [
        list({ id: 'm', type: 'user.message', content: 'x' }),
        list({ id: 'm', type: 'user.message', content: 'x' }),
        'HTTP/1.1 401 Expired\r\ncontent-length: 0\r\n\r\n',
        list({ id: 'm', type: 'user.message', content: 'x' }, done('i1')),
      ],
      stream: (socket) => void socket.end(sseHead),
    },
    {
      env: { PARLEY_API_KEY: '', PARLEY_API_KEY_COMMAND: 'echo run >> runs; echo secret-of-a-command' },
      out: ended,
      reqs: 7,
      files: ['cwd/runs'],
      check: ({ ending }) => {
        if (ending.files.get('cwd/runs') !== 'run\nrun\n') throw new Error(ending.files.get('cwd/runs'))
      },
    },
  ),
  row(
    'Y33: parley exits with 15 if the deadline passes while the session works',
    [...sendAndFollow, '--deadline', '3', '--errors', 'json'],
    { lists: [list(...old)], stream: streaming(sent, say('new', 'new')) },
    {
      code: 15,
      out: 'new\n',
      reqs: expect.any(Number),
      check: postsOnce,
      err: ['"kind":"stopped","exit":15', '"sent":"yes"'],
    },
  ),
])
