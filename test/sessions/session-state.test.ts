import { expect, test } from 'vitest'
import { BackgroundWork } from '../../src/sessions/background-work.ts'
import { computeDigest, needsClientResult, SessionState } from '../../src/sessions/session-state.ts'
import { SessionEvent } from '../../src/wire/sessions/session-event.ts'

/** Message of an error. */
const explanation = 'out of order'

/**
 * Creates an event from a word: `use1` is a tool use with the id `use1`. After a colon follow the ids of the
 * tool uses that the event answers or waits for.
 */
function toEvent(word: string): SessionEvent {
  const [id = '', listed] = word.split(':')
  const ids = listed?.split(',').filter(Boolean)
  const reason = (type?: string) => ({ type, ...(ids && { event_ids: ids }) })
  const idle = (type?: string) => ({ type: 'session.status_idle', stop_reason: reason(type) })
  const use = { type: 'agent.tool_use', name: 'bash', input: {} }
  const evaluated = (result: string, explanation?: unknown) =>
    ({ type: 'span.outcome_evaluation_end', result, explanation }) as SessionEvent
  const kinds: Record<string, SessionEvent> = {
    say: { type: 'agent.message' },
    think: { type: 'agent.thinking' },
    system: { type: 'system.message' },
    odd: { type: 'x.agent.tool_use' },
    oddSystem: { type: 'x.system.message' },
    childSay: { type: 'agent.message', session_thread_id: 'th1' },
    run: { type: 'session.status_running' },
    message: { type: 'user.message' },
    interrupt: { type: 'user.interrupt' },
    use,
    allowed: { ...use, evaluated_permission: 'allow' },
    allowedWithoutId: { ...use, id: undefined, evaluated_permission: 'allow' },
    denied: { ...use, evaluated_permission: 'deny' },
    mcp: { type: 'agent.mcp_tool_use', name: 'x', mcp_server_name: 's', input: {} },
    confirm: { type: 'user.tool_confirmation', tool_use_id: ids?.[0] },
    confirmTwo: { type: 'user.tool_confirmation', tool_use_id: ids?.[0], custom_tool_use_id: ids?.[1] },
    allow: { type: 'user.tool_confirmation', tool_use_id: ids?.[0], result: 'allow' },
    deny: { type: 'user.tool_confirmation', tool_use_id: ids?.[0], result: 'deny' },
    result: { type: 'agent.tool_result', tool_use_id: ids?.[0] },
    clientResult: { type: 'user.tool_result', tool_use_id: ids?.[0] },
    childUse: { ...use, session_thread_id: 'th1' },
    childInterrupt: { type: 'user.interrupt', session_thread_id: 'th1' },
    modelStart: { type: 'span.model_request_start' },
    modelEnd: { type: 'span.model_request_end' },
    childModelStart: { type: 'span.model_request_start', session_thread_id: 'th1' },
    runStart: { type: 'workflow_run.created', workflow_run_id: 'w1' },
    runIdle: { type: 'workflow_run.status_idle', workflow_run_id: 'w1' },
    runEnd: { type: 'workflow_run.status_ended', workflow_run_id: 'w1' },
    childOfRun: { type: 'session.thread_created', session_thread_id: 'th1', workflow_run_id: 'w1' },
    childWait: {
      type: 'session.thread_status_idle',
      session_thread_id: 'th1',
      stop_reason: { type: 'requires_action', event_ids: ids },
    },
    childEnd: { type: 'session.thread_status_terminated', session_thread_id: 'th1' },
    outcome: { type: 'user.define_outcome' },
    reached: evaluated('satisfied'),
    revise: evaluated('needs_revision'),
    missed: evaluated('failed', 'no test'),
    missedOdd: evaluated('failed', 5),
    maxIterations: evaluated('max_iterations_reached'),
    done: idle('end_turn'),
    idle: idle(),
    wait: idle('requires_action'),
    unknown: idle('a_new_reason'),
    exhausted: idle('retries_exhausted'),
    refusal: idle('refusal'),
    budget: idle('budget_reached'),
    terminated: { type: 'session.status_terminated' },
    deleted: { type: 'session.deleted' },
    error: { type: 'session.error', error: { message: explanation } },
    finalError: { type: 'session.error', error: { retry_status: 'exhausted' } },
    serverError: { type: 'session.error', error: { retry_status: 'exhausted', mcp_server_name: 's' } },
    silentError: { type: 'session.error', error: null },
    usage: { type: 'session.usage' },
  }
  return { id, ...(kinds[id.replace(/\d+$/, '')] as SessionEvent) }
}

/**
 * Returns the state after these events. `text` is the JSON of each event. The word `silence` means that there
 * was no event for a long time, and `resource` means that the session resource is idle. `*` marks an event
 * that no list or stream has shown.
 */
function after(words: string, text?: string): SessionState {
  const state = new SessionState()
  for (const word of words.split(' ').filter(Boolean))
    if (word === 'silence') state.addSilence()
    else if (word === 'resource') state.addIdleResource()
    else if (word.endsWith('*')) state.addReduced(toEvent(word.slice(0, -1)), true)
    else state.add(toEvent(word), text)
  return state
}

const waiting = (...ids: string[]) => ({ kind: 'waiting', ids })
const stuck = (reason: string, more: object = {}) => ({ kind: 'stuck', reason, ...more })
const missed = (category: string, more: object = {}) =>
  stuck('the outcome was not reached', { category, ...more })
const done = (reason: string) => ({ kind: 'done', reason })
const ended = (reason: string, more: object = {}) => ({ kind: 'ended', reason, ...more })
const isDone = done('end_turn')
const isDoneWithoutReason = done('no reason given')
const explainedMiss = missed('failed', { explanation: 'no test' })
const reconfirmed = 'done1 confirm2:use1 done3 confirmTwo4'
const isStuckWithoutUses = stuck('requires_action')

const stops: Record<string, [words: string, stop: object | undefined]> = {
  'is done at an idle event with the reason end_turn': ['done1', isDone],
  'that is idle works again after a confirmation without an id': ['done1 confirm2 done3 confirm4', undefined],
  'stays idle if a use is confirmed again': [`${reconfirmed}:use1,use1`, isDone],
  'works again if a repeated confirmation names a second use': [`${reconfirmed}:use1,use2`, undefined],
  'needs no reply after a confirmation that came early': ['use1 confirm1:use1 wait1:use1', undefined],
  'is stuck if it requires an action but lists no ids': ['use1 wait1:', isStuckWithoutUses],
  'is stuck after a refusal, even if it lists a tool use': ['use1 refusal1:use1', stuck('refusal')],
  'is stuck at its budget, even if it lists a tool use': ['use1 budget1:use1', stuck('budget_reached')],
  'waits after an interrupt of a child thread': ['use1 childUse1 childInterrupt1 wait1', waiting('use1')],
  'is done if it reached its outcome after a revision': ['outcome1 revise1 reached1 done1', isDone],
  'is stuck after a failed outcome': ['outcome1 revise1 missed1 say1 done1', explainedMiss],
  'is stuck at the iteration limit': ['outcome1 maxIterations1 idle1', missed('max_iterations_reached')],
  'ignores an explanation that is not a text': ['outcome1 missedOdd1 done1', missed('failed')],
  'is done after an interrupt while it waits': ['use1 wait1:use1 interrupt1', done('interrupted')],
  'that ended its turn keeps its stop reason after an interrupt': ['use1 done1:use1 interrupt1', isDone],
  'continues if it has not read the result of a workflow run': ['use1 done1:use1 runEnd1', undefined],
  'that requires an action reads no result of a workflow run': ['use1 wait1:use1 runEnd1', waiting('use1')],
  'continues after an idle event without a reason while a run is open': ['runStart1 idle1', undefined],
  'continues after its last retry while a workflow run is open': ['runStart1 exhausted1', undefined],
  'is stuck after a refusal while a workflow run is open': ['runStart1 refusal1', stuck('refusal')],
  'is done if a message of a client follows its failed outcome': ['outcome1 missed1 message1 done1', isDone],
  'is stuck for a new reason with its error': ['error1 unknown1', stuck('a_new_reason', { explanation })],
  'has ended if the service terminated it': ['terminated1', ended('terminated')],
  'that was deleted has ended with its last error': ['error1 deleted1', ended('deleted', { explanation })],
}
test.each(Object.entries(stops))('a session %s', (_, [words, stop]) => {
  expect(after(words).stop).toEqual(stop)
})

test('after a reply to its tool use, a session works, although its idle event lists the tool use', () => {
  const state = after('use1 wait1:use1 allow1:use1')
  expect([state.isIdle, state.stop]).toEqual([false, undefined])
})

test('if an idle event has no list of ids, the session waits only for open tool uses of the current turn', () => {
  for (const words of ['allowed1', 'denied1', 'use1 message1', 'use1 interrupt1', 'use1 unknown1'])
    expect(after(`${words} wait1`).stop, words).toEqual(isStuckWithoutUses)
})

const childWaits = 'childUse1 childWait1:childUse1'
test.each<[rule: string, isStalled: boolean, words: string]>([
  ['a child thread waits and nothing works', true, ''],
  ['the model works after a message', false, 'modelStart1 say1'],
  ['the model has answered', true, 'modelStart1 modelEnd1'],
  ['only the model of a child thread works', true, 'childModelStart1'],
  ['the service runs a tool', false, 'allowed1'],
  ['a list repeats a tool use that has a result', true, 'allowed1 result1:allowed1 allowed1'],
  ['a tool use without an id is allowed', true, 'allowedWithoutId1'],
  ['a client allowed an unknown tool use', false, 'allow1:other1'],
  ['a confirmation names no tool use', true, 'allow1'],
  ['a client allowed a tool use of a child thread', true, 'childUse2 allow1:childUse2'],
  ['an idle event ended the work', true, 'modelStart1 allowed1 done1 run1'],
  ['the session has ended', false, 'terminated1'],
])('if %s, a silent session counts as waiting: %s', (_, isStalled, words) => {
  expect(after(`${childWaits} ${words} silence`).stop?.kind === 'waiting').toBe(isStalled)
})

test('after a long silence, a session waits for the tool uses of a child thread that became idle without listing them', () => {
  expect(after('use1 childUse1 childWait1 silence').stop).toEqual(waiting('childUse1'))
  for (const words of ['use1 childUse1 childWait1', 'use1 silence', 'run1 silence', 'use1* silence']) {
    const { stop, unlisted } = after(words)
    expect([stop, unlisted], words).toEqual([undefined, []])
  }
})

test('a session waits for workflow runs only while it is idle and a run is open', () => {
  expect(after('runStart1 done1').isWaitingForRuns).toBe(true)
  for (const words of ['runStart1', 'runStart1 done1 run2', 'runStart1 done1 terminated1', 'done1'])
    expect(after(words).isWaitingForRuns, words).toBe(false)
})

test('an idle event counts as missing only if the session sends idle events and only the session resource is idle', () => {
  const words = ['done1 run2 resource', 'done1', 'done1 run2', 'say1 resource', 'resource done1 run2']
  expect(words.map((each) => after(each).lacksIdleEvent)).toEqual([true, false, false, false, false])
})

test('a session whose resource is idle after a final error is stuck', () => {
  expect(after('finalError1 resource').stop).toEqual(stuck('retries_exhausted'))
})

test('a session has ended if its resource is terminated', () => {
  const state = after('say1')
  state.addIdleResource(true)
  expect(state.stop).toEqual(ended('terminated'))
})

test('a caller can mark only a known tool use as changed', () => {
  const state = after('use1 use2')
  for (const id of ['use1', 'other1']) state.contradictToolUse(id)
  const isChanged = (id: string) => state.getToolUse(id)?.isContradicted
  expect(['use1', 'use2', 'other1'].map(isChanged)).toEqual([true, undefined, undefined])
})

test.each<[verb: 'is' | 'is not', words: string]>([
  ['is', 'interrupt1'],
  ['is not', 'interrupt1 message1'],
  ['is not', 'childInterrupt1'],
  ['is not', 'interrupt1 allow1:use1'],
  ['is', 'use1 wait1:use1 interrupt1 allow1:use1'],
])('a session %s halted by an interrupt after these events: %s', (verb, words) => {
  expect(after(words).isHalted).toBe(verb === 'is')
})

test.each<[verb: 'is' | 'is not', words: string]>([
  ['is not', ''],
  ['is', 'finalError1'],
  ['is', 'finalError1 usage1'],
  ['is not', 'finalError1 say1'],
  ['is not', 'serverError1'],
])('the last error %s final after these events: %s', (verb, words) => {
  expect(after(words).hasFinalError).toBe(verb === 'is')
})

const runWaits = `runStart1 childOfRun1 ${childWaits}`
test.each<[verb: 'stays' | 'does not stay', rule: string, words: string]>([
  ['stays', 'a workflow run', `${runWaits} done1 allow1:childUse1`],
  ['does not stay', 'a child thread without a run', `${childWaits} done1 allow1:childUse1`],
  [
    'stays',
    'a tool use while a child thread waits for the result of another one',
    'childUse1 use1 wait1:childUse1,use1 allow1:childUse1 childWait1:childUse1 allow1:use1',
  ],
  ['does not stay', 'a tool use after the last retry', 'use1 use2 exhausted1:use1,use2 allow1:use1'],
  ['stays', 'a tool use that the service allowed', 'allowed1 wait1 clientResult1:allowed1'],
])('a session %s idle after a reply to %s: %s', (verb, _, words) => {
  expect(after(words).isIdle).toBe(verb === 'stays')
})

const childWaitsAgain = `${childWaits} allow1:childUse1 childWait2:childUse1`
test.each<[rule: string, words: string, pending: string[]]>([
  ['no tool use that a child thread no longer lists', `${childWaitsAgain} childWait3:`, []],
  ['only unanswered tool uses', 'use1 use2 wait1:use1,use2 allow1:use1 wait2:use1,use2', ['use2']],
  ['no unknown tool use that is allowed', 'wait1:other1 allow1:other1 wait2:other1', []],
  ['no tool use with an unseen confirmation', 'use1 wait1:use1 allow1:use1* wait2:use1', []],
  ['a tool use with a listed allow', 'use1 wait1:use1 allow1:use1 allow1:use1* wait2:use1', ['use1']],
  ['a result after a repeated confirmation', 'use1 wait1:use1 allow1:use1 wait2:use1 allow2:use1', ['use1']],
  ['an unknown tool use after an interrupt of a child thread', 'wait1:other1 childInterrupt1', ['other1']],
])('a session waits for %s: %s', (_, words, pending) => {
  expect(after(words).pending).toEqual(pending)
})

test('a listed tool use is answerable only while the main thread waits', () => {
  for (const words of ['use1 wait1:use1 run2', 'use1 exhausted1:use1'])
    expect(after(words).answerable).toEqual([])
})

test('a tool use that the service ran stays finished after the session state is computed again', () => {
  for (const words of ['use1', 'say1', 'allowed1 clientResult1:allowed1', 'allowed1 wait1:allowed1'])
    expect(after(words).add(toEvent(`result1:${words.split(' ')[0]}`), undefined, true), words).toBe(false)
  const state = after('allowed1')
  expect(state.add(toEvent('result1:allowed1'), undefined, true)).toBe(true)
  state.restart()
  expect(state.isEmpty).toBe(true)
  state.add(toEvent('wait1:allowed1'))
  expect(state.pending).toEqual([])
})

test('each of two finished tool uses that differ only in their ids keeps its id', () => {
  const state = after('allowed1 allowed2')
  for (const id of ['allowed1', 'allowed2']) {
    expect(state.add(toEvent(`result1:${id}`), undefined, true)).toBe(true)
    expect(state.getToolUse(id)).toMatchObject({ id, isClosed: true, text: undefined })
  }
})

test('the stop reason of a session is the reason in its last idle event', () => {
  expect(after('use1 done1').stopReason).toBe('end_turn')
  expect(after('done1 use1 wait1:use1').stopReason).toBe('requires_action')
})

test('an unanswered tool use stays pending after a termination', () => {
  const { pending, unlisted } = after('use1 wait1:use1 terminated1')
  expect([pending, unlisted]).toEqual([['use1'], []])
})

test('the client sends the result of a custom tool use, and of a tool use that the service allowed', () => {
  expect(needsClientResult({ type: 'agent.custom_tool_use' })).toBe(true)
  expect(needsClientResult({ type: 'agent.custom_tool_use', permission: 'ask' })).toBe(true)
  expect(needsClientResult({ type: 'agent.tool_use', permission: 'allow' })).toBe(true)
})

test('the client sends no result of an MCP tool use, or of a tool use that needs a confirmation', () => {
  expect(needsClientResult({ type: 'agent.mcp_tool_use', permission: 'allow' })).toBe(false)
  expect(needsClientResult({ type: 'agent.tool_use', permission: 'ask' })).toBe(false)
  expect(needsClientResult({ type: 'agent.tool_use' })).toBe(false)
  expect(needsClientResult()).toBe(false)
})

test("only a client's reply to the named tool use counts as a reply", () => {
  const state = after('use1 use2 mcp1 confirm1:use1 result1:use2 run2')
  expect(['use1', 'use2', 'mcp1'].map((id) => state.getAnswer(id)?.isReply)).toEqual([true, false, undefined])
  expect(after('use1 clientResult1:use1 result1:use1').getAnswer('use1')?.isReply).toBe(true)
})

test('an idle event sets `sendsIdleEvents` if it ends a turn, but not if a tool use waits', () => {
  expect(after('message1 say1 idle1').sendsIdleEvents).toBe(true)
  expect(after('use1 done1:use1').sendsIdleEvents).toBe(true)
  expect(after('use1 idle1').sendsIdleEvents).toBe(false)
})

test.each<[verb: 'may' | 'cannot', words: string]>([
  ['cannot', ''],
  ['cannot', 'message1'],
  ['may', 'message1 say1'],
  ['may', 'say1 reached1 usage1 odd1 oddSystem1'],
  ['may', 'use1 result1:use1 say1'],
  ['may', 'use1 interrupt1'],
  ...'childSay1 think1 use1 confirm1 system1 message1 run1 error1 done1 childInterrupt1'
    .split(' ')
    .map((word): ['cannot', string] => ['cannot', `say1 ${word}`]),
])('the agent %s have finished after these events: %s', (verb, words) => {
  expect(after(words).mayBeDone).toBe(verb === 'may')
})

test('a session counts as idle if the session resource is idle, until the next event', () => {
  const state = after('message1 run1 say1')
  const expectIdle = () => {
    expect(state.stop).toBeUndefined()
    state.addIdleResource()
    const { stop, stopReason, sendsIdleEvents, stopIds } = state
    expect([stop, stopReason, sendsIdleEvents]).toEqual([isDoneWithoutReason, undefined, false])
    expect([...stopIds]).toEqual([])
  }
  expectIdle()
  state.add(toEvent('say2'))
  expectIdle()
  state.addReduced({ type: 'user.message' }, true)
  expectIdle()
  // After an idle event, a message of the agent alone does not end the idle state.
  state.add(toEvent('done1'))
  state.add(toEvent('say3'))
  expect(state.stop).toEqual(isDone)
  const open = after('use1 say1')
  open.addIdleResource()
  expect(open.stop).toEqual(waiting('use1'))
})

test('the state of a session contains its last stop and the ids of all its stops', () => {
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

test('a tool use without an id does not wait for a reply, and a tool name that is not a string counts as empty', () => {
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
    const first = state[come]({ ...toEvent('use1'), ...changes })
    if (come === 'addRepeated')
      expect([first, state.addRepeated({ ...toEvent('use1'), ...changes })]).toEqual([true, false])
    if (come === 'add') state.add(toEvent('use1'))
    expect(state.getToolUse('use1')?.isContradicted).toBe(true)
  }
})

test('a tool use that already has a result does not count as changed if it is repeated with a different input', () => {
  const state = after('use1 use2 result1:use1')
  for (const id of ['use1', 'use2']) state.addRepeated({ ...toEvent(id), input: { a: 1 } })
  expect(['use1', 'use2'].map((id) => state.getToolUse(id)?.isContradicted ?? false)).toEqual([false, true])
  const empty = after('use1')
  empty.addRepeated({ ...toEvent('use1'), input: undefined })
  expect(empty.getToolUse('use1')?.isContradicted ?? false).toBe(false)
})

test.each<[rule: string, words: string, text: string | undefined]>([
  ['keeps the JSON of a tool use after an allow', 'use1 allow1:use1', 'text'],
  ['drops the JSON of a repeated tool use after a denial', 'use1 deny1:use1 use1', undefined],
  ['drops the JSON of an MCP tool use after an allow', 'mcp1 allow1:mcp1', undefined],
  ['keeps no JSON of a message', 'say1', undefined],
])('parley %s', (_, words, text) => {
  expect(after(words, 'text').getToolUse(words.split(' ')[0] ?? '')?.text).toBe(text)
})

const isAllowed = 'it already has the answer allow'
const isInterrupted = 'it was interrupted'
const hasEnded = 'the session is terminated'
test.each<[cause: string, words: string, use: string | undefined, childUse: string | undefined]>([
  ['an answer', 'allow1:use1', isAllowed, undefined],
  ['a result', 'clientResult1:use1', 'it has a result', undefined],
  ['an interrupt', 'interrupt1', isInterrupted, isInterrupted],
  ['an interrupt of its thread', 'childInterrupt1', undefined, isInterrupted],
  ['the end of its thread', 'childEnd1', undefined, 'its thread has ended'],
  ['the end of the session', 'terminated1', hasEnded, hasEnded],
  ['an answer and an idle event', 'allow1:use1 wait2:childUse1', isAllowed, undefined],
  ['another idle event', 'wait2:childUse1', 'the session does not wait for it any more', undefined],
])('after %s, findClosedReason() returns why a tool use needs no reply', (_, since, use, childUse) => {
  const state = after(`use1 childUse1 wait1:use1,childUse1 ${since}`)
  expect([state.findClosedReason('use1'), state.findClosedReason('childUse1')]).toEqual([use, childUse])
})

test('an allowed tool use waits for a result if a later idle event lists the tool use again', () => {
  expect(after('use1').getToolUse('use1')?.needsResult).toBeUndefined()
  const state = after('use1 wait1:use1 allow1:use1 wait2:use1', 'text')
  expect([state.answerable, state.stop]).toEqual([['use1'], waiting('use1')])
  expect(state.getToolUse('use1')).toMatchObject({ text: 'text', permission: 'allow', needsResult: true })
  for (const word of ['clientResult1:use1', 'wait3:use1']) state.add(toEvent(word))
  expect(state.answerable).toEqual([])
})

test('no tool use of an ended session is answerable, even if the session works again', () => {
  const words = 'run1 childUse1 childWait1:childUse1'
  expect(after(words).answerable).toEqual(['childUse1'])
  expect(after(`terminated1 ${words}`).answerable).toEqual([])
})

test('a session does not count as stopped at an idle event while parley replies to its tool uses', () => {
  const state = after('use1 wait1:use1')
  state.isReplying = true
  expect([state.stop, state.answerable]).toEqual([undefined, ['use1']])
  state.isReplying = false
  expect(state.stop).toEqual(waiting('use1'))
})

const nested = `${'['.repeat(1e5)}${']'.repeat(1e5)}`
const [long, longer] = [9007199254740992n, 9007199254740993n]
test.each<[what: string, verb: 'contradicts' | 'does not contradict', first: string, repeated: string]>([
  ['other blanks and key order', 'does not contradict', '{"a":1,"b":"x"}', '{ "b" : "\\u0078", "a" : 1 }'],
  ['a long integer that JavaScript rounds', 'contradicts', `{"a":${long}0}`, `{"a":${long}1}`],
  ['two long numbers swapped', 'contradicts', `{"a":${long},"b":${longer}}`, `{"a":${longer},"b":${long}}`],
  ['a number and its text swapped', 'contradicts', '{"a":1,"b":"1"}', '{"a":"1","b":1}'],
  ['null and its text swapped', 'contradicts', '{"a":null,"b":"null"}', '{"a":"null","b":null}'],
  ['a duplicate key', 'contradicts', '{"a":1}', '{"a":2,"a":1}'],
  ['a field __proto__', 'contradicts', '{"a":1}', '{"__proto__":{"a":1}}'],
  ['a blank inside 100,000 levels of nesting', 'contradicts', nested, nested.replace('[]', '[ ]')],
])('a repeated input with %s %s the first input of a tool use', (_, verb, one, other) => {
  const state = new SessionState()
  for (const input of [one, other]) {
    const text = `{"id":"t1","type":"agent.tool_use","name":"bash","input":${input}}`
    state.add(JSON.parse(text), text)
  }
  expect(state.getToolUse('t1')?.isContradicted ?? false).toBe(verb === 'contradicts')
})

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

test('a session records the texts of the results of clients, and no other text', () => {
  const state = new SessionState()
  const type = 'user.custom_tool_result'
  state.add({ type, custom_tool_use_id: 't2', content: '' })
  state.add({ type, custom_tool_use_id: 't1', content: 'one' })
  state.add({ type: 'agent.tool_result', tool_use_id: 't1', content: 'two' })
  state.add({ type: 'user.tool_confirmation', tool_use_id: 't1', result: 'allow', content: 'three' })
  state.add({ type, custom_tool_use_id: 't1', content: '' })
  state.add({ type, custom_tool_use_id: 't1', content: 'four' })
  expect(state.getAnswer('t1')?.clientResults).toEqual(['one', 'four'].map(computeDigest))
  expect(state.getAnswer('t2')?.clientResults).toBeUndefined()
})

test('a session has no reply since its stop before a client replies', () => {
  const state = new SessionState()
  expect(state.hasReplySinceStop).toBe(false)
  state.add({ type: 'session.status_idle' })
  expect(state.hasReplySinceStop).toBe(false)
})
