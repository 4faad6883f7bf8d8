import { describe, expect, test } from 'vitest'
import {
  begin,
  type Effect,
  type Following,
  type FollowingInput,
  step,
  type Turn,
} from '../../../src/sessions/following/following.ts'
import { SeenEvents } from '../../../src/sessions/following/seen-events.ts'
import type { EventItem } from '../../../src/wire/sessions/events-page.ts'
import type { SessionEvent } from '../../../src/wire/sessions/session-event.ts'

/** `say1` is an agent's message of this id, `wait1:use1` a stop that waits for a tool use; others are of their type. */
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
  // A word without a number has no id.
  return id === kind ? event : { id: id.replace('queued', 'ask'), ...event }
}

const toItems = (words: string) =>
  words
    .split(' ')
    .filter(Boolean)
    .map((word) => ({ event: toEvent(word), text: word }))

interface Script {
  past?: string
  /** What is sent before anything is followed. */
  sent?: string
  /** What the lists show, one after the other; the last one stays. `!` is a failure. */
  lists?: string[]
  /** What the streams bring, in turn; `-` is a silence, `|` the end of a stream, `!` a failure. Then nothing comes. */
  stream?: string
  stays?: boolean
  /** What is sent when an event is shown, or `''`: nothing. */
  answers?: Record<string, string>
}

/** Carries out what is to be done, on a clock of its own; returns that, and what was shown, in their order. */
function follow({
  past = '',
  sent,
  lists = [past],
  stream = '',
  stays = false,
  answers = {},
}: Script): string[] {
  const ledger = new SeenEvents()
  ledger.addPast(toItems(past))
  const coming = stream.split(' ').filter(Boolean)
  const trace: string[] = []
  let listed = 0
  let now = 0

  function carryOut(effect: Effect): FollowingInput {
    if (effect.do === 'show') {
      const shown = effect.items.map(({ text }) => text)
      trace.push(...shown)
      for (const { event } of toItems(answers[shown.at(-1) ?? ''] ?? '')) ledger.state.add(event)
      return { is: 'shown', of: effect.of }
    }
    if (effect.do === 'list') {
      now += effect.after
      const list = lists[Math.min(listed++, lists.length - 1)] ?? ''
      trace.push(effect.after > 0 ? `list after ${effect.after}` : 'list')
      return list === '!' ? { is: 'failed' } : { is: 'list', items: toItems(list) }
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
    now += effect.atMost
    trace.push(`silence of ${effect.atMost}`)
    return { is: 'silence' }
  }

  let { state, effect } = begin(
    ledger,
    stays,
    sent === undefined ? undefined : toItems(sent).map(({ event }) => event),
  )
  for (let steps = 0; steps < 200; steps++) {
    if (effect.do === 'end') return [...trace, `end at ${now}`]
    ;({ state, effect } = step(state, carryOut(effect), now))
  }
  return [...trace, 'no end']
}

describe('a followed session, step by step', () => {
  test.each<[string, Script, string]>([
    ['that is idle', { past: 'say1 done1' }, 'list, silence of 200, end at 200'],
    [
      'that went on before the stream was open',
      { past: 'say1', lists: ['say1 say2 done1'] },
      'list, say2, done1, silence of 200, end at 200',
    ],
    [
      'at work: before the first news a list shows what was between',
      { past: 'run1', lists: ['run1', 'run1 say1 say2'], stream: 'say2 say3 done1' },
      'list, list, say1, say2, say3, done1, end at 0',
    ],
    [
      'whose stream repeats old events',
      { past: 'run1 say1', lists: ['run1 say1', 'run1 say1 done1'], stream: 'run1 say1 run1' },
      'list, silence of 30000, list, done1, silence of 0, end at 30000',
    ],
    [
      'whose list is late: what was between comes at the end',
      {
        past: 'run1',
        lists: ['run1', 'run1', 'run1', 'run1', 'run1', 'run1 say1 say2 done1'],
        stream: 'say2 done1',
      },
      'list, list, list after 250, list after 500, list after 1000, say2, list, say1, done1, end at 1750',
    ],
    [
      'whose list fails while the stream goes on',
      { past: 'run1', lists: ['run1', '!'], stream: 'say1 done1' },
      'list, list, say1, list, done1, end at 0',
    ],
    [
      'whose list fails',
      { past: 'run1', lists: ['!', 'run1 done1'] },
      'list, connect, list, done1, silence of 200, end at 200',
    ],
    [
      'whose stream ends',
      {
        past: 'run1',
        lists: ['run1', 'run1 say1', 'run1 say1 say2', 'run1 say1 say2 done1'],
        stream: 'say1 | done1',
      },
      'list, list, say1, connect, list, say2, list, done1, end at 0',
    ],
    [
      'whose stream fails',
      { past: 'run1', lists: ['run1', 'run1', 'run1 say1 done1'], stream: '! say1 done1' },
      'list, connect, list, list, say1, done1, end at 0',
    ],
    ['whose stream ends when it has stopped', { past: 'done1', stream: '|' }, 'list, end at 0'],
    [
      'whose stream is silent',
      { past: 'run1', lists: ['run1', 'run1 say1 done1'], stream: '-' },
      'list, silence of 30000, list, say1, done1, silence of 0, end at 30000',
    ],
    [
      'that was sent something, which the list shows',
      { past: 'done0', sent: 'ask1', lists: ['done0 say1 ask1 say2'], stream: 'say1 say2 done1' },
      'silence of 100, list, say2, done1, end at 100',
    ],
  ])('%s', (_, script, steps) => {
    expect(follow(script).join(', ')).toBe(steps)
  })
})

describe('what is printed of a session', () => {
  const printed = (script: Script) => follow(script).filter((step) => !/^(list|silence|connect)/.test(step))

  test.each<[string, Script, string]>([
    [
      'no pieces',
      { past: 'run1', lists: ['run1', 'run1 say1'], stream: 'piece say1 done1' },
      'say1 done1 end at 0',
    ],
    [
      'that is followed until it is terminated',
      { past: 'done1', stays: true, lists: ['done1 run1'], stream: 'done2 gone1' },
      'run1 done2 gone1 end at 3500',
    ],
    [
      'only what comes after what was sent',
      { past: 'done0', sent: 'ask1', stream: 'say1 ask1 run1 say2 done1' },
      'run1 say2 done1 end at 0',
    ],
    [
      'what was sent is found by what it says',
      { past: 'ask0 done0', sent: 'ask', stream: 'ask0 say1 ask7 say2 done1' },
      'say2 done1 end at 0',
    ],
    [
      'all that came, 10 s after something was sent that is never shown',
      { past: 'done0', sent: 'ask1', stream: 'say1 done1' },
      'say1 done1 end at 10100',
    ],
    [
      'what lists show that leave out what was sent',
      { past: 'done0', sent: 'ask1', lists: ['done0 say1 say2 done1'], stream: 'ask1 say1' },
      'say1 say2 done1 end at 30000',
    ],
    [
      'what comes before a message has its turn, and after',
      { past: 'run0', sent: 'ask1', stream: 'queued1 say0 done0 run1 ask1 say1 done1' },
      'say0 done0 run1 say1 done1 end at 0',
    ],
    [
      'no more, 5 s after it stopped before a message had its turn',
      { past: 'run0', sent: 'ask1', stream: 'queued1 done0' },
      'done0 end at 5450',
    ],
    [
      'the turns of two messages',
      { past: 'done0', sent: 'ask1 ask2', stream: 'ask1 say1 done1 ask2 say2 done2' },
      'say1 done1 say2 done2 end at 0',
    ],
    [
      'nothing after an interrupt, where it was idle',
      { past: 'done0', sent: 'stop1', stream: 'stop1' },
      'end at 0',
    ],
    [
      'no more, where tool uses wait',
      { past: 'run0', lists: ['run0'], stream: 'use1 wait1:use1' },
      'use1 wait1:use1 end at 3500',
    ],
    [
      'what comes of answers that were sent while it was followed',
      {
        past: 'run0',
        stream: 'use1 wait1:use1 allow1:use1 say1 done1',
        answers: { 'wait1:use1': 'allow1:use1' },
      },
      'use1 wait1:use1 allow1:use1 say1 done1 end at 5250',
    ],
    [
      'what comes of answers that were sent at the start',
      { past: 'use1 wait1:use1', stream: 'say1 done1', answers: { '': 'allow1:use1' } },
      'say1 done1 end at 3500',
    ],
  ])('%s', (_, script, expected) => {
    expect(printed(script).join(' ')).toBe(expected)
  })
})

type State = Following['is']
type Kind = FollowingInput['is']

/** A follower in each of the states: of a session that works, in which `run1` has happened, and `say1` was held last. */
const states: Record<State, (past: string) => Following> = {
  placing: (past) => started(past, 'ask1'),
  joining: (past) => started(past),
  comparing: (past) => step(states.joining(past), { is: 'event', item: toItem('say1') }, 0).state,
  behind(past) {
    const failed = step(states.comparing(past), { is: 'failed' }, 0).state
    return step(failed, { is: 'shown', of: 'event' }, 0).state
  },
  current: (past) => step(states.comparing(past), toList(`${past} say1`), 0).state,
}

function started(past: string, sent?: string): Following {
  const ledger = new SeenEvents()
  ledger.addPast(toItems(past))
  return begin(ledger, false, sent === undefined ? undefined : toItems(sent).map(({ event }) => event)).state
}

const toItem = (word: string) => toItems(word)[0] as EventItem
const toList = (words: string): FollowingInput => ({ is: 'list', items: toItems(words) })

/** `current: show say2` */
function describeTurn({ state, effect }: Turn): string {
  if (effect.do === 'show')
    return `${state.is}: show ${effect.items.map(({ text }) => text).join(' ') || 'nothing'}`
  if (effect.do === 'listen') return `${state.is}: listen for ${effect.atMost}`
  if (effect.do === 'list') return `${state.is}: list${effect.after > 0 ? ` after ${effect.after}` : ''}`
  return `${state.is}: ${effect.do}`
}

const news: Record<Kind, FollowingInput> = {
  list: toList('run1 say1 say2'),
  event: { is: 'event', item: toItem('say3') },
  silence: { is: 'silence' },
  ended: { is: 'ended' },
  opened: { is: 'opened' },
  failed: { is: 'failed' },
  shown: { is: 'shown', of: 'event' },
}

test('a message of before that the first list missed is not the answer to what was sent', () => {
  const ledger = new SeenEvents()
  ledger.addPast(toItems('ask1 run1'))
  ledger.addSent([toEvent('ask2')])
  ledger.addList(toItems('ask1 run1 say1 done1 ask2 run2 done2'))
  expect(ledger.turn.answer).toBeUndefined()
  ledger.addList(toItems('ask1 run1 say1 done1 ask2 run2 say2 done2'))
  expect(ledger.turn.answer?.id).toBe('say2')
})

describe('a session at work: each state and what comes', () => {
  const table: Record<State, Record<Kind, string>> = {
    placing: {
      list: 'placing: show nothing',
      event: 'placing: listen for 100',
      silence: 'placing: list',
      ended: 'placing: connect',
      opened: 'placing: list',
      failed: 'placing: connect',
      shown: 'placing: listen for 100',
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
      event: 'comparing: show say3',
      silence: 'comparing: list',
      ended: 'comparing: connect',
      opened: 'joining: list',
      failed: 'behind: show say1',
      shown: 'comparing: list after 250',
    },
    behind: {
      list: 'behind: show say2',
      event: 'behind: show say3',
      silence: 'behind: list',
      ended: 'behind: connect',
      opened: 'joining: list',
      failed: 'behind: connect',
      shown: 'behind: listen for 30000',
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
  test.each(rows)('%s, %s: %s', (state, input, turn) => {
    expect(describeTurn(step(states[state]('run1'), news[input], 0))).toBe(turn)
  })
})

describe('each state and what decides more', () => {
  const event = (word: string): FollowingInput => ({ is: 'event', item: toItem(word) })
  test.each<[State, string, FollowingInput, string]>([
    ['placing', 'a list that shows what was sent', toList('run1 ask1 say2'), 'current: show say2'],
    ['placing', 'an event that is what was sent', event('ask1'), 'current: show nothing'],
    ['placing', 'an event that says what was sent, of another id', event('ask7'), 'placing: list'],
    ['joining', 'an event that is known', event('run1'), 'joining: listen for 30000'],
    ['joining', 'a piece of an event', event('piece'), 'joining: listen for 30000'],
    ['comparing', 'a list that does not show the event', toList('run1 say2'), 'comparing: show say2'],
    ['behind', 'an event at which the session stops', event('done1'), 'comparing: list'],
    ['current', 'an event at which the session stops', event('done1'), 'current: show done1'],
    ['current', 'an event without an id that says what another said', event('done'), 'current: show done'],
  ])('%s, %s: %s', (state, _, input, turn) => {
    expect(describeTurn(step(states[state]('run1'), input, 0))).toBe(turn)
  })

  test('placing, what was sent was said in time, but too seldom: after 10 s its content counts', () => {
    const said = step(states.placing('run1'), event('ask7'), 0)
    const listed = step(said.state, toList('run1 ask7'), 0)
    const shown = step(listed.state, { is: 'shown', of: 'list' }, 0)
    const late = step(shown.state, event('say8'), 10_001)
    expect(describeTurn(late)).toBe('placing: list')
    expect(describeTurn(step(late.state, toList('run1 ask7 say2'), 10_001))).toBe('current: show say2')
  })

  test('placing, what was sent was not said by anybody: after 10 s what comes is news', () => {
    const searched = step(states.placing('run1'), event('say7'), 0)
    const late = step(searched.state, event('say8'), 10_001)
    expect(describeTurn(late)).toBe('current: list')
    expect(describeTurn(step(late.state, toList('run1 say2'), 10_001))).toBe('current: show say2')
  })

  test('an event without an id, again: the list shows whether it is another one', () => {
    const { state } = step(states.current('run1'), event('done'), 0)
    expect(describeTurn(step(state, event('done'), 0))).toBe('joining: listen for 200')
  })
})

describe('a session that has stopped: each state and what comes', () => {
  const ends: Kind[] = ['silence', 'ended', 'shown']
  const all: State[] = ['joining', 'comparing', 'behind', 'current']
  test.each(all.flatMap((state) => ends.map((input) => [state, input] as [State, Kind])))(
    '%s, %s: the end',
    (state, input) => {
      const before = states[state]('done1')
      expect(describeTurn(step(before, news[input], 0))).toBe(`${state}: end`)
    },
  )

  test.each(['joining', 'behind', 'current'] as const)(
    '%s: a list that shows it is listened after for a moment',
    (state) => {
      expect(describeTurn(step(states[state]('done1'), { is: 'shown', of: 'list' }, 0))).toBe(
        `${state}: listen for 200`,
      )
    },
  )

  test('placing: not before what was sent is shown', () => {
    expect(describeTurn(step(states.placing('done1'), news.silence, 0))).toBe('placing: list')
  })

  test('a stream that was cut is listened to for a quarter of a second, then for longer each time', () => {
    let turn = step(states.current('run1'), news.opened, 0)
    const pauses: string[] = []
    for (let look = 0; look < 4; look++) {
      const shown = step(turn.state, toList('run1 say1'), 0)
      turn = step(shown.state, { is: 'shown', of: 'list' }, 0)
      pauses.push(describeTurn(turn))
      turn = step(turn.state, news.silence, 0)
    }
    expect(pauses).toEqual([250, 500, 1000, 2000].map((pause) => `joining: listen for ${pause}`))
  })
})
