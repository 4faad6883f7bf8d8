import { expect, test } from 'vitest'
import type { FollowedTask } from '../../../src/sessions/following/followed-task.ts'
import { type IdentifiedEvent, SessionLog } from '../../../src/sessions/following/session-log.ts'
import type { SessionEvent } from '../../../src/wire/sessions/session-event.ts'

/**
 * Types of events by the first letter of their id: `t` is a task, `a` an agent's message, `b` a message in a
 * thread, `i` an interrupt, `j` an interrupt of a thread.
 */
const types: Record<string, string> = {
  t: 'user.message',
  o: 'user.define_outcome',
  a: 'agent.message',
  b: 'agent.message',
  i: 'user.interrupt',
  j: 'user.interrupt',
  c: 'user.tool_confirmation',
  h: 'agent.thinking',
  u: 'agent.tool_use',
  w: 'agent.tool_result',
  m: 'system.message',
  n: 'session.status_running',
  e: 'session.error',
  s: 'span.model_request_end',
  v: 'session.usage',
  x: 'a.type.of.tomorrow',
  y: 'x.agent.tool_use',
  r: 'session.status_idle',
}
const toEvent = (id: string): SessionEvent => ({
  id,
  type: types[id.charAt(0)] ?? '',
  processed_at: undefined,
  ...(/^[bj]/.test(id) ? { session_thread_id: 'th1' } : {}),
})
/** Replaces the ids of a script by the types of the events, for a title. */
const nameTypes = (script: string): string =>
  script.replace(/([a-z])\d/g, (id, kind) => `${types[kind]}${/[bj]/.test(id) ? ' (thread)' : ''}`) ||
  'no event'
const toItem = (id: string, event = toEvent(id)): IdentifiedEvent => ({ identity: id, event, text: id })

function send(log: SessionLog, words: string): void {
  const events = words.split(' ').map(toEvent)
  log.task.addSent(events)
  for (const event of events) log.addAccepted(event)
}

/** Adds words to a log: an event of a stream, or a list `[…]`. `*` follows a sent event. */
function add(log: SessionLog, script: string): void {
  for (const [word] of script.matchAll(/\[[^\]]*\]|\S+/g)) {
    const items = word.replace(/^\[|\]$/g, '').split(' ')
    const ids = items.map((each) => each.replace('*', ''))
    const isOurs = ({ identity }: IdentifiedEvent) => items.includes(`${identity}*`)
    if (word.startsWith('['))
      log.addList(
        ids.map((id) => toItem(id)),
        isOurs,
      )
    else log.append(toItem(ids[0] ?? ''), { isOurs: word.endsWith('*') })
  }
}

function read(script: string, sent?: string): FollowedTask {
  const log = new SessionLog()
  if (sent) send(log, sent)
  add(log, script)
  return log.task
}

test.each<[about: string, script: string, answer: string | undefined, sent?: string]>([
  ['a thread has the last message', 't1 a1 b1 r1', 'a1'],
  ['a newer outcome has no message', 't1 a1 r1 o1 r2', undefined],
  ['there is no task', 'a1 r1', 'a1'],
  ['no message follows the sent task', 'a1 t1*', undefined, 't1'],
  ['no message follows the last of two sent tasks', 't1* a1 t2* r1', undefined, 't1 t2'],
  ['an interrupt and a task were sent', 'i1* t1* a1 t2 r1', 'a1', 'i1 t1'],
  ['a list that lags omits the task', 't1* a1 a3 [a1 a2]', 'a3', 't1'],
  ['a list that lags ends before the task of another client', 't3 [a1]', undefined],
])('the answer to a task is the right message if %s', (_, script, answer, sent) => {
  expect(read(script, sent).answer?.id).toBe(answer)
})

test('the answer to a task is the last message before the task of another client, also if a later list adds that task', () => {
  expect(read('t1* a1 a2 [t1 a1 t2 a2]', 't1').answer?.id).toBe('a1')
})

const interrupts: [script: string, isInterrupted: boolean][] = [
  ['a1 r1', false],
  ['t1 a1 r1', false],
  ['t1 a1 i1 r1', true],
  ['t1 i1 a1 r1 a2', true],
  ['t1 i1 c1', false],
  ['t1 i1 t2', false],
  ['t1 j1 a1 r1', false],
  ['t1 i1 j1 r1', true],
  ['i1 r1', true],
  ['t1 [t1 i1]', true],
  ['t1 c1 [t1 i1 c1]', false],
]
const interruptCases = interrupts.map(
  ([script, isInterrupted]) =>
    [nameTypes(script), isInterrupted ? 'counts' : 'does not count', isInterrupted, script] as const,
)
test.each(interruptCases)(
  'after the events %s, the session %s as interrupted',
  (_event, _counts, isInterrupted, script) => {
    expect(read(script).isInterrupted).toBe(isInterrupted)
  },
)

const ends: [script: string, mayBeDone: boolean, sent?: string][] = [
  ['', false],
  ['t1', false],
  ['t1 n1', false],
  ['t1 a1', true],
  ['t1 a1 s1 v1 x1 y1', true],
  ['t1 a1 b1', false],
  ['t1 a1 h1', false],
  ['t1 a1 u1', false],
  ['t1 a1 u1 w1', false],
  ['t1 u1 w1 a1', true],
  ['t1 a1 c1', false],
  ['t1 a1 m1', false],
  ['t1 a1 n1', false],
  ['t1 a1 e1', false],
  ['t1 a1 r1', false],
  ['t1 u1 i1', true],
  ['t1 u1 j1', false],
  ['a1 t1*', false, 't1'],
  ['t1 a1 [t1 a1 u1]', false],
  ['t1 a1 [t1 u1 a1]', true],
]
test.each(ends.map(([script, mayBeDone, sent]) => [nameTypes(script), mayBeDone, script, sent] as const))(
  'after the events %s, the agent may have finished the task: %s',
  (_, mayBeDone, script, sent) => {
    const task = read(script, sent)
    expect(task.mayBeDone).toBe(mayBeDone)
  },
)

test.each([null, 'th1'])(
  'a message with session_thread_id %j is the answer only if it belongs to the main thread',
  (thread) => {
    const log = new SessionLog()
    log.append(toItem('a1', { ...toEvent('a1'), session_thread_id: thread }))
    expect(log.task.answer?.id).toBe(thread === 'th1' ? undefined : 'a1')
  },
)

test.each<[about: string, script: string, sent: string, id: string | undefined]>([
  ['of the list', 'a1 t2* a2', 't1', 't2'],
  ['of the receipt until the list shows the task', 'a1 h1', 't1', 't1'],
  ['of the receipt if the list first shows the task of another client', 't3 a1', 't1', 't1'],
  ['of the last of two tasks in the receipt', 'a1', 't1 t2', 't2'],
  ['of no event if none of the sent events is a task', 't3 a1', 'i1', undefined],
])('the id of a sent task is the id %s', (_, script, sent, id) => {
  expect(read(script, sent).id).toBe(id)
})
