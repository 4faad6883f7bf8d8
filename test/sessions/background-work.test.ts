import { expect, test } from 'vitest'
import { BackgroundWork } from '../../src/sessions/background-work.ts'
import { SessionState } from '../../src/sessions/session-state.ts'
import { SessionEvent } from '../../src/wire/sessions/session-event.ts'

const thread = (status: string, id: unknown, run?: string) => ({
  type: `session.thread_${status}`,
  session_thread_id: id,
  ...(run === undefined ? {} : { workflow_run_id: run }),
})
/** Creates an idle event of a child thread that waits for a tool use. */
const waits = (id: unknown, use: string) => ({
  ...thread('status_idle', id),
  stop_reason: { type: 'requires_action', event_ids: [use] },
})
const created = (id: unknown, status = 'created') => ({ type: `workflow_run.${status}`, workflow_run_id: id })

const read = (events: object[]) => {
  const background = new BackgroundWork()
  for (const event of events) background.add(SessionEvent.parse(event))
  return background
}

const sharedUse = [waits('a', 't1'), waits('b', 't1'), thread('status_running', 'a')]
test.each<[rule: string, events: object[], waiting: string[]]>([
  ['waits only for the tool uses in its last idle event', [waits('a', 't1'), waits('a', 't2')], ['t2']],
  ['waits for a tool use even if another thread that waited for it works again', sharedUse, ['t1']],
  ['that has ended waits for no tool use', [thread('status_terminated', 'a'), waits('a', 't1')], []],
  ['with an invalid id waits for no tool use', [waits(5, 't1'), waits('', 't1')], []],
])('a child thread %s', (_, events, waiting) => {
  expect([...read(events).waiting.keys()]).toEqual(waiting)
})

const idle = created('w', 'status_idle')
const ofRun = ['a', 'b'].map((id) => thread('created', id, 'w'))
const oneWorks = [created('w'), ...ofRun, thread('status_running', 'b'), waits('a', 't1')]
test.each<[rule: string, events: object[], open: string[], canContinue: boolean]>([
  ['that has ended stays closed if created again', [created('w', 'status_ended'), created('w')], [], false],
  ['that is idle stays idle after an error', [idle, created('w', 'error')], ['w'], false],
  ['that works again after an idle event continues', [idle, created('w', 'status_running')], ['w'], true],
  ['continues if one of its threads works while another waits', oneWorks, ['w'], true],
  ['with an invalid id is not open', [created(null), created(''), created({})], [], false],
])('a workflow run %s', (_, events, open, canContinue) => {
  const background = read(events)
  expect([...background.runs.keys()]).toEqual(open)
  expect(background.canContinue).toBe(canContinue)
})

test('a session with 5,000 waiting child threads waits for all of them, and continues after the last reply', () => {
  const state = new SessionState()
  const add = (event: object) => state.add(SessionEvent.parse(event))
  const count = 5_000
  for (let i = 0; i < count; i++) {
    add(created(`w${i}`))
    add(thread('created', `a${i}`, `w${i}`))
    add({ id: `t${i}`, type: 'agent.tool_use', session_thread_id: `a${i}` })
    add(waits(`a${i}`, `t${i}`))
  }
  add({ type: 'session.status_idle', stop_reason: { type: 'end_turn' } })
  expect(state.stop).toMatchObject({ kind: 'waiting', ids: { length: count } })
  for (let i = 0; i < count; i++)
    add({ type: 'user.tool_confirmation', tool_use_id: `t${i}`, result: 'allow' })
  expect(state.stop).toBeUndefined()
  expect(state.openRuns).toHaveLength(count)
})
