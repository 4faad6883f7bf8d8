import { expect, test } from 'vitest'
import type { Judgement } from '../../../src/sessions/running/judgement.ts'
import { findUnasked } from '../../../src/sessions/running/unasked.ts'

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
const result = (id: string) => itemOf({ type: 'agent.tool_result', tool_use_id: id })

test('a denied tool use is found by its result, and one that the service allowed by a rest too', () => {
  const denied = { allowed: new Counted(), others: new Counted() }
  const found = (item: ReturnType<typeof itemOf>) =>
    findUnasked(denied, item, rules).map(({ judgement, isCertain }) => [judgement.use.id, isCertain])
  for (const id of ['a1', 'a2', 'a3']) expect(found(use(id, 'allow'))).toEqual([])
  for (const id of ['b1', 'b2']) expect(found(use(id, 'ask'))).toEqual([])
  expect(found(result('a2'))).toEqual([['a2', true]])
  expect(found(result('b2'))).toEqual([['b2', false]])
  expect(found(result('b2'))).toEqual([])
  expect(found(rest(['a3', 'b1']))).toEqual([['a1', true]])
  expect([[...denied.allowed.keys()], [...denied.others.keys()]]).toEqual([['a3'], ['b1']])
})

test('events do not walk over all that was denied', () => {
  const denied = { allowed: new Counted(), others: new Counted() }
  for (let n = 0; n < 100; n++) findUnasked(denied, use(`u${n}`, n % 2 ? 'allow' : 'ask'), rules)
  for (let n = 0; n < 100; n++) {
    findUnasked(denied, itemOf({ type: 'agent.message' }), rules)
    findUnasked(denied, result(`u${n}`), rules)
  }
  expect([denied.allowed.size, denied.others.size]).toEqual([0, 0])
  expect([denied.allowed.walked, denied.others.walked]).toEqual([0, 0])
})
