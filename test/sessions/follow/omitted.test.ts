import { expect, test } from 'vitest'
import {
  createSessionService,
  createSignal,
  endTurn,
  running,
  says,
  shown,
  userSays,
} from '../../harness/session-service.ts'

test('events follow prints an event that the stream omits once the list shows it', async () => {
  const { run } = createSessionService({
    posts: [
      {
        next: [
          running,
          says('first'),
          shown(says('omitted'), { streamed: 'never', listed: 3000 }),
          shown(endTurn, { listed: 3000 }),
        ],
      },
    ],
  })
  const { code, out, err } = await run(['events', 'send', 'go', '--follow'])
  expect(code, err).toBe(0)
  expect(out.match(/^(first|omitted)$/gm)).toEqual(['first', 'omitted'])
})

test('events follow prints the pages of the history, and then an event that the stream delivers late', async () => {
  const late = createSignal()
  const { run, requests } = createSessionService({
    history: [userSays('go'), running, says('first'), shown(says('second'), { listed: 'never' })],
    list: { form: 'has_more', pageSize: 2 },
    streams: [{ replay: 1, act: () => late.trigger() }],
    lists: [{ nth: 2, before: [shown(endTurn, { streamed: late })] }],
  })
  const { code, out, err } = await run(['events', 'follow', '--history'])
  expect(code, err).toBe(0)
  expect(out.match(/^(first|second)$/gm)).toEqual(['first', 'second'])
  expect(requests.some(({ query }) => query.get('after_id') === 'e2')).toBe(true)
})

test.each([
  ['run', ['events', 'run', 'do it', '--last']],
  ['send --follow', ['events', 'send', 'do it', '--follow']],
])('events %s ends by the list if no other stream can be opened after a cut', async (_, argv) => {
  const service = createSessionService({
    posts: [{ next: [running, shown(says('the answer'), { after: 5_000 }), endTurn] }],
    streams: [{ nth: 1, cutAfter: 1 }, { fault: { status: 500 } }],
  })
  const { code, out, err } = await service.run([...argv, '--deadline', '120'])
  expect([code, out], err).toEqual([0, expect.stringContaining('the answer\n')])
})
