import { expect, test } from 'vitest'
import {
  findUnapprovedToolUses,
  type Judgement,
  type NotRun,
} from '../../../src/sessions/running/judgement.ts'
import type { EventItem } from '../../../src/wire/sessions/events-page.ts'

/** Says how many of its entries were walked over. */
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
const itemOf = (event: { type: string } & Record<string, unknown>) => ({ event, text: JSON.stringify(event) })
const use = (id: string, permission: string) =>
  itemOf({ id, type: 'agent.tool_use', name: 'bash', input: {}, evaluated_permission: permission })
const rest = (ids: string[]) =>
  itemOf({ type: 'session.status_idle', stop_reason: { type: 'requires_action', event_ids: ids } })
/** What is found in events, one after the other. */
async function findEach(denied: NotRun, items: readonly EventItem[]): Promise<Judgement[]> {
  const judgements: Judgement[] = []
  for (const item of items) judgements.push(...(await findUnapprovedToolUses(denied, item, rules)))
  return judgements
}

const result = (id: string) => itemOf({ type: 'agent.tool_result', tool_use_id: id })

test('a denied tool use is found by its result, and one that the service allowed by a rest too', async () => {
  const denied = { allowed: new Counted(), others: new Counted() }
  const found = async (item: ReturnType<typeof itemOf>) =>
    (await findUnapprovedToolUses(denied, item, rules)).map(({ use }) => use.id)
  for (const id of ['a1', 'a2', 'a3']) expect(await found(use(id, 'allow'))).toEqual([])
  for (const id of ['b1', 'b2']) expect(await found(use(id, 'ask'))).toEqual([])
  expect(await found(result('a2'))).toEqual(['a2'])
  expect(await found(result('b2'))).toEqual(['b2'])
  expect(await found(result('b2'))).toEqual([])
  expect(await found(rest(['a3', 'b1']))).toEqual(['a1'])
  expect([[...denied.allowed.keys()], [...denied.others.keys()]]).toEqual([['a3'], ['b1']])
})

test('events do not walk over all that was denied', async () => {
  const denied = { allowed: new Counted(), others: new Counted() }
  for (let n = 0; n < 100; n++)
    await findUnapprovedToolUses(denied, use(`u${n}`, n % 2 ? 'allow' : 'ask'), rules)
  for (let n = 0; n < 100; n++) {
    await findUnapprovedToolUses(denied, itemOf({ type: 'agent.message' }), rules)
    await findUnapprovedToolUses(denied, result(`u${n}`), rules)
  }
  expect([denied.allowed.size, denied.others.size]).toEqual([0, 0])
  expect([denied.allowed.walked, denied.others.walked]).toEqual([0, 0])
})

const mcpUse = itemOf({ id: 'u1', type: 'agent.mcp_tool_use', name: 'x', evaluated_permission: 'ask' })
const as = (type: string, item = result('u1')) => itemOf({ ...item.event, type })
const silent = itemOf({ type: 'session.status_idle', stop_reason: { type: 'requires_action' } })
const ended = itemOf({ type: 'session.status_idle', stop_reason: { type: 'end_turn' } })
const gone = itemOf({ type: 'session.status_terminated' })

test.each<[what: string, items: EventItem[], found: boolean]>([
  ['its result comes', [use('u1', 'ask'), result('u1')], true],
  [
    'its result comes, of an MCP tool',
    [mcpUse, itemOf({ type: 'agent.mcp_tool_result', mcp_tool_use_id: 'u1' })],
    true,
  ],
  ['the result of another one comes', [use('u1', 'ask'), result('u2')], false],
  ['the service allowed it, and the turn ends', [use('u1', 'allow'), ended], true],
  ['the service allowed it, and the session ends', [use('u1', 'allow'), gone], true],
  ['the service allowed it, and rests for what it does not say', [use('u1', 'allow'), silent], false],
  ['the service allowed it the second time', [use('u1', 'ask'), use('u1', 'allow'), ended], true],
  ['the service allowed it, but not the second time', [use('u1', 'allow'), use('u1', 'ask'), ended], false],
  ['the turn ends', [use('u1', 'ask'), ended], false],
  ['the service denied it, and says so', [use('u1', 'deny'), result('u1')], false],
  ['the client carries it out', [as('agent.custom_tool_use', use('u1', 'ask')), result('u1')], false],
  ['it is only like a tool use', [as('x.agent.tool_use', use('u1', 'ask')), result('u1')], false],
  ['it is a piece of a tool use', [as('agent.tool_use_delta', use('u1', 'ask')), result('u1')], false],
  ['a client gave its result', [use('u1', 'ask'), as('user.tool_result')], false],
  ['what comes is only like a result', [use('u1', 'ask'), as('x.agent.tool_result')], false],
  ['a piece of its result comes', [use('u1', 'ask'), as('agent.tool_result_delta')], false],
])('a denied tool use is found or not: %s', async (_, items, found) => {
  const denied = { allowed: new Map(), others: new Map() }
  const judgements = await findEach(denied, items)
  expect(judgements.map(({ use }) => use.id)).toEqual(found ? ['u1'] : [])
})

test('one without an id is found, too', async () => {
  const { id: _, ...event } = use('u1', 'allow').event as { id: string; type: string }
  const denied = { allowed: new Map(), others: new Map() }
  const judgements = await findEach(denied, [itemOf(event), ended])
  expect(judgements.map(({ use }) => use.id)).toEqual([''])
})

test('Y91: of one without an id no other event says that it ran', async () => {
  const { id: _, ...event } = use('u1', 'ask').event as { id: string; type: string }
  const denied = { allowed: new Map(), others: new Map() }
  expect(await findEach(denied, [itemOf(event), itemOf({ type: 'agent.message' })])).toEqual([])
})

test('one that the policy allows is not looked for', async () => {
  const denied = { allowed: new Map(), others: new Map() }
  const allowing = { ...rules, policy: { rules: [], fallback: { decision: 'allow' } } } as const
  for (const item of [use('u1', 'allow'), use('u2', 'ask')])
    await findUnapprovedToolUses(denied, item, allowing)
  expect([denied.allowed.size, denied.others.size]).toEqual([0, 0])
})
