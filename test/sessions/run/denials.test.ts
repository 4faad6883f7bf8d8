import { expect, test, vi } from 'vitest'
import { SessionLog } from '../../../src/sessions/following/session-log.ts'
import { DenialCollector } from '../../../src/sessions/running/denials.ts'
import type { Judgement } from '../../../src/sessions/running/judgement.ts'
import type { SessionRun } from '../../../src/sessions/running/session-run.ts'
import type { EventItem } from '../../../src/wire/sessions/events-page.ts'

const createItem = (event: { type: string; [field: string]: unknown }) => ({
  event,
  text: JSON.stringify(event),
})
const use = (id: string, permission: string) =>
  createItem({ id, type: 'agent.tool_use', name: 'bash', input: {}, evaluated_permission: permission })
const createIdle = (ids: string[]) =>
  createItem({ type: 'session.status_idle', stop_reason: { type: 'requires_action', event_ids: ids } })

/**
 * Returns a function that adds events, and returns the ids of the denied tool uses that now count as executed.
 * `isListed`: the list contains the events.
 */
function createFinder(log = new SessionLog()) {
  let reported: string[] = []
  const denials = new DenialCollector({
    plan: { policy: { rules: [], fallback: { decision: 'deny' } } },
    audit: { denied: new Map(), addUnapproved: ({ use }: Judgement) => reported.push(use.id) },
    context: { reportData: { figures: { warnings: {} } }, messages: { warn() {} } },
    follower: log,
  } as unknown as SessionRun)
  let count = 0
  return async (items: readonly EventItem[], isListed: boolean) => {
    reported = []
    for (const item of items) log.append({ ...item, identity: String(count++) })
    await denials.add(items)
    denials.reportUnapproved(isListed)
    return reported
  }
}

const result = (id: string) => createItem({ type: 'agent.tool_result', tool_use_id: id })

test('a denied tool use counts as executed after its result, or after an idle event if the service allowed it', async () => {
  const find = createFinder()
  expect(await find([use('a1', 'allow'), use('a2', 'allow'), use('a3', 'allow')], true)).toEqual([])
  expect(await find([use('b1', 'ask'), use('b2', 'ask')], true)).toEqual([])
  expect(await find([result('a2')], false)).toEqual(['a2'])
  expect(await find([result('b2')], true)).toEqual(['b2'])
  expect(await find([result('b2')], true)).toEqual([])
  expect(await find([createIdle(['a3', 'b1'])], false)).toEqual(['a1'])
  expect(await find([result('b1'), result('a3')], true)).toEqual(['a3', 'b1'])
})

const delta = createItem({ ...result('u1').event, type: 'agent.tool_result_delta' })
const silent = createItem({ type: 'session.status_idle', stop_reason: { type: 'requires_action' } })
const ended = createItem({ type: 'session.status_idle', stop_reason: { type: 'end_turn' } })

test.each<['counts' | 'does not count', when: string, items: EventItem[]]>([
  ['does not count', 'the service allowed it and the idle event has no ids', [use('u1', 'allow'), silent]],
  ['does not count', 'the service denied it, although its result arrived', [use('u1', 'deny'), result('u1')]],
  ['does not count', 'only a delta of its result arrived', [use('u1', 'ask'), delta]],
  ['counts', 'its result arrived first', [result('u1'), use('u1', 'ask')]],
])('a tool use that parley denied %s as executed if %s', async (expected, _, items) => {
  expect(await createFinder()(items, true)).toEqual(expected === 'counts' ? ['u1'] : [])
})

test('Y91: a denied tool use without an id counts as executed at the end of the turn, but not before', async () => {
  const withoutId = (permission: string) =>
    createItem({ ...use('', permission).event, id: undefined } as never)
  expect(await createFinder()([withoutId('allow'), ended], true)).toEqual([''])
  expect(await createFinder()([withoutId('ask'), createItem({ type: 'agent.message' })], true)).toEqual([])
})

test('the search for denied tool uses that ran reads each event only a few times', async () => {
  const log = new SessionLog()
  const isFollowed = vi.spyOn(log.task, 'isFollowed')
  const find = createFinder(log)
  for (let index = 0; index < 100; index++) {
    const id = `u${index}`
    expect(await find([use(id, 'allow'), result(id)], false)).toEqual([id])
  }
  expect(isFollowed.mock.calls.length).toBeLessThan(1000)
})
