import { expect, test } from 'vitest'
import { FollowedTask } from '../../../src/sessions/following/followed-task.ts'
import { Denials } from '../../../src/sessions/running/denials.ts'
import { SessionState } from '../../../src/sessions/session-state.ts'
import type { EventItem } from '../../../src/wire/sessions/events-page.ts'

const rules = { policy: { rules: [], fallback: { decision: 'deny' } }, tools: new Map() } as const
const createItem = (event: { type: string } & Record<string, unknown>) => ({
  event,
  text: JSON.stringify(event),
})
const use = (id: string, permission: string) =>
  createItem({ id, type: 'agent.tool_use', name: 'bash', input: {}, evaluated_permission: permission })
const createIdle = (ids: string[]) =>
  createItem({ type: 'session.status_idle', stop_reason: { type: 'requires_action', event_ids: ids } })

/**
 * Returns a function that adds events and returns the ids of the denied tool uses that then count as having
 * run. `isListed`: the list has confirmed the events.
 */
function createFinder() {
  const state = new SessionState()
  const task = new FollowedTask()
  const denials = new Denials(rules, new Map())
  return async (items: readonly EventItem[], isListed: boolean) => {
    for (const { event, text } of items) {
      state.add(event, text)
      task.add({ event, isOurs: false, isUnseen: false, hasEffect: true })
    }
    await denials.add(items, state)
    return denials.drainUnapproved(state, task, isListed).map(({ use }) => use.id)
  }
}

const result = (id: string) => createItem({ type: 'agent.tool_result', tool_use_id: id })

test('a result, or an idle event after the service allowed it, shows that a denied tool use ran', async () => {
  const find = createFinder()
  expect(await find([use('a1', 'allow'), use('a2', 'allow'), use('a3', 'allow')], true)).toEqual([])
  expect(await find([use('b1', 'ask'), use('b2', 'ask')], true)).toEqual([])
  expect(await find([result('a2')], false)).toEqual(['a2'])
  expect(await find([result('b2')], true)).toEqual(['b2'])
  expect(await find([result('b2')], true)).toEqual([])
  expect(await find([createIdle(['a3', 'b1'])], false)).toEqual(['a1'])
  expect(await find([result('b1'), result('a3')], true)).toEqual(['b1', 'a3'])
})

const as = (type: string, item = result('u1')) => createItem({ ...item.event, type })
const silent = createItem({ type: 'session.status_idle', stop_reason: { type: 'requires_action' } })
const ended = createItem({ type: 'session.status_idle', stop_reason: { type: 'end_turn' } })

test.each<[what: string, items: EventItem[], found: boolean]>([
  ['the service allowed it, and an idle event lists no ids', [use('u1', 'allow'), silent], false],
  ['the service denied it, and the result arrives', [use('u1', 'deny'), result('u1')], false],
  ['its type only ends like a tool use', [as('x.agent.tool_use', use('u1', 'ask')), result('u1')], false],
  ['its type is a delta of a tool use', [as('agent.tool_use_delta', use('u1', 'ask')), result('u1')], false],
  ['the type of the result only ends like a result', [use('u1', 'ask'), as('x.agent.tool_result')], false],
  ['a delta of its result arrives', [use('u1', 'ask'), as('agent.tool_result_delta')], false],
  ['its result arrives before it', [result('u1'), use('u1', 'ask')], true],
])('parley finds out whether a denied tool use ran: %s', async (_, items, found) => {
  expect(await createFinder()(items, true)).toEqual(found ? ['u1'] : [])
})

test('parley detects that a denied tool use without an id ran', async () => {
  const { id: _, ...event } = use('u1', 'allow').event as { id: string; type: string }
  expect(await createFinder()([createItem(event), ended], true)).toEqual([''])
})

test('Y91: only the end of the turn can show that a tool use without an id ran', async () => {
  const { id: _, ...event } = use('u1', 'ask').event as { id: string; type: string }
  expect(await createFinder()([createItem(event), createItem({ type: 'agent.message' })], true)).toEqual([])
})
