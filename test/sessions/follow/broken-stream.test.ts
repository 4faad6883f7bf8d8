import { expect, test } from 'vitest'
import {
  createSessionService,
  endTurn,
  running,
  says,
  shown,
  userSays,
} from '../../harness/session-service.ts'

const formatError = (type: string) =>
  `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type, message: 'busy' } })}\n\n`
const work = [running, shown(says('done'), { after: 2_000 }), endTurn]
const brokenFrames = {
  'only an error event': () => formatError('overloaded_error'),
  'data that is not JSON': () => 'data: <html>\n\n',
}
const runLast = ['events', 'run', 'go', '--last', '--deadline', '1h']

test.each(Object.entries(brokenFrames))(
  'events run reads the answer from the list if streams deliver %s',
  async (_, frame) => {
    const streams = [{ replay: 1, events: [running], frame }]
    const service = createSessionService({ posts: [{ next: work }], streams })
    expect(await service.run(runLast)).toMatchObject({ code: 0, out: 'done\n' })
  },
)

test('events follow exits with 0 if the list shows an idle session, although every stream delivers an error event', async () => {
  const history = [userSays('go'), running, shown(says('done'), { listed: 1_000 }), endTurn]
  const streams = [{ events: [running], frame: brokenFrames['only an error event'] }]
  const service = createSessionService({ history, streams })
  const { code } = await service.run(['events', 'follow', '--history', '--deadline', '1h'])
  expect(code).toBe(0)
})

test.each([404, 400, 500])(
  'events run reads the answer from the list after a %i to its stream',
  async (status) => {
    const posts = [
      { next: [running, says('done'), endTurn].map((step) => shown(step, { streamed: 'never' })) },
    ]
    const streams = [{ nth: 1, events: [], cutAfter: 0 }, { fault: { status } }]
    const service = createSessionService({ posts, streams })
    expect(await service.run(runLast)).toMatchObject({ code: 0, out: 'done\n' })
  },
)

test('events run exits with 8 if its second stream is refused and the list shows that the session works', async () => {
  const posts = [{ next: [running, shown(says('done'), { after: 3_600_000 })] }]
  const streams = [{ nth: 1, cutAfter: 1 }, { fault: { status: 400 } }]
  const service = createSessionService({ posts, streams })
  const { code, err } = await service.run(runLast)
  expect(code).toBe(8)
  expect(err).toContain('the session could not be followed')
})

test('events run exits with 3 after an authentication error in the stream', async () => {
  const frame = () => formatError('authentication_error')
  const service = createSessionService({ posts: [{ next: work }], streams: [{ frame }] })
  expect(await service.run(runLast)).toMatchObject({ code: 3 })
})
