import { writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { expect } from 'vitest'
import { response, type Script } from '../harness/server.ts'
import { chunked, closing, event, headOf, resetting, sseHead } from './answers.ts'
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
  /** Answers to lists, in their order; the last one stays. */
  lists: (Buffer | string)[]
  /** `count` is the number of the stream, from 1. */
  stream?(socket: Socket, count: number): void
  receipt?: Buffer
}

/** A session service; without a stream nothing ever happens there. One row may run on several servers at once. */
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

faultsInside('Y: what is no session', [
  ...[
    ['HTML', html, ['is not a stream of events: it is text/html', 'Sign in']],
    ['204', 'HTTP/1.1 204 No Content\r\n\r\n', ['is not a stream of events']],
    ['plain JSON', response('{"data":[]}'), ['is not a stream of events: it is application/json']],
  ].map(
    ([name, answer, err]): Row => ({
      name: `Y01: a stream that is ${name} is not asked for again`,
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
      name: `Y01: a stream that is ${type} and never ends is not waited for`,
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
  {
    name: 'Y02: a stream that is an error ends by its type',
    argv: follow,
    script: session({
      lists: [list()],
      stream: (socket) =>
        void socket.write(response('{"type":"error","error":{"type":"not_found_error","message":"gone"}}')),
    }),
    code: 4,
    reqs: 2,
    err: ['the service says: gone'],
  },
  ...[
    ['an error without an envelope', '{"message":"slow down"}', 'slow down'],
    ['an object without data', '{}', 'the list of events has no data'],
    ['null', 'null', 'the list of events has no data'],
  ].map(
    ([name, body = '', said = '']): Row => ({
      name: `Y03: a list that is ${name} is no empty list`,
      argv: ['events', 'list'],
      script: session({ lists: [response(body)] }),
      code: 8,
      reqs: 1,
      err: [said],
    }),
  ),
])

const a = page({ next_page: 'p1' }, { id: 'a', type: 't' })
const b = page({ next_page: 'p2' }, { id: 'b', type: 't' })

faultsInside('Y: lists', [
  {
    name: 'Y10: pages A, B, A, B',
    argv: ['events', 'list', '--ids'],
    script: session({ lists: [a, b, a, b, a] }),
    code: 8,
    out: 'a\nb\n',
    reqs: 3,
    err: ['does not end: its pages repeat'],
  },
  {
    name: 'Y10: pages A, B, A, B (confirm --pending)',
    argv: ['events', 'confirm', '--pending', '--allow'],
    script: session({ lists: [a, b, a, b, a] }),
    code: 8,
    reqs: 3,
    err: ['does not end: its pages repeat'],
  },
  {
    name: 'Y11: empty pages without end',
    argv: ['events', 'list'],
    script: (socket, _, count) => void socket.write(page({ next_page: `p${count}` })),
    code: 8,
    reqs: 21,
    err: ['does not end: 21 pages in a row are empty'],
  },
  {
    name: 'Y12: has_more is followed by the last id',
    argv: ['events', 'list', '--ids'],
    script: session({
      lists: [
        page({ has_more: true, last_id: 'a' }, { id: 'a', type: 't' }),
        page({ has_more: false }, { id: 'b', type: 't' }),
      ],
    }),
    code: 0,
    out: 'a\nb\n',
    reqs: 2,
    check: ({ server }) => {
      if (!server.requests[1]?.includes('?after_id=a ')) throw new Error(server.requests[1])
    },
  },
  {
    name: 'Y12: has_more without a way to go on',
    argv: ['events', 'list', '--ids'],
    script: session({ lists: [page({ has_more: true }, { type: 't' })] }),
    code: 8,
    out: '\n',
    reqs: 1,
    err: ['has more, but does not say how to ask for it'],
  },
  {
    name: 'Y13: types, order and limit that the service ignores',
    argv: ['events', 'list', '--type', 'agent.message', '--order', 'desc', '--limit', '2', '--ids'],
    script: session({
      lists: [
        list(...[1, 2, 3].map((i) => ({ ...say(`m${i}`, 'x'), processed_at: `2026-01-01T00:00:0${i}Z` })), {
          ...done('end'),
          processed_at: '2026-01-01T00:00:04Z',
        }),
      ],
    }),
    code: 0,
    out: 'm3\nm2\n',
    reqs: 1,
  },
  {
    name: 'Y14: a list that is a bare array, with content that is a text, raw a line each',
    argv: ['events', 'list', '--raw'],
    script: session({
      lists: [response('[\n{"id":"a",\n"type":"t","content":"x\\n","n":1.10},{"id":"b","type":"t"}]\n')],
    }),
    code: 0,
    out: '{"id":"a","type":"t","content":"x\\n","n":1.10}\n{"id":"b","type":"t"}\n',
    reqs: 1,
  },
])

const old = [{ id: 'm0', type: 'user.message', content: 'before' }, say('old', 'old'), done('i0')]
const sent = { id: 'sent_1', type: 'user.message', content: 'go on' }
const ended = 'i1\tsession.status_idle\t\tend_turn\n'

/** How often it lists while it waits is of no account. */
const postsOnce: Row['check'] = ({ server }) => expect(server.requests.filter(isPost)).toHaveLength(1)

faultsInside('Y: following', [
  {
    name: 'Y20: a stream that begins with the whole history',
    argv: sendAndFollow,
    script: session({
      lists: [list(...old)],
      stream: streaming(...old, sent, say('new', 'new'), done('i1')),
    }),
    code: 0,
    out: `new\n${ended}`,
    reqs: expect.any(Number),
    check: postsOnce,
  },
  {
    name: 'Y21: an empty receipt',
    argv: sendAndFollow,
    script: session({
      lists: [list(...old)],
      stream: streaming(...old, sent, say('new', 'new'), done('i1')),
      receipt: response('', '202 Accepted'),
    }),
    code: 0,
    out: `new\n${ended}`,
    reqs: expect.any(Number),
    check: postsOnce,
    err: ['events accepted; the response names none'],
  },
  {
    name: 'Y22: another turn ends between the list and the message',
    argv: sendAndFollow,
    script: session({
      lists: [list(...old)],
      stream: streaming(say('other', 'another turn'), done('i9'), sent, say('new', 'new'), done('i1')),
    }),
    code: 0,
    out: `new\n${ended}`,
    reqs: expect.any(Number),
    check: postsOnce,
  },
  {
    name: 'Y23: pieces of an event come before it',
    argv: sendAndFollow,
    script: session({
      lists: [list(...old)],
      stream: streaming(
        sent,
        { type: 'event_start', event: { id: 'new', type: 'agent.message' } },
        { type: 'event_delta', event_id: 'new', delta: { text: 'ne' } },
        say('new', 'new'),
        done('i1'),
      ),
    }),
    code: 0,
    out: `new\n${ended}`,
    reqs: expect.any(Number),
    check: postsOnce,
  },
  {
    name: 'Y24: a session that was terminated lives on',
    argv: sendAndFollow,
    script: session({
      lists: [list(...old, { id: 'x', type: 'session.status_terminated' })],
      stream: streaming(sent, say('new', 'new'), done('i1')),
    }),
    code: 0,
    out: `new\n${ended}`,
    reqs: expect.any(Number),
    check: postsOnce,
  },
  {
    name: 'Y25: an interrupt of an idle session is followed by nothing',
    argv: ['events', 'send', '--interrupt', '--follow'],
    script: session({
      lists: [list(...old), list(...old, { id: 'sent_1', type: 'user.interrupt' })],
      receipt: list({ id: 'sent_1', type: 'user.interrupt' }),
    }),
    code: 0,
    reqs: 3,
  },
  {
    name: 'Y26: comments do not keep a session that rests from its end',
    argv: follow,
    script: session({
      lists: [list(...old)],
      stream: (socket) => {
        socket.write(sseHead)
        const timer = setInterval(() => socket.write(': keepalive\n\n'), 50)
        socket.on('close', () => clearInterval(timer))
      },
    }),
    code: 0,
    reqs: 4,
  },
  {
    name: 'Y27: a stream that never brings the message: the list shows where it is',
    argv: sendAndFollow,
    script: session({
      lists: [list(...old), list(...old, say('late', 'late'), sent, say('new', 'new'))],
      stream: streaming(say('new', 'new'), done('i1')),
    }),
    code: 0,
    out: `new\n${ended}`,
    reqs: expect.any(Number),
    check: postsOnce,
  },
  {
    name: 'Y28: keep-alives that are data',
    argv: sendAndFollow,
    script: session({
      lists: [list(...old)],
      stream: (socket) =>
        void socket.write(
          `${sseHead}${event('ping')}${event('null')}event: heartbeat\ndata: 17\n\n${[sent, say('new', 'new'), done('i1')].map((value) => event(value)).join('')}`,
        ),
    }),
    code: 0,
    out: `new\n${ended}`,
    reqs: expect.any(Number),
    check: postsOnce,
  },
  {
    name: 'Y29: a wait without ids is for the tool uses without an answer',
    argv: [...follow, '--ids'],
    script: session({
      lists: [
        list(
          { id: 't1', type: 'agent.tool_use', name: 'bash', input: {} },
          { id: 't2', type: 'agent.tool_use', name: 'bash', input: {}, evaluated_permission: 'allow' },
          { id: 't3', type: 'agent.tool_use', name: 'bash', input: {} },
          { id: 'c', type: 'user.tool_confirmation', tool_use_id: 't3', result: 'allow' },
          { id: 'i', type: 'session.status_idle', stop_reason: 'requires_action' },
        ),
      ],
    }),
    code: 12,
    out: 't1\n',
    reqs: 4,
  },
])

const later = (socket: Socket, ...steps: object[][]) => {
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

faultsInside('Y: a rest that is not the end', [
  {
    name: 'Y40: of two messages the second is answered later',
    argv: ['events', 'send', '--message', 'A', '--message', 'B', '--follow'],
    script: session({
      lists: [list(...old)],
      stream: (socket) =>
        later(
          socket,
          [messageA, say('a', 'to A'), done('i1')],
          [messageB, running, say('b', 'to B'), done('i2')],
        ),
      receipt: list(messageA, messageB),
    }),
    code: 0,
    reqs: expect.any(Number),
    check: postsOnce,
    out: (out) => /to A[\s\S]*to B/.test(out.toString()),
  },
  {
    name: 'Y41: an interrupt and a new task',
    argv: ['events', 'send', '--interrupt', 'B', '--follow'],
    script: session({
      lists: [list(...old, running)],
      stream: (socket) =>
        later(socket, [interrupt, done('i1')], [messageB, running, say('b', 'to B'), done('i2')]),
      receipt: response('', '202 Accepted'),
    }),
    code: 0,
    reqs: expect.any(Number),
    check: postsOnce,
    out: (out) => out.includes('to B'),
  },
  {
    name: 'Y42: a message that waits for its turn',
    argv: sendAndFollow,
    script: session({
      lists: [list(...old, running), list(...old, running, { ...sent, processed_at: null }, done('i1'))],
      stream: (socket) =>
        later(
          socket,
          [{ ...sent, processed_at: null }, say('o', 'earlier'), done('i1')],
          [
            { ...running, id: 'r2' },
            { ...sent, processed_at: '2026-01-01T00:00:00Z' },
            say('n', 'new'),
            done('i2'),
          ],
        ),
    }),
    code: 0,
    out: 'earlier\ni1\tsession.status_idle\t\tend_turn\nr2\tsession.status_running\t\t\nnew\ni2\tsession.status_idle\t\tend_turn\n',
    reqs: expect.any(Number),
    check: postsOnce,
  },
  {
    name: 'Y43: a list that is newest first',
    argv: follow,
    script: session({
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
    }),
    code: 0,
    reqs: 3,
  },
  {
    name: 'Y45: one time that is out of line turns no list',
    argv: follow,
    script: session({
      lists: [
        list(
          { id: 'm0', type: 'user.message', content: 'x', processed_at: '2026-01-01T00:00:06Z' },
          { ...running, processed_at: '2026-01-01T00:00:03Z' },
          { ...done('i0'), processed_at: '2026-01-01T00:00:04Z' },
        ),
      ],
    }),
    code: 0,
    reqs: 4,
  },
  {
    name: 'Y44: one id twice is answered once',
    argv: ['events', 'confirm', '--allow'],
    stdin:
      '{"type":"session.status_idle","stop_reason":{"type":"requires_action","event_ids":["a","a",7,""]}}',
    script: session({ lists: [] }),
    code: 0,
    out: 'sent_1\tuser.message\t\t\n',
    reqs: 1,
    check: ({ server }) => expect(server.requests[0]?.match(/tool_use_id/g)).toHaveLength(1),
  },
])

const use = (id: string) => ({ id, type: 'agent.tool_use', name: 'bash', input: {} })
const waits = (reason: unknown) => ({ id: 'i', type: 'session.status_idle', stop_reason: reason })
/** The page shows `event_ids` without a type beside it; the second tool use is not listed. */
const typeless = session({ lists: [list(use('t1'), use('t2'), waits({ event_ids: ['t1'] }))] })
const unlisted = session({ lists: [list(use('t1'), use('t2'), waits({ type: 'requires_action' }))] })

const allowAll = (folder: string) =>
  writeFileSync(
    join(folder, 'cwd', 'allow.json'),
    '{"rules":[{"tool":"*","decision":"allow"}],"default":{"decision":"allow"}}',
  )

faultsInside('Y: what a rest lists', [
  {
    name: 'Y80: event_ids without a type list what waits (follow)',
    argv: [...follow, '--ids'],
    script: typeless,
    code: 12,
    out: 't1\n',
    reqs: 4,
  },
  {
    name: 'Y80: event_ids without a type list what waits (confirm --pending)',
    argv: ['events', 'confirm', '--pending', '--allow'],
    script: typeless,
    code: 0,
    out: 'sent_1\tuser.message\t\t\n',
    reqs: 2,
    check: ({ server }) =>
      expect(server.requests[1]?.match(/"tool_use_id":"\w+"/g)).toEqual(['"tool_use_id":"t1"']),
  },
  {
    name: 'Y80: event_ids list what waits also beside another type (follow)',
    argv: [...follow, '--ids'],
    script: session({ lists: [list(use('t1'), waits({ type: 'end_turn', event_ids: ['t1'] }))] }),
    code: 12,
    out: 't1\n',
    reqs: 4,
  },
  {
    name: 'Y80: event_ids that are empty, without a type, list nothing',
    argv: follow,
    script: session({ lists: [list(use('t1'), waits({ event_ids: [] }))] }),
    code: 0,
    reqs: 4,
  },
  {
    name: 'Y81: without event_ids nothing is answered, and what may wait is named (confirm --pending)',
    argv: ['events', 'confirm', '--pending', '--allow'],
    script: unlisted,
    code: 12,
    reqs: 1,
    err: ['t1: bash {}', 't2: bash {}', 'it does not say which of them wait'],
  },
  {
    name: 'Y81: without event_ids nothing is answered, and what may wait is named (run)',
    argv: ['events', 'run', '--policy', 'allow.json'],
    prepare: allowAll,
    files: ['cwd/allow.json'],
    script: unlisted,
    code: 12,
    reqs: 4,
    err: ['t1: bash {}', 't2: bash {}'],
  },
  {
    name: 'Y81: without event_ids what may wait is named (follow)',
    argv: follow,
    script: unlisted,
    code: 12,
    reqs: 4,
    err: ['t1: bash {}', 't2: bash {}', 'to answer one: parley events confirm -s'],
  },
  {
    name: 'Y111: a custom tool use needs a result: the hint names the flag for it',
    argv: follow,
    script: session({
      lists: [
        list({ ...use('t1'), type: 'agent.custom_tool_use' }, use('t2'), waits({ event_ids: ['t1', 't2'] })),
      ],
    }),
    code: 12,
    reqs: 4,
    err: [
      /answer with: parley events confirm .* t2 --allow/,
      /parley events send .* --custom-tool-result t1=TEXT/,
    ],
  },
  {
    name: 'Y82: a session that was terminated says why',
    argv: follow,
    script: session({
      lists: [
        list(
          { id: 'e', type: 'session.error', error: { message: 'no credit is left' } },
          { id: 'x', type: 'session.status_terminated' },
        ),
      ],
    }),
    code: 13,
    reqs: 4,
    err: ['stopped: terminated', 'the service says: no credit is left'],
  },
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

/** Pages as the service makes them of what it is asked for: of a tenth of the limit. */
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

faultsInside('Y: a list as it was asked for', [
  {
    name: 'Y83: the newest, of a service that ignores the order but not the limit',
    argv: ['events', 'list', '--order', 'desc', '--limit', '2', '--ids'],
    script: paging(...messages(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)),
    code: 0,
    out: 'm12\nm11\n',
    reqs: 2,
  },
  {
    name: 'Y83: the newest, though one time is out of line',
    argv: ['events', 'list', '--order', 'desc', '--limit', '2', '--ids'],
    script: session({ lists: [list(...messages(1, 2, 3.005, 3, 5))] }),
    code: 0,
    out: 'm5\nm3\n',
    reqs: 1,
  },
  {
    name: 'Y84: so many as were asked for came, and how to go on is not said',
    argv: ['events', 'list', '--order', 'asc', '--limit', '1', '--ids'],
    script: session({ lists: [page({ has_more: true }, { id: 'a', type: 't' }, { type: 't' })] }),
    code: 0,
    out: 'a\n',
    reqs: 1,
  },
  {
    name: 'Y84: so many as were asked for came, and what follows is no event',
    argv: ['events', 'list', '--order', 'asc', '--limit', '1', '--ids'],
    script: session({ lists: [list({ id: 'a', type: 't' }, { id: 'b' })] }),
    code: 0,
    out: 'a\n',
    reqs: 1,
  },
  {
    name: 'Y85: a list that breaks off at a later page',
    argv: ['events', 'list', '--ids', '--retries', '0'],
    script: session({ lists: [a, refused] }),
    code: 7,
    out: 'a\n',
    reqs: 2,
  },
  {
    name: 'Y85: a list in the other order that breaks off at a later page',
    argv: ['events', 'list', '--order', 'desc', '--ids', '--retries', '0'],
    script: session({ lists: [page({ next_page: 'p1' }, ...messages(1, 2, 3)), refused] }),
    code: 7,
    out: 'm3\nm2\nm1\n',
    reqs: 2,
  },
  {
    name: 'Y85: a list that breaks off at what is no event',
    argv: ['events', 'list', '--ids'],
    script: session({ lists: [list({ id: 'a', type: 't' }, { id: 'b' })] }),
    code: 8,
    out: 'a\n',
    reqs: 1,
    err: ['the list of events: [1]: type'],
  },
  ...(
    [
      [
        'by FIN in its third event',
        '{"data":[\n{"id":"a","type":"t"} , {"id":"b","type":"t"},{"id":"c",',
        'a\nb\n',
      ],
      [
        'after its last event',
        '{"next_page":"p","data":[{"id":"a","type":"t"},{"id":"b","type":"t"}',
        'a\nb\n',
      ],
      ['after its list', '{"data":[{"id":"a","type":"t"}],"next_pa', 'a\n'],
      ['without an object around it', '[{"id":"a","type":"t","x":["]",[{"y":1},', ''],
      ['without an object around it, after an event', '[{"id":"a","type":"t","x":["]",[{"y":1}]]},', 'a\n'],
      ['in its first event', '{"data":[{"id":"a","type":', ''],
      ['and is an error', '{"error":{"message":"no"},"data":[{"id":"a","type":"t"},', 'a\n'],
      ['and has no data', '{"items":[{"id":"a","type":"t"},', ''],
    ] as const
  ).map(
    ([where, start, out]): Row => ({
      name: `Y85: a list that breaks off ${where}`,
      argv: ['events', 'list', '--ids'],
      script: closing(headOf('200 OK', 'transfer-encoding: chunked') + chunked(start)),
      code: 8,
      out,
      reqs: 1,
      err: ['the answer broke off'],
    }),
  ),
  {
    name: 'Y85: a list that breaks off by RST at its second page, raw',
    argv: ['events', 'list', '--raw'],
    script: (socket, request, count, requests) => {
      const start = '{"data":[{"id":"b",\n"type":"t","n":1.0},{"id":"c"'
      if (count === 1) socket.write(page({ next_page: 'p1' }, { id: 'a', type: 't' }))
      else resetting(headOf('200 OK', 'content-length: 900') + start)(socket, request, count, requests)
    },
    code: 8,
    out: '{"id":"a","type":"t"}\n{"id":"b","type":"t","n":1.0}\n',
    reqs: 2,
  },
  {
    name: 'Y85: a list whose JSON has no end, though the answer is whole',
    argv: ['events', 'list', '--ids'],
    script: session({ lists: [response('{"data":[{"id":"a","type":"t"},{"id":')] }),
    code: 8,
    out: 'a\n',
    reqs: 1,
    err: ['the list of events is not JSON'],
  },
  {
    name: 'Y85: a list whose second page is an error, of which nothing stands among its events',
    argv: ['events', 'list', '--raw', '--retries', '0'],
    script: session({ lists: [a, response('{"error":{"message":"boom"}}', '500 Oh')] }),
    code: 7,
    out: '{"id":"a","type":"t"}\n',
    reqs: 2,
    err: ['boom'],
  },
  ...[[], ['--history']].map(
    (more): Row => ({
      name: `Y85: a stream that is refused after a cut, of which nothing stands among its events ${more}`,
      argv: [...follow, '--raw', ...more],
      script: session({
        lists: [list({ id: 'a', type: 't' }), list({ id: 'a', type: 't' }, { id: 'b', type: 't' })],
        stream(socket, count) {
          const forbidden = response('{"error":{"message":"boom"}}', '403 No')
          if (count > 1) socket.write(forbidden)
          else socket.end(sseHead + event({ id: 'b', type: 't' }))
        },
      }),
      code: 3,
      out: `${more.length > 0 ? '{"id":"a","type":"t"}\n' : ''}{"id":"b","type":"t"}\n`,
      reqs: 4,
      err: ['boom'],
    }),
  ),
  {
    name: 'Y85: a list whose first page is an error, raw',
    argv: ['events', 'list', '--raw', '--retries', '0'],
    script: session({ lists: [response('{"error":{"message":"boom"}}', '500 Oh')] }),
    code: 7,
    out: '{"error":{"message":"boom"}}',
    reqs: 1,
  },
  {
    name: 'Y86: a history with the newest first, though one time is 5 ms off',
    argv: follow,
    script: session({ lists: [list(...newestFirst.map((value, i) => at([4, 3.995, 4, 1][i] ?? 0, value)))] }),
    code: 0,
    reqs: 3,
  },
  {
    name: "Y87: the filter is not the service's: pages are no smaller than a hundred asks for",
    argv: ['events', 'list', '--type', 'agent.message', '--order', 'asc', '--limit', '3', '--ids'],
    script: paging(...many),
    code: 0,
    out: 's7\ns15\ns23\n',
    reqs: 3,
    check: ({ server }) =>
      expect(server.requests.map((request) => /limit=\d+/.exec(request)?.[0])).toEqual(
        Array.from({ length: 3 }, () => 'limit=100'),
      ),
  },
])

const gone = '{"type":"error","error":{"type":"not_found_error","message":"the session is gone"}}'
const busy = '{"type":"error","error":{"type":"overloaded_error","message":"come back"}}'
const message0 = { id: 'm', type: 'user.message', content: 'x' }

/** Streams in their order, the last one stays; each ends after what it brings. */
const streams =
  (...texts: string[]) =>
  (socket: Socket, count: number) =>
    void socket.end(sseHead + texts[Math.min(count, texts.length) - 1])

faultsInside('Y: a stream that goes wrong', [
  ...[
    ['an event', event(gone)],
    ['an event named error', event(gone, 'error')],
    ['bare JSON', `${gone}\n`],
    ['bare JSON without a line end', gone],
    ['bare JSON on several lines', `${JSON.stringify(JSON.parse(gone), null, 2)}\n`],
  ].map(
    ([name, text = '']): Row => ({
      name: `Y88: an error that does not pass ends it by its type: ${name}`,
      argv: follow,
      script: session({ lists: [list(message0)], stream: streams(text) }),
      code: 4,
      reqs: 3,
      err: ['the stream of events ended with an error', 'the service says: the session is gone'],
    }),
  ),
  ...(
    [
      ['authentication_error', 3],
      ['permission_error', 3],
      ['not_found_error', 4],
      ['invalid_request_error', 4],
      ['billing_error', 5],
    ] as const
  ).flatMap(([type, code]) =>
    [sendAndFollow, ['events', 'run', 'go on', '--no-stdin']].map(
      (argv): Row => ({
        name: `Y88: an error that does not pass ends what was sent by its type, and is no reason to send it again: ${type}, ${argv[1]}`,
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
  {
    name: 'Y89: an error that may pass is shown, and tried again',
    argv: follow,
    script: session({
      lists: [list(message0), list(message0), list(message0, done('i1'))],
      stream: streams(event(busy, 'error'), event('out of order', 'error'), ''),
    }),
    code: 0,
    out: ended,
    reqs: expect.any(Number),
    err: ['ended with an error: come back; trying again'],
  },
  {
    name: 'Y101: a new connection goes on after the last id of the one before',
    argv: follow,
    script: session({
      lists: [list(message0)],
      stream: streams(`id: 7\n${event(say('a', 'one'))}id: 8\n\n`, `id: 9\n${event(done('i1'))}`),
    }),
    code: 0,
    out: `one\n${ended}`,
    reqs: expect.any(Number),
    check: ({ server }) =>
      expect(
        server.requests.filter(isStream).map((request) => /last-event-id: .*/i.exec(request)?.[0]),
      ).toEqual([undefined, 'Last-Event-ID: 8']),
  },
])

faultsInside('Y: a session in which nothing has happened', [
  {
    name: 'Y102: the first event is followed',
    argv: follow,
    script: session({ lists: [list(), list(done('i1'))] }),
    code: 0,
    out: ended,
    reqs: 3,
  },
  {
    name: 'Y102: following says so while nothing happens, also in a pipe',
    argv: follow,
    script: session({ lists: [list(), list(), list(done('i1'))], stream: streaming(done('i1')) }),
    code: 0,
    out: ended,
    reqs: 4,
    err: ['nothing has happened in sesn_1 yet: waiting for its first event'],
  },
  {
    name: 'Y103: there is nothing to take up (run)',
    argv: ['events', 'run'],
    script: session({ lists: [list()] }),
    code: 2,
    reqs: 7,
    atLeast: 5,
    err: ['nothing has happened in this session yet'],
  },
  {
    name: 'Y103: a list that shows late what there is to take up (run)',
    argv: ['events', 'run'],
    script: session({ lists: [list(), list(done('i1'))] }),
    code: 0,
    reqs: 5,
  },
])

/** The service stores what it was sent under another id than that of the receipt. */
const stored = { id: 'evt_9', type: 'user.message', content: [{ type: 'text', text: 'go on' }] }
const listsAtMost =
  (most: number): Row['check'] =>
  ({ server }) =>
    expect(server.requests.filter((request) => !isStream(request) && !isPost(request)).length).toBeLessThan(
      most,
    )

faultsInside('Y: a receipt with ids of its own', [
  {
    name: 'Y104: what was sent is known by its content (a stream that brings it)',
    argv: sendAndFollow,
    script: session({
      lists: [
        list(...old),
        list(...old, stored),
        list(...old, stored, say('new', 'new')),
        list(...old, stored, say('new', 'new'), done('i1')),
      ],
      stream: streaming(stored, say('new', 'new'), done('i1')),
    }),
    code: 0,
    out: `new\n${ended}`,
    reqs: expect.any(Number),
    check: listsAtMost(13),
  },
  {
    name: 'Y104: what was sent is known by its content (a stream that leaves it out)',
    argv: sendAndFollow,
    script: session({
      lists: [
        list(...old),
        list(...old, stored, say('new', 'new')),
        list(...old, stored, say('new', 'new'), done('i1')),
      ],
      stream: streaming(say('new', 'new'), done('i1')),
    }),
    code: 0,
    out: `new\n${ended}`,
    reqs: expect.any(Number),
    check: listsAtMost(13),
  },
  {
    name: 'Y105: each of two equal messages is known once, by its content',
    argv: ['events', 'send', '--message', 'go on', '--message', 'go on', '--follow'],
    script: session({
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
    }),
    code: 0,
    reqs: expect.any(Number),
    out: (out) => /one[\s\S]*two/.test(out.toString()) && !out.includes('go on'),
    // The list never shows the rest: it is read for 5 s.
    check: listsAtMost(20),
  },
  {
    name: 'Y106: another message of the same words comes first: the id of the receipt counts if the session shows it',
    argv: sendAndFollow,
    script: session({
      lists: [
        list(...old),
        list(...old, stored),
        list(...old, stored, say('x', 'not mine'), done('i9'), sent),
      ],
      stream: streaming(stored, say('x', 'not mine'), done('i9'), sent, say('new', 'new'), done('i1')),
    }),
    code: 0,
    out: `new\n${ended}`,
    reqs: expect.any(Number),
  },
])

const nameless = (...events: object[]) => events.map((value) => ({ ...value, id: undefined }))
const turn1 = [{ type: 'user.message', content: 'go on' }, { ...running }, say('', 'old'), done('')]

faultsInside('Y: after a cut, and without ids', [
  {
    name: 'Y107: the list is read again until it shows what no stream has brought',
    argv: follow,
    script: session({
      lists: [
        ...Array.from({ length: 8 }, () => list(message0)),
        list(message0, say('a', 'one'), say('b', 'two'), done('i1')),
      ],
      stream: (socket, count) =>
        count === 1 ? void socket.end(sseHead + event(say('a', 'one'))) : void socket.write(sseHead),
    }),
    code: 0,
    out: `one\ntwo\n${ended}`,
    reqs: expect.any(Number),
  },
  {
    name: 'Y108: events without ids that a second stream brings again are shown once',
    argv: follow,
    script: session({
      lists: [list(...nameless(message0)), list(...nameless(message0, say('', 'one')))],
      stream: streams(
        event(nameless(say('', 'one'))[0]),
        nameless(message0, say('', 'one'), say('', 'two'), done(''))
          .map((value) => event(value))
          .join(''),
      ),
    }),
    code: 0,
    out: 'one\ntwo\n\tsession.status_idle\t\tend_turn\n',
    reqs: expect.any(Number),
  },
  {
    name: 'Y108: events without ids are followed, also if they say the same as earlier ones',
    argv: [...sendAndFollow, '--raw'],
    script: session({
      lists: [
        list(...nameless(...turn1)),
        list(...nameless(...turn1, ...turn1.map((value, i) => (i === 2 ? say('', 'new') : value)))),
      ],
      stream: streaming(...nameless(turn1[0] ?? {}, running, say('', 'new'), done(''))),
      receipt: response('', '202 Accepted'),
    }),
    code: 0,
    out: `${nameless(running, say('', 'new'), done(''))
      .map((value) => JSON.stringify(value))
      .join('\n')}\n`,
    reqs: expect.any(Number),
  },
])

const numbered = Array.from({ length: 150 }, (_, i) =>
  i === 149 ? done('i1') : { id: `r${i}`, type: 'session.status_running' },
)
/** Lists that show no more than a limit of 100 or the one that is asked for, 1,000 at most, and do not say so. */
const atOnce =
  (...events: object[]): Script =>
  (socket, request) => {
    if (isStream(request)) return void socket.write(sseHead)
    if (isPost(request)) return void socket.write(list({ id: 'sent_1', type: 'user.message' }))
    const limit = Math.min(1000, Number(/limit=(\d+)/.exec(request)?.[1] ?? 100))
    socket.write(page({}, ...events.slice(0, limit)))
  }

faultsInside('Y: lists that do not say whether they are all', [
  {
    name: 'Y109: more are asked for, and followed',
    argv: follow,
    script: atOnce(...numbered),
    code: 0,
    reqs: 7,
  },
  {
    name: 'Y109: more are asked for, and printed once',
    argv: ['events', 'list', '--ids'],
    script: atOnce(...numbered),
    code: 0,
    out: numbered.map(({ id }) => `${id}\n`).join(''),
    reqs: 2,
  },
  {
    name: 'Y110: a list of 1,000 cannot be followed: nothing is sent',
    argv: [...sendAndFollow, '--errors', 'json'],
    script: atOnce(
      ...Array.from({ length: 1200 }, (_, i) => ({ id: `r${i}`, type: 'session.status_running' })),
    ),
    code: 8,
    reqs: 2,
    err: ['ends after 1000, and does not say whether there are more', '"sent":"no"'],
  },
  {
    name: 'Y110: pages that are known by a number that nobody can ask for cannot be followed: nothing is sent',
    argv: [...sendAndFollow, '--errors', 'json'],
    script: session({ lists: [page({ has_more: true, last_seq: 1 }, { seq: 1, type: 't' })] }),
    code: 8,
    reqs: 1,
    err: ['has more, but does not say how to ask for it', '"sent":"no"'],
  },
  {
    name: 'Y109: a last_id that is a number',
    argv: ['events', 'list', '--raw'],
    script: session({
      lists: [
        page({ has_more: true, last_id: 7 }, { seq: 7, type: 't' }),
        page({ has_more: false }, { seq: 8, type: 't' }),
      ],
    }),
    code: 0,
    out: '{"seq":7,"type":"t"}\n{"seq":8,"type":"t"}\n',
    reqs: 2,
    check: ({ server }) => expect(server.requests[1]).toContain('?after_id=7 '),
  },
])

faultsInside('Y: a service that is away', [
  {
    name: 'Y34: the wait that it asks for while a session is followed',
    argv: [...follow, '--retries', '0'],
    script: session({
      lists: [
        list({ id: 'm', type: 'user.message', content: 'x' }),
        list({ id: 'm', type: 'user.message', content: 'x' }),
        'HTTP/1.1 429 Slow\r\nretry-after: 2\r\ncontent-length: 0\r\n\r\n',
        list({ id: 'm', type: 'user.message', content: 'x' }, done('i1')),
      ],
      stream: (socket) => void socket.end(sseHead),
    }),
    code: 0,
    out: ended,
    reqs: 7,
    atLeast: 2,
    err: ['429 Slow; trying again'],
  },
  {
    name: 'Y35: a longer wait than is worth it',
    argv: [...follow, '--retries', '0'],
    script: session({
      lists: [list(), list(), 'HTTP/1.1 429 Slow\r\nretry-after: 3600\r\ncontent-length: 0\r\n\r\n'],
      stream: (socket) => void socket.end(sseHead),
    }),
    code: 6,
    reqs: 5,
  },
  {
    name: 'Y36: credentials that are refused once the event is accepted',
    argv: [...sendAndFollow, '--retries', '0', '--errors', 'json'],
    script: session({
      lists: [list(...old), 'HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n'],
      stream: (socket) => void socket.end(sseHead),
    }),
    code: 8,
    reqs: 5,
    err: ['"safeToRetry":false', '"sent":"yes"'],
  },
  {
    name: 'Y30: nothing is sent where the session cannot be followed',
    argv: [...sendAndFollow, '--errors', 'json', '--retries', '0'],
    script: (socket, request) =>
      isStream(request) ? void socket.resetAndDestroy() : void socket.write(list(...old)),
    code: 9,
    reqs: 2,
    err: ['the session cannot be followed', '"sent":"no"'],
  },
  {
    name: 'Y31: it is waited for once it has answered',
    argv: [...follow, '--retries', '0'],
    listen: {},
    script: session({
      lists: [
        list({ id: 'm', type: 'user.message', content: 'x' }),
        list({ id: 'm', type: 'user.message', content: 'x' }),
        'HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n',
        'HTTP/1.1 503 Away\r\ncontent-length: 0\r\n\r\n',
        list({ id: 'm', type: 'user.message', content: 'x' }, done('i1')),
      ],
      stream: (socket) => void socket.end(sseHead),
    }),
    code: 0,
    out: ended,
    reqs: 9,
    err: ['502 Bad Gateway; trying again', 'connecting again'],
  },
  {
    name: 'Y32: credentials of a command are asked for again once (needs sh)',
    argv: [...follow, '--retries', '0'],
    env: { PARLEY_API_KEY: '', PARLEY_API_KEY_COMMAND: 'echo run >> runs; echo secret-of-a-command' },
    script: session({
      lists: [
        list({ id: 'm', type: 'user.message', content: 'x' }),
        list({ id: 'm', type: 'user.message', content: 'x' }),
        'HTTP/1.1 401 Expired\r\ncontent-length: 0\r\n\r\n',
        list({ id: 'm', type: 'user.message', content: 'x' }, done('i1')),
      ],
      stream: (socket) => void socket.end(sseHead),
    }),
    code: 0,
    out: ended,
    reqs: 7,
    files: ['cwd/runs'],
    check: ({ ending }) => {
      if (ending.files.get('cwd/runs') !== 'run\nrun\n') throw new Error(ending.files.get('cwd/runs'))
    },
  },
  {
    name: 'Y33: a deadline that passes in a session at work',
    argv: [...sendAndFollow, '--deadline', '3', '--errors', 'json'],
    script: session({ lists: [list(...old)], stream: streaming(sent, say('new', 'new')) }),
    code: 15,
    out: 'new\n',
    reqs: expect.any(Number),
    check: postsOnce,
    err: ['"kind":"stopped","exit":15', '"sent":"yes"'],
  },
])
