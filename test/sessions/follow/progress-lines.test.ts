import { describe, expect, test } from 'vitest'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { createClock } from '../../harness/clock.ts'
import { run } from '../../harness/run.ts'
import { createSessionService, type Event, type SessionScript } from './session-service.ts'

const minutes = 60_000
const says = (id: string): Event => ({ id, type: 'agent.message', content: [{ type: 'text', text: id }] })
const use: Event = {
  id: 'u1',
  type: 'agent.tool_use',
  name: 'bash',
  input: {},
  evaluated_permission: 'allow',
}
const rest: Event = { id: 'r1', type: 'session.status_idle', stop_reason: { type: 'end_turn' } }
const running: Event = { id: 'w1', type: 'session.status_running' }

/** What stderr says of a session that works for so many minutes, with an event after 20 s and one after 130. */
async function follow(
  words: string[],
  { length = 3, isSent = true, tty = [] as 'stderr'[], headAfter = 0 } = {},
) {
  const clock = createClock()
  const script: SessionScript = {
    history: isSent ? [] : [{ id: 'm0', type: 'user.message', content: 'x' }, running],
    late: 0,
    isSent,
    turn: [
      { event: says('a1'), after: 20_000 },
      { event: use, after: 110_000 },
      { event: rest, after: length * minutes - 130_000 },
    ],
    receipt: 'whole',
    runsFirst: false,
    echoes: true,
    lag: 0,
    list: { form: 'next_page', size: 100, obeys: true },
    keepsAlive: true,
    streams: [{ replay: 'none', cut: 'end', twice: [], name: 'type', hasComments: false, hasPieces: false }],
  }
  const { exchange } = createSessionService(script, clock) as { exchange: Exchange }
  const buffered: Exchange = async (request, onSent) => {
    if (/\/stream$/.test(request.url)) await clock.wait(headAfter)
    return exchange(request, onSent)
  }
  return run(['events', ...words, '-s', 's1', '--timeout', '0'], { exchange: buffered, timers: clock, tty })
}

const signs = (err: string) => err.split('\n').filter((line) => line.includes('still at work'))

describe('Y160: where stderr is not a terminal', () => {
  test.each([
    ['run', ['run', 'go']],
    ['run --last', ['run', 'go', '--last']],
    ['send --follow', ['send', 'go', '--follow']],
  ])('%s says each minute that it lives', async (_, words) => {
    const { code, err } = await follow(words)
    expect(code).toBe(0)
    expect(signs(err)).toEqual([
      'parley: still at work after 1 min: 1 event, 0 tool uses; the last was agent.message, 40 s ago',
      'parley: still at work after 2 min: 1 event, 0 tool uses; the last was agent.message, 2 min ago',
      'parley: still at work after 3 min: 2 events, 1 tool use; the last was agent.tool_use, 50 s ago',
    ])
  })

  test.each([
    ['run', ['run', 'go'], true],
    ['send --follow', ['send', 'go', '--follow'], true],
    ['follow', ['follow'], false],
  ])(
    'Y242: %s says it from the first request on, also if a proxy keeps the stream back',
    async (_, words, isSent) => {
      const { err } = await follow(words, { headAfter: 2.5 * minutes, isSent })
      expect(signs(err).slice(0, 2)).toEqual([
        'parley: still at work after 1 min: no event yet',
        'parley: still at work after 2 min: no event yet',
      ])
    },
  )

  test('so does follow, each minute for the first ten, then every ten', async () => {
    const { code, err } = await follow(['follow'], { length: 35, isSent: false })
    expect(code).toBe(0)
    expect(signs(err).map((line) => /after (\d+) min/.exec(line)?.[1])).toEqual(
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30].map(String),
    )
    expect(signs(err)[2]).toContain('2 events, 1 tool use; the last was agent.tool_use, 50 s ago')
  })

  test.each([
    ['under -q', ['run', 'go', '-q'], {}],
    ['with --errors json', ['run', 'go', '--errors', 'json'], {}],
    ['with --stay', ['follow', '--stay', '--deadline', '5m'], { isSent: false }],
  ])('nothing is said %s', async (_, words, more) => {
    const { err } = await follow(words, more)
    expect(signs(err)).toEqual([])
  })
})

test('Y160: on a terminal nothing is said', async () => {
  expect(signs((await follow(['run', 'go'], { tty: ['stderr'] })).err)).toEqual([])
})

test('Y243: a quiet session that is followed with --stay is asked for its newest event, not for its history', async () => {
  const { requests } = await follow(['follow', '--stay', '--deadline', '10m'], { isSent: false })
  const lists = requests.flatMap(({ url }) => /events\?(.*)/.exec(url)?.[1] ?? [])
  const newest = lists.filter((query) => query === 'order=desc')
  expect(newest.length).toBeGreaterThan(3)
  expect(lists.length - newest.length).toBeLessThan(4)
})
