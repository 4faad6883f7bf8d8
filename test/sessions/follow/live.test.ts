import { Writable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { createEmulator } from '../../../src/emulator/emulator.ts'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { answering, run } from '../../harness/run.ts'

const env = { PARLEY_SESSION: 's1', NO_COLOR: '1' }
const asked = '/events/stream?event_deltas%5B%5D=agent.message'

type Event = { type: string } & Record<string, unknown>

const begun = (id: string, type = 'agent.message'): Event => ({ type: 'event_start', event: { type, id } })
const more = (id: string, text: string, index = 0): Event => ({
  type: 'event_delta',
  event_id: id,
  delta: { type: 'content_delta', index, content: { type: 'text', text } },
})
const said = (id: string, ...texts: string[]): Event => ({
  id,
  type: 'agent.message',
  content: texts.map((text) => ({ type: 'text', text })),
})
const idle: Event = { id: 'i', type: 'session.status_idle', stop_reason: { type: 'end_turn' } }
const requestEnd: Event = { id: 'r', type: 'span.model_request_end' }
const working: Event = { id: 'u', type: 'user.message', content: 'go' }

interface Service {
  /** What each opened stream brings; the last of it stays open. */
  streams: Event[][]
  /** What lists show, in the order in which they are asked for; the last one stays. */
  lists?: Event[][]
  /** The status of a stream that is asked for with previews. */
  refuses?: number
}

function serve({ streams, lists = [[working]], refuses }: Service): Exchange {
  let opened = 0
  let listed = 0
  return async (request) => {
    if (request.method === 'POST') return answering('{"data":[]}')(request)
    if (!request.url.includes('/stream')) {
      const data = lists[Math.min(listed++, lists.length - 1)]
      return answering(JSON.stringify({ data }))(request)
    }
    if (refuses && request.url.includes('event_deltas'))
      return answering('{"error":{"message":"unknown query"}}', { status: refuses })(request)
    const isLast = opened >= streams.length - 1
    const events = streams[Math.min(opened++, streams.length - 1)] ?? []
    async function* body(): AsyncGenerator<Uint8Array> {
      for (const event of events) yield Buffer.from(`data: ${JSON.stringify(event)}\n\n`)
      if (isLast) await new Promise(() => {})
    }
    return {
      status: 200,
      statusText: '',
      headers: { 'content-type': 'text/event-stream' },
      body: body(),
      close() {},
    }
  }
}

/** Follows a session on a terminal. */
const follow = (
  service: Service,
  { argv = ['--live'], ...world }: { argv?: string[]; [key: string]: unknown } = {},
) =>
  run(['events', 'follow', '--no-stdin', ...argv], {
    exchange: serve(service),
    env,
    tty: ['stdout', 'stderr'],
    ...world,
  })

describe('--live', () => {
  test('Y201 shows a message as it is made, laid out, and adds what the event adds', async () => {
    const stream = [
      begun('m'),
      more('m', '# One\n\n'),
      more('m', 'two **th'),
      more('m', 'ree** four\n'),
      said('m', '# One\n\ntwo **three** four\n', '- five'),
      requestEnd,
      idle,
    ]
    const { code, out, err, requests } = await follow({ streams: [stream] })
    expect(code).toBe(0)
    expect(out).toBe(
      'One\n\ntwo three four\n• five\n· span.model_request_end\n· session.status_idle end_turn\n',
    )
    expect(err).not.toMatch(/whole|nothing/)
    expect(requests.filter(({ url }) => url.includes('/stream')).map(({ url }) => url)).toEqual([
      `https://agents.test/v1/sessions/s1${asked}`,
    ])
  })

  test('Y202 prints a message whole that differs from what was shown, with a note', async () => {
    const stream = [begun('m'), more('m', 'one two'), said('m', 'one three'), idle]
    const { out, err } = await follow({ streams: [stream] })
    expect(out).toBe('one two\none three\n· session.status_idle end_turn\n')
    expect(err).toContain('parley: the message is not what was shown of it; here it is whole\n')
  })

  test.each([
    ['the request ended', [requestEnd, idle]],
    ['the session rests', [idle]],
  ])('Y203 closes what came to nothing, with a note: %s', async (_, rest) => {
    const { code, out, err } = await follow({ streams: [[begun('m'), more('m', 'one tw'), ...rest]] })
    expect(code).toBe(0)
    expect(out.startsWith('one tw\n·')).toBe(true)
    expect(err.match(/came to nothing/g)).toHaveLength(1)
  })

  test('Y203 and says nothing of what was only begun', async () => {
    const { err } = await follow({ streams: [[begun('m'), begun('n'), more('n', ''), idle]] })
    expect(err).not.toContain('came to nothing')
  })

  test.each([400, 404, 422])(
    'Y204 a service that refuses the query (%i) is asked again without it, once',
    async (refuses) => {
      const streams = [[said('m', 'hi')], [idle]]
      const lists = [[working], [working, said('m', 'hi')], [working, said('m', 'hi'), idle]]
      const { code, out, err, requests } = await follow({ streams, lists, refuses })
      expect(code).toBe(0)
      expect(out).toContain('hi\n')
      expect(err.match(/the service refuses previews/g)).toHaveLength(1)
      const opened = requests.filter(({ url }) => url.includes('/stream')).map(({ url }) => url.includes('?'))
      expect(opened.slice(0, 2)).toEqual([true, false])
      expect(opened.slice(1)).not.toContain(true)
    },
  )

  test('Y204 what is refused without the query too is a failure', async () => {
    const list = answering(JSON.stringify({ data: [working] }))
    const none = answering('{"error":{"message":"no such session"}}', { status: 404 })
    const exchange: Exchange = (request) => (request.url.includes('/stream') ? none : list)(request)
    const { code, err } = await follow({ streams: [] }, { exchange })
    expect(code).toBe(4)
    expect(err).not.toContain('previews')
  })

  test('Y205 of two messages at once one is shown, and the other when it is whole', async () => {
    const stream = [
      begun('a'),
      begun('b'),
      more('a', 'a1 '),
      more('b', 'b1 '),
      more('a', 'a2 '),
      more('b', 'b2'),
      said('b', 'b1 b2'),
      more('a', 'a3'),
      said('a', 'a1 a2 a3'),
      idle,
    ]
    const { out, err } = await follow({ streams: [stream] })
    expect(out).toBe('a1 a2\nb1 b2\na3\n· session.status_idle end_turn\n')
    expect(err).not.toMatch(/whole|nothing/)
  })

  test('Y205 the second is shown live once the first is whole', async () => {
    const stream = [
      begun('a'),
      more('a', 'a1'),
      begun('b'),
      more('b', 'b1 '),
      said('a', 'a1'),
      more('b', 'b2 '),
      idle,
    ]
    const { out } = await follow({ streams: [stream] })
    expect(out).toBe('a1\nb1 b2\n· session.status_idle end_turn\n')
  })

  test("Y205 the end of another thread's request ends no message", async () => {
    const other = { ...requestEnd, session_thread_id: 't2' }
    const { out, err } = await follow({
      streams: [[begun('a'), more('a', 'a1 '), other, more('a', 'a2'), said('a', 'a1 a2'), idle]],
    })
    expect(out).toBe('a1\n· span.model_request_end\na2\n· session.status_idle end_turn\n')
    expect(err).not.toMatch(/whole|nothing/)
  })

  test('Y206 after a cut no more is guessed, and the event adds what is missing', async () => {
    const whole = said('m', 'one two three')
    const streams = [
      [begun('m'), more('m', 'one ')],
      [more('m', 'three'), begun('m'), more('m', 'one'), idle],
    ]
    const lists = [[working], [working], [working, whole], [working, whole, idle]]
    const { out, err } = await follow({ streams, lists })
    expect(out).toBe('one\ntwo three\n· session.status_idle end_turn\n')
    expect(err).not.toMatch(/whole|nothing/)
  })

  test('Y207 a stream that replays shows nothing twice, and pieces without a beginning show nothing', async () => {
    const old = said('o', 'old text')
    const stream = [
      begun('o'),
      more('o', 'old '),
      more('o', 'text'),
      old,
      more('x', 'stray'),
      begun('t', 'agent.thinking'),
      more('t', 'hmm'),
      begun('m'),
      more('m', 'new'),
      said('m', 'new'),
      begun('m'),
      more('m', 'new'),
      idle,
    ]
    const { out } = await follow({ streams: [stream], lists: [[working, old]] })
    expect(out).toBe('new\n· session.status_idle end_turn\n')
  })

  test('Y208 text of a service cannot control the terminal, and odd pieces are left out', async () => {
    const odd: Event[] = [
      { type: 'event_start' },
      { type: 'event_start', event: 'x' },
      { type: 'event_delta', event_id: 1 },
      { type: 'event_delta', event_id: 'm', delta: { content: { type: 'image' } } },
      { type: 'event_delta', event_id: '__proto__', delta: { content: { type: 'text', text: 'x' } } },
    ]
    const stream = [
      begun('m'),
      ...odd,
      more('m', 'a\x1b'),
      more('m', '[2Jb\u202e\r'),
      said('m', 'a\x1b[2Jb\u202e\r'),
      idle,
    ]
    const { code, out } = await follow({ streams: [stream] })
    expect(code).toBe(0)
    expect(out).not.toMatch(/[\x1b\u202e\r]/)
    expect(out).toMatch(/^a\^\[\[2Jb\\u202e/)
  })

  test('Y209 messages that are begun and never end are given up at the rest', async () => {
    const many = Array.from({ length: 5000 }, (_, n) => [begun(`m${n}`), more(`m${n}`, `text ${n} `)]).flat()
    const { code, out, err } = await follow({ streams: [[...many, said('z', 'whole'), idle]] })
    expect(code).toBe(0)
    expect(out).toBe('text 0\nwhole\n· session.status_idle end_turn\n')
    expect(err.match(/came to nothing/g)).toHaveLength(1)
  })

  test('Y209 a block before the last one makes the rest wait for the event', async () => {
    const stream = [begun('m'), more('m', 'b ', 1), more('m', 'a ', 0), said('m', 'a ', 'b '), idle]
    const { out, err } = await follow({ streams: [stream] })
    expect(out).toBe('b\na b\n· session.status_idle end_turn\n')
    expect(err).toContain('here it is whole')
  })

  test.each([
    ['in a pipe', ['--live'], ['stderr']],
    ['with --raw', ['--live', '--raw'], ['stdout', 'stderr']],
    ['with --ids', ['--live', '--ids'], ['stdout', 'stderr']],
    ['without it', [], ['stdout', 'stderr']],
    ['with --no-live', ['--no-live'], ['stdout', 'stderr']],
  ])('Y210 does nothing %s', async (_, argv, tty) => {
    const stream = [begun('m'), more('m', 'one '), said('m', 'two'), idle]
    const live = argv.includes('--no-live') ? { PARLEY_LIVE: '1' } : {}
    const { code, out, requests } = await follow(
      { streams: [stream] },
      { argv, tty, env: { ...env, ...live } },
    )
    expect(code).toBe(0)
    expect(out).not.toContain('one')
    expect(requests.some(({ url }) => url.includes('event_deltas'))).toBe(false)
  })

  test('Y211 is a setting too, and --dry-run shows the query', async () => {
    const { requests } = await follow({ streams: [[idle]] }, { argv: [], env: { ...env, PARLEY_LIVE: 'on' } })
    expect(requests.some(({ url }) => url.includes('event_deltas'))).toBe(true)
    const shown = await follow({ streams: [] }, { argv: ['--live', '--dry-run'] })
    expect(JSON.parse(shown.out).url).toContain(asked)
  })

  test.each([
    ['run', ['events', 'run', '--live', 'two words']],
    ['send --follow', ['events', 'send', '--live', '--follow', 'two words']],
  ])('Y212 of %s shows the emulated agent as it speaks', async (_, argv) => {
    const exchange = createEmulator({})
    const { code, out, err, requests } = await run(argv, { env, exchange, tty: ['stdout', 'stderr'] })
    const plain = await run(
      argv.filter((word) => word !== '--live'),
      { env: { ...env, PARLEY_SESSION: 's2' }, exchange, tty: ['stdout', 'stderr'] },
    )
    expect(code).toBe(0)
    expect(out).toBe(plain.out)
    expect(err).not.toMatch(/whole|nothing came/)
    expect(requests.some(({ url }) => url.includes('event_deltas'))).toBe(true)
  })

  test('Y212 of run --last does nothing', async () => {
    const { out, requests } = await run(['events', 'run', '--live', '--last', 'hi'], {
      env,
      exchange: createEmulator({}),
      tty: ['stdout', 'stderr'],
    })
    expect(out).not.toBe('')
    expect(requests.some(({ url }) => url.includes('event_deltas'))).toBe(false)
  })

  /** A terminal, on which stdout and stderr are one. */
  function createTerminal() {
    let shown = ''
    const stream = new Writable({
      write(chunk, _, done) {
        shown += chunk
        done()
      },
    })
    const end = { isTerminal: true, columns: 80, open: () => stream, writeNow: () => 0 }
    return { world: { stdout: end, stderr: end }, shown: () => shown }
  }

  /** A session in which half a message is shown for as long as its stream brings nothing more. */
  const halfShown = (lists: Exchange[], text = 'one '): Exchange => {
    const service = serve({ streams: [[begun('m'), more('m', text)]] })
    let listed = 0
    // The first two come before the message.
    return (request) =>
      !request.url.includes('/stream') && listed++ > 1
        ? (lists[Math.min(listed - 3, lists.length - 1)] ?? service)(request)
        : service(request)
  }
  const whole = answering(JSON.stringify({ data: [working, said('m', 'one two'), idle] }))

  test.each([['on'], ['off']])(
    'Y214 a list that is waited for takes nothing away (markdown %s)',
    async (markdown) => {
      const { world, shown } = createTerminal()
      // Longer than it takes until a spinner is shown.
      const late: Exchange = async (request) => {
        await new Promise((resolve) => setTimeout(resolve, 600))
        return whole(request)
      }
      const how = { env: { ...env, PARLEY_MARKDOWN: markdown }, exchange: halfShown([late]) }
      expect((await follow({ streams: [] }, { ...how, ...world })).code).toBe(0)
      expect(shown()).toContain('one two\n· session.status_idle')
    },
  )

  test.each([['on'], ['off']])(
    'Y214 what is said meanwhile begins on a new line (markdown %s)',
    async (markdown) => {
      const { world, shown } = createTerminal()
      const away = answering('', { status: 503 })
      const how = { env: { ...env, PARLEY_MARKDOWN: markdown }, exchange: halfShown([away, whole]) }
      expect((await follow({ streams: [] }, { ...how, ...world })).code).toBe(0)
      expect(shown()).toMatch(/one ?\nparley: .*503.*trying again.*\n ?two\n· session.status_idle/)
    },
  )

  test('Y214 what is said while a table is kept back comes before the table, which stays one', async () => {
    const { world, shown } = createTerminal()
    const away = answering('', { status: 503 })
    const table = '| a | b |\n|---|---|\n| 1 | 2 |\n'
    const more = '| long cell | 3 |\n'
    const said: Event = {
      id: 'm',
      type: 'agent.message',
      content: [{ type: 'text', text: `Look:\n\n${table}${more}` }],
    }
    const ends = answering(JSON.stringify({ data: [working, said, idle] }))
    const how = { env, exchange: halfShown([away, ends], `Look:\n\n${table}`) }
    expect((await follow({ streams: [] }, { ...how, ...world })).code).toBe(0)
    const plain = shown()
      .replace(/\x1b\[[\d;?]*[a-zA-Z]/g, '')
      .replace(/.*waiting for the end of a table\n/, '')
    expect(plain).toMatch(/Look:\n+parley: .*503.*trying again.*\n/)
    expect(plain.match(/─┼─/g)).toHaveLength(1)
    expect(plain).toMatch(/trying again.*\n+a {9}│ b\n─+┼─+\n1 {9}│ 2\nlong cell │ 3\n/)
  })

  test('Y213 of send without --follow is exit 2', async () => {
    const { code, err, requests } = await run(['events', 'send', '--live', 'hi'], { env })
    expect({ code, requests }).toEqual({ code: 2, requests: [] })
    expect(err).toContain('--live works only with --follow')
  })
})
