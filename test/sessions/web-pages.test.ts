import { expect, test } from 'vitest'
import { readError } from '../harness/run.ts'
import {
  createSessionService,
  endTurn,
  running,
  type SessionScript,
  says,
  shown,
} from '../harness/session-service.ts'

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
