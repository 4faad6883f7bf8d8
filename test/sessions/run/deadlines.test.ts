import { expect, test } from 'vitest'
import { bash, type Event, running, waitsFor } from '../../harness/events.ts'
import { createSessionService, type SessionScript, shown } from '../../harness/session-service.ts'

const spent: Event = { type: 'session.usage', usage: { input_tokens: 1000, output_tokens: 0 } }
const faults = {
  'get a 503': { status: 503, headers: { 'retry-after': '50' } },
  'get no response': 'stall',
} as const

type Kind = 'lists' | 'streams' | 'replies' | 'interrupts' | 'session queries'

/** Kinds of requests that parley starts before or for its interrupt. */
const early: readonly Kind[] = ['replies', 'interrupts', 'session queries']

/**
 * Runs a task on a session that does not end its turn. All requests of one kind fail after the task or after
 * the interrupt, and `failed` counts them. `secondsAfter` has the seconds from the task and from the
 * interrupt to the end of the run.
 */
async function runUntilLate(
  kind: Kind,
  problem: keyof typeof faults,
  since: 'task' | 'interrupt',
  flags: string[],
) {
  const fault = faults[problem]
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
  // A cut stream makes the follower open another stream and read the list.
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
  const { code, err } = await service.run(['events', 'run', 'do it', '--policy', 'allow.json', ...flags])
  const end = service.timers.now()
  const secondsAfter = { task: (end - at.task) / 1000, interrupt: (end - at.interrupt) / 1000 }
  return { code, err, failed, secondsAfter }
}

const rows = (['lists', 'streams', ...early] as const).flatMap((kind) =>
  (['get a 503', 'get no response'] as const).map((problem) => [kind, problem] as const),
)

test.each(rows)(
  'if %s %s, events run still ends within 31 s of an interrupt at a limit, or at the deadline',
  async (kind, problem) => {
    const since = early.includes(kind) ? 'task' : 'interrupt'
    const atLimit = ['--max-total-tokens', '10', '--deadline', '1h']
    const limited = await runUntilLate(kind, problem, since, atLimit)
    expect({ code: limited.code, hasFailed: limited.failed > 0 }, limited.err).toEqual({
      code: 15,
      hasFailed: true,
    })
    expect(limited.secondsAfter.interrupt, limited.err).toBeLessThan(32)
    expect(limited.err).toMatch(/\nparley: the run used 1,000 tokens, and --max-total-tokens is 10;/)
    expect(limited.err).not.toContain('deadline passed')

    const limits: Partial<Record<Kind, string>> = { interrupts: '10', 'session queries': '10000' }
    const limit = limits[kind] === undefined ? [] : ['--max-total-tokens', limits[kind]]
    const late = await runUntilLate(kind, problem, 'task', ['--deadline', '20', ...limit])
    const isUnknown = kind === 'replies' && problem === 'get no response'
    const code = isUnknown ? 10 : 15
    expect({ code: late.code, hasFailed: late.failed > 0 }, late.err).toEqual({ code, hasFailed: true })
    expect(late.secondsAfter.task, late.err).toBeLessThan(22)
  },
)
