import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { computeFirstFollowState, computeNextFollowState } from '../../../src/sessions/following/following.ts'
import { getComparableEventText, SeenEvents } from '../../../src/sessions/following/seen-events.ts'
import type { EventItem } from '../../../src/wire/sessions/events-page.ts'
import type { SessionEvent } from '../../../src/wire/sessions/session-event.ts'

type FollowState = ReturnType<typeof computeFirstFollowState>
type FollowEffectResult = Parameters<typeof computeNextFollowState>[1]

const advance = (state: FollowState, result: FollowEffectResult, nowMs = 0): FollowState =>
  computeNextFollowState(state, result, nowMs)

/**
 * Creates an event from a word: `say1` is an agent's message with the id `say1`, `wait1:use1` an idle event
 * that lists a tool use.
 */
function toEvent(word: string): SessionEvent {
  const [id = '', ...ids] = word.split(':')
  const kind = id.replace(/\d+$/, '')
  const kinds: Record<string, SessionEvent> = {
    say: { type: 'agent.message', content: id },
    use: { type: 'agent.tool_use', name: 'bash', input: {} },
    run: { type: 'session.status_running' },
    done: { type: 'session.status_idle', stop_reason: { type: 'end_turn' } },
    wait: { type: 'session.status_idle', stop_reason: { type: 'requires_action', event_ids: ids } },
    gone: { type: 'session.status_terminated' },
    ask: { type: 'user.message', content: 'go on', processed_at: '2026-01-01T00:00:00Z' },
    queued: { type: 'user.message', content: 'go on', processed_at: null },
    stop: { type: 'user.interrupt' },
    piece: { type: 'event_delta' },
    allow: { type: 'user.tool_confirmation', tool_use_id: ids[0], result: 'allow' },
    flow: { type: 'workflow_run.created', workflow_run_id: 'flow' },
    flown: { type: 'workflow_run.status_ended', workflow_run_id: 'flow' },
  }
  const event = kinds[kind] as SessionEvent
  // The word `say` creates an event without an id.
  return id === kind ? event : { id: id.replace('queued', 'ask'), ...event }
}

const toItems = (words: string) =>
  words.split(' ').flatMap((text) => (text === '' ? [] : [{ event: toEvent(text), text }]))

function createSeenEvents(past: string, sent?: string): SeenEvents {
  const seenEvents = new SeenEvents()
  seenEvents.addEarlier(toItems(past))
  if (sent !== undefined) seenEvents.addSent(toItems(sent).map(({ event }) => event))
  return seenEvents
}

interface Script {
  past?: string
  /** Events that parley sends before the follower starts. */
  sent?: string
  /** Contents of the lists, in order. The last one repeats. `!` is a failure. */
  lists?: string[]
  /**
   * Content of the streams, in order: `-` is a silence, `|` the end of a stream, `!` a failure. Then the
   * stream stays silent.
   */
  stream?: string
  stays?: boolean
  /** Events that parley sends after the follower has emitted this event. */
  answers?: Record<string, string>
  /** Status of the session resource for each query. The last status repeats. */
  statuses?: (string | undefined)[]
}

/** Follows a scripted session with a simulated clock. Returns the effects and the emitted events in order. */
function follow({
  past = '',
  sent,
  lists = [past],
  stream = '',
  stays = false,
  answers = {},
  statuses = ['running'],
}: Script): string[] {
  const seenEvents = createSeenEvents(past, sent)
  const coming = stream.split(' ').filter(Boolean)
  const trace: string[] = []
  let listed = 0
  let queries = 0
  let now = 0

  function execute(effect: FollowState['effect']): FollowEffectResult {
    if (effect.do === 'emit') {
      const emitted = effect.items.map(({ text }) => text)
      trace.push(...emitted)
      for (const { event } of toItems(answers[emitted.at(-1) ?? ''] ?? '')) seenEvents.state.add(event)
      return { is: 'emitted' }
    }
    if (effect.do === 'list') {
      now += effect.delayMs
      if (effect.readsSession) trace.push('read session')
      const status = effect.readsSession ? statuses[Math.min(queries++, statuses.length - 1)] : undefined
      const list = lists[Math.min(listed++, lists.length - 1)] ?? ''
      trace.push(effect.delayMs > 0 ? `list after ${effect.delayMs}` : 'list')
      return list === '!' ? { is: 'failed' } : { is: 'list', list: toItems(list), status }
    }
    if (effect.do !== 'listen') {
      trace.push('connect')
      return { is: 'opened' }
    }
    const word = coming.shift()
    if (word === '|') return { is: 'ended' }
    if (word === '!') return { is: 'failed' }
    const [item] = word === undefined || word === '-' ? [] : toItems(word)
    if (item) return { is: 'event', item }
    now += effect.maxMs
    trace.push(`silence of ${effect.maxMs}`)
    return { is: 'silence', durationMs: effect.maxMs }
  }

  let state = computeFirstFollowState(seenEvents, stays)
  for (let steps = 0; steps < 200; steps++) {
    if (state.effect.do === 'end') return [...trace, `end at ${now}`]
    state = advance(state, execute(state.effect), now)
  }
  return [...trace, 'no end']
}

const withTurn = 'run0 say1 ask1 say2 done1'
test.each(
  Object.entries<[Script, string]>({
    'ends if the session is idle': [{ past: 'say1 done1' }, 'list, silence of 200, end at 200'],
    'reads from the list the events that precede the first streamed event': [
      { past: 'run1', lists: ['run1', 'run1 say1 say2'], stream: 'say2 say3 done1' },
      'list, list, say1, say2, say3, done1, silence of 200, end at 200',
    ],
    'drops old events that the stream repeats': [
      { past: 'run1 say1', lists: ['run1 say1', 'run1 say1 done1'], stream: 'run1 say1 run1' },
      'list, silence of 30000, read session, list, done1, silence of 0, end at 30000',
    ],
    'holds back streamed events for at most 1.75 s if the list lags': [
      { past: 'run1', lists: ['run1', 'run1', 'run1', 'run1', 'run1'], stream: 'say2 done1' },
      'list, list, list after 250, list after 500, list after 1000, say2, done1, silence of 0, end at 1750',
    ],
    'opens another stream and reads the list if the stream fails': [
      { past: 'run1', lists: ['run1', 'run1', 'run1 say1 done1'], stream: '! say1 done1' },
      'list, connect, list, list, say1, done1, silence of 200, end at 200',
    ],
    'reads the list again if the list omits the sent event that the stream contained': [
      { past: 'run0', sent: 'ask1', lists: ['run0 say1', withTurn], stream: 'ask1 - - say1' },
      'silence of 30000, list, silence of 250, list, say2, done1, silence of 0, end at 30250',
    ],
    'emits only the events after the sent event if the list contains the sent event': [
      { past: 'done0', sent: 'ask1', lists: ['done0 say1 ask1 say2'], stream: 'say1 say2 done1' },
      'silence of 250, list, say2, done1, silence of 0, end at 250',
    ],
  }),
)('a follower %s', (_, [script, steps]) => {
  expect(follow(script).join(', ')).toBe(steps)
})

const past = 'ask0 run0 say0'
const whole = `${past} ask1 run1 say1`
const sent = { past, sent: 'ask1', stream: 'ask1 run1 say1' }
const asks = 'silence of 30000, read session, list'
const flows = 'ask1 run1 flow1 done1 flown1'

test.each<[string, Script, string]>([
  [
    'becomes idle if the session resource is idle',
    { ...sent, lists: [whole], statuses: ['idle'] },
    `run1, say1, ${asks}, silence of 0, end at 30000`,
  ],
  [
    'ends if the session resource is terminated',
    { ...sent, lists: [whole], statuses: ['terminated'] },
    `run1, say1, ${asks}, silence of 0, end at 30000`,
  ],
  [
    'becomes idle after its last workflow run if the session resource is idle',
    { past: 'done0', sent: 'ask1', stream: flows, lists: [`done0 ${flows}`], statuses: ['idle'] },
    `run1, flow1, done1, flown1, ${asks}, silence of 0, end at 30000`,
  ],
  [
    'is queried again after a failed list',
    { ...sent, lists: ['!', whole], statuses: ['idle', 'running', 'idle'] },
    `run1, say1, ${asks}, connect, list, silence of 250, list, silence of 500, list, silence of 1000, list, ` +
      `silence of 2000, list, silence of 4000, list, silence of 8000, list, silence of 16000, list, ` +
      `${asks}, ${asks}, silence of 0, end at 121750`,
  ],
  [
    'becomes idle if its only idle event was for an answered tool use before the last message',
    {
      past,
      sent: 'ask1',
      stream: 'ask1 use1 wait1:use1 say1',
      lists: [`${past} ask1 use1 wait1:use1 allow1:use1 say1`],
      answers: { 'wait1:use1': 'allow1:use1' },
      statuses: ['idle'],
    },
    `use1, wait1:use1, say1, ${asks}, allow1:use1, ${asks}, silence of 0, end at 60000`,
  ],
])('a session without a final idle event %s', (_, script, steps) => {
  expect(follow(script).join(', ')).toBe(steps)
})

const printed = (script: Script) => follow(script).filter((step) => !/^(list|silence|connect)/.test(step))

/** Silences during which a follower searches for the sent events until the search ends. */
const tenSeconds = '- '.repeat(41)

test.each(
  Object.entries<[Script, string]>({
    'all events until the session is terminated, if --stay is set': [
      { past: 'done1', stays: true, lists: ['done1 run1'], stream: 'done2 gone1' },
      'run1 done2 gone1 end at 1750',
    ],
    'all received events after 10 s if the sent event never appears': [
      { past: 'ask0 done0', sent: 'ask1', stream: 'say1 done1' },
      'say1 done1 end at 10001',
    ],
    "the turn after another client's turn, and waits for the sent event, which never appears": [
      { past: 'ask0 run0', sent: 'ask1', stream: `${tenSeconds} done0 - run1 say1 done1` },
      'done0 run1 say1 done1 no end',
    ],
    "another client's turn, and no turn of the sent event, if the session was empty": [
      { sent: 'ask1', stream: `${tenSeconds} ask0 done0 - run1 say1 done1` },
      'ask0 done0 end at 10001',
    ],
    "the turn of the queued message, 5 s after another client's turn": [
      { past: 'ask0 run0', sent: 'ask1', stream: 'queued1 done0 - - - run1 ask1 say1 done1' },
      'done0 run1 say1 done1 end at 10250',
    ],
    "the turn of the processed message after another client's turn": [
      { past: 'ask0 run0', sent: 'ask1', stream: 'ask1 done0 - run1 say1 done1' },
      'done0 run1 say1 done1 end at 250',
    ],
    'the events of a workflow run, and reads the session resource after its end': [
      {
        past: 'done0',
        sent: 'ask1',
        stream: 'ask1 run1 flow1 done1 - flown1 |',
        lists: ['done0 ask1 run1 flow1 done1', `done0 ${flows}`],
        statuses: [undefined],
      },
      'run1 flow1 done1 flown1 read session end at 91750',
    ],
    'the turn of the first sent event, and ends 5 s later if the second never appears': [
      { past: 'ask0 done0', sent: 'ask1 ask2', stream: 'ask1 say1 done1' },
      'say1 done1 end at 5000',
    ],
    'the end of the session, and ends although the sent event is not processed': [
      { past: 'run0', sent: 'ask1', stream: 'queued1 gone1' },
      'gone1 end at 200',
    ],
    'the events of a list that omits the sent event if the stream contained the sent event': [
      { past: 'done0', sent: 'ask1', lists: ['done0 say1 say2 done1'], stream: 'ask1 say1' },
      'say1 say2 done1 end at 30000',
    ],
    'no event before the sent event if a second stream repeats it and the list lags': [
      {
        past: 'ask0',
        sent: 'ask1',
        lists: ['ask0', 'ask0 run0 done0', 'ask0 run0 done0 ask1 run1 say1 done1'],
        stream: 'ask1 | run0 done0 run1 say1 done1',
      },
      'run1 say1 done1 end at 250',
    ],
    'the events before and after a queued message is processed': [
      { past: 'run0', sent: 'ask1', stream: 'queued1 say0 done0 run1 ask1 say1 done1' },
      'say0 done0 run1 say1 done1 end at 200',
    ],
    'a late idle event, and ends if no work on the queued message starts within 5 s': [
      { past: 'run0', sent: 'ask1', stream: '- - - queued1 done0' },
      'done0 end at 5750',
    ],
    'a second event that equals the sent event': [
      { past: 'done0', sent: 'ask', stream: 'ask7 ask8 done1' },
      'ask8 done1 end at 200',
    ],
    'the events after a sent interrupt and a sent message': [
      { past: 'done0', sent: 'stop1 ask1', stream: 'stop1 - ask1 say1 done1' },
      'say1 done1 end at 30000',
    ],
    'nothing after an interrupt at rest': [{ past: 'done0', sent: 'stop1', stream: 'stop1' }, 'end at 200'],
  }),
)('a follower prints %s', (_, [script, expected]) => {
  expect(printed(script).join(' ')).toBe(expected)
})

/** In the state `searching`, the follower has not found the sent event yet. */
type State = FollowState['is'] | 'searching'
type Kind = FollowEffectResult['is']

/**
 * Creates a follower in each state. In the states `comparing` and `current`, it has received `say1` from the
 * stream.
 */
const states: Record<State, (past: string) => FollowState> = {
  searching: (past) => started(past, 'ask1'),
  joining: (past) => started(past),
  comparing: (past) => advance(states.joining(past), { is: 'event', item: toItem('say1') }),
  current: (past) => advance(states.comparing(past), toList(`${past} say1`)),
}

const started = (past: string, sent?: string): FollowState =>
  computeFirstFollowState(createSeenEvents(past, sent), false)

const toItem = (word: string) => toItems(word)[0] as EventItem
const toList = (words: string): FollowEffectResult => ({ is: 'list', list: toItems(words) })

/** Returns, for example, `current: emit say2`. */
function describeStep({ is, effect }: FollowState): string {
  if (effect.do === 'emit')
    return `${is}: emit ${effect.items.length === 0 ? 'nothing' : effect.items.map(({ text }) => text).join(' ')}`
  if (effect.do === 'listen') return `${is}: listen for ${effect.maxMs} ms`
  if (effect.do === 'list') {
    const when = effect.delayMs > 0 ? ` after ${effect.delayMs} ms` : ''
    return `${is}: ${effect.readsSession ? 'read the session, then ' : ''}read the list${when}`
  }
  return `${is}: ${effect.do === 'connect' ? 'open another stream' : effect.do}`
}

const inputNames: Record<Kind, string> = {
  list: 'a list',
  event: 'an event',
  silence: 'silence',
  ended: 'the end of the stream',
  opened: 'a new stream',
  failed: 'a failure',
  emitted: 'emitted events',
}

const news: Record<Kind, FollowEffectResult> = {
  list: toList('run1 say1 say2'),
  event: { is: 'event', item: toItem('say3') },
  silence: { is: 'silence', durationMs: 250 },
  ended: { is: 'ended' },
  opened: { is: 'opened' },
  failed: { is: 'failed' },
  emitted: { is: 'emitted' },
}

test('an older message that the first list omitted is not the answer to a sent event', () => {
  const seenEvents = createSeenEvents('ask1 run1', 'ask2')
  seenEvents.addList(toItems('ask1 run1 say1 done1 ask2 run2 done2'))
  expect(seenEvents.task.answer).toBeUndefined()
  seenEvents.addList(toItems('ask1 run1 say1 done1 ask2 run2 say2 done2'))
  expect(seenEvents.task.answer?.id).toBe('say2')
})

const stream = (seenEvents: SeenEvents, words: string) =>
  toItems(words).flatMap((item) => seenEvents.addStreamed(item).map(({ text }) => text))
const list = (seenEvents: SeenEvents, words: string) =>
  seenEvents.addList(toItems(words)).map(({ text }) => text)

test('only events after the sent event are new, not the events of an earlier list', () => {
  const seenEvents = createSeenEvents('ask0', 'ask1')
  const news = ['say9', 'ask1 say2'].map((words) => list(seenEvents, words))
  expect(news.at(-1)).toEqual(['say2'])
  expect(news.slice(0, -1).flat()).toEqual([])
})

test('the search goes on after a list with new events but without the sent event', () => {
  const seenEvents = createSeenEvents('run0', 'ask1')
  stream(seenEvents, 'ask1')
  list(seenEvents, 'run0')
  expect(seenEvents.isSearching).toBe(false)
  list(seenEvents, 'run0 say1')
  expect(seenEvents.isSearching).toBe(true)
})

test('if two lists have different inputs of a tool use, the input counts as contradictory, even without the sent event', () => {
  const seenEvents = createSeenEvents('run0', 'ask1')
  const event = { ...toEvent('use1'), input: { command: 'rm' } }
  const other = { event, text: JSON.stringify(event) }
  list(seenEvents, 'run0 use1')
  seenEvents.addList([...toItems('run0'), other])
  seenEvents.addList([...toItems('run0'), other, toItem('ask1')])
  expect(seenEvents.state.getToolUse('use1')?.isContradicted).toBe(true)
})

test('a follower emits a new event without an id, although the earlier list has equal events', () => {
  const seenEvents = createSeenEvents('say say')
  expect(list(seenEvents, 'say say say')).toEqual(['say'])
  expect(list(seenEvents, 'say say say done')).toEqual(['done'])
  expect(list(seenEvents, 'say1 say1')).toEqual(['say1'])
  expect(seenEvents.isNew(toItem('run'))).toBe(true)
})

test('a list inserts an event before two sent events once it has contained one of them', () => {
  const seenEvents = createSeenEvents('done0', 'stop1 ask1')
  list(seenEvents, 'done0 stop1')
  stream(seenEvents, 'ask1')
  expect(list(seenEvents, 'done0 say0 stop1 ask1')).toEqual(['say0'])
  expect([...seenEvents.task.readEvents()].map(({ id }) => id)).toEqual(['ask1'])
})

test.each([
  ['older than', 'a new', 'ask1', 'ask1'],
  ['newer than', 'the same', 'ask1', 'ask1'],
  ['newer than', 'a new', 'ask1', 'ask0'],
  ['newer than', 'a new', 'queued1', 'ask1'],
  ['older than', 'a new', 'queued1', 'queued1'],
  ['older than', 'a new', 'stop1 ask1', 'stop1'],
  ['newer than', 'a new', 'stop1 ask1', 'ask1'],
])(
  'a held-back event counts as %s the sent event if %s stream has %s and then %s',
  (age, by, first, then) => {
    const seenEvents = createSeenEvents('ask0', first)
    stream(seenEvents, `done0 ${first}`)
    expect(seenEvents.isNew(toItem('done0'))).toBe(false)
    if (by === 'a new') seenEvents.addConnection()
    seenEvents.addStreamed(toItem('say1'), true)
    stream(seenEvents, `piece ${then}`)
    const answer = age === 'newer than' ? 'say1' : undefined
    expect([seenEvents.isHoldingBack, seenEvents.task.answer?.id]).toEqual([answer !== undefined, answer])
  },
)

test('held-back events move before a sent event that a new stream repeats', () => {
  const seenEvents = createSeenEvents('run0', 'stop1')
  stream(seenEvents, 'stop1 done1')
  seenEvents.addConnection()
  for (const item of toItems('run2 run3')) seenEvents.addStreamed(item, true)
  stream(seenEvents, 'stop1')
  const ids = [...seenEvents.task.readEvents()].flatMap(({ id = [] }) => id)
  expect(ids).toEqual(['run0', 'run2', 'run3', 'stop1', 'done1'])
})

test('the first event of a new stream may be the sent event', () => {
  const seenEvents = createSeenEvents('ask0', 'ask1')
  seenEvents.addConnection()
  expect(stream(seenEvents, 'ask1 say1')).toEqual(['say1'])
})

test('a tool use does not wait for its result before the service shows the confirmation', () => {
  const seenEvents = createSeenEvents('use1 wait1:use1', 'allow1:use1')
  for (let phase = 0; phase < 2; phase++) seenEvents.endSearchPhase()
  expect(stream(seenEvents, 'wait2:use1')).toHaveLength(1)
  expect(seenEvents.state.pending).toEqual([])
})

test("a message of another client's turn is the answer once a list shows the queued task as processed", () => {
  const seenEvents = createSeenEvents('ask0 run0', 'ask1')
  stream(seenEvents, 'queued1 say0 done0')
  expect(seenEvents.task.answer).toBeUndefined()
  list(seenEvents, 'ask0 run0 ask1 say0 done0')
  expect(seenEvents.task.answer?.id).toBe('say0')
})

test('with --stay, a follower reads the list soon only after an idle event that no list has', () => {
  const open = (past: string) => computeFirstFollowState(createSeenEvents(past), true)
  expect(describeStep(advance(open('done1'), news.emitted))).toBe('joining: listen for 30000 ms')
  const compared = advance(advance(open('run1'), event('say1')), toList('run1 say1'))
  const streamed = advance(compared, event('done1'))
  expect(describeStep(advance(streamed, news.emitted))).toBe('current: listen for 200 ms')
  expect(new SeenEvents().log.isStopListed).toBe(true)
})

test('only an agent message after the task is its answer, even if another client sends a message later', () => {
  const seenEvents = createSeenEvents('run0', 'ask1')
  stream(seenEvents, 'say0 ask1')
  expect(seenEvents.task.answer).toBeUndefined()
  stream(seenEvents, 'say1 ask2')
  expect(seenEvents.task.answer?.id).toBe('say1')
})

test('work is pending until the service shows the sent event as processed', () => {
  const both = createSeenEvents('done0', 'stop1 ask1')
  expect(both.isWorkPending).toBe(true)
  expect(both.state.stop).toBeUndefined()
  stream(both, 'stop1')
  expect(both.isWorkPending).toBe(true)
  stream(both, 'queued1')
  list(both, 'done0 stop1 queued1')
  expect(both.isWorkPending).toBe(true)
  both.addRepeated(toItem('ask1'))
  expect(both.isWorkPending).toBe(false)
  // Without an id, nobody can tell when the event is processed, so parley does not wait for that.
  const partly = createSeenEvents('', 'stop1 ask1 stop')
  expect(partly.seeksIds).toBe(true)
  stream(partly, 'ask1')
  expect(partly.seeksIds).toBe(false)
  const unnamed = createSeenEvents('done0', 'ask')
  stream(unnamed, 'queued')
  expect(unnamed.isWorkPending).toBe(false)
})

test('a streamed event is new if parley has sent nothing', () => {
  const seenEvents = new SeenEvents()
  seenEvents.endSearchPhase()
  const { isSearching, isWorkPending, isMissingSentEvents, seeksIds } = seenEvents
  expect([seeksIds, isSearching, isWorkPending, isMissingSentEvents]).toEqual(Array(4).fill(false))
  expect(stream(seenEvents, 'ask1')).toEqual(['ask1'])
})

test.each<[string, object, object]>([
  ['different tool uses', { tool_use_id: 'a' }, { tool_use_id: 'b' }],
  ['different descriptions', { description: 'a' }, { description: 'b' }],
  ['different texts', { content: 'a' }, { content: 'b' }],
])('the comparison of events detects %s, but ignores a field that the service adds', (_, one, other) => {
  const of = (more: object) => getComparableEventText({ ...toEvent('ask1'), ...more })
  expect(of(one)).not.toBe(of(other))
  expect(of({ ...one, by: 'service' })).toBe(of(one))
})

const table: Record<State, Record<Kind, string>> = {
  searching: {
    list: 'current: emit nothing',
    event: 'current: listen for 250 ms',
    silence: 'current: read the list',
    ended: 'current: open another stream',
    opened: 'joining: read the list',
    failed: 'current: open another stream',
    emitted: 'current: listen for 250 ms',
  },
  joining: {
    list: 'joining: emit say1 say2',
    event: 'comparing: read the list',
    silence: 'joining: read the list',
    ended: 'joining: open another stream',
    opened: 'joining: read the list',
    failed: 'joining: open another stream',
    emitted: 'joining: listen for 30000 ms',
  },
  comparing: {
    list: 'current: emit say1 say2',
    event: 'comparing: emit nothing',
    silence: 'comparing: read the list',
    ended: 'comparing: open another stream',
    opened: 'joining: read the list',
    failed: 'current: emit say1',
    emitted: 'comparing: read the list after 250 ms',
  },
  current: {
    list: 'current: emit say2',
    event: 'current: emit say3',
    silence: 'current: read the list',
    ended: 'current: open another stream',
    opened: 'joining: read the list',
    failed: 'current: open another stream',
    emitted: 'current: listen for 30000 ms',
  },
}
const rows = Object.entries(table).flatMap(([state, row]) =>
  Object.entries(row).map(([input, step]) => {
    const [nextState = '', action = ''] = step.split(': ')
    return [inputNames[input as Kind], state as State, nextState, action, input as Kind] as const
  }),
)
test.each(rows)(
  'after %s in state "%s", a follower is in state "%s" and its next step is "%s"',
  (_, state, nextState, step, input) => {
    expect(describeStep(advance(states[state]('run1'), news[input]))).toBe(`${nextState}: ${step}`)
  },
)

const event = (word: string): FollowEffectResult => ({ is: 'event', item: toItem(word) })
test('a follower that searches for the sent event reads the list after 250 ms, even if events keep arriving', () => {
  const state = advance(states.searching('run1'), event('say7'))
  expect(describeStep(advance(state, event('say8'), 60))).toBe('current: listen for 190 ms')
  expect(describeStep(advance(state, event('say8'), 250))).toBe('current: read the list')
})

test('after 3 s, a follower finds the sent event by content if the list has it under another id', () => {
  const searched = advance(states.searching('run1'), event('ask7'))
  const listed = advance(searched, toList('run1 ask7'), 3_000)
  const late = advance(listed, { is: 'emitted' }, 3_001)
  expect(describeStep(late)).toBe('current: read the list')
  expect(describeStep(advance(late, toList('run1 ask7 say2'), 3_001))).toBe('current: emit say2')
})

test('a follower listens only 200 ms before it reads the list if the stream repeats an event without an id', () => {
  const state = advance(states.current('run1'), event('done'))
  expect(describeStep(advance(state, event('done')))).toBe('joining: listen for 200 ms')
})

test('to compare a new stream with the list, a follower waits for an event after the sent events', () => {
  const sent = started('run1', 'ask1 ask2')
  const listed = advance({ ...sent, is: 'joining', listenDurationsMs: [] }, toList('run1 ask1'))
  const next = advance(listed, event('ask2'))
  expect(describeStep(next)).toBe('joining: read the list')
  expect(describeStep(advance(next, event('say1')))).toBe('comparing: read the list')
})

test('a follower reads the list after a failed request for a stream', () => {
  const cut = advance(states.current('run1'), news.ended)
  expect(describeStep(advance(cut, news.failed))).toBe('current: read the list')
})

test('a follower prints nothing for a repeated event without an id while it waits for the list', () => {
  const step = advance(states.comparing('run1 say'), event('say'))
  expect(describeStep(step)).toBe('comparing: listen for 30000 ms')
})

test('a follower emits new events in the order of the list after a new stream was opened', () => {
  const opened = advance(states.searching('run1'), news.opened)
  const early = advance(opened, event('done8'))
  const placed = advance(early, toList('run1 ask1'))
  expect(describeStep(placed)).toBe('joining: emit nothing')
  expect(describeStep(advance(placed, toList('run1 ask1 say7 done8')))).toBe('joining: emit say7 done8')
})

test('a follower with a new stream emits the events of the list if the sent event does not appear within 10 s', () => {
  const cut = advance(advance(states.searching('run1'), event('ask1')), news.opened)
  const held = advance(cut, toList('run1 say1'))
  const searching = advance(held, { is: 'emitted' })
  expect(describeStep(searching)).toBe('joining: listen for 250 ms')
  const late = advance(searching, event('piece'), 10_001)
  expect(describeStep(late)).toBe('joining: read the list')
  expect(describeStep(advance(late, toList('run1 say1'), 10_001))).toBe('joining: emit say1')
})

test('a follower of a stopped session ends after silence, or at the end of the stream', () => {
  for (const input of ['silence', 'ended'] as const)
    expect(describeStep(advance(states.current('done1'), news[input]))).toBe('current: end')
})

test.each(['streamed', 'listed'])('a follower keeps only the last message of long %s turns', async (by) => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const seenEvents = new SeenEvents()
  const kept: WeakRef<object>[] = []
  const rounds = 200
  const makeRound = (round: number): EventItem[] => {
    const [input, result, content] = [{ command: 'ls' }, ['out'], [{ type: 'text', text: `${round}` }]]
    kept.push(...[input, result, content].map((part) => new WeakRef(part)))
    const events: SessionEvent[] = [
      { id: `use${round}`, type: 'agent.tool_use', name: 'bash', input, evaluated_permission: 'allow' },
      { id: `out${round}`, type: 'agent.tool_result', tool_use_id: `use${round}`, content: result },
      { id: `say${round}`, type: 'agent.message', content },
    ]
    return events.map((event) => ({ event, text: JSON.stringify(event) }))
  }
  const turn = Array.from({ length: rounds }, (_, round) => () => [
    ...(round % 20 === 0 ? [toItem(`ask${round}`)] : []),
    ...makeRound(round),
  ])
  const list = () => turn.flatMap((make) => make())
  if (by === 'listed') expect(seenEvents.addList(list())).toHaveLength(3 * rounds + 10)
  else for (const make of turn) for (const item of make()) seenEvents.addStreamed(item)
  // A WeakRef keeps its target until the current task ends, so the test waits for the next task.
  await new Promise((resolve) => setImmediate(resolve))
  collectGarbage()
  const alive = kept.filter((part) => part.deref() !== undefined).length
  expect(kept.length).toBe(3 * rounds)
  expect(alive).toBeLessThan(10)
  expect(seenEvents.task.answer?.id).toBe(`say${rounds - 1}`)
})

test("if a list shows another client's task before the last message, the message before that task is the answer", () => {
  const seenEvents = createSeenEvents('', 'ask1')
  stream(seenEvents, 'ask1 say1 say2 say3')
  expect(list(seenEvents, 'ask1 say1 say2 ask2 say3')).toEqual(['ask2'])
  expect(seenEvents.task.answer).toEqual(toEvent('say2'))
})

const known = 'ask1 use1 wait1:use1'

test.each<[decision: 'stops' | 'continues', about: string, past: string, newest: string]>([
  ['stops', 'the list reaches the two newest known events', known, 'wait1:use1 use1'],
  ['continues', 'the list has only one of the two newest known events', known, 'say2 wait1:use1'],
  ['continues', 'the list lacks the newest known event', known, 'use1 ask1'],
  ['continues', 'the list is oldest first', known, 'ask1 use1 wait1:use1 say2'],
  ['continues', 'a new event is between the two newest known events', known, 'wait1:use1 say2 use1'],
  ['continues', 'another event has no id', known, 'wait1:use1 use1 say'],
  ['continues', 'the known events have no ids', 'ask1 say say', 'say say ask1'],
])('a follower that reads a list backwards %s if %s', (decision, _, before, newest) => {
  const seenEvents = createSeenEvents(before)
  expect(seenEvents.hasListEnd && seenEvents.overlapsLastList(toItems(newest))).toBe(decision === 'stops')
})

test('a follower reads no list backwards if it knows only one event', () => {
  const seenEvents = createSeenEvents('ask1')
  expect(seenEvents.hasListEnd).toBe(false)
  seenEvents.addEarlier(toItems('say1 done1 done1'))
  expect(seenEvents.hasListEnd).toBe(true)
  expect([...seenEvents.task.readEvents()]).toHaveLength(3)
})

test('a follower reads lists backwards beyond the sent event until the sent event is listed as processed', () => {
  const seenEvents = createSeenEvents('ask0 done0', 'queued1')
  for (const words of ['ask0 done0 say0 use0', 'ask0 done0 say0 use0 queued1']) {
    list(seenEvents, words)
    expect(seenEvents.overlapsLastList(toItems('queued1 use0 say0'))).toBe(false)
    expect(seenEvents.overlapsLastList(toItems('queued1 use0 say0 done0 ask0'))).toBe(true)
  }
  list(seenEvents, 'ask0 done0 say0 use0 ask1')
  expect(seenEvents.overlapsLastList(toItems('run1 ask1 use0'))).toBe(true)
  const processed = createSeenEvents('ask0 done0', 'ask1')
  stream(processed, 'ask1')
  list(processed, 'ask0 done0 say0 use0')
  expect(processed.overlapsLastList(toItems('use0 say0'))).toBe(false)
})

test('a list of only the events since the last list has the same effect as the whole list', () => {
  const seenEvents = createSeenEvents('ask1 run1')
  stream(seenEvents, 'say2 done1')
  const newest = toItems('done1 say2 say1 run1 ask1')
  expect(seenEvents.overlapsLastList(newest)).toBe(true)
  expect(seenEvents.addList(newest.reverse()).map(({ text }) => text)).toEqual(['say1'])
  expect(seenEvents.task.answer?.id).toBe('say2')
  expect(seenEvents.state.isIdle).toBe(true)
})
