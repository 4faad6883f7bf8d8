import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import {
  type FollowEffect,
  type FollowEffectResult,
  type FollowState,
  type FollowStep,
  startFollowing,
  stepFollowState,
} from '../../../src/sessions/following/following.ts'
import { getComparableEventText, SeenEvents } from '../../../src/sessions/following/seen-events.ts'
import type { EventItem } from '../../../src/wire/sessions/events-page.ts'
import type { SessionEvent } from '../../../src/wire/sessions/session-event.ts'

/**
 * Creates an event from a word: `say1` is an agent's message with the id `say1`, `wait1:use1` an idle event that
 * lists a tool use.
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
    allow: { type: 'user.tool_confirmation', tool_use_id: ids[0] },
  }
  const event = kinds[kind] as SessionEvent
  // The word `say` creates an event without an id.
  return id === kind ? event : { id: id.replace('queued', 'ask'), ...event }
}

const toItems = (words: string) =>
  words
    .split(' ')
    .filter(Boolean)
    .map((word) => ({ event: toEvent(word), text: word }))

interface Script {
  past?: string
  /** Events that are sent before the follower starts. */
  sent?: string
  /** Contents of the lists, in order. The last one repeats. `!` is a failure. */
  lists?: string[]
  /**
   * Content of the streams, in order: `-` is a silence, `|` the end of a stream, `!` a failure. Then the
   * stream stays silent.
   */
  stream?: string
  stays?: boolean
  /** Events that are sent when an event is shown, or at the start (`''`). */
  answers?: Record<string, string>
  /** True if the session resource is idle, for each query. The last one repeats. */
  statuses?: string[]
}

/** Executes each effect with its own clock. Returns the effects and the shown events in order. */
function follow({
  past = '',
  sent,
  lists = [past],
  stream = '',
  stays = false,
  answers = {},
  statuses = ['running'],
}: Script): string[] {
  const ledger = new SeenEvents()
  ledger.addEarlier(toItems(past))
  const coming = stream.split(' ').filter(Boolean)
  const trace: string[] = []
  let listed = 0
  let queries = 0
  let now = 0

  function execute(effect: FollowEffect): FollowEffectResult {
    if (effect.do === 'show') {
      const shown = effect.items.map(({ text }) => text)
      trace.push(...shown)
      for (const { event } of toItems(answers[shown.at(-1) ?? ''] ?? '')) ledger.state.add(event)
      return { is: 'shown' }
    }
    if (effect.do === 'list') {
      now += effect.delayMs
      if (effect.readsSession) trace.push('ask')
      const status = effect.readsSession ? statuses[Math.min(queries++, statuses.length - 1)] : undefined
      const list = lists[Math.min(listed++, lists.length - 1)] ?? ''
      trace.push(effect.delayMs > 0 ? `list after ${effect.delayMs}` : 'list')
      return list === '!'
        ? { is: 'failed' }
        : { is: 'list', list: toItems(list), isQuiet: effect.isQuiet === true, status }
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

  if (sent !== undefined) ledger.addSent(toItems(sent).map(({ event }) => event))
  let { state, effect } = startFollowing(ledger, stays)
  for (let steps = 0; steps < 200; steps++) {
    if (effect.do === 'end') return [...trace, `end at ${now}`]
    ;({ state, effect } = stepFollowState(state, execute(effect), now))
  }
  return [...trace, 'no end']
}

describe('requests of a follower', () => {
  test.each<[string, Script, string]>([
    ['that is idle', { past: 'say1 done1' }, 'list, silence of 200, end at 200'],
    [
      'that works: a list shows the events before the first one of the stream',
      { past: 'run1', lists: ['run1', 'run1 say1 say2'], stream: 'say2 say3 done1' },
      'list, list, say1, say2, say3, done1, silence of 200, end at 200',
    ],
    [
      'whose stream repeats old events',
      { past: 'run1 say1', lists: ['run1 say1', 'run1 say1 done1'], stream: 'run1 say1 run1' },
      'list, silence of 30000, ask, list, done1, silence of 0, end at 30000',
    ],
    [
      'whose list lags, and holds events back for a limited time',
      {
        past: 'run1',
        lists: ['run1', 'run1', 'run1', 'run1', 'run1'],
        stream: 'say2 done1',
      },
      'list, list, list after 250, list after 500, list after 1000, say2, done1, silence of 0, end at 1750',
    ],
    [
      'whose stream fails',
      { past: 'run1', lists: ['run1', 'run1', 'run1 say1 done1'], stream: '! say1 done1' },
      'list, connect, list, list, say1, done1, silence of 200, end at 200',
    ],
    [
      'whose stream shows the sent event, which newer lists omit',
      {
        past: 'run0',
        sent: 'ask1',
        lists: ['run0 say1', 'run0 say1 ask1 say2 done1'],
        stream: 'ask1 - - say1',
      },
      'silence of 30000, list, silence of 250, list, say2, done1, silence of 0, end at 30250',
    ],
    [
      'whose list shows the sent event',
      { past: 'done0', sent: 'ask1', lists: ['done0 say1 ask1 say2'], stream: 'say1 say2 done1' },
      'silence of 100, list, say2, done1, silence of 100, end at 200',
    ],
  ])('a follower sends the right requests for a session %s', (_, script, steps) => {
    expect(follow(script).join(', ')).toBe(steps)
  })
})

describe('session whose service sends no idle event after a plain turn', () => {
  const past = 'ask0 run0 say0'
  const whole = `${past} ask1 run1 say1`
  const sent = { past, sent: 'ask1', stream: 'ask1 run1 say1' }
  const asks = 'silence of 30000, ask, list'

  test.each<[string, Script, string]>([
    [
      'becomes idle if the session resource is idle',
      { ...sent, lists: [whole], statuses: ['idle'] },
      `run1, say1, ${asks}, silence of 0, end at 30000`,
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
  ])('a session without idle events %s', (_, script, steps) => {
    expect(follow(script).join(', ')).toBe(steps)
  })

  test.each<[string, Script]>([
    ['a tool use has no result yet', { past: `${past} use1` }],
    ['the sent event is not found', { past, sent: 'ask1', lists: [past], stream: '- - - - -' }],
  ])('a follower does not query the session resource if %s', (_, script) => {
    expect(follow({ ...script, statuses: ['idle'] })).not.toContain('ask')
  })
})

describe('events that a follower prints', () => {
  const printed = (script: Script) => follow(script).filter((step) => !/^(list|silence|connect)/.test(step))

  test.each<[string, Script, string]>([
    [
      'a session until it is terminated if it follows forever',
      { past: 'done1', stays: true, lists: ['done1 run1'], stream: 'done2 gone1' },
      'run1 done2 gone1 end at 1750',
    ],
    [
      'every event after 10 s if the sent event is never shown',
      { past: 'done0', sent: 'ask1', stream: 'say1 done1' },
      'say1 done1 end at 10001',
    ],
    [
      'the events of lists that omit the sent event',
      { past: 'done0', sent: 'ask1', lists: ['done0 say1 say2 done1'], stream: 'ask1 say1' },
      'say1 say2 done1 end at 30000',
    ],
    [
      'the events before and after a queued message is processed',
      { past: 'run0', sent: 'ask1', stream: 'queued1 say0 done0 run1 ask1 say1 done1' },
      'say0 done0 run1 say1 done1 end at 200',
    ],
    [
      'no events later than 5 s after a late stop',
      { past: 'run0', sent: 'ask1', stream: '- - - queued1 done0' },
      'done0 end at 5900',
    ],
    [
      'a second event with the content of the sent one',
      { past: 'done0', sent: 'ask', stream: 'ask7 ask8 done1' },
      'ask8 done1 end at 200',
    ],
    [
      'the events after a sent interrupt and a sent message',
      { past: 'done0', sent: 'stop1 ask1', stream: 'stop1 - ask1 say1 done1' },
      'say1 done1 end at 30000',
    ],
    [
      'the turns of two messages',
      { past: 'done0', sent: 'ask1 ask2', stream: 'ask1 say1 done1 ask2 say2 done2' },
      'say1 done1 say2 done2 end at 200',
    ],
    [
      'nothing after an interrupt of an idle session',
      { past: 'done0', sent: 'stop1', stream: 'stop1' },
      'end at 200',
    ],
    [
      'the events after replies that were sent meanwhile',
      {
        past: 'run0',
        stream: 'use1 wait1:use1 allow1:use1 say1 done1',
        answers: { 'wait1:use1': 'allow1:use1' },
      },
      'use1 wait1:use1 allow1:use1 say1 done1 end at 1750',
    ],
  ])('a follower prints %s', (_, script, expected) => {
    expect(printed(script).join(' ')).toBe(expected)
  })
})

/** In the state `searching`, the sent event was not shown yet. */
type State = FollowState['is'] | 'searching'
type Kind = FollowEffectResult['is']

/**
 * A follower in each state. Its session works and has the event `run1`. The follower received `say1` last and
 * has not shown it.
 */
const states: Record<State, (past: string) => FollowState> = {
  searching: (past) => started(past, 'ask1'),
  joining: (past) => started(past),
  comparing: (past) => stepFollowState(states.joining(past), { is: 'event', item: toItem('say1') }, 0).state,
  current: (past) => stepFollowState(states.comparing(past), toList(`${past} say1`), 0).state,
}

function started(past: string, sent?: string): FollowState {
  const ledger = new SeenEvents()
  ledger.addEarlier(toItems(past))
  if (sent !== undefined) ledger.addSent(toItems(sent).map(({ event }) => event))
  return startFollowing(ledger, false).state
}

const toItem = (word: string) => toItems(word)[0] as EventItem
const toList = (words: string): FollowEffectResult => ({
  is: 'list',
  list: toItems(words),
})

/** Returns, for example, `current: show say2`. */
function describeTurn({ state, effect }: FollowStep): string {
  if (effect.do === 'show')
    return `${state.is}: show ${effect.items.map(({ text }) => text).join(' ') || 'nothing'}`
  if (effect.do === 'listen') return `${state.is}: listen for ${effect.maxMs}`
  if (effect.do === 'list') {
    const when = effect.delayMs > 0 ? ` after ${effect.delayMs}` : ''
    return `${state.is}: ${effect.readsSession ? 'ask, then ' : ''}list${when}`
  }
  return `${state.is}: ${effect.do}`
}

const news: Record<Kind, FollowEffectResult> = {
  list: toList('run1 say1 say2'),
  event: { is: 'event', item: toItem('say3') },
  silence: { is: 'silence', durationMs: 250 },
  ended: { is: 'ended' },
  opened: { is: 'opened' },
  failed: { is: 'failed' },
  shown: { is: 'shown' },
}

test('an older message that the first list omitted is not the answer to a sent event', () => {
  const ledger = new SeenEvents()
  ledger.addEarlier(toItems('ask1 run1'))
  ledger.addSent([toEvent('ask2')])
  ledger.addList(toItems('ask1 run1 say1 done1 ask2 run2 done2'))
  expect(ledger.task.answer).toBeUndefined()
  ledger.addList(toItems('ask1 run1 say1 done1 ask2 run2 say2 done2'))
  expect(ledger.task.answer?.id).toBe('say2')
})

/** Returns the seen events of a session with this history and these sent events. */
function seen(past: string, sent: string): SeenEvents {
  const ledger = new SeenEvents()
  ledger.addEarlier(toItems(past))
  ledger.addSent(toItems(sent).map(({ event }) => event))
  return ledger
}

const stream = (ledger: SeenEvents, words: string) =>
  toItems(words).flatMap((item) => ledger.addStreamed(item).map(({ text }) => text))
const list = (ledger: SeenEvents, words: string) => ledger.addList(toItems(words)).map(({ text }) => text)

describe('sent events in lists', () => {
  test('a list with the sent event shows the newer events, without the events of an earlier list', () => {
    const ledger = seen('ask0', 'ask1')
    const news = ['say9', 'ask1 say2'].map((words) => list(ledger, words))
    expect(news.at(-1)).toEqual(['say2'])
    expect(news.slice(0, -1).flat()).toEqual([])
  })

  test('a follower that searches for its sent event skips events of lists without it', () => {
    const ledger = seen('run0', 'ask1')
    stream(ledger, 'ask1')
    expect(ledger.isSearching).toBe(false)
    list(ledger, 'run0 say1')
    expect(ledger.isSearching).toBe(true)
    expect(ledger.isNew(toItem('say1'))).toBe(false)
  })

  test('a follower treats every received event as new if it finds the sent event neither by id nor by content', () => {
    const ledger = seen('', 'ask1')
    stream(ledger, 'say1 say2')
    list(ledger, 'say1')
    for (const isMissingSentEvents of [true, false]) {
      ledger.endSearchPhase()
      expect(ledger.isMissingSentEvents).toBe(isMissingSentEvents)
    }
    expect(list(ledger, 'say1')).toEqual(['say1', 'say2'])
  })

  test('a tool use has two inputs if two lists show different inputs, even if the first list lacks the sent event', () => {
    const ledger = seen('run0', 'ask1')
    const event = { ...toEvent('use1'), input: { command: 'rm' } }
    const other = { event, text: JSON.stringify(event) }
    list(ledger, 'run0 use1')
    ledger.addList([...toItems('run0'), other])
    ledger.addList([...toItems('run0'), other, toItem('ask1')])
    expect(ledger.state.getToolUse('use1')?.isContradicted).toBe(true)
  })

  test('a follower counts events without ids that have equal content', () => {
    const ledger = new SeenEvents()
    ledger.addEarlier(toItems('say say'))
    expect(list(ledger, 'say say say')).toEqual(['say'])
    expect(list(ledger, 'say say say done')).toEqual(['done'])
    expect(list(ledger, 'say1 say1')).toEqual(['say1'])
    expect(ledger.isNew(toItem('run'))).toBe(true)
  })
})

test('a message of another client is not the task, and a message before the task is not the answer', () => {
  const ledger = seen('run0', 'ask1')
  stream(ledger, 'say0 ask1')
  expect(ledger.task.answer).toBeUndefined()
  stream(ledger, 'say1 ask2')
  expect(ledger.task.answer?.id).toBe('say1')
})

test('a sent event counts as unfinished until it is shown as processed', () => {
  const both = seen('done0', 'stop1 ask1')
  expect(both.isWorkPending).toBe(true)
  expect(both.state.stop).toBeUndefined()
  stream(both, 'stop1')
  expect(both.isWorkPending).toBe(true)
  stream(both, 'queued1')
  list(both, 'done0 stop1 queued1')
  expect(both.isWorkPending).toBe(true)
  both.addRepeated(toItem('ask1'))
  expect(both.isWorkPending).toBe(false)
  // An event without an id does not show whose turn it is.
  const unnamed = seen('done0', 'ask')
  stream(unnamed, 'queued')
  expect(unnamed.isWorkPending).toBe(false)
})

test('a follower that has sent nothing prints every event at once', () => {
  const ledger = new SeenEvents()
  ledger.endSearchPhase()
  const { isSearching, isWorkPending, isMissingSentEvents, seeksIds } = ledger
  expect([seeksIds, isSearching, isWorkPending, isMissingSentEvents]).toEqual(Array(4).fill(false))
  expect(stream(ledger, 'ask1')).toEqual(['ask1'])
})

test.each<[string, object, object]>([
  ['another type', { type: 'user.message' }, { type: 'user.define_outcome' }],
  ['another tool use', { tool_use_id: 'a' }, { tool_use_id: 'b' }],
  ['another tool use of the client', { custom_tool_use_id: 'a' }, { custom_tool_use_id: 'b' }],
  ['another thread', { session_thread_id: 'a' }, { session_thread_id: 'b' }],
  ['another description', { description: 'a' }, { description: 'b' }],
  ['another text', { content: 'a' }, { content: 'b' }],
])(
  'two events have different content because of %s, but not because of a field of the service',
  (_, one, other) => {
    const of = (more: object) => getComparableEventText({ ...toEvent('ask1'), ...more })
    expect(of(one)).not.toBe(of(other))
    expect(of({ ...one, by: 'service' })).toBe(of(one))
  },
)

describe('follower of a running session', () => {
  const table: Record<State, Record<Kind, string>> = {
    searching: {
      list: 'current: show nothing',
      event: 'current: listen for 100',
      silence: 'current: list',
      ended: 'current: connect',
      opened: 'joining: list',
      failed: 'current: connect',
      shown: 'current: listen for 100',
    },
    joining: {
      list: 'joining: show say1 say2',
      event: 'comparing: list',
      silence: 'joining: list',
      ended: 'joining: connect',
      opened: 'joining: list',
      failed: 'joining: connect',
      shown: 'joining: listen for 30000',
    },
    comparing: {
      list: 'current: show say1 say2',
      event: 'comparing: show nothing',
      silence: 'comparing: list',
      ended: 'comparing: connect',
      opened: 'joining: list',
      failed: 'current: show say1',
      shown: 'comparing: list after 250',
    },
    current: {
      list: 'current: show say2',
      event: 'current: show say3',
      silence: 'current: list',
      ended: 'current: connect',
      opened: 'joining: list',
      failed: 'current: connect',
      shown: 'current: listen for 30000',
    },
  }
  const rows = Object.entries(table).flatMap(([state, row]) =>
    Object.entries(row).map(([input, turn]) => [state, input, turn] as [State, Kind, string]),
  )
  test.each(rows)(
    'a follower in the state "%s" that gets "%s" has the next state and step "%s"',
    (state, input, turn) => {
      expect(describeTurn(stepFollowState(states[state]('run1'), news[input], 0))).toBe(turn)
    },
  )
})

describe('follower on special inputs', () => {
  const event = (word: string): FollowEffectResult => ({ is: 'event', item: toItem(word) })
  test('a follower that has not found its sent event reads the list after 100 ms, also if events keep arriving', () => {
    const { state } = stepFollowState(states.searching('run1'), event('say7'), 0)
    expect(describeTurn(stepFollowState(state, event('say8'), 60))).toBe('current: listen for 40')
    expect(describeTurn(stepFollowState(state, event('say8'), 100))).toBe('current: list')
  })

  test('a follower finds a sent event with another id by its content after 3 s', () => {
    const searched = stepFollowState(states.searching('run1'), event('ask7'), 0)
    const listed = stepFollowState(searched.state, toList('run1 ask7'), 3_000)
    const late = stepFollowState(listed.state, { is: 'shown' }, 3_001)
    expect(describeTurn(late)).toBe('current: list')
    expect(describeTurn(stepFollowState(late.state, toList('run1 ask7 say2'), 3_001))).toBe(
      'current: show say2',
    )
  })

  test('a follower treats every event as new if the sent event does not appear within 10 s', () => {
    const searched = stepFollowState(states.searching('run1'), event('say7'), 0)
    const byContent = stepFollowState(searched.state, event('say8'), 3_001)
    const late = stepFollowState(byContent.state, event('say9'), 10_001)
    expect(describeTurn(late)).toBe('current: list')
    expect(describeTurn(stepFollowState(late.state, toList('run1 say2'), 10_001))).toBe(
      'current: show say2 say7 say8 say9',
    )
  })

  test('a follower soon reads the list if an event without an id is repeated', () => {
    const { state } = stepFollowState(states.current('run1'), event('done'), 0)
    expect(describeTurn(stepFollowState(state, event('done'), 0))).toBe('joining: listen for 200')
  })

  test('a follower prints nothing for a repeated event without an id while it waits for the list', () => {
    expect(describeTurn(stepFollowState(states.comparing('run1 say'), event('say'), 0))).toBe(
      'comparing: listen for 30000',
    )
  })

  test('after the stream was opened again, a follower prints the new events in the order of the list', () => {
    const opened = stepFollowState(states.searching('run1'), news.opened, 0)
    const early = stepFollowState(opened.state, event('done8'), 0)
    const placed = stepFollowState(early.state, toList('run1 ask1'), 0)
    expect(describeTurn(placed)).toBe('joining: show nothing')
    expect(describeTurn(stepFollowState(placed.state, toList('run1 ask1 say7 done8'), 0))).toBe(
      'joining: show say7 done8',
    )
  })

  test('a follower on a new stream prints the events of the list if the sent event does not appear within 10 s', () => {
    const cut = stepFollowState(
      stepFollowState(states.searching('run1'), event('ask1'), 0).state,
      news.opened,
      0,
    )
    const held = stepFollowState(cut.state, toList('run1 say1'), 0)
    const searching = stepFollowState(held.state, { is: 'shown' }, 0)
    expect(describeTurn(searching)).toBe('joining: listen for 250')
    const late = stepFollowState(searching.state, event('piece'), 10_001)
    expect(describeTurn(late)).toBe('joining: list')
    expect(describeTurn(stepFollowState(late.state, toList('run1 say1'), 10_001))).toBe('joining: show say1')
  })
})

describe('follower of a session that has stopped', () => {
  const ends: Kind[] = ['silence', 'ended']
  const all: State[] = ['joining', 'comparing', 'current']
  test.each(all.flatMap((state) => ends.map((input) => [state, input] as [State, Kind])))(
    'a follower in the state "%s" of a stopped session ends if it gets "%s"',
    (state, input) => {
      const before = states[state]('done1')
      expect(describeTurn(stepFollowState(before, news[input], 0))).toBe(`${state}: end`)
    },
  )

  test('after a cut, a follower listens for 250 ms before it reads the list, then twice as long each time', () => {
    let turn = stepFollowState(states.current('run1'), news.opened, 0)
    const pauses: string[] = []
    for (let look = 0; look < 4; look++) {
      const shown = stepFollowState(turn.state, toList('run1 say1'), 0)
      turn = stepFollowState(shown.state, { is: 'shown' }, 0)
      pauses.push(describeTurn(turn))
      turn = stepFollowState(turn.state, news.silence, 0)
    }
    expect(pauses).toEqual([250, 500, 1000, 2000].map((pause) => `joining: listen for ${pause}`))
  })
})

test.each(['stream', 'list'])(
  'a follower keeps only the last message of a long turn in memory: %s',
  async (by) => {
    setFlagsFromString('--expose-gc')
    const collectGarbage = runInNewContext('gc') as () => void
    const ledger = new SeenEvents()
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
    ledger.addEarlier(toItems('ask1'))
    const turn = Array.from({ length: rounds }, (_, round) => () => makeRound(round))
    if (by === 'list')
      expect(ledger.addList([...toItems('ask1'), ...turn.flatMap((make) => make())])).toHaveLength(3 * rounds)
    else for (const make of turn) for (const item of make()) ledger.addStreamed(item)
    // A WeakRef keeps its target until the current task ends.
    await new Promise((resolve) => setImmediate(resolve))
    collectGarbage()
    const alive = kept.filter((part) => part.deref() !== undefined).length
    expect(kept.length).toBe(3 * rounds)
    expect(alive).toBeLessThan(10)
    expect(ledger.task.answer?.id).toBe(`say${rounds - 1}`)
  },
)

test("an older message is the answer if a list shows another client's task after it", () => {
  const ledger = seen('', 'ask1')
  stream(ledger, 'ask1 say1 say2 say3')
  expect(list(ledger, 'ask1 say1 say2 ask2 say3')).toEqual(['ask2'])
  expect(ledger.task.answer?.id).toBe('say2')
})

describe('list that is read from its newest event backwards', () => {
  const past = 'ask1 use1 wait1:use1'

  test.each<[about: string, past: string, newest: string, isEnough: boolean]>([
    ['reaches the known events', past, 'wait1:use1 use1', true],
    ['shows only one of the two last known events', past, 'say2 wait1:use1', false],
    ['is in the other order', past, 'ask1 use1 wait1:use1 say2', false],
    ['has a new event between the two last known ones', past, 'wait1:use1 say2 use1', false],
    ['ends with events without ids', 'ask1 say say', 'say say ask1', false],
    ['belongs to a session with one event', 'ask1', 'ask1', false],
  ])(
    'a follower stops reading a list backwards only if it overlaps the known events: the list %s',
    (_, before, newest, isEnough) => {
      const ledger = new SeenEvents()
      ledger.addEarlier(toItems(before))
      expect(ledger.hasListEnd && ledger.overlapsLastList(toItems(newest))).toBe(isEnough)
    },
  )

  test('a follower reads a list back to the sent event until it is listed and processed', () => {
    const ledger = seen('ask0 done0', 'queued1')
    for (const words of ['ask0 done0 say0 use0', 'ask0 done0 say0 use0 queued1']) {
      list(ledger, words)
      expect(ledger.overlapsLastList(toItems('queued1 use0 say0'))).toBe(false)
      expect(ledger.overlapsLastList(toItems('queued1 use0 say0 done0 ask0'))).toBe(true)
    }
    list(ledger, 'ask0 done0 say0 use0 ask1')
    expect(ledger.overlapsLastList(toItems('run1 ask1 use0'))).toBe(true)
  })

  test('a list that was read backwards to a known event is used like the whole list', () => {
    const ledger = new SeenEvents()
    ledger.addEarlier(toItems('ask1 run1'))
    stream(ledger, 'say2 done1')
    const newest = toItems('done1 say2 say1 run1 ask1')
    expect(ledger.overlapsLastList(newest)).toBe(true)
    expect(ledger.addList(newest.reverse()).map(({ text }) => text)).toEqual(['say1'])
    expect(ledger.task.answer?.id).toBe('say2')
    expect(ledger.state.isIdle).toBe(true)
  })
})
