import { describe, expect, test } from 'vitest'
import {
  createSessionService,
  type Event,
  running,
  type SessionScript,
} from '../../harness/session-service.ts'

const spent: Event = { type: 'session.usage', usage: { input_tokens: 1000, output_tokens: 0 } }
const busy = { status: 503, headers: { 'retry-after': '50' } } as const
type Fault = 'stall' | typeof busy

/**
 * Runs a task on a session that never becomes idle. Requests of one kind fail from the moment of the task or of
 * the interrupt. Returns the code, and the seconds since this moment.
 */
async function runUntilLate(
  kind: 'lists' | 'streams',
  fault: Fault,
  since: 'task' | 'interrupt',
  flags: string[],
) {
  let failsAt = Infinity
  const begins = () => {
    failsAt = service.timers.now()
  }
  const rule = { when: () => failsAt < Infinity, fault }
  const act = (moment: string) => (since === moment ? { act: begins } : {})
  const service: ReturnType<typeof createSessionService> = createSessionService({
    posts: [
      // The stream is cut, so that the follower opens another one and reads the list.
      { of: 'user.message', next: [running, spent], ...act('task') },
      { of: 'user.interrupt', ...act('interrupt') },
    ],
    [kind]: [rule, ...(kind === 'streams' ? [{ cutAfter: 3 }] : [])],
  } satisfies SessionScript)
  const { code, err } = await service.run(['events', 'run', 'do it', ...flags])
  return { code, err, seconds: (service.timers.now() - failsAt) / 1000 }
}

describe('a run ends in time, whatever its requests wait for', () => {
  test.each<['lists' | 'streams', Fault]>([
    ['lists', busy],
    ['lists', 'stall'],
    ['streams', busy],
    ['streams', 'stall'],
  ])('within 31 s of an interrupt at a limit, if %s fail by %j', async (kind, fault) => {
    const flags = ['--max-total-tokens', '10', '--deadline', '1h']
    const { code, err, seconds } = await runUntilLate(kind, fault, 'interrupt', flags)
    expect({ code }, err).toEqual({ code: 15 })
    expect(seconds, err).toBeLessThan(32)
  })

  test.each<['lists' | 'streams', Fault]>([
    ['lists', busy],
    ['lists', 'stall'],
    ['streams', busy],
    ['streams', 'stall'],
  ])('at its deadline, if %s fail by %j', async (kind, fault) => {
    const { code, err, seconds } = await runUntilLate(kind, fault, 'task', ['--deadline', '20'])
    expect({ code }, err).toEqual({ code: 15 })
    expect(seconds, err).toBeLessThan(22)
  })
})
