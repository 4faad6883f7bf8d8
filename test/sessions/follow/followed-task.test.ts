import { expect, test } from 'vitest'
import { type IdentifiedEvent, SessionLog } from '../../../src/sessions/following/session-log.ts'
import type { SessionEvent } from '../../../src/wire/sessions/session-event.ts'

/**
 * Types of events by the first letter of their id: `t` is a task, `q` a queued task, `p` a processed task, `a` an
 * agent's message, `b` a message in a thread, `i` an interrupt, `j` an interrupt of a thread, `z` an idle event
 * that requires an action, `k1` the start of a workflow run, `l1` its end, `u1` a tool use, `w1` and `v1` its
 * results.
 */
const types: Record<string, string> = {
  t: 'user.message',
  q: 'user.message',
  p: 'user.message',
  o: 'user.define_outcome',
  a: 'agent.message',
  b: 'agent.message',
  i: 'user.interrupt',
  j: 'user.interrupt',
  c: 'user.tool_confirmation',
  h: 'agent.thinking',
  u: 'agent.tool_use',
  w: 'agent.tool_result',
  v: 'user.tool_result',
  r: 'session.status_idle',
  z: 'session.status_idle',
  g: 'session.status_running',
  k: 'workflow_run.created',
  l: 'workflow_run.status_ended',
}
const toEvent = (id: string): SessionEvent => ({
  id,
  type: types[id.charAt(0)] ?? '',
  processed_at: undefined,
  ...getFields(id),
})
function getFields(id: string): object {
  const number = id.slice(1)
  if (/^[bj]/.test(id)) return { session_thread_id: 'th1' }
  if (/^[wv]/.test(id)) return { tool_use_id: `u${number}` }
  if (/^[kl]/.test(id)) return { workflow_run_id: number }
  const fields: Record<string, object> = {
    p: { processed_at: 'now' },
    q: { processed_at: null },
    a: { content: id },
    z: { stop_reason: { type: 'requires_action' } },
    u: { name: 'bash', evaluated_permission: 'allow' },
  }
  return fields[id.charAt(0)] ?? {}
}
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
  ["missing after another client's turn", 'p1 g1 q2* a1 r1', undefined, 'q2'],
  ["missing during another client's turn", 'p1 g1 q2* g2 a1', undefined, 'q2'],
  [
    "missing if its turn after another client's turn has no message",
    'p1 g1 p2* a1 r1 g2 r2',
    undefined,
    'p2',
  ],
  ["the message of its turn after another client's turn", 'p1 g1 p2* a1 r1 g2 a2', 'a2', 'p2'],
  ["the message of another client's turn that takes up the task", 'p1 g1 p2* a1 r1', 'a1', 'p2'],
  ["the message before another client's turn", 'q2* a1 r1 p3 g1', 'a1', 'q2'],
  ['missing if a workflow run was open at the next task', 't1* k1 l2 a1 t2', undefined, 't1'],
  ['the message after a workflow run', 't1* k1 l1 a1 t2', 'a1', 't1'],
  ['the message during a workflow run', 't1* k1 a1', 'a1', 't1'],
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
  ['', false],
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
  ['undefined if the first event is a sent interrupt', 'i1* a1', 'i1', undefined],
  ['the id in the response if the list is empty', '', 't1', 't1'],
])('the id of the sent task is %s', (_, script, sent, id) => {
  expect(read(script, sent).id).toBe(id)
})

test.each<[script: string, ids: string, answer: string | undefined, other: string | undefined]>([
  ['t1 a1 t2 a2', 't1', 'a1', 't2'],
  ['a0 t3 a1', 't1', 'a1', undefined],
  ['t1 a1 t2 a2', '', 'a2', undefined],
])(
  'after %s, the answer to %j of an earlier run is %s, and the next task is %s',
  (script, ids, answer, other) => {
    const log = new SessionLog()
    add(log, script)
    log.task.setEarlierTaskIds(new Set(ids === '' ? [] : [ids]))
    expect([log.task.answer?.id, log.task.otherTask?.task.id]).toEqual([answer, other])
    expect(log.task.hasOwnTask).toBe(ids !== '')
  },
)

test.each<[script: string, isInterrupted: boolean]>([
  ['t1* a1 t2', false],
  ['t1* a1 i1 t2', true],
  ['t1* t2 i1', false],
])('after %s, the next task of another client counts as after an interrupt: %s', (script, isInterrupted) => {
  expect(read(script, 't1').otherTask).toEqual({ task: toEvent('t2'), isInterrupted })
})

test.each<[script: string, awaits: boolean, sent?: string]>([
  ['p1 g1 a0 q2* a1 r1', true, 'q2'],
  ['p1 g1 q2* g2 r1', true, 'q2'],
  ['p1 g1 q2* a1', false, 'q2'],
  ['p1 g1 q2* z1', false, 'q2'],
  ['p1 g1 q2* r1 g2', false, 'q2'],
  ['p1 r1 q2* r2', false, 'q2'],
  ['p1 q2* r1', false, 'q2'],
  ['g1 q2* r1', false, 'q2'],
  ['t1 g1 q2* r1', false, 'q2'],
  ['p1* g1 q2* r1', false, 'p1 q2'],
  ['p1 g1 q2 r1', false],
])('after %s, the task awaits its own turn: %s', (script, awaits, sent) => {
  expect(read(script, sent).awaitsOwnTurn).toBe(awaits)
})

test.each<[script: string, shows: boolean, sent?: string]>([
  ['a1', false, 't1'],
  ['t1 a1', true],
  ['a1 c1', true],
])('after %s, the session shows client events: %s', (script, shows, sent) => {
  expect(read(script, sent).showsClientEvents).toBe(shows)
})

/** Formats a stored event as its id, with a hyphen if it lost its content, or as its type if it has no id. */
function formatStored({ id, type, name, content, evaluated_permission: permission }: SessionEvent): string {
  if (id === undefined || type !== types[id.charAt(0)]) return type
  const hasContent = type === 'agent.message' ? content !== undefined : permission !== undefined
  return hasContent || !/^[au]/.test(id) ? `${id}${name === undefined ? '' : '+'}` : `${id}-`
}

const work = 'agent.thinking'
test.each<[rule: string, script: string, stored: string, sent?: string]>([
  ['drops the results of a list', '[t1 u1 w1 a1]', 't1 u1- a1'],
  ['drops the input of a tool use', '[u1 w1]', `u1- ${work}`],
  ['keeps streamed results', 'u1 w1 a1', 'u1 w1 a1'],
  ['keeps the streamed result of a listed tool use', '[u1] w1', 'u1 w1'],
  ['keeps the listed result of an unlisted tool use', 'u1 a1 [a1 w1]', 'u1 a1 w1'],
  ['keeps the results of clients', '[u1 v1]', 'u1 v1'],
  ['drops listed work that other work follows', '[h1 h2 h3]', work],
  ['knows the dropped events', '[h1 h2 h3] [h1 h2 h3 a1]', 'a1'],
  ['keeps streamed work before work', 'h1 h2', `${work} ${work}`],
  ['keeps listed work before streamed work', '[h1] h2', `${work} ${work}`],
  ['drops streamed work that a list contains before work', 'h1 [h1 h2]', work],
  ['keeps work before an interrupt', '[h1 i1]', `${work} i1`],
  ['keeps work before an unknown event', '[h1 x1]', `${work} `],
  ['omits the repeated events of a list', '[a1 a2 a1] [a1 a1 a2]', 'a1- a2'],
  ['drops the fields again after a late event', '[u1 a1] [u1 a9 a1]', 'u1 a9- a1'],
  ['has the order of the list', 'a1 a2 [a2 a1]', 'a2- a1'],
  ['inserts an event of a list', '[a1 a2 a3] [a9 a2 a3]', 'a1- a9- a2- a3'],
  ['inserts the first event of a list', '[a1 a2] [a9 a1 a2]', 'a9- a1- a2'],
  ['adds the events of an old list before streamed events', 'a1 a2 [a1 a3]', 'a1- a3 a2'],
  ['keeps an unlisted event before the next event', '[a1] i2 a3 [a1 a9 a3]', 'a1- a9- i2 a3'],
  ['keeps its own event after the event before', '[a1] i2* a3 [a1 a9 a3]', 'a1- i2 a9- a3'],
  ['keeps the order of unlisted events', '[a1] c2 i3* a4 [a1 a9 a4]', 'a1- a9- c2 i3 a4'],
  ['keeps the content of the last listed message', '[a1] a2 a3', 'a1 a2- a3'],
  ['drops the content before two messages', '[a1] a2 [a1 a2] a3', 'a1- a2 a3'],
  ['keeps the content before the next task', 't1* a1 t2 a2 a3', 't1 a1 t2 a2- a3', 't1'],
  ['omits a sent task that no list contains', 'a1', 'a1', 't1'],
  ['keeps the content of two turns', '[t1* a1 t2 a2] a3', 't1 a1 t2 a2 a3', 't1'],
])('to save memory, the log %s: %s', (_, script, stored, sent) => {
  expect([...read(script, sent).readEvents()].map(formatStored).join(' ')).toBe(stored)
})

const everyField = {
  ...{ evaluated_permission: 'ask', processed_at: 'now', stop_reason: 'none', result: 'allow', content: 'x' },
  ...{ tool_use_id: 'u', custom_tool_use_id: 'u', mcp_tool_use_id: 'u', workflow_run_id: 'w', name: 'n' },
}
const whole = Object.keys(everyField).join(' ')
test.each<[type: string, fields: string | undefined, more?: object]>([
  ['agent.mcp_tool_use', 'evaluated_permission'],
  ['user.tool_confirmation', 'tool_use_id custom_tool_use_id mcp_tool_use_id result'],
  ['agent.tool_result', 'tool_use_id custom_tool_use_id mcp_tool_use_id result'],
  ['session.thread_status_idle', 'workflow_run_id name stop_reason'],
  ['workflow_run.created', 'workflow_run_id name stop_reason'],
  ['user.interrupt', 'processed_at'],
  ['system.message', 'processed_at'],
  ['session.status_running', 'processed_at'],
  ['agent.message', whole],
  ['session.status_idle', whole],
  ['session.error', whole],
  ['span.outcome_evaluation_end', whole],
  ['agent.message', undefined, { session_thread_id: 'th1' }],
  ['session.status_rescheduled', undefined],
  ['my.session.error', undefined],
  ['session.errors', undefined],
  ['my.workflow_run.created', undefined],
  ['my.agent.thinking', undefined],
])('to save memory, the log stores of %s only %s', (type, fields, more) => {
  const log = new SessionLog()
  const event = { id: 'e1', type, session_thread_id: null, ...everyField, ...more }
  log.append({ identity: 'e1', event, text: '' })
  const [stored = {}] = log.task.readEvents()
  const { id, type: storedType, session_thread_id: thread, ...others } = stored as SessionEvent
  const shared = /^(agent|session.status)/.test(type) ? work : ''
  const expected = fields === undefined ? [undefined, shared, undefined] : ['e1', type, null]
  expect([id, storedType, thread]).toEqual(expected)
  expect(Object.keys(others).sort()).toEqual(fields?.split(' ').sort() ?? [])
})
