import { expect, test } from 'vitest'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { bash, endTurn, running, says, userSays, waitsFor } from '../../harness/events.ts'
import { always, createSessionService, shown } from '../../harness/session-service.ts'

const minutes = 60_000

/** Follows a session that works for `length` minutes, with events after 20 s and 130 s. */
async function follow(words: string[], { length = 3, isSent = true, headAfter = 0 } = {}) {
  const { run, add, timers, exchange } = createSessionService({
    history: isSent ? [] : [userSays('x'), running],
    posts: [{ act: () => void work() }],
  })
  async function work() {
    await timers.wait(20_000)
    add(says('a1'))
    await timers.wait(110_000)
    add(bash('u1', { evaluated_permission: 'allow' }))
    await timers.wait(length * minutes - 130_000)
    add(endTurn)
  }
  if (!isSent) void work()
  const buffered: Exchange = async (request, onSent) => {
    if (/\/stream$/.test(request.url)) await timers.wait(headAfter)
    return exchange(request, onSent)
  }
  return run(['events', ...words, '--timeout', '0'], { exchange: buffered })
}

const getProgressLines = (err: string) => err.split('\n').filter((line) => line.includes('parley: still '))

test.each([
  ['run', ['run', 'go']],
  ['send --follow', ['send', 'go', '--follow']],
])('Y160: events %s prints a progress line each minute if stderr is not a terminal', async (_, words) => {
  const { code, err } = await follow(words)
  expect(code).toBe(0)
  expect(getProgressLines(err)).toEqual([
    'parley: still at work after 1 min: the last event was agent.message, 40 s ago',
    'parley: still at work after 2 min: the last event was agent.message, 2 min ago',
    'parley: still at work after 3 min: the last event was agent.tool_use, 50 s ago',
  ])
})

test('Y242: events follow prints progress lines from its first request on, also if a proxy delays the stream', async () => {
  const { err } = await follow(['follow'], { headAfter: 2.5 * minutes, isSent: false })
  const lines = [1, 2].map((count) => `parley: still at work after ${count} min: no event yet`)
  expect(getProgressLines(err).slice(0, 2)).toEqual(lines)
})

test('events follow prints a progress line each minute for ten minutes, then every ten minutes', async () => {
  const { code, err } = await follow(['follow'], { length: 35, isSent: false })
  expect(code).toBe(0)
  expect(getProgressLines(err).map((line) => /after (\d+) min/.exec(line)?.[1])).toEqual(
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30].map(String),
  )
  expect(getProgressLines(err)[2]).toContain('the last event was agent.tool_use, 50 s ago')
})

test('while the service is unreachable, events follow prints that the requests still fail, and no progress line', async () => {
  const service = createSessionService({
    history: [userSays('x'), running],
    lists: [{ when: isDown, fault: 'unreachable' }],
    streams: [{ when: isDown, fault: 'unreachable' }, { cutAfter: 1 }],
  })
  const start = service.timers.now()
  function isDown() {
    const passed = service.timers.now() - start
    return passed > 30_000 && passed < 170_000
  }
  void service.timers.wait(40_000).then(() => service.add(says('a1')))
  void service.timers.wait(200_000).then(() => service.add(endTurn))
  const { code, err } = await service.run(['events', 'follow'])
  expect(code).toBe(0)
  expect(err.match(/still failing after . min|still .* min/g)).toEqual([
    'still failing after 1 min',
    'still failing after 2 min',
    'still at work after 3 min',
  ])
})

test('while only the replies of events run fail, it prints their cause once, then a note each minute', async () => {
  const type = 'user.tool_confirmation'
  const service = createSessionService({
    posts: [
      { type: 'user.message', next: [running, bash('t1'), waitsFor('t1')] },
      { type, when: () => service.timers.now() - start < 130_000, fault: 'unreachable' },
      { type, next: [running, shown(endTurn, { after: 2 * minutes })] },
    ],
  })
  const start = service.timers.now()
  service.write('allow.json', always('allow'))
  const { code, err } = await service.run('events run go --policy allow.json'.split(' '))
  expect(code).toBe(0)
  expect(err.match(/.*trying again|still .*? \d min/g)).toEqual([
    'parley: the connection was refused; trying again',
    'parley: still failing after 1 min; trying again',
    'parley: still failing after 2 min; trying again',
    'still at work after 3 min',
    'still at work after 4 min',
  ])
})

test('while events run waits to repeat a refused reply, the session is not "at work"', async () => {
  const service = createSessionService({
    posts: [
      { type: 'user.message', next: [running, bash('t1'), waitsFor('t1')] },
      {
        type: 'user.tool_confirmation',
        when: () => service.posts.length < 5,
        fault: { status: 429, headers: { 'retry-after': '50' } },
      },
      { type: 'user.tool_confirmation', next: [running, shown(endTurn, { after: 2 * minutes })] },
    ],
  })
  service.write('allow.json', always('allow'))
  const { code, err } = await service.run('events run go --policy allow.json --retries 3'.split(' '))
  expect(code).toBe(0)
  expect(err.match(/trying again in .* s|still .*? \d min/g)).toEqual([
    'trying again in 50.0 s',
    'trying again in 50.0 s',
    'still replying after 1 min',
    'trying again in 50.0 s',
    'still replying after 2 min',
    'still at work after 3 min',
    'still at work after 4 min',
  ])
})

test.each([['run'], ['send', '--follow']])(
  'while events %s waits after a 429, the idle session is not "at work"',
  async (name, ...flags) => {
    const service = createSessionService({
      history: [userSays('x'), running, endTurn],
      posts: [
        { nth: 1, fault: { status: 429, headers: { 'retry-after': '50' } } },
        { nth: 2, fault: { status: 429, headers: { 'retry-after': '50' } } },
        { next: [running, shown(endTurn, { after: minutes })] },
      ],
    })
    const { code, err } = await service.run(['events', name, 'go', ...flags])
    expect(code).toBe(0)
    expect(getProgressLines(err)).toEqual([
      'parley: still waiting after 1 min: no event yet',
      expect.stringMatching(/^parley: still at work after 2 min: the last event was /),
    ])
  },
)

test.each([
  ['-q', ['-q']],
  ['--errors json', ['--errors', 'json']],
])('events run prints no progress lines with %s', async (_, flags) => {
  const { err } = await follow(['run', 'go', ...flags])
  expect(getProgressLines(err)).toEqual([])
})

test('Y243: events follow --stay requests only the newest event of a quiet session, not its history', async () => {
  const { requests } = await follow(['follow', '--stay', '--deadline', '10m'], { isSent: false })
  const lists = requests.flatMap(({ url }) => /events\?(.*)/.exec(url)?.[1] ?? [])
  const newest = lists.filter((query) => query === 'order=desc')
  expect(newest.length).toBeGreaterThan(3)
  expect(lists.length - newest.length).toBeLessThan(4)
})
