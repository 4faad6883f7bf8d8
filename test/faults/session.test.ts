import { writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { response, type Script } from '../harness/server.ts'
import { always } from '../harness/session-service.ts'
import { sseEvent, sseHead } from './answers.ts'
import { type FaultRow, testNetworkFaults } from './rows.ts'

const follow = ['events', 'follow']
const sendAndFollow = ['events', 'send', 'go on', '--follow']

const say = (id: string, text: string) => ({ id, type: 'agent.message', content: text })
const done = (id: string) => ({ id, type: 'session.status_idle', stop_reason: { type: 'end_turn' } })
const list = (...data: object[]) => response(JSON.stringify({ data, next_page: null }))
const page = (next: object, ...data: object[]) => response(JSON.stringify({ data, ...next }))

const isStream = (request: string) => /^GET \S+\/stream /.test(request)
const isPost = (request: string) => request.startsWith('POST')
const kindOf = (request: string) => (isStream(request) ? 'stream' : isPost(request) ? 'post' : 'list')

interface Service {
  /** Responses to the list requests, in this order. The last response repeats. */
  lists: (Buffer | string)[]
  /**
   * Answers a stream request. `count` is the number of the stream, from 1. Default: the stream stays empty.
   */
  stream?(socket: Socket, count: number): void
  posted?: Buffer
}

/**
 * Simulates a session service. A row may run against several servers at once, so the script counts the
 * requests of each server and has no state.
 */
function session({ lists, stream, posted = list({ id: 'sent_1', type: 'user.message' }) }: Service): Script {
  return (socket, request, _, requests) => {
    const count = requests.filter((each) => kindOf(each) === kindOf(request)).length
    const responses = { list: lists[Math.min(count, lists.length) - 1], post: posted, stream: sseHead }
    if (stream && isStream(request)) stream(socket, count)
    else socket.write(responses[kindOf(request)] ?? '')
  }
}

const streaming =
  (...events: object[]) =>
  (socket: Socket) =>
    void socket.write(sseHead + events.map((value) => sseEvent(value, 'message')).join(''))

/** Fields of a row other than its name, command and service. Default exit code: 0. */
type Expected = Omit<FaultRow, 'name' | 'argv' | 'script' | 'code'> & { code?: FaultRow['code'] }

const row = (name: string, argv: string[], service: Service | Script, expected: Expected): FaultRow => ({
  name,
  argv,
  script: typeof service === 'function' ? service : session(service),
  code: 0,
  ...expected,
})

const follows = (name: string, service: Service | Script, expected: Expected): FaultRow =>
  row(name, follow, service, expected)

testNetworkFaults('Y: parley rejects responses that are not an event stream', [
  follows(
    'Y01: parley exits with 8 at once if a stream request gets an endless text/plain response',
    {
      lists: [list()],
      stream: (socket) => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n')
        const timer = setInterval(() => socket.write('\n'), 50)
        socket.on('close', () => clearInterval(timer))
      },
    },
    { code: 8, reqs: 2, err: ['is not a stream of events: it is text/plain'] },
  ),
])

const old = [{ id: 'm0', type: 'user.message', content: 'before' }, say('old', 'old'), done('i0')]
const running = { id: 'r', type: 'session.status_running' }
const ended = 'i1\tsession.status_idle\t\tend_turn\n'

testNetworkFaults('Y: parley follows a session with odd events', [
  follows(
    'Y45: parley keeps the order of an event list if a single timestamp is out of order',
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
])

const use = (id: string) => ({ id, type: 'agent.tool_use', name: 'bash', input: {} })
const waits = (reason: unknown) => ({ id: 'i', type: 'session.status_idle', stop_reason: reason })
/** A session with two tool uses. The stop reason of its idle event has a type, but names neither tool use. */
const unlisted = session({ lists: [list(use('t1'), use('t2'), waits({ type: 'requires_action' }))] })

const policy = JSON.stringify(always('allow'))
const allowAll = (folder: string) => writeFileSync(join(folder, 'cwd', 'allow.json'), policy)

testNetworkFaults('Y: parley replies only to the tool uses that an idle event names', [
  row(
    'Y81: events run sends no reply and prints unanswered tool uses if the idle event has no event_ids',
    ['events', 'run', '--policy', 'allow.json'],
    unlisted,
    { prepare: allowAll, files: ['cwd/allow.json'], code: 12, reqs: 4, err: ['t1: bash {}', 't2: bash {}'] },
  ),
])

const at = (seconds: number, value: object) => ({
  ...value,
  processed_at: new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString(),
})
const first = { id: 'm0', type: 'user.message', content: 'x' }
const newestFirst = [done('i0'), say('o2', 'old'), say('o1', 'old'), first]
const refused = 'HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n'

const a = page({ next_page: 'p1' }, { id: 'a', type: 't' })

testNetworkFaults('Y: parley reads lists with an odd order, limit or error', [
  row(
    'Y85: events list prints the first page and exits with 7 if the second page fails',
    ['events', 'list', '--ids', '--retries', '0'],
    { lists: [a, refused] },
    { code: 7, out: 'a\n', reqs: 2 },
  ),
  follows(
    'Y86: parley reads an event list that is sorted newest first although one timestamp is 5 ms out of order',
    { lists: [list(...newestFirst.map((value, i) => at([4, 3.995, 4, 1][i] ?? 0, value)))] },
    { reqs: 3 },
  ),
])

const gone = '{"type":"error","error":{"type":"not_found_error","message":"the session is gone"}}'
const message0 = { id: 'm', type: 'user.message', content: 'x' }

/** Answers stream requests with these streams in order, and ends each stream. The last stream repeats. */
const streams =
  (...texts: string[]) =>
  (socket: Socket, count: number) =>
    void socket.end(sseHead + texts[Math.min(count, texts.length) - 1])

testNetworkFaults('Y: parley reads errors in a stream', [
  ...[sendAndFollow, ['events', 'run', 'go on', '--no-stdin']].map((argv) =>
    row(
      `Y88: events ${argv[1]} exits with 4 and reports the event as sent if the session's stream has a not_found_error`,
      [...argv, '--errors', 'json'],
      { lists: [list(message0)], stream: streams(sseEvent(gone, 'error')) },
      { code: 4, reqs: 3, err: ['is gone', '"sent":"yes","safeToRetry":false,"retry":"never"'] },
    ),
  ),
])

testNetworkFaults('Y: parley waits for the events of an empty session', [
  follows(
    'Y102: parley announces that it waits for the first event of an empty session',
    { lists: [list(), list(), list(done('i1'))], stream: streaming(done('i1')) },
    { out: ended, reqs: 4, err: ['sesn_1 has no events yet: waiting for its first event'] },
  ),
  row(
    'Y103: events run without a task prints that it looks for events, and exits with 2 if the session has none',
    ['events', 'run'],
    { lists: [list()] },
    {
      code: 2,
      reqs: 7,
      minSeconds: 5,
      err: [
        'parley: looking for the first event of sesn_1, for up to 5 s\n',
        'sesn_1 has no events yet\n  to give it a task: parley events run TASK -s sesn_1',
      ],
    },
  ),
])

const numbered = [...Array.from({ length: 149 }, (_, i) => ({ ...running, id: `r${i}` })), done('i1')]
/** Lists the first `limit` events (at most 1,000), without a field that shows whether more events follow. */
const withoutNextPage =
  (...events: object[]): Script =>
  (socket, request) => {
    if (isStream(request)) return void socket.write(sseHead)
    if (isPost(request)) return void socket.write(list({ id: 'sent_1', type: 'user.message' }))
    const limit = Math.min(1000, Number(/limit=(\d+)/.exec(request)?.[1] ?? 100))
    socket.write(page({}, ...events.slice(0, limit)))
  }

testNetworkFaults('Y: parley does not rely on lists that may be incomplete', [
  row(
    'Y109: events list requests more events and prints each once if a list does not show whether it is complete',
    ['events', 'list', '--ids'],
    withoutNextPage(...numbered),
    { out: numbered.map(({ id }) => `${id}\n`).join(''), reqs: 2 },
  ),
  row(
    'Y110: events send --follow sends nothing if a list of 1,000 events does not show whether it is complete',
    [...sendAndFollow, '--errors', 'json'],
    withoutNextPage(...Array.from({ length: 1200 }, (_, i) => ({ ...running, id: `r${i}` }))),
    { code: 8, reqs: 2, err: ['ends after 1000 events, and does not show whether more', '"sent":"no"'] },
  ),
])

testNetworkFaults('Y: parley waits for an unavailable service', [
  row(
    'Y30: events send --follow exits with 9 and sends nothing if the session cannot be followed',
    [...sendAndFollow, '--errors', 'json', '--retries', '0'],
    (socket, request) =>
      isStream(request) ? void socket.resetAndDestroy() : void socket.write(list(...old)),
    { code: 9, reqs: 2, err: ['the session cannot be followed', '"sent":"no"'] },
  ),
])
