import { describe, expect, test } from 'vitest'
import {
  createSessionService,
  type Event,
  endTurn,
  interrupt,
  running,
  type Steps,
  says,
  shown,
  userSays,
} from '../../harness/session-service.ts'

const created: Event = { type: 'workflow_run.created', workflow_run_id: 'w1', name: 'review', phases: [] }

/** A service that reports usage only in the session resource: ten tokens per second since the task. */
function open(next: Steps, history: Steps = []) {
  let begin = 0
  const service = createSessionService({
    history,
    session: () => ({
      id: 's1',
      type: 'session',
      status: 'running',
      usage: {
        input_tokens: 1000 + (begin && Math.floor((service.timers.now() - begin) / 100)),
        output_tokens: 0,
      },
    }),
    posts: [
      {
        type: 'user.message',
        act: () => {
          begin = service.timers.now()
        },
        next,
      },
      { type: 'user.interrupt', next: [endTurn] },
    ],
  })
  return service
}
const argv = ['events', 'run', 'do it', '--max-total-tokens', '100', '--deadline', '1h']
const later = (event: Event, seconds = 300) => shown(event, { after: seconds * 1000 })

describe('--max-total-tokens with a service that reports usage only in the session resource', () => {
  test.each<[string, Steps]>([
    ['a session that works', [running, later(says('done')), endTurn]],
    [
      'a session whose workflow run is open',
      [running, created, says('started'), endTurn, later(says('late'))],
    ],
  ])('--max-total-tokens interrupts %s', async (_, next) => {
    const service = open(next, [userSays('x'), running, says('before'), endTurn])
    const { code, err } = await service.run(argv)
    expect([code, service.posts.slice(1)], err).toEqual([15, [[interrupt]]])
    expect(err).toContain('--max-total-tokens is 100')
    expect(err).not.toContain('cannot be kept')
  })
})
