import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { scaleRuns } from '../../harness/property-runs.ts'
import type { Event } from '../../harness/session-service.ts'
import { type Limits, type Scenario, sending, taskText, working } from './session-scripts.ts'

const plain: Limits = { lagMs: 0, late: 0, isMute: false }
const kinds: [name: string, limits: Limits][] = [
  ['streams replay, repeat, are refused and are cut', plain],
  ['streams omit the events of users', { ...plain, isMute: true }],
  ['lists lag, too', { lagMs: 3_000, late: 3, isMute: true }],
]

const assert = <T>(property: fc.IAsyncProperty<T>) =>
  fc.assert(property, { numRuns: Number(process.env.FOLLOW_RUNS ?? scaleRuns(50).numRuns) })

const getIds = (events: readonly Event[]) => events.map(({ id }) => String(id))

/** Runs a command on a session. Returns the printed ids: with --raw every line has to be an exact event. */
async function runOn(scenario: Scenario, argv: string[]) {
  const service = scenario.open()
  const ended = await service.run([...argv, '--deadline', '12h'])
  const lines = ended.out.split('\n').slice(0, -1)
  const texts = new Set(service.events.map((event) => JSON.stringify(event)))
  const ids = argv.includes('--raw')
    ? lines
        .filter((line) => !/^\{"type":"event_(start|delta)"/.test(line))
        .map((line) => (texts.has(line) ? String(JSON.parse(line).id) : `not an exact event: ${line}`))
    : lines.map((line) => line.split('\t')[0] ?? '')
  return { ...ended, ids, events: getIds(service.events), posts: service.posts.length }
}

/**
 * Checks that each wanted id is printed once, and each open id at most once. Unless lists lag, the order is
 * the order of the session's events.
 */
function expectIds(
  ended: Awaited<ReturnType<typeof runOn>>,
  scenario: Scenario,
  wanted: string[],
  open: string[],
) {
  const { ids, events, code, posts, err } = ended
  const mistakes = [
    ...wanted.filter((id) => !ids.includes(id)).map((id) => `lost: ${id}`),
    ...ids.filter((id, i) => ids.indexOf(id) !== i).map((id) => `twice: ${id}`),
    ...ids.filter((id) => !wanted.includes(id) && !open.includes(id)).map((id) => `not expected: ${id}`),
  ]
  expect({ code, posts, mistakes }, err).toEqual({
    code: scenario.code,
    posts: Number(scenario.isSent),
    mistakes: [],
  })
  if (scenario.lagMs > 0) return
  expect(ids, err).toEqual(ids.toSorted((one, other) => events.indexOf(one) - events.indexOf(other)))
}

describe.each(kinds)('service where %s', (_, limits) => {
  test('events send --follow prints every event after the sent one once, and ends at the next idle event', async () => {
    const property = fc.asyncProperty(sending(limits), fc.boolean(), async (scenario, isRaw) => {
      const argv = ['events', 'send', taskText, '--follow', ...(isRaw ? ['--raw'] : [])]
      const ended = await runOn(scenario, argv)
      // The service chose the ids of the sent event and of the event before it. The sent event is printed only
      // if the response does not identify it.
      const chosen = ended.events.filter((id) => /^e\d/.test(id))
      const isFound = ['events', 'other ids'].includes(scenario.response)
      expectIds(ended, scenario, getIds(scenario.turn), isFound ? chosen.slice(0, -1) : chosen)
    })
    await assert(property)
  })

  test('events follow prints every event since its start once, and with --history all events', async () => {
    const flags = fc.subarray(['--raw', '--history'])
    const property = fc.asyncProperty(working(limits), flags, async (scenario, flags) => {
      const ended = await runOn(scenario, ['events', 'follow', ...flags])
      const [history, turn] = [getIds(scenario.history), getIds(scenario.turn)]
      const isWhole = flags.includes('--history')
      const late = history.slice(history.length - scenario.late)
      expectIds(ended, scenario, isWhole ? [...history, ...turn] : turn, late)
    })
    await assert(property)
  })

  test('events run --last prints the answer of the followed turn, and of no other', async () => {
    const property = fc.asyncProperty(fc.oneof(sending(limits), working(limits)), async (scenario) => {
      const { history, turn, isSent } = scenario
      const argv = ['events', 'run', '--last', ...(isSent ? [taskText] : [])]
      const { code, out, posts, err } = await runOn(scenario, argv)
      // The answer is the agent's last message in the main thread after the last message of a user.
      const since = isSent ? [] : history.slice(history.findLastIndex(({ type }) => type === 'user.message'))
      const answer = [...since, ...turn].findLast(
        (event) => event.type === 'agent.message' && event.session_thread_id === undefined,
      )
      const isDone = scenario.code === 0
      expect({ code, out: out.trim(), posts }, err).toEqual({
        code: isDone && answer === undefined ? 8 : scenario.code,
        out: isDone ? (answer?.id ?? '') : '',
        posts: Number(isSent),
      })
    })
    await assert(property)
  })
})

test('events list prints the requested events although the service ignores the query', async () => {
  const wish = fc.record({
    type: fc.option(fc.constantFrom('agent.message', 'user.message', 'none.such'), { nil: undefined }),
    limit: fc.option(fc.integer({ min: 1, max: 12 }), { nil: undefined }),
    isRaw: fc.boolean(),
  })
  const property = fc.asyncProperty(sending(plain), wish, async (scenario, { type, limit, isRaw }) => {
    const argv = ['events', 'list', isRaw ? '--raw' : '--ids']
    if (type) argv.push('--type', type)
    if (limit) argv.push('--limit', String(limit))
    const { code, ids, err } = await runOn(scenario, argv)
    const wanted = scenario.history.filter((event) => type === undefined || event.type === type)
    expect({ code, ids }, err).toEqual({
      code: 0,
      ids: getIds(wanted.slice(limit === undefined ? 0 : -limit)),
    })
  })
  await assert(property)
})
