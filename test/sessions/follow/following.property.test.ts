import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SeenEvents } from '../../../src/sessions/following/seen-events.ts'
import type { Timers } from '../../../src/timers.ts'
import { createClock } from '../../harness/clock.ts'
import { scaleRuns } from '../../harness/property-runs.ts'
import { run } from '../../harness/run.ts'
import { expectFollowOutput, expectSendOutput, findAnswerId, findMistakes, readIds } from './judge.ts'
import { createScenarioService, type ScenarioService } from './scenario-service.ts'
import { followScenarios, getSentId, type ScenarioLimits, sendScenarios, taskText } from './scenarios.ts'

const runs = Number(process.env.FOLLOW_RUNS ?? scaleRuns(50).numRuns)

const plain: ScenarioLimits = { maxLag: 0, maxLate: 0, mayOmitUserEvents: false, maySendComments: false }
const worlds: [name: string, limits: ScenarioLimits][] = [
  ['streams replay, repeat and are cut', plain],
  [
    'streams omit user events and send endless comments',
    { ...plain, mayOmitUserEvents: true, maySendComments: true },
  ],
  [
    'lists lag and streams omit user events',
    { maxLag: 3, maxLate: 3, mayOmitUserEvents: true, maySendComments: true },
  ],
]

const assert = <T>(property: fc.IAsyncProperty<T>) => fc.assert(property, { numRuns: runs })

const world = (service: ScenarioService, timers: Timers) => ({
  exchange: service.exchange,
  timers,
  env: { PARLEY_SESSION: 'sesn_1' },
})

describe.each(worlds)('service where %s', (condition, limits) => {
  test(`events send --follow prints every event after the sent one once, and ends at the next idle event, if ${condition}`, async () => {
    const property = fc.asyncProperty(sendScenarios(limits), fc.boolean(), async (scenario, isRaw) => {
      const clock = createClock()
      const service = createScenarioService(scenario, clock)
      const argv = ['events', 'send', taskText, '--follow', ...(isRaw ? ['--raw'] : [])]
      const { code, out, err } = await run(argv, world(service, clock))
      const printed = readIds(out, isRaw, service.events)
      expect(
        {
          posts: service.posts.length,
          code,
          wrong: findMistakes(printed, expectSendOutput(scenario), service, scenario.lag),
        },
        err,
      ).toEqual({ posts: 1, code: scenario.code, wrong: [] })
    })
    await assert(property)
  })

  test(`events follow prints every new event once, and with --history all events, if ${condition}`, async () => {
    const property = fc.asyncProperty(
      followScenarios(limits),
      fc.boolean(),
      fc.boolean(),
      async (scenario, isRaw, hasHistory) => {
        const clock = createClock()
        const service = createScenarioService(scenario, clock)
        const argv = ['events', 'follow', ...(isRaw ? ['--raw'] : []), ...(hasHistory ? ['--history'] : [])]
        const { code, out, err } = await run(argv, world(service, clock))
        const printed = readIds(out, isRaw, service.events)
        const expected = expectFollowOutput(scenario, service, hasHistory)
        expect(
          {
            posts: service.posts.length,
            code,
            wrong: findMistakes(printed, expected, service, scenario.lag),
          },
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

  test(`events run --last prints the answer to the followed task, and to no other, if ${condition}`, async () => {
    const property = fc.asyncProperty(
      fc.oneof(sendScenarios(limits), followScenarios(limits)),
      async (scenario) => {
        const clock = createClock()
        const service = createScenarioService(scenario, clock)
        const argv = ['events', 'run', '--last', ...(scenario.isSent ? [taskText] : [])]
        const { code, out, err } = await run(argv, world(service, clock))
        const answer = scenario.code === 0 ? (findAnswerId(scenario) ?? '') : ''
        expect({ posts: service.posts.length, code, out: out.trim() }, err).toEqual({
          posts: scenario.isSent ? 1 : 0,
          code: scenario.code === 0 && answer === '' ? 8 : scenario.code,
          out: answer,
        })
      },
    )
    await assert(property)
  })
})

test('events send --interrupt --follow ends if nothing follows the interrupt', async () => {
  const resting = sendScenarios(plain).filter(({ history }) =>
    /idle$|interrupt$/.test(history.at(-1)?.type ?? ''),
  )
  const property = fc.asyncProperty(resting, fc.boolean(), async (scenario, isRaw) => {
    const clock = createClock()
    const start = clock.now()
    const quiet = { ...scenario, runsFirst: false, turn: [] }
    const service = createScenarioService(quiet, clock)
    const argv = ['events', 'send', '--interrupt', '--follow', ...(isRaw ? ['--raw'] : [])]
    const { code, out, err } = await run(argv, world(service, clock))
    const printed = readIds(out, isRaw, service.events).filter((id) => id !== getSentId(quiet))
    expect({ posts: service.posts.length, code, printed }, err).toEqual({ posts: 1, code: 0, printed: [] })
    expect(clock.now() - start, 'milliseconds').toBeLessThan(300_000)
  })
  await assert(property)
})

test('events list prints only the requested events even if the service ignores type and limit', async () => {
  const wish = fc.record({
    type: fc.option(fc.constantFrom('agent.message', 'user.message', 'none.such'), { nil: undefined }),
    limit: fc.option(fc.integer({ min: 1, max: 12 }), { nil: undefined }),
    isRaw: fc.boolean(),
  })
  const property = fc.asyncProperty(sendScenarios(plain), wish, async (scenario, { type, limit, isRaw }) => {
    const clock = createClock()
    const service = createScenarioService(scenario, clock)
    const argv = ['events', 'list', ...(isRaw ? ['--raw'] : ['--ids'])]
    if (type) argv.push('--type', type)
    if (limit) argv.push('--limit', String(limit))
    const { code, out, err } = await run(argv, world(service, clock))
    const wanted = scenario.history.filter((event) => type === undefined || event.type === type)
    const expected = wanted.slice(limit === undefined ? 0 : -limit).map(({ id }) => id)
    expect({ code, ids: readIds(out, isRaw, service.events) }, err).toEqual({ code: 0, ids: expected })
  })
  await assert(property)
})

test('events that a list contains late lead to the same state as events in order', () => {
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
