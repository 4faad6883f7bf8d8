import { expect, test } from 'vitest'
import { createSessionService, endTurn, running, says, shown } from '../harness/session-service.ts'

const page = '<title>Maintenance</title>'
const html = { status: 200, body: page, headers: { 'content-type': 'text/html' } }
const readError = (err: string) => JSON.parse(err.trim().split('\n').at(-1) as string).error

test.each([
  ['events list gets a web page instead of a list', ['events', 'list'], { lists: [{ fault: html }] }],
  [
    'events list gets an empty web page instead of a list',
    ['events', 'list'],
    { lists: [{ fault: { ...html, body: '' } }] },
  ],
  [
    'events run gets a web page instead of its first list',
    ['events', 'run', 'go'],
    { lists: [{ fault: html }] },
  ],
  [
    'events run gets a web page instead of its first stream',
    ['events', 'run', 'go'],
    { streams: [{ fault: html }] },
  ],
  [
    'events follow gets a web page instead of its first stream',
    ['events', 'follow'],
    { history: [running], streams: [{ fault: html }] },
  ],
])('parley exits with 8 and advises to retry later if %s', async (_, argv, script) => {
  const service = createSessionService(script)
  const { code, err } = await service.run([...argv, '--errors', 'json'])
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
