import { expect, test } from 'vitest'
import { computeFirstFollowState, computeNextFollowState } from '../../src/sessions/following/following.ts'
import { SeenEvents } from '../../src/sessions/following/seen-events.ts'
import { SessionState } from '../../src/sessions/session-state.ts'
import type { SessionEvent } from '../../src/wire/sessions/session-event.ts'
import { expectLinearWork } from '../harness/steps.ts'

const listIds = (size: number) => Array.from({ length: size / 16 }, (_, index) => `t${index}`)
const use = (id: string) => ({ type: 'agent.tool_use', id, evaluated_permission: 'ask' })
const confirm = (id: string) => ({ type: 'user.tool_confirmation', tool_use_id: id, result: 'allow' })
const needsAction = (event_ids?: string[]) => ({ type: 'requires_action', event_ids })
const idle = (ids?: string[]) => ({ type: 'session.status_idle', stop_reason: needsAction(ids) })

test.each([
  ['replies to many tool uses of an idle event', (ids: string[]) => [idle(ids), ...ids.map(confirm)]],
  ['replies to many tool uses that no event lists', (ids: string[]) => [idle(), ...ids.map(confirm)]],
  [
    'many interrupts of the tool uses of an idle event',
    (ids: string[]) => [idle(ids), ...ids.map(() => ({ type: 'user.interrupt' }))],
  ],
])('parley computes the state of a session in linear time after %s', async (_, create) => {
  await expectLinearWork((size) => {
    const ids = listIds(size)
    const state = new SessionState()
    for (const event of [...ids.map(use), ...create(ids)]) state.add(event)
    expect(state.pending).toEqual([])
  })
})

test('many events before the sent task that a new stream delivers late are sorted in linear time', async () => {
  await expectLinearWork((size) => {
    const task = { type: 'user.message', id: 'task', content: [{ type: 'text', text: 'go' }] }
    const seen = new SeenEvents()
    const add = (event: SessionEvent, isHeld = false) =>
      seen.addStreamed({ event, text: JSON.stringify(event) }, isHeld)
    seen.addSent([task])
    add(task)
    seen.addConnection()
    for (const id of listIds(size)) add({ type: 'session.status_running', id }, true)
    add(task)
    expect(seen.isHoldingBack).toBe(false)
    expect(seen.task.id).toBe('task')
  })
})

test('the follower decides in linear time what to do after each event of a working agent', async () => {
  await expectLinearWork((size) => {
    const task = { type: 'user.message', id: 'task', content: [{ type: 'text', text: 'go' }] }
    const seen = new SeenEvents()
    seen.addSent([task])
    let state = computeFirstFollowState(seen, false)
    const events = listIds(size).map((id) => ({ type: 'agent.thinking', id }))
    for (const event of [task, ...events]) {
      const item = { event, text: JSON.stringify(event) }
      state = computeNextFollowState(state, { is: 'event', item }, 0)
      state = computeNextFollowState(state, { is: 'emitted' }, 0)
    }
    expect(state.effect.do).toBe('listen')
  })
})

test('a stream that delivers the sent task again and again is read in linear time', async () => {
  await expectLinearWork((size) => {
    const task = { type: 'user.message', id: 'task', content: [{ type: 'text', text: 'go' }] }
    const seen = new SeenEvents()
    const add = (event: SessionEvent) => seen.addStreamed({ event, text: JSON.stringify(event) })
    seen.addSent([task])
    for (const id of listIds(size)) add({ type: 'session.status_running', id })
    add(task)
    seen.addConnection()
    for (const _ of listIds(size)) add(task)
    expect(seen.task.id).toBe('task')
  })
})
