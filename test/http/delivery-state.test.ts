import { describe, expect, test } from 'vitest'
import {
  type Call,
  Calls,
  type DeliveryRules,
  type DeliveryState,
  deliveryStates,
  describeDelivery,
  getLaterState,
} from '../../src/delivery-state.ts'
import { endpoints } from '../../src/wire/endpoints.ts'

const listRules = endpoints.listEvents
const chatRules = endpoints.chat
const event = { ...endpoints.sendEvents, inspectCommand: 'parley events list -s s1' }
const once: DeliveryRules = { repeat: 'not-taken' }

const nothing = 'nothing was sent'
const unknownRequest = 'the request was sent; whether it was carried out is not known'
const unknownEvent =
  "the event may have been accepted: look with 'parley events list -s s1' before sending again"
const unlistedEvent = 'the event may have been accepted: look before sending again'
const interruptedRequest = 'the request was sent; it may have been carried out'
const failure = 'the request was answered with a failure'

/**
 * Each row has the consequences of a delivery state: was the request sent, may it be repeated, may a
 * repetition be carried out or billed again, and the texts of a failure and an interruption.
 */
test.each<
  [string, DeliveryState, DeliveryRules, string, boolean, boolean, string | undefined, string | undefined]
>([
  ['a list', 'not-sent', listRules, 'no', true, false, nothing, nothing],
  ['a list', 'refused', listRules, 'yes', true, false, undefined, 'nothing was accepted'],
  ['a list', 'failed', listRules, 'yes', true, false, undefined, failure],
  ['a list', 'sent', listRules, 'unknown', true, false, undefined, interruptedRequest],
  ['a list', 'answered', listRules, 'yes', true, false, undefined, 'the answer was cut off'],
  ['a list', 'done', listRules, 'yes', true, false, undefined, undefined],
  ['a chat', 'not-sent', chatRules, 'no', true, false, nothing, nothing],
  ['a chat', 'refused', chatRules, 'yes', true, false, undefined, 'nothing was accepted'],
  ['a chat', 'failed', chatRules, 'yes', true, true, undefined, failure],
  ['a chat', 'sent', chatRules, 'unknown', true, true, unknownRequest, interruptedRequest],
  ['a chat', 'answered', chatRules, 'yes', true, true, undefined, 'the answer was cut off'],
  ['a chat', 'done', chatRules, 'yes', true, true, undefined, undefined],
  ['an event', 'not-sent', event, 'no', true, false, nothing, nothing],
  ['an event', 'refused', event, 'yes', true, false, undefined, 'nothing was accepted'],
  ['an event', 'failed', event, 'yes', false, true, unknownEvent, unknownEvent],
  ['an event', 'sent', event, 'unknown', false, true, unknownEvent, unknownEvent],
  ['an event', 'answered', event, 'unknown', false, true, unknownEvent, unknownEvent],
  ['an event', 'done', event, 'yes', false, true, undefined, undefined],
  [
    'an event without a command that lists it',
    'sent',
    endpoints.sendEvents,
    'unknown',
    false,
    true,
    unlistedEvent,
    unlistedEvent,
  ],
  ['another POST', 'not-sent', once, 'no', true, false, nothing, nothing],
  ['another POST', 'refused', once, 'yes', true, false, undefined, 'nothing was accepted'],
  ['another POST', 'failed', once, 'yes', false, true, unknownRequest, failure],
  ['another POST', 'sent', once, 'unknown', false, true, unknownRequest, interruptedRequest],
  ['another POST', 'answered', once, 'yes', false, true, undefined, interruptedRequest],
  ['another POST', 'done', once, 'yes', false, true, undefined, undefined],
])(
  'consequences of %s in the delivery state %s',
  (_, state, rules, sent, isRepeatable, mayDuplicate, failed, interrupted) => {
    const outcome = { sent, isRepeatable, mayDuplicate, failed, interrupted }
    expect(describeDelivery(state, rules)).toEqual(outcome)
  },
)

test('an attempt never lowers the delivery state that a call has reached', () => {
  for (const before of deliveryStates) {
    for (const attempt of deliveryStates) {
      const after = getLaterState(before, attempt)
      expect(deliveryStates.indexOf(after)).toBe(
        Math.max(deliveryStates.indexOf(before), deliveryStates.indexOf(attempt)),
      )
    }
  }
})

test('the result of an attempt replaces its state "sent", but no state of an earlier attempt', () => {
  const calls = new Calls()
  const call = calls.begin(event)
  const reachState = (state: DeliveryState) => {
    call.reach(state)
    return call.state()
  }
  call.attempt()
  expect([reachState('sent'), reachState('refused')]).toEqual(['sent', 'refused'])
  call.attempt()
  expect([reachState('sent'), reachState('failed')]).toEqual(['sent', 'failed'])
  call.attempt()
  expect([reachState('not-sent'), reachState('sent')]).toEqual(['failed', 'sent'])
  call.attempt()
  expect([reachState('refused'), reachState('answered'), reachState('done')]).toEqual([
    'sent',
    'answered',
    'done',
  ])
  expect(reachState('failed')).toBe('done')
  call.end()
  expect(calls.sent).toBe('yes')
})

describe('delivery state of a run', () => {
  test('a run that changes something counts only the requests that change something', () => {
    const calls = new Calls()
    calls.expectChange()
    const list = calls.begin(listRules)
    list.reach('done')
    list.end()
    expect([calls.sent, calls.describeInterrupt()]).toEqual(['no', 'nothing was sent'])
    const post = calls.begin(event)
    post.reach('sent')
    expect(calls.sent).toBe('unknown')
    calls.begin(listRules).reach('done')
    expect(calls.sent).toBe('unknown')
    post.reach('done')
    expect(calls.sent).toBe('yes')
  })

  test('a run that only reads counts all its requests', () => {
    for (const isToChange of [false, true]) {
      const calls = new Calls()
      if (isToChange) calls.expectChange()
      expect(calls.describeInterrupt()).toBe(isToChange ? nothing : undefined)
      if (isToChange) calls.expectReading()
      expect([calls.sent, calls.describeInterrupt()]).toEqual(['no', undefined])
      const list = calls.begin(listRules)
      list.reach('sent')
      list.end()
      expect([calls.sent, calls.describeInterrupt()]).toEqual(['unknown', undefined])
      calls.begin(listRules).reach('done')
      expect(calls.sent).toBe('yes')
    }
  })
})

/** Starts a run. Its functions begin and end calls by name. */
function startRun(rules: DeliveryRules = event) {
  const calls = new Calls()
  const callsByName = new Map<string, Call>()
  return {
    calls,
    begin: (name: string, options?: Parameters<typeof calls.begin>[1]) =>
      void callsByName.set(name, calls.begin(rules, options)),
    end(name: string, state: DeliveryState) {
      callsByName.get(name)?.reach(state)
      callsByName.get(name)?.end()
    },
  }
}

describe('consequence that an interrupted run prints', () => {
  test('an interrupted run describes the calls in flight, or those that ended after the last call began', () => {
    const { calls, begin, end } = startRun()
    const refused = 'nothing was accepted'
    begin('a')
    begin('b')
    end('a', 'refused')
    expect(calls.describeInterrupt()).toBe(nothing)
    end('b', 'refused')
    expect(calls.describeInterrupt()).toBe(refused)
    begin('c')
    expect(calls.describeInterrupt()).toBe(nothing)
    end('c', 'refused')
    expect(calls.describeInterrupt()).toBe(refused)
    // Read-only calls and batch calls do not change the last message. A batch prints its results itself.
    const list = calls.begin(listRules)
    list.reach('failed')
    list.end()
    begin('d', true)
    end('d', 'failed')
    expect(calls.describeInterrupt()).toBe(refused)
  })

  test('an interrupted run prints its resume command last', () => {
    const { calls, begin, end } = startRun()
    calls.describeResume = () => 'go on'
    begin('a')
    expect(calls.describeInterrupt()).toBe(`${nothing}; go on`)
    end('a', 'done')
    expect(calls.describeInterrupt()).toBe('go on')
    calls.describeResume = () => undefined
    begin('c')
    expect(calls.describeInterrupt()).toBe(nothing)
  })

  test('an interrupted run prints the text of sayInstead unless a call is in flight', () => {
    const { calls, begin, end } = startRun()
    begin('task')
    calls.setInterruptText(() => 'the task was accepted')
    begin('a')
    begin('b')
    end('task', 'done')
    end('a', 'refused')
    expect(calls.describeInterrupt()).toBe(nothing)
    end('b', 'refused')
    expect(calls.describeInterrupt()).toBe('the task was accepted')
  })

  test('an interrupted run prints the known part before the consequence of a call in flight', () => {
    const { calls, begin, end } = startRun()
    begin('task')
    calls.setInterruptText(() => 'the session continues', 'the task was accepted')
    end('task', 'done')
    expect(calls.describeInterrupt()).toBe('the task was accepted; the session continues')
    calls.describeResume = () => 'go on'
    begin('a')
    expect(calls.describeInterrupt()).toBe(`the task was accepted; after that ${nothing}; go on`)
    end('a', 'done')
    expect(calls.describeInterrupt()).toBe('the task was accepted; the session continues')
    calls.describeResume = () => undefined
    calls.begin(event).reach('done')
    expect(calls.describeInterrupt()).toBe('the task was accepted')
    calls.setInterruptText(() => undefined, 'the task was accepted')
    expect(calls.describeInterrupt()).toBe('the task was accepted')
  })
})

test('an interrupted run prints the text of sayFirst until its work is done', async () => {
  const calls = new Calls()
  calls.expectChange()
  const meanwhile = await calls.withInterruptPrefix(
    () => 'one answer is lost',
    async () => calls.describeInterrupt(),
  )
  expect(meanwhile).toBe('one answer is lost; nothing was sent')
  expect(calls.describeInterrupt()).toBe('nothing was sent')
})

describe('retry advice of an interrupted run', () => {
  test.each<[string, DeliveryRules, DeliveryState | undefined, string]>([
    ['nothing was sent', event, 'not-sent', 'later'],
    ['an event was refused', event, 'refused', 'later'],
    ['an event is in flight', event, 'sent', 'look-first'],
    ['an event was accepted', event, 'done', 'never'],
    ['a chat is in flight', chatRules, 'sent', 'later'],
    ['an answer was cut off', chatRules, 'answered', 'later'],
    ['an answer was read', chatRules, 'done', 'never'],
  ])('advises an interrupted run if %s', (_, rules, state, retry) => {
    const calls = new Calls()
    calls.expectChange()
    const call = calls.begin(rules)
    if (state) call.reach(state)
    expect(calls.retry).toBe(retry)
    call.end()
    expect(calls.retry).toBe(retry)
  })

  test('advises to retry later if nothing was sent, also before the first call', () => {
    const calls = new Calls()
    calls.expectChange()
    expect([calls.retry, calls.sent]).toEqual(['later', 'no'])
    calls.begin(event)
    expect([calls.retry, calls.sent]).toEqual(['later', 'no'])
  })

  test('advises never to retry if one of several calls is done', () => {
    const calls = new Calls()
    calls.expectChange()
    const [first, second] = [calls.begin(event), calls.begin(event)]
    first.reach('done')
    second.reach('refused')
    expect(calls.retry).toBe('never')
  })

  test.each<[string, DeliveryRules, first: DeliveryState, then: DeliveryState, string]>([
    ['an event was accepted, and nothing of the next was sent', event, 'done', 'not-sent', 'never'],
    ['an event was accepted, and the next refused', event, 'done', 'refused', 'never'],
    ['an event was accepted, and the delivery of the next is unknown', event, 'done', 'sent', 'look-first'],
    [
      'the delivery of an event is unknown, and nothing of the next was sent',
      event,
      'failed',
      'not-sent',
      'look-first',
    ],
    ['the delivery of an event is unknown, and the next was refused', event, 'sent', 'refused', 'look-first'],
    ['the delivery of an event is unknown, and the next was accepted', event, 'answered', 'done', 'never'],
    ['an event was refused, and so was the next', event, 'refused', 'refused', 'later'],
    ['an answer was read, and the next request refused', chatRules, 'done', 'refused', 'later'],
    ['an answer was cut off, and the next request refused', chatRules, 'answered', 'refused', 'later'],
  ])('advises an interrupted run in which %s', (_, rules, first, then, retry) => {
    const { calls, begin, end } = startRun(rules)
    calls.expectChange()
    begin('a')
    end('a', first)
    begin('b')
    end('b', then)
    expect(calls.retry).toBe(retry)
  })

  test('keeps the advice for a call that is done or unknown while other calls follow, unless the run resumes', () => {
    for (const [first, retry] of [
      ['done', 'never'],
      ['sent', 'look-first'],
    ] as const) {
      const { calls, begin, end } = startRun()
      calls.expectChange()
      begin('a')
      end('a', first)
      for (const name of ['b', 'c', 'd']) {
        begin(name)
        expect(calls.retry).toBe(retry)
        end(name, 'refused')
        expect(calls.retry).toBe(retry)
      }
      calls.isResumed = () => true
      expect(calls.retry).toBe('later')
    }
  })

  test('advises to retry later if the run resumes, unless a delivery is unknown', () => {
    const calls = new Calls()
    calls.expectChange()
    const call = calls.begin(event)
    call.reach('done')
    let isResumed = true
    calls.isResumed = () => isResumed
    expect(calls.retry).toBe('later')
    isResumed = false
    expect(calls.retry).toBe('never')
    isResumed = true
    calls.begin(event).reach('sent')
    expect(calls.retry).toBe('look-first')
  })

  test('advises to retry a run that only reads later, and a batch never', () => {
    const calls = new Calls()
    calls.begin(listRules).reach('answered')
    expect(calls.retry).toBe('later')
    calls.expectChange()
    calls.begin(chatRules, true).reach('sent')
    expect(calls.retry).toBe('never')
  })
})

describe('repetition of a run that may send or bill something twice', () => {
  test.each<[string, DeliveryRules, first: DeliveryState, then: DeliveryState, boolean]>([
    ['no request was accepted', chatRules, 'refused', 'refused', false],
    ['an answer was read before a refusal', chatRules, 'done', 'refused', true],
    ['an answer was cut off before a refusal', chatRules, 'answered', 'refused', true],
    ['an answer is missing', chatRules, 'refused', 'sent', true],
    ['a 5xx may hide an answer', chatRules, 'failed', 'not-sent', true],
    ['an event was accepted', event, 'done', 'refused', true],
    ['lists were read', listRules, 'done', 'sent', false],
  ])('a repetition duplicates what was sent or billed: %s', (_, rules, first, then, mayDuplicate) => {
    const { calls, begin, end } = startRun(rules)
    if (rules !== listRules) calls.expectChange()
    begin('a')
    end('a', first)
    begin('b')
    expect(calls.mayDuplicate).toBe(rules !== listRules && first !== 'refused')
    end('b', then)
    expect(calls.mayDuplicate).toBe(mayDuplicate)
  })

  test('repeating a run with a request in flight may duplicate something', () => {
    const calls = new Calls()
    const call = calls.begin(chatRules, true)
    expect(calls.mayDuplicate).toBe(false)
    call.reach('sent')
    expect(calls.mayDuplicate).toBe(true)
  })

  test('a resumed run may duplicate only what its command repeats', () => {
    const { calls, begin, end } = startRun()
    begin('a')
    end('a', 'done')
    calls.isResumed = () => true
    expect(calls.mayDuplicate).toBe(false)
    calls.mayResumeDuplicate = () => true
    expect(calls.mayDuplicate).toBe(true)
  })
})
