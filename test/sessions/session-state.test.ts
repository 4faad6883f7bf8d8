import { expect, test } from 'vitest'
import { needsClientResult, SessionState } from '../../src/sessions/session-state.ts'
import type { SessionEvent } from '../../src/wire/sessions/session-event.ts'

/**
 * Creates an event from a word: `run1` has the id 1. The tool uses that it answers or waits for follow a
 * colon.
 */
function toEvent(word: string): SessionEvent {
  const [id = '', listed] = word.split(':')
  const ids = listed?.split(',').filter(Boolean)
  const idle = (type?: string) => ({
    type: 'session.status_idle',
    stop_reason: { type, ...(ids && { event_ids: ids }) },
  })
  const kinds: Record<string, SessionEvent> = {
    say: { type: 'agent.message' },
    run: { type: 'session.status_running' },
    message: { type: 'user.message' },
    interrupt: { type: 'user.interrupt' },
    hint: { type: 'system.message' },
    unlike: { type: 'x.user.message' },
    use: { type: 'agent.tool_use', name: 'bash', input: {} },
    allowed: { type: 'agent.tool_use', name: 'bash', input: {}, evaluated_permission: 'allow' },
    denied: { type: 'agent.tool_use', name: 'bash', input: {}, evaluated_permission: 'deny' },
    custom: { type: 'agent.custom_tool_use', name: 'x', input: {} },
    mcp: { type: 'agent.mcp_tool_use', name: 'x', mcp_server_name: 's', input: {} },
    almost: { type: 'agent.tool_use_delta', name: 'x', input: {} },
    before: { type: 'x.agent.tool_use', name: 'x', input: {} },
    confirm: { type: 'user.tool_confirmation', tool_use_id: ids?.[0] },
    both: { type: 'user.tool_confirmation', tool_use_id: ids?.[0], custom_tool_use_id: ids?.[1] },
    result: { type: 'user.tool_result', tool_use_id: ids?.[0] },
    given: { type: 'user.custom_tool_result', custom_tool_use_id: ids?.[0] },
    ran: { type: 'agent.tool_result', tool_use_id: ids?.[0] },
    mcpran: { type: 'agent.mcp_tool_result', mcp_tool_use_id: ids?.[0] },
    theirs: { type: 'agent.tool_use', name: 'bash', input: {}, session_thread_id: 'th1' },
    stopthem: { type: 'user.interrupt', session_thread_id: 'th1' },
    restthem: { ...idle('end_turn'), session_thread_id: 'th1' },
    outcome: { type: 'user.define_outcome' },
    reached: { type: 'span.outcome_evaluation_end', result: 'satisfied' },
    revise: { type: 'span.outcome_evaluation_end', result: 'needs_revision' },
    missed: { type: 'span.outcome_evaluation_end', result: 'failed', explanation: 'no test' },
    tired: { type: 'span.outcome_evaluation_end', result: 'max_iterations_reached' },
    late: { type: 'x.user.tool_result', tool_use_id: ids?.[0] },
    longer: { type: 'user.tool_result_delta', tool_use_id: ids?.[0] },
    lateran: { type: 'x.agent.tool_result', tool_use_id: ids?.[0] },
    longran: { type: 'agent.tool_result_delta', tool_use_id: ids?.[0] },
    done: idle('end_turn'),
    idle: idle(),
    wait: idle('requires_action'),
    tomorrow: idle('a_reason_of_tomorrow'),
    exhausted: idle('retries_exhausted'),
    refusal: idle('refusal'),
    budget: idle('budget_reached'),
    explained: { ...idle('refusal'), stop_details: { category: 'cyber', explanation: 'no malware' } },
    detailed: { ...idle('a_reason_of_tomorrow'), stop_details: { explanation: 'come back later' } },
    gone: { type: 'session.status_terminated' },
    deleted: { type: 'session.deleted' },
    error: { type: 'session.error', error: { message: 'out of order' } },
    usage: { type: 'session.usage', budget: { max_list_cost: { amount: '250', currency: 'USD' } } },
  }
  return { id, ...(kinds[id.replace(/\d+$/, '')] as SessionEvent) }
}

function after(words: string): SessionState {
  const state = new SessionState()
  for (const word of words.split(' ').filter(Boolean)) state.add(toEvent(word))
  return state
}

const waiting = (...ids: string[]) => ({ kind: 'waiting', ids })
const stuck = (reason: string, more: object = {}) => ({ kind: 'stuck', reason, ...more })
const missed = (category: string, more: object = {}) =>
  stuck('the outcome was not reached', { category, ...more })
const isDone = { kind: 'done', reason: 'end_turn' }
/** Idle event that waits for unknown tool uses. */
const forNothing = stuck('requires_action')

test.each<[words: string, stop: object | undefined]>([
  ['done1', isDone],
  ['idle1', { kind: 'done', reason: 'no reason given' }],
  ['done1 run2', undefined],
  ['done1 message2', undefined],
  ['done1 say2', isDone],
  ['done1 confirm2 done3 confirm4', undefined],
  ['done1 confirm2:use1 done3 both4:use1,use1', isDone],
  ['done1 confirm2:use1 done3 both4:use1,use2', undefined],
  // Tool uses in an idle event wait for replies.
  ['use1 wait1:use1', waiting('use1')],
  ['use1 confirm1:use1 wait1:use1', undefined],
  ['use1 wait1:', forNothing],
  ['use1 exhausted1:use1', stuck('retries_exhausted')],
  ['use1 refusal1:use1', stuck('refusal')],
  // If an idle event lists no ids, all tool uses of the turn without a reply may wait.
  ['use1 wait1', waiting('use1')],
  ['allowed1 wait1', forNothing],
  ['denied1 wait1', forNothing],
  ['use1 message1 wait1', forNothing],
  ['use1 interrupt1 wait1', forNothing],
  ['use1 tomorrow1 wait1', forNothing],
  ['use1 tomorrow1', stuck('a_reason_of_tomorrow')],
  // An event with a thread id affects that thread only.
  ['use1 theirs1 stopthem1 wait1', waiting('use1')],
  // An outcome that the agent did not reach.
  ['outcome1 revise1 reached1 done1', isDone],
  ['outcome1 revise1 missed1 say1 done1', missed('failed', { why: 'no test' })],
  ['outcome1 tired1 idle1', missed('max_iterations_reached')],
  ['outcome1 missed1 message1 done1', isDone],
  ['outcome1 missed1 outcome2 done1', isDone],
  // Reasons why a session is stuck or ended.
  ['error1 refusal1', stuck('refusal', { why: 'out of order' })],
  ['error1 tomorrow1', stuck('a_reason_of_tomorrow', { why: 'out of order' })],
  ['gone1', { kind: 'ended', reason: 'terminated' }],
  ['error1 deleted1', { kind: 'ended', reason: 'deleted', why: 'out of order' }],
])('after the events "%s", the session stopped with %j', (words, stop) => {
  expect(after(words).stop).toEqual(stop)
})

test('the state of a session that reached its budget has the last budget of the service', () => {
  const budget = { amount: 250n, currency: 'USD' }
  expect(after('usage1 say1 budget1').stop).toEqual(stuck('budget_reached', { budget }))
})

test.each<[words: string, reason: string | undefined]>([
  ['done1', 'end_turn'],
  ['use1 wait1:use1', 'requires_action'],
])('after the events "%s", the stop reason is %s', (words, reason) => {
  expect(after(words).stopReason).toBe(reason)
})

test.each<[words: string, pending: string[], unlisted: string[]]>([
  ['use1', [], []],
  ['use1 use2 wait1:use1,use2 confirm1:use2', ['use1'], []],
  ['use1 wait1:use1 gone1', ['use1'], []],
])(
  'after the events "%s", the tool uses that wait are %j, and those that may wait are %j',
  (words, pending, unlisted) => {
    const state = after(words)
    expect([state.pending, state.unlisted]).toEqual([pending, unlisted])
  },
)

test.each<[error: unknown, why: string | undefined]>([
  [{ message: 'broken' }, 'broken'],
  [null, undefined],
])('after the error %j, the reason of a stuck session is %j', (error, why) => {
  const state = after('')
  state.add({ type: 'session.error', error })
  state.add(toEvent('exhausted1'))
  expect(state.stop).toEqual(stuck('retries_exhausted', { why }))
})

test.each([
  ['agent.custom_tool_use', undefined, true],
  ['agent.custom_tool_use', 'ask', true],
  ['agent.tool_use', 'allow', true],
  ['agent.tool_use', 'ask', false],
  ['agent.tool_use', undefined, false],
  ['agent.mcp_tool_use', 'allow', false],
])("for %s with the service's decision %s, the client sends a result: %s", (type, permission, isNeeded) => {
  expect(needsClientResult({ type, permission })).toBe(isNeeded)
})

test('the client sends no result for an unknown tool use', () => {
  expect(needsClientResult()).toBe(false)
})

test("only a client's reply to the named tool use counts as a reply", () => {
  const state = after('use1 use2 mcp1 confirm1:use1 ran1:use2 run2')
  expect(['use1', 'use2', 'mcp1'].map((id) => state.getAnswer(id) !== undefined)).toEqual([true, true, false])
  expect(['use1', 'use2', 'mcp1'].map((id) => state.getAnswer(id)?.isReply ?? false)).toEqual([
    true,
    false,
    false,
  ])
})

test.each<[words: string, showsRests: boolean]>([
  ['message1 say1 idle1', true],
  ['use1 idle1', false],
])('after the events "%s", the service is known to send idle events: %s', (words, showsRests) => {
  expect(after(words).sendsIdleEvents).toBe(showsRests)
})

test('a session is idle if the session resource is idle, until the next event or request', () => {
  const state = after('message1 run1 say1')
  const done = { kind: 'done', reason: 'no reason given' }
  const expectIdle = () => {
    expect(state.stop).toBeUndefined()
    state.addIdleResource()
    expect([state.stop, state.stopReason, state.sendsIdleEvents, [...state.stopIds]]).toEqual([
      done,
      undefined,
      false,
      [],
    ])
  }
  expectIdle()
  state.add(toEvent('say2'))
  expectIdle()
  state.addReduced({ type: 'user.message' }, true)
  expectIdle()
  // After an idle event, a message of the agent alone does not end the idle state.
  state.add(toEvent('done1'))
  state.add(toEvent('say3'))
  expect(state.stop).toEqual({ kind: 'done', reason: 'end_turn' })
  const open = after('use1 say1')
  open.addIdleResource()
  expect(open.stop).toEqual(waiting('use1'))
})

test('the state of a session has the time and ids of its stops, and whether it has events', () => {
  const state = after('')
  expect(state.isEmpty).toBe(true)
  state.add({ ...toEvent('done1'), processed_at: '2026-01-01T00:00:00Z' })
  expect([state.isEmpty, state.lastStop?.processed_at]).toEqual([false, '2026-01-01T00:00:00Z'])
  state.add({ type: 'session.status_idle', processed_at: null })
  expect(state.lastStop?.processed_at).toBeNull()
  expect([...state.stopIds]).toEqual(['done1'])
  state.addReduced({ type: 'user.message' }, true)
  expect(state.stop).toBeUndefined()
})

test('a tool use without an id gets no reply, and a tool use without a name has an empty name', () => {
  const state = after('')
  state.add({ type: 'agent.tool_use', name: 'bash', input: {} })
  state.add({ id: 'use1', type: 'agent.tool_use', name: 5, input: {} })
  state.add(toEvent('wait1'))
  expect(state.stop).toEqual(waiting('use1'))
  expect(state.getToolUse('use1')?.name).toBe('')
})

test.each<[string, object]>([
  ['another type', { type: 'agent.custom_tool_use' }],
  ['another name', { name: 'other' }],
  ['another server', { mcp_server_name: 'other' }],
  ['another input', { input: { a: 1 } }],
])('a tool use counts as changed if its id is repeated with %s', (_, changes) => {
  for (const come of ['add', 'addRepeated'] as const) {
    const state = after('use1')
    state[come]({ ...toEvent('use1'), ...changes })
    if (come === 'add') state.add(toEvent('use1'))
    expect(state.getToolUse('use1')?.isContradicted).toBe(true)
  }
})

test('a tool use with a result does not count as changed if it is repeated with another input', () => {
  const state = after('use1 use2 ran1:use1')
  for (const id of ['use1', 'use2']) state.addRepeated({ ...toEvent(id), input: { a: 1 } })
  expect(['use1', 'use2'].map((id) => state.getToolUse(id)?.isContradicted ?? false)).toEqual([false, true])
  const empty = after('use1')
  empty.addRepeated({ ...toEvent('use1'), input: undefined })
  expect(empty.getToolUse('use1')?.isContradicted ?? false).toBe(false)
})

const use = { id: 't1', type: 'agent.tool_use', name: 'bash', input: {} }
const answer = { id: 'a1', type: 'user.tool_confirmation', tool_use_id: 't1', result: 'allow' }
const done = { id: 'i2', type: 'session.status_idle', stop_reason: { type: 'end_turn' } }

test('a session does not count as working because a reply is listed again after the turn', () => {
  const state = new SessionState()
  for (const event of [use, answer, done, answer]) state.add(event)
  expect(state.stop).toEqual({ kind: 'done', reason: 'end_turn' })
})

test('a session counts as working after a reply only if it waited for that reply', () => {
  const state = new SessionState()
  for (const event of [use, done, answer]) state.add(event)
  expect(state.stop).toEqual({ kind: 'done', reason: 'end_turn' })
  const unlisted = { ...done, stop_reason: { type: 'requires_action' } }
  for (const idle of [waits('i1', 't1'), unlisted]) {
    const waiting = new SessionState()
    for (const event of [use, idle, answer]) waiting.add(event)
    expect(waiting.isIdle).toBe(false)
  }
})

test('the JSON of a tool use is kept until the tool use is decided and executed', () => {
  const state = new SessionState()
  state.add(use, 'text')
  state.add(answer)
  expect(state.getToolUse('t1')?.text).toBe('text')
  state.add({ id: 'r1', type: 'agent.tool_result', tool_use_id: 't1' })
  expect(state.getToolUse('t1')?.text).toBeUndefined()
  const denied = new SessionState()
  denied.add(use, 'text')
  denied.add({ ...answer, result: 'deny' })
  expect(denied.getToolUse('t1')?.text).toBeUndefined()
})

const waits = (id: string, ...ids: string[]) => ({
  id,
  type: 'session.status_idle',
  stop_reason: { type: 'requires_action', event_ids: ids },
})
const other = { ...use, id: 't2', session_thread_id: 'th1' }
const interrupt = { id: 'x1', type: 'user.interrupt' }

test.each<[what: string, since: SessionEvent[], t1: string | undefined, t2: string | undefined]>([
  ['an answer', [answer], 'it already has the answer allow', undefined],
  ['a denial', [{ ...answer, result: 'deny' }], 'it already has the answer deny', undefined],
  ['a result', [{ id: 'r', type: 'user.tool_result', tool_use_id: 't1' }], 'it has a result', undefined],
  ['an interrupt', [interrupt], 'it was interrupted', 'it was interrupted'],
  ['an interrupt of a thread', [{ ...interrupt, session_thread_id: 'th1' }], undefined, 'it was interrupted'],
  [
    'the end of the session',
    [{ id: 'e', type: 'session.status_terminated' }],
    'the session is terminated',
    'the session is terminated',
  ],
  ['another idle event', [waits('i2', 't2')], 'the session does not wait for it any more', undefined],
])('after %s, the state of a session has the reason why tool uses need no reply', (_, since, t1, t2) => {
  const state = new SessionState()
  for (const event of [use, other, waits('i1', 't1', 't2'), ...since]) state.add(event)
  expect([state.findClosedReason('t1'), state.findClosedReason('t2')]).toEqual([t1, t2])
})

test('an allowed tool use that a later idle event lists waits for its result', () => {
  const state = new SessionState()
  for (const event of [use, waits('i1', 't1'), answer, waits('i2', 't1')]) state.add(event, 'text')
  expect(state.answerable).toEqual(['t1'])
  expect(state.getToolUse('t1')).toMatchObject({ text: 'text', permission: 'allow', wantsResult: true })
  expect(state.stop).toEqual({ kind: 'waiting', ids: ['t1'] })
  state.add({ id: 'r1', type: 'user.tool_result', tool_use_id: 't1' })
  state.add(waits('i3', 't1'))
  expect(state.answerable).toEqual([])
})

test('a session has not stopped at an idle event while a run replies to its tool uses', () => {
  const state = new SessionState()
  for (const event of [use, waits('i1', 't1')]) state.add(event)
  state.isReplying = true
  expect([state.stop, state.answerable]).toEqual([undefined, ['t1']])
  state.isReplying = false
  expect(state.stop).toEqual({ kind: 'waiting', ids: ['t1'] })
})

test('tool uses do not wait for replies if the budget of the session is used up', () => {
  const state = new SessionState()
  for (const event of [use, { ...done, stop_reason: { type: 'budget_reached', event_ids: ['t1'] } }])
    state.add(event)
  expect(state.stop).toMatchObject({ kind: 'stuck', reason: 'budget_reached' })
})

test.each([
  [
    'keys in another order, other blanks and escapes',
    '{"a":1,"b":"x"}',
    '{ "b" : "\\u0078", "a" : 1 }',
    false,
  ],
  [
    'two long numbers that are equal in JavaScript',
    '{"a":12345678901234567890}',
    '{"a":12345678901234567891}',
    true,
  ],
  [
    'two such numbers, swapped between fields',
    '{"a":9007199254740993,"b":9007199254740992}',
    '{"a":9007199254740992,"b":9007199254740993}',
    true,
  ],
  ['a number and its text, swapped between fields', '{"a":1,"b":"1"}', '{"a":"1","b":1}', true],
  ['a word and its text, swapped between fields', '{"a":null,"b":"null"}', '{"a":"null","b":null}', true],
  ['a duplicate key', '{"a":1}', '{"a":2,"a":1}', true],
  ['a prototype', '{"a":1}', '{"__proto__":{"a":1}}', true],
  [
    'a nesting of 100,000 levels',
    `${'['.repeat(1e5)}${']'.repeat(1e5)}`,
    `${'['.repeat(1e5)} ${']'.repeat(1e5)}`,
    true,
  ],
])(
  'a second input of a tool use contradicts the first only if its value differs: %s',
  (_, one, other, isContradicted) => {
    const state = new SessionState()
    for (const input of [one, other]) {
      const text = `{"id":"t1","type":"agent.tool_use","name":"bash","input":${input}}`
      state.add(JSON.parse(text), text)
    }
    expect(state.getToolUse('t1')?.isContradicted ?? false).toBe(isContradicted)
  },
)
