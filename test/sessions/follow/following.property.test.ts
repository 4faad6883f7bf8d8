import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SeenEvents } from '../../../src/sessions/following/seen-events.ts'
import type { Timers } from '../../../src/timers.ts'
import { createClock } from '../../harness/clock.ts'
import { scaleRuns } from '../../harness/property-runs.ts'
import { run } from '../../harness/run.ts'
import { afterSent, findAnswer, findMistakes, fromNow, readIds } from './judge.ts'
import { type Limits, sending, taskText, working } from './session-scripts.ts'
import { createSessionService, type SessionService, sentId } from './session-service.ts'

const runs = Number(process.env.FOLLOW_RUNS ?? scaleRuns(50).numRuns)

const plain: Limits = { lag: 0, late: 0, mute: false, keepsAlive: false }
const worlds: [name: string, limits: Limits][] = [
  ['streams replay, repeat and are cut', plain],
  ['streams omit the events of users, and comments never end', { ...plain, mute: true, keepsAlive: true }],
  ['all of this happens at once', { lag: 3, late: 3, mute: true, keepsAlive: true }],
]

const assert = <T>(property: fc.IAsyncProperty<T>) => fc.assert(property, { numRuns: runs })

const world = (service: SessionService, timers: Timers) => ({
  exchange: service.exchange,
  timers,
  env: { PARLEY_SESSION: 'sesn_1' },
})

describe.each(worlds)('service where %s', (_, limits) => {
  test('events send --follow prints every event after the sent one once, and ends at the next idle event', async () => {
    const property = fc.asyncProperty(sending(limits), fc.boolean(), async (scenario, isRaw) => {
      const clock = createClock()
      const service = createSessionService(scenario, clock)
      const argv = ['events', 'send', taskText, '--follow', ...(isRaw ? ['--raw'] : [])]
      const { code, out, err } = await run(argv, world(service, clock))
      const printed = readIds(out, isRaw, service.ledger)
      expect(
        {
          posts: service.posts,
          code,
          wrong: findMistakes(printed, afterSent(scenario), service, scenario.lag),
        },
        err,
      ).toEqual({ posts: 1, code: scenario.code, wrong: [] })
    })
    await assert(property)
  })

  test('events follow prints every event since its start once, and with --history all events', async () => {
    const property = fc.asyncProperty(
      working(limits),
      fc.boolean(),
      fc.boolean(),
      async (scenario, isRaw, hasHistory) => {
        const clock = createClock()
        const service = createSessionService(scenario, clock)
        const argv = ['events', 'follow', ...(isRaw ? ['--raw'] : []), ...(hasHistory ? ['--history'] : [])]
        const { code, out, err } = await run(argv, world(service, clock))
        const printed = readIds(out, isRaw, service.ledger)
        const expected = fromNow(scenario, service, hasHistory)
        expect(
          { posts: service.posts, code, wrong: findMistakes(printed, expected, service, scenario.lag) },
          err,
        ).toEqual({
          posts: 0,
          code: scenario.code,
          wrong: [],
        })
      },
    )
    await assert(property)
  })

  test('events run --last prints the answer of the followed turn, and of no other', async () => {
    const property = fc.asyncProperty(fc.oneof(sending(limits), working(limits)), async (scenario) => {
      const clock = createClock()
      const service = createSessionService(scenario, clock)
      const argv = ['events', 'run', '--last', ...(scenario.isSent ? [taskText] : [])]
      const { code, out, err } = await run(argv, world(service, clock))
      const answer = scenario.code === 0 ? (findAnswer(scenario) ?? '') : ''
      expect({ posts: service.posts, code, out: out.trim() }, err).toEqual({
        posts: scenario.isSent ? 1 : 0,
        code: scenario.code === 0 && answer === '' ? 8 : scenario.code,
        out: answer,
      })
    })
    await assert(property)
  })
})

test('events send --interrupt --follow ends if nothing follows the interrupt', async () => {
  const resting = sending(plain).filter(({ history }) => /idle$|interrupt$/.test(history.at(-1)?.type ?? ''))
  const property = fc.asyncProperty(resting, fc.boolean(), async (scenario, isRaw) => {
    const clock = createClock()
    const start = clock.now()
    const service = createSessionService({ ...scenario, runsFirst: false, turn: [] }, clock)
    const argv = ['events', 'send', '--interrupt', '--follow', ...(isRaw ? ['--raw'] : [])]
    const { code, out, err } = await run(argv, world(service, clock))
    const printed = readIds(out, isRaw, service.ledger).filter((id) => id !== sentId)
    expect({ posts: service.posts, code, printed }, err).toEqual({ posts: 1, code: 0, printed: [] })
    expect(clock.now() - start, 'milliseconds').toBeLessThan(300_000)
  })
  await assert(property)
})

test('events list prints the requested events although the service ignores the query', async () => {
  const wish = fc.record({
    type: fc.option(fc.constantFrom('agent.message', 'user.message', 'none.such'), { nil: undefined }),
    limit: fc.option(fc.integer({ min: 1, max: 12 }), { nil: undefined }),
    isRaw: fc.boolean(),
  })
  const property = fc.asyncProperty(sending(plain), wish, async (scenario, { type, limit, isRaw }) => {
    const clock = createClock()
    const service = createSessionService(scenario, clock)
    const argv = ['events', 'list', ...(isRaw ? ['--raw'] : ['--ids'])]
    if (type) argv.push('--type', type)
    if (limit) argv.push('--limit', String(limit))
    const { code, out, err } = await run(argv, world(service, clock))
    const wanted = scenario.history.filter((event) => type === undefined || event.type === type)
    const expected = wanted.slice(limit === undefined ? 0 : -limit).map(({ id }) => id)
    expect({ code, ids: readIds(out, isRaw, service.ledger) }, err).toEqual({ code: 0, ids: expected })
  })
  await assert(property)
})

test('events that a list adds late lead to the same state as events in order', () => {
  const types = [
    'agent.tool_use',
    'agent.tool_result',
    'user.tool_confirmation',
    'agent.thinking',
    'agent.message',
    'session.error',
    'span.model_request_end',
    'session.status_running',
    'session.status_idle',
    'user.message',
    'user.interrupt',
  ]
  const event = fc.record({
    type: fc.constantFrom(...types),
    use: fc.integer({ min: 0, max: 3 }),
    waits: fc.boolean(),
    isLate: fc.boolean(),
  })
  const property = fc.property(fc.array(event, { maxLength: 25 }), fc.nat(25), (script, pageSize) => {
    const used = new Set<number>()
    const items = script.map(({ type: wanted, use, waits, isLate }, i) => {
      const permission = use < 2 ? 'allow' : 'ask'
      const isUnknown = /result|confirmation/.test(wanted) && !used.has(use)
      const isUnasked = wanted === 'user.tool_confirmation' && permission === 'allow'
      const type = isUnknown || isUnasked ? 'agent.thinking' : wanted
      const isFirst = type === 'agent.tool_use' && !used.has(use)
      if (isFirst) used.add(use)
      const fields = {
        'agent.tool_use': { name: 'bash', input: {}, evaluated_permission: permission },
        'agent.tool_result': { tool_use_id: `u${use}` },
        'user.tool_confirmation': { tool_use_id: `u${use}`, result: 'allow' },
        'session.error': { error: { retry_status: 'exhausted' } },
        'session.status_idle': {
          stop_reason: waits
            ? { type: 'requires_action', event_ids: [`u${use}`, `u${(use + 2) % 4}`] }
            : 'end_turn',
        },
      }[type]
      const event = { id: isFirst ? `u${use}` : `e${i}`, type, ...fields }
      return { event, text: JSON.stringify(event), isLate }
    })
    const late = new SeenEvents()
    const early = items.filter(({ isLate }) => !isLate)
    late.addEarlier(early.slice(0, pageSize))
    late.addEarlier(early.slice(pageSize))
    late.addList(items)
    const inOrder = new SeenEvents()
    for (const item of items) inOrder.addStreamed(item)
    const describe = ({ state, task }: SeenEvents) => ({
      stop: state.stop,
      open: [state.pending, state.unlisted, state.answerable],
      error: state.hasFinalError,
      task: [task.answer?.id, task.id, task.isInterrupted, task.mayBeDone],
      uses: [...task.readEvents()].filter(({ type }) => type === 'agent.tool_use').map(({ id }) => id),
    })
    expect(describe(late)).toEqual(describe(inOrder))
  })
  fc.assert(property, { numRuns: runs * 20 })
})
