import { expect, test } from 'vitest'
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
  r: 'session.status_idle',
}
const toEvent = (id: string): SessionEvent => ({
  id,
  type: types[id.charAt(0)] ?? '',
  processed_at: undefined,
  ...(/^[bj]/.test(id) ? { session_thread_id: 'th1' } : {}),
})
/** Describes a script for a title: replaces the ids by the types of the events. */
const describeScript = (script: string): string =>
  script
    .replace(/ \[(.*)\]/, ', then a list of $1')
    .replace(/([a-z])\d/g, (_, kind) => `${types[kind]}${/[bj]/.test(kind) ? ' (thread)' : ''}`)
    .replaceAll('*', ' (sent by parley)') || 'no event'
const toItem = (id: string, event = toEvent(id)): IdentifiedEvent => ({ identity: id, event, text: id })

function send(log: SessionLog, words: string): void {
  const events = words.split(' ').map(toEvent)
  log.task.addSent(events)
  for (const event of events) log.addAccepted(event)
}

/** Adds the events of a script to a log. `[…]` is a list, `*` marks an event that parley sent. */
function add(log: SessionLog, script: string): void {
  for (const [word] of script.matchAll(/\[[^\]]*\]|\S+/g)) {
    const items = word.replace(/^\[|\]$/g, '').split(' ')
    const ids = items.map((each) => each.replace('*', ''))
    const isFromThisProcess = ({ identity }: IdentifiedEvent) => items.includes(`${identity}*`)
    const listed = ids.map((id) => toItem(id))
    if (word.startsWith('[')) log.addList(listed, isFromThisProcess)
    else log.append(toItem(ids[0] ?? ''), { isFromThisProcess: word.endsWith('*') })
  }
}

function read(script: string, sent?: string) {
  const log = new SessionLog()
  if (sent) send(log, sent)
  add(log, script)
  return log.task
}

test.each<[about: string, script: string, answer: string | undefined, sent?: string]>([
  ['the last message of the main thread, not of a child thread', 't1 a1 b1 r1', 'a1'],
  ['missing if no message follows a newer user.define_outcome', 't1 a1 r1 o1 r2', undefined],
  ['the last message if the session has no task', 'a1 r1', 'a1'],
  ['missing if no message follows the last of two sent tasks', 't1* a1 t2* r1', undefined, 't1 t2'],
  ['the message after a sent interrupt and a sent task', 'i1* t1* a1 t2 r1', 'a1', 'i1 t1'],
  ['the last message, although a list that lags omits the task', 't1* a1 a3 [a1 a2]', 'a3', 't1'],
  ['missing if a list shows the only message before the task', 't3 [a1]', undefined],
])('the answer to a task is %s', (_, script, answer, sent) => {
  expect(read(script, sent).answer?.id).toBe(answer)
})

const interrupts: [script: string, isInterrupted: boolean][] = [
  ['t1 a1 i1 r1', true],
  ['t1 i1 a1 r1 a2', true],
  ['t1 i1 c1', false],
  ['t1 i1 t2', false],
  ['t1 j1 a1 r1', false],
  ['i1 r1', true],
  ['t1 [t1 i1]', true],
  ['t1 c1 [t1 i1 c1]', false],
]
const interruptCases = interrupts.map(
  ([script, isInterrupted]) =>
    [isInterrupted ? 'counts' : 'does not count', describeScript(script), isInterrupted, script] as const,
)
test.each(interruptCases)('a session %s interrupted after %s', (_counts, _events, isInterrupted, script) => {
  expect(read(script).isInterrupted).toBe(isInterrupted)
})

test.each<[string | null, string]>([
  [null, 'is'],
  ['th1', 'is not'],
])('a message with session_thread_id %j %s the answer', (thread, verb) => {
  const log = new SessionLog()
  log.append(toItem('a1', { ...toEvent('a1'), session_thread_id: thread }))
  expect(log.task.answer?.id).toBe(verb === 'is' ? 'a1' : undefined)
})

test.each<[about: string, script: string, sent: string, id: string | undefined]>([
  ['the id in the list, even if the response has another id', 'a1 t2* a2', 't1', 't2'],
  ['the id in the response until the list contains the task', 'a1 h1', 't1', 't1'],
  ['the id in the response if the list contains only the task of another client', 't3 a1', 't1', 't1'],
  ['the id of the last task in the response if two tasks were sent', 'a1', 't1 t2', 't2'],
  ['undefined if no sent event is a task', 't3 a1', 'i1', undefined],
])('the id of the sent task is %s', (_, script, sent, id) => {
  expect(read(script, sent).id).toBe(id)
})
