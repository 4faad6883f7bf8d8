import { expect, test } from 'vitest'
import {
  type DeniedToolUses,
  findUnapprovedToolUses,
  type Judgement,
} from '../../../src/sessions/running/judgement.ts'
import type { EventItem } from '../../../src/wire/sessions/events-page.ts'

/** Counts the entries that were iterated. */
class Counted extends Map<string, Judgement> {
  walked = 0

  override values() {
    this.walked += this.size
    return super.values()
  }

  override keys() {
    this.walked += this.size
    return super.keys()
  }
}

const rules = { policy: { rules: [], fallback: { decision: 'deny' } }, tools: new Map() } as const
const createItem = (event: { type: string } & Record<string, unknown>) => ({
  event,
  text: JSON.stringify(event),
})
const use = (id: string, permission: string) =>
  createItem({ id, type: 'agent.tool_use', name: 'bash', input: {}, evaluated_permission: permission })
const createIdle = (ids: string[]) =>
  createItem({ type: 'session.status_idle', stop_reason: { type: 'requires_action', event_ids: ids } })
/** Returns the decisions about denied tool uses that ran, in order. */
async function findEach(denied: DeniedToolUses, items: readonly EventItem[]): Promise<Judgement[]> {
  const judgements: Judgement[] = []
  for (const item of items) judgements.push(...(await findUnapprovedToolUses(denied, item, rules)))
  return judgements
}

const result = (id: string) => createItem({ type: 'agent.tool_result', tool_use_id: id })

test('a result, or an idle event after the service allowed it, shows that a denied tool use ran', async () => {
  const denied = { allowed: new Counted(), asked: new Counted() }
  const found = async (item: ReturnType<typeof createItem>) =>
    (await findUnapprovedToolUses(denied, item, rules)).map(({ use }) => use.id)
  for (const id of ['a1', 'a2', 'a3']) expect(await found(use(id, 'allow'))).toEqual([])
  for (const id of ['b1', 'b2']) expect(await found(use(id, 'ask'))).toEqual([])
  expect(await found(result('a2'))).toEqual(['a2'])
  expect(await found(result('b2'))).toEqual(['b2'])
  expect(await found(result('b2'))).toEqual([])
  expect(await found(createIdle(['a3', 'b1']))).toEqual(['a1'])
  expect([[...denied.allowed.keys()], [...denied.asked.keys()]]).toEqual([['a3'], ['b1']])
})

test('the check of denied tool uses does not iterate over all of them for each event', async () => {
  const denied = { allowed: new Counted(), asked: new Counted() }
  for (let n = 0; n < 100; n++)
    await findUnapprovedToolUses(denied, use(`u${n}`, n % 2 ? 'allow' : 'ask'), rules)
  for (let n = 0; n < 100; n++) {
    await findUnapprovedToolUses(denied, createItem({ type: 'agent.message' }), rules)
    await findUnapprovedToolUses(denied, result(`u${n}`), rules)
  }
  expect([denied.allowed.size, denied.asked.size]).toEqual([0, 0])
  expect([denied.allowed.walked, denied.asked.walked]).toEqual([0, 0])
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
])('parley finds out whether a denied tool use ran: %s', async (_, items, found) => {
  const denied = { allowed: new Map(), asked: new Map() }
  const judgements = await findEach(denied, items)
  expect(judgements.map(({ use }) => use.id)).toEqual(found ? ['u1'] : [])
})

test('parley detects that a denied tool use without an id ran', async () => {
  const { id: _, ...event } = use('u1', 'allow').event as { id: string; type: string }
  const denied = { allowed: new Map(), asked: new Map() }
  const judgements = await findEach(denied, [createItem(event), ended])
  expect(judgements.map(({ use }) => use.id)).toEqual([''])
})

test('Y91: only the end of the turn can show that a tool use without an id ran', async () => {
  const { id: _, ...event } = use('u1', 'ask').event as { id: string; type: string }
  const denied = { allowed: new Map(), asked: new Map() }
  expect(await findEach(denied, [createItem(event), createItem({ type: 'agent.message' })])).toEqual([])
})
