import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createClock } from '../../harness/clock.ts'
import { often } from '../../harness/often.ts'
import { run } from '../../harness/run.ts'
import { afterSent, fromNow } from './judge.ts'
import { type Limits, said, sending, working } from './session-scripts.ts'
import { createSessionService } from './session-service.ts'

const worlds: [name: string, limits: Limits][] = [
  ['streams replay, repeat and break off', { lag: 0, late: 0, mute: false, keepsAlive: false }],
  ['everything at once', { lag: 3, late: 3, mute: true, keepsAlive: true }],
]

describe.each(worlds)('where %s', (_, limits) => {
  test('--live shows each message, and none twice but with a note that says so', async () => {
    const property = fc.asyncProperty(fc.oneof(sending(limits), working(limits)), async (scenario) => {
      // What is terminated works on nothing more.
      fc.pre(!scenario.history.some(({ type }) => type === 'session.status_terminated'))
      const clock = createClock()
      const service = createSessionService(scenario, clock)
      const argv = scenario.isSent ? ['send', said, '--follow'] : ['follow']
      const { code, out, err } = await run(['events', ...argv, '--live'], {
        exchange: service.exchange,
        timers: clock,
        env: { PARLEY_SESSION: 'sesn_1', NO_COLOR: '1' },
        tty: ['stdout', 'stderr'],
      })
      const { wanted, open = [] } = scenario.isSent ? afterSent(scenario) : fromNow(scenario, service, false)
      const texts = service.ledger.filter(({ type }) => type === 'agent.message').map(({ id }) => id)
      // What is said is the event's own id.
      const shown = out
        .split('\n')
        .filter((line) => !line.startsWith('·'))
        .join('')
      const counts = texts.map((id) => ({ id, times: shown.split(id).length - 1 }))
      const isRepeated = /here it is whole|came to nothing/.test(err)
      const wrong = counts.filter(({ id, times }) => {
        if (wanted.includes(id)) return isRepeated ? times < 1 : times !== 1
        return open.includes(id) ? times > 1 && !isRepeated : times > 0
      })
      expect({ code, wrong }, `${out}\n${err}`).toEqual({ code: scenario.code, wrong: [] })
    })
    await fc.assert(property, often(100))
  })
})
