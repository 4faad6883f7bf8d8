import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Timers } from '../../../src/timers.ts'
import { createClock } from '../../harness/clock.ts'
import { scaleRuns } from '../../harness/property-runs.ts'
import { run } from '../../harness/run.ts'
import { expectFollowOutput, expectSendOutput, findAnswerId, findMistakes, readIds } from './judge.ts'
import { createScenarioService, type ScenarioService } from './scenario-service.ts'
import { followScenarios, getSentId, type ScenarioLimits, sendScenarios, taskText } from './scenarios.ts'

const runs = Number(process.env.FOLLOW_RUNS ?? scaleRuns(50).numRuns)

const plain: ScenarioLimits = { maxLag: 0, maxLate: 0, mayOmitUserEvents: false, maySendComments: false }
const quiet = { mayOmitUserEvents: true, maySendComments: true }
const worlds: [name: string, limits: ScenarioLimits][] = [
  ['streams replay, repeat and are cut', plain],
  ['streams omit user events and send endless comments', { ...plain, ...quiet }],
  ['lists lag and streams omit user events', { maxLag: 3, maxLate: 3, ...quiet }],
]

const assert = <T>(property: fc.IAsyncProperty<T>) => fc.assert(property, { numRuns: runs })

const world = (service: ScenarioService, timers: Timers) => ({
  exchange: service.exchange,
  timers,
  env: { PARLEY_SESSION: 'sesn_1' },
})

describe.each(worlds)('parley follows a service correctly if %s', (condition, limits) => {
  test(`events send --follow prints each event after the sent event once and ends at the next idle event, even if ${condition}`, async () => {
    const property = fc.asyncProperty(sendScenarios(limits), fc.boolean(), async (scenario, isRaw) => {
      const clock = createClock()
      const service = createScenarioService(scenario, clock)
      const argv = ['events', 'send', taskText, '--follow', ...(isRaw ? ['--raw'] : [])]
      const { code, out, err } = await run(argv, world(service, clock))
      const printed = readIds(out, isRaw, service.events)
      const wrong = findMistakes(printed, expectSendOutput(scenario), service, scenario.lag)
      expect([service.posts.length, code, wrong], err).toEqual([1, scenario.code, []])
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
        const wrong = findMistakes(printed, expected, service, scenario.lag)
        expect([service.posts.length, code, wrong], err).toEqual([0, scenario.code, []])
      },
    )
    await assert(property)
  })

  test(`events run --last prints the answer to the followed task, and to no other task, even if ${condition}`, async () => {
    const property = fc.asyncProperty(
      fc.oneof(sendScenarios(limits), followScenarios(limits)),
      async (scenario) => {
        const clock = createClock()
        const service = createScenarioService(scenario, clock)
        const argv = ['events', 'run', '--last', ...(scenario.isSent ? [taskText] : [])]
        const { code, out, err } = await run(argv, world(service, clock))
        const answer = scenario.code === 0 ? (findAnswerId(scenario) ?? '') : ''
        const expected = scenario.code === 0 && answer === '' ? 8 : scenario.code
        const posts = scenario.isSent ? 1 : 0
        expect([service.posts.length, code, out.trim()], err).toEqual([posts, expected, answer])
      },
    )
    await assert(property)
  })
})

test('events send --interrupt --follow ends if nothing follows the interrupt', async () => {
  const isResting = (type = '') => /idle$|interrupt$/.test(type)
  const resting = sendScenarios(plain).filter(({ history }) => isResting(history.at(-1)?.type))
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
