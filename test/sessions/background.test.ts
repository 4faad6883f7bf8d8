import { expect, test } from 'vitest'
import { BackgroundWork } from '../../src/sessions/background.ts'
import { SessionState } from '../../src/sessions/session-state.ts'
import { SessionEvent } from '../../src/wire/sessions/session-event.ts'

const thread = (status: string, id: unknown, ids?: string[], run?: string) => ({
  type: `session.thread_${status}`,
  session_thread_id: id,
  ...(ids ? { stop_reason: { type: 'requires_action', event_ids: ids } } : {}),
  ...(run === undefined ? {} : { workflow_run_id: run }),
})
const created = (id: unknown, status = 'created') => ({ type: `workflow_run.${status}`, workflow_run_id: id })

const read = (events: object[]) => {
  const background = new BackgroundWork()
  for (const event of events) background.add(SessionEvent.parse(event))
  return background
}

test.each<[rule: string, events: object[], waiting: string[]]>([
  [
    'a child thread waits only for replies to the tool uses in its last idle event',
    [thread('status_idle', 'a', ['t1']), thread('status_idle', 'a', ['t2'])],
    ['t2'],
  ],
  [
    'a tool use in the idle events of two child threads stays open while one of the threads waits',
    [thread('status_idle', 'a', ['t1']), thread('status_idle', 'b', ['t1']), thread('status_running', 'a')],
    ['t1'],
  ],
  [
    'a child thread that has ended waits for no tool use',
    [thread('status_terminated', 'a'), thread('status_idle', 'a', ['t1'])],
    [],
  ],
  [
    'a child thread with an invalid id waits for no tool use',
    [thread('status_idle', 5, ['t1']), thread('status_idle', '', ['t1'])],
    [],
  ],
])('%s', (_, events, waiting) => {
  expect([...read(events).waiting]).toEqual(waiting)
})

test.each<[rule: string, events: object[], open: string[], canContinue: boolean]>([
  [
    'a workflow run that has ended does not open again if its creation event is repeated',
    [created('w', 'status_ended'), created('w')],
    [],
    false,
  ],
  [
    'an idle workflow run stays idle after an error',
    [created('w', 'status_idle'), created('w', 'error')],
    ['w'],
    false,
  ],
  [
    'a workflow run that works again after an idle event continues without a reply',
    [created('w', 'status_idle'), created('w', 'status_running')],
    ['w'],
    true,
  ],
  [
    'a workflow run continues without a reply if one of its threads works while another waits',
    [
      created('w'),
      thread('created', 'a', undefined, 'w'),
      thread('created', 'b', undefined, 'w'),
      thread('status_running', 'b'),
      thread('status_idle', 'a', ['t1']),
    ],
    ['w'],
    true,
  ],
  ['an event with an invalid id opens no workflow run', [created(null), created(''), created({})], [], false],
])('%s', (_, events, open, canContinue) => {
  const background = read(events)
  expect(background.openRuns.map(({ id }) => id)).toEqual(open)
  expect(background.canContinue).toBe(canContinue)
})

test('a session with 5,000 waiting child threads waits for all of them, and continues after the last reply', () => {
  const state = new SessionState()
  const add = (event: object) => state.add(SessionEvent.parse(event))
  const count = 5_000
  for (let i = 0; i < count; i++) {
    add(created(`w${i}`))
    add(thread('created', `a${i}`, undefined, `w${i}`))
    add({ id: `t${i}`, type: 'agent.tool_use', session_thread_id: `a${i}` })
    add(thread('status_idle', `a${i}`, [`t${i}`]))
  }
  add({ type: 'session.status_idle', stop_reason: { type: 'end_turn' } })
  expect(state.stop).toMatchObject({ kind: 'waiting', ids: { length: count } })
  for (let i = 0; i < count; i++)
    add({ type: 'user.tool_confirmation', tool_use_id: `t${i}`, result: 'allow' })
  expect(state.stop).toBeUndefined()
  expect(state.openRuns).toHaveLength(count)
})
