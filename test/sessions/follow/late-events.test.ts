import { describe, expect, test } from 'vitest'
import {
  asks,
  bash,
  createSessionService,
  custom,
  type Event,
  endTurn,
  interrupt,
  running,
  type SessionScript,
  type Steps,
  says,
  shown,
  waitsFor,
} from '../../harness/session-service.ts'

/** Only a list shows this event, three seconds late. */
const late = (event: Event) => shown(event, { streamed: 'never', listed: 3_000 })

const terminated: Event = { type: 'session.status_terminated' }
const ranUnasked: Event = { type: 'agent.tool_result', tool_use_id: 't1' }
const confirms = (id: string, result: 'allow' | 'deny'): Event => ({
  type: 'user.tool_confirmation',
  tool_use_id: id,
  result,
})
const evaluates = (result: string): Event => ({ type: 'span.outcome_evaluation_end', result })

/**
 * Creates a session that shows these events after a task: in the stream at once, in lists after three
 * seconds.
 */
function afterTask(next: Steps, more: SessionScript = {}) {
  const service = createSessionService({
    history: [asks('before'), running, says('earlier'), endTurn],
    posts: [{ of: 'user.message', next }],
    usually: { listed: 3_000 },
    ...more,
  })
  service.write('allow.json', { rules: [], default: { decision: 'allow' } })
  return service
}
const runArguments = ['events', 'run', 'do it', '--last', '--policy', 'allow.json']
const typesOf = (posts: Event[][]) => posts.flat().map(({ type }) => type)

describe('an older idle event that the stream omitted and the list shows late', () => {
  test('a late idle event allows no tool use after an interrupt of another client', async () => {
    const service = afterTask([running, bash('t1'), late(waitsFor('t1')), interrupt, endTurn])
    const { code } = await service.run(runArguments)
    expect([code, typesOf(service.posts)]).toEqual([15, ['user.message']])
  })

  test('a late idle event starts no command after an interrupt of another client', async () => {
    const service = afterTask([running, custom('t1'), late(waitsFor('t1')), interrupt, endTurn])
    const { code } = await service.run([...runArguments, '--tool', 'count=echo done > ran'])
    expect([code, typesOf(service.posts)]).toEqual([15, ['user.message']])
    expect(() => service.lines('ran')).toThrow('ENOENT')
  })

  test('a late idle event allows no tool use of a terminated session', async () => {
    const service = afterTask([running, bash('t1'), late(waitsFor('t1')), terminated])
    const { code } = await service.run(runArguments)
    expect([code, typesOf(service.posts)]).toEqual([13, ['user.message']])
  })

  test('a late idle event does not end a run while a tool use waits', async () => {
    const service = afterTask([running, late(endTurn), running, bash('t1'), waitsFor('t1')])
    const { code, out } = await service.run(['events', 'run', 'do it', '--last'])
    expect([code, out]).toEqual([12, ''])
  })

  test('a late idle event for a tool use does not keep a run from its end', async () => {
    const service = afterTask([
      running,
      bash('t1'),
      late(waitsFor('t1')),
      confirms('t1', 'allow'),
      ranUnasked,
      says('the answer'),
      endTurn,
    ])
    const { code, out } = await service.run([...runArguments, '--deadline', '60'])
    expect([code, out, typesOf(service.posts)]).toEqual([0, 'the answer\n', ['user.message']])
  })
})

test.each([1, 2, 3])(
  'sends no reply after an interrupt if the stream is cut after %i events while the list lags',
  async (cutAfter) => {
    const next = [running, bash('t1'), waitsFor('t1'), interrupt, endTurn]
    const service = afterTask(next, { streams: [{ cutAfter }] })
    const { code } = await service.run([...runArguments, '--deadline', '60'])
    expect([code, typesOf(service.posts)]).toEqual([15, ['user.message']])
  },
)

test('a reply that an interrupt precedes has no effect, and the run exits with 15', async () => {
  const service = afterTask([running, says('half'), bash('t1'), waitsFor('t1')], {
    usually: {},
    posts: [
      { of: 'user.message', next: [running, says('half'), bash('t1'), waitsFor('t1')] },
      { of: 'user.tool_confirmation', before: [interrupt, endTurn] },
    ],
  })
  const { code, out } = await service.run([...runArguments, '--audit', 'audit'])
  expect([code, out, service.posts.length]).toEqual([15, '', 2])
  expect(service.lines('audit').map(({ event }) => event)).not.toContain('done')
})

test('an evaluation that the list shows late does not replace a later one', async () => {
  const service = afterTask([
    running,
    late(evaluates('needs_revision')),
    says('half'),
    evaluates('max_iterations_reached'),
    endTurn,
  ])
  const { code, out } = await service.run(['events', 'run', 'do it', '--last'])
  expect([code, out]).toEqual([13, ''])
})

test('a message of another client that the list shows late does not clear a denial after it', async () => {
  const service = createSessionService({
    history: [asks('before'), running],
    lists: [
      {
        nth: 2,
        before: [
          late(asks('more')),
          bash('t1'),
          waitsFor('t1'),
          confirms('t1', 'deny'),
          running,
          says('the answer'),
          endTurn,
        ],
      },
    ],
    usually: { listed: 3_000 },
  })
  const { code, err } = await service.run(['events', 'run', '--last'])
  expect([code, err]).toEqual([14, expect.stringContaining('deny t1 (not by this run)')])
})

test('an interrupt that the list shows late does not count for a later tool use', async () => {
  const service = createSessionService({
    history: [asks('before'), running],
    lists: [
      {
        nth: 2,
        before: [
          bash('t1'),
          waitsFor('t1'),
          late(interrupt),
          endTurn,
          asks('again'),
          running,
          bash('t2'),
          waitsFor('t2'),
        ],
      },
    ],
    usually: { listed: 3_000 },
  })
  const { code, err } = await service.run(['events', 'follow'])
  expect([code, err]).toEqual([12, expect.stringContaining('t2')])
})

test.each([
  ['events', 'run', 'do it', '--last'],
  ['events', 'send', 'do it', '--follow'],
])('without event ids, a late session.status_running does not hang %s %s', async (...argv) => {
  const service = afterTask([late(running), says('the answer'), endTurn], { hasNoIds: true })
  const { code, out } = await service.run([...argv, '--deadline', '120'])
  expect([code, out]).toEqual([0, expect.stringContaining('the answer\n')])
})
