import { expect, test } from 'vitest'
import { createSessionService, endTurn, running, says, shown } from '../../harness/session-service.ts'

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
