import { describe, expect, test } from 'vitest'
import {
  bash,
  createSessionService,
  type Event,
  running,
  type SessionScript,
  shown,
  waitsFor,
} from '../../harness/session-service.ts'

const spent: Event = { type: 'session.usage', usage: { input_tokens: 1000, output_tokens: 0 } }
const busy = { status: 503, headers: { 'retry-after': '50' } } as const
type Fault = 'stall' | typeof busy

type Kind = 'lists' | 'streams' | 'replies' | 'interrupts' | 'session queries'

/** Kinds of requests that parley starts before or for its interrupt. */
const early: readonly Kind[] = ['replies', 'interrupts', 'session queries']

/**
 * Runs a task on a session that does not end its turn. Requests of one kind fail from the task or the
 * interrupt on. `failed` is their number. `secondsAfter` is the time from the task and the interrupt to the
 * end.
 */
async function runUntilLate(kind: Kind, fault: Fault, since: 'task' | 'interrupt', flags: string[]) {
  const at = { task: Infinity, interrupt: Infinity }
  let failed = 0
  const begin = (moment: keyof typeof at) => () => {
    at[moment] = Math.min(at[moment], service.timers.now())
  }
  const fails = (other: Kind) => kind === other && at[since] < Infinity
  const rule = (other: Kind) => ({ when: () => fails(other), act: () => failed++, fault })
  const reachLimit = () => service.add(running, spent)
  const work = {
    lists: [running, spent],
    streams: [running, spent],
    interrupts: [running, spent],
    // The session reaches the limit while parley posts the reply.
    replies: [running, bash('t1'), waitsFor('t1')],
    // The session reaches the limit after parley has queried the session.
    'session queries': [running, shown(spent, { after: 15_000 })],
  }
  // The stream is cut, so that the follower opens another one and reads the list.
  const cutAfter = { lists: 2, streams: since === 'task' ? 2 : 3 } as Partial<Record<Kind, number>>
  const service: ReturnType<typeof createSessionService> = createSessionService({
    posts: [
      { type: 'user.message', act: begin('task'), next: work[kind] },
      {
        ...rule('replies'),
        type: 'user.tool_confirmation',
        act() {
          failed++
          reachLimit()
        },
      },
      {
        ...rule('interrupts'),
        type: 'user.interrupt',
        act() {
          failed++
          begin('interrupt')()
        },
      },
      { type: 'user.interrupt', act: begin('interrupt') },
    ],
    lists: [rule('lists')],
    streams: [rule('streams'), { cutAfter: cutAfter[kind] ?? Infinity }],
    session() {
      if (!fails('session queries')) return { id: 's1', status: 'running' }
      failed++
      return fault
    },
  } satisfies SessionScript)
  service.write('allow.json', { rules: [], default: { decision: 'allow' } })
  const { code, err } = await service.run(['events', 'run', 'do it', '--policy', 'allow.json', ...flags])
  const end = service.timers.now()
  const secondsAfter = { task: (end - at.task) / 1000, interrupt: (end - at.interrupt) / 1000 }
  return { code, err, failed, secondsAfter }
}

const rows: [Kind, Fault][] = (['lists', 'streams', ...early] as const).flatMap((kind) => [
  [kind, busy],
  [kind, 'stall'],
])

describe('events run that ends in time', () => {
  test.each(rows)(
    'events run ends within 31 s of its interrupt at a limit, although %s fail by %j',
    async (kind, fault) => {
      const since = early.includes(kind) ? 'task' : 'interrupt'
      const flags = ['--max-total-tokens', '10', '--deadline', '1h']
      const { code, err, failed, secondsAfter } = await runUntilLate(kind, fault, since, flags)
      expect({ code, hasFailed: failed > 0 }, err).toEqual({ code: 15, hasFailed: true })
      expect(secondsAfter.interrupt, err).toBeLessThan(32)
      expect(err).toMatch(/\nparley: the run used 1,000 tokens, and --max-total-tokens is 10;/)
      expect(err).not.toContain('deadline passed')
    },
  )

  test.each(rows)('events run ends at its deadline, although %s fail by %j', async (kind, fault) => {
    const limits: Partial<Record<Kind, string>> = { interrupts: '10', 'session queries': '10000' }
    const flags = limits[kind] === undefined ? [] : ['--max-total-tokens', limits[kind]]
    const { code, err, failed, secondsAfter } = await runUntilLate(kind, fault, 'task', [
      '--deadline',
      '20',
      ...flags,
    ])
    expect({ code, hasFailed: failed > 0 }, err).toEqual({ code: 15, hasFailed: true })
    expect(secondsAfter.task, err).toBeLessThan(22)
  })
})
