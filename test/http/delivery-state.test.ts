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

const reading = endpoints.listEvents
const asking = endpoints.chat
const event = { ...endpoints.sendEvents, inspectCommand: 'parley events list -s s1' }
const once: DeliveryRules = { repeat: 'not-taken' }

const nothing = 'nothing was sent'
const doubt = 'the request was sent; whether it was carried out is not known'
const eventDoubt =
  "the event may have been accepted: look with 'parley events list -s s1' before sending again"
const unseen = 'the event may have been accepted: look before sending again'
const left = 'the request was sent; it may have been carried out'
const failure = 'the request was answered with a failure'

/**
 * Consequences of a delivery state: was the request sent, may it be repeated, and the texts of a failure and
 * an interruption.
 */
test.each<[string, DeliveryState, DeliveryRules, string, boolean, string | undefined, string | undefined]>([
  ['a list', 'not-sent', reading, 'no', true, nothing, nothing],
  ['a list', 'refused', reading, 'yes', true, undefined, 'nothing was accepted'],
  ['a list', 'failed', reading, 'yes', true, undefined, failure],
  ['a list', 'sent', reading, 'unknown', true, undefined, left],
  ['a list', 'answered', reading, 'yes', true, undefined, 'the answer was cut off'],
  ['a list', 'done', reading, 'yes', true, undefined, undefined],
  ['a chat', 'not-sent', asking, 'no', true, nothing, nothing],
  ['a chat', 'refused', asking, 'yes', true, undefined, 'nothing was accepted'],
  ['a chat', 'failed', asking, 'yes', true, undefined, failure],
  ['a chat', 'sent', asking, 'unknown', true, doubt, left],
  ['a chat', 'answered', asking, 'yes', true, undefined, 'the answer was cut off'],
  ['a chat', 'done', asking, 'yes', true, undefined, undefined],
  ['an event', 'not-sent', event, 'no', true, nothing, nothing],
  ['an event', 'refused', event, 'yes', true, undefined, 'nothing was accepted'],
  ['an event', 'failed', event, 'yes', false, eventDoubt, eventDoubt],
  ['an event', 'sent', event, 'unknown', false, eventDoubt, eventDoubt],
  ['an event', 'answered', event, 'unknown', false, eventDoubt, eventDoubt],
  ['an event', 'done', event, 'yes', false, undefined, undefined],
  ['an event that nothing shows', 'sent', endpoints.sendEvents, 'unknown', false, unseen, unseen],
  ['another POST', 'not-sent', once, 'no', true, nothing, nothing],
  ['another POST', 'refused', once, 'yes', true, undefined, 'nothing was accepted'],
  ['another POST', 'failed', once, 'yes', false, doubt, failure],
  ['another POST', 'sent', once, 'unknown', false, doubt, left],
  ['another POST', 'answered', once, 'yes', false, undefined, left],
  ['another POST', 'done', once, 'yes', false, undefined, undefined],
])('%s that is %s', (_, fate, stakes, sent, safeToRetry, failed, interrupted) => {
  expect(describeDelivery(fate, stakes)).toEqual({ sent, safeToRetry, failed, interrupted })
})

test('a call never gets less far, whatever a later attempt comes to', () => {
  for (const before of deliveryStates) {
    for (const attempt of deliveryStates) {
      const after = getLaterState(before, attempt)
      expect(deliveryStates.indexOf(after)).toBe(
        Math.max(deliveryStates.indexOf(before), deliveryStates.indexOf(attempt)),
      )
    }
  }
})

test('what an attempt has come to takes the place of what it may have come to', () => {
  const calls = new Calls()
  const call = calls.begin(event)
  const come = (fate: DeliveryState) => {
    call.reach(fate)
    return call.state()
  }
  call.attempt()
  expect([come('sent'), come('refused')]).toEqual(['sent', 'refused'])
  call.attempt()
  expect([come('sent'), come('failed')]).toEqual(['sent', 'failed'])
  call.attempt()
  expect([come('not-sent'), come('sent')]).toEqual(['failed', 'sent'])
  call.attempt()
  expect([come('refused'), come('answered'), come('done')]).toEqual(['sent', 'answered', 'done'])
  expect(come('failed')).toBe('done')
  call.end()
  expect(calls.sent).toBe('yes')
})

describe('how far the requests of a run got', () => {
  test('of a run that is to change something only those count that do so', () => {
    const calls = new Calls()
    calls.expectChange()
    const list = calls.begin(reading)
    list.reach('done')
    list.end()
    expect([calls.sent, calls.lastWords()]).toEqual(['no', 'nothing was sent'])
    const post = calls.begin(event)
    post.reach('sent')
    expect(calls.sent).toBe('unknown')
    calls.begin(reading).reach('done')
    expect(calls.sent).toBe('unknown')
    post.reach('done')
    expect(calls.sent).toBe('yes')
  })

  test('of a run that only reads, or only reads after all, all count', () => {
    for (const isToChange of [false, true]) {
      const calls = new Calls()
      if (isToChange) calls.expectChange()
      expect(calls.lastWords()).toBe(isToChange ? nothing : undefined)
      if (isToChange) calls.expectReading()
      expect([calls.sent, calls.lastWords()]).toEqual(['no', undefined])
      const list = calls.begin(reading)
      list.reach('sent')
      list.end()
      expect([calls.sent, calls.lastWords()]).toEqual(['unknown', undefined])
      calls.begin(reading).reach('done')
      expect(calls.sent).toBe('yes')
    }
  })
})

/** A run whose calls start and reach states by name. */
function startRun(stakes: DeliveryRules = event) {
  const calls = new Calls()
  const begun = new Map<string, Call>()
  return {
    calls,
    begin: (name: string, options?: Parameters<typeof calls.begin>[1]) =>
      void begun.set(name, calls.begin(stakes, options)),
    end(name: string, fate: DeliveryState) {
      begun.get(name)?.reach(fate)
      begun.get(name)?.end()
    },
  }
}

describe('the last words of an interrupted run', () => {
  test('are of the calls that are under way, or else of those that ended after the last one began', () => {
    const { calls, begin, end } = startRun()
    const refused = 'nothing was accepted'
    begin('a')
    begin('b')
    end('a', 'refused')
    expect(calls.lastWords()).toBe(nothing)
    end('b', 'refused')
    expect(calls.lastWords()).toBe(refused)
    begin('c')
    expect(calls.lastWords()).toBe(nothing)
    end('c', 'refused')
    expect(calls.lastWords()).toBe(refused)
    // Reading calls do not count, nor does a call of a batch, whose caller prints the outcome.
    const list = calls.begin(reading)
    list.reach('failed')
    list.end()
    begin('d', true)
    end('d', 'failed')
    expect(calls.lastWords()).toBe(refused)
  })

  test('end with the way on', () => {
    const { calls, begin, end } = startRun()
    calls.wayOn = () => 'go on'
    begin('a')
    expect(calls.lastWords()).toBe(`${nothing}; go on`)
    end('a', 'done')
    expect(calls.lastWords()).toBe('go on')
    calls.wayOn = () => undefined
    begin('c')
    expect(calls.lastWords()).toBe(nothing)
  })

  test('are those that were said instead, but for a call that is under way', () => {
    const { calls, begin, end } = startRun()
    begin('task')
    calls.sayInstead(() => 'the task was accepted')
    begin('a')
    begin('b')
    end('task', 'done')
    end('a', 'refused')
    expect(calls.lastWords()).toBe(nothing)
    end('b', 'refused')
    expect(calls.lastWords()).toBe('the task was accepted')
  })

  test('keep what is certain before a call that is under way', () => {
    const { calls, begin, end } = startRun()
    begin('task')
    calls.sayInstead(() => 'the session goes on', 'the task was accepted')
    end('task', 'done')
    expect(calls.lastWords()).toBe('the task was accepted; the session goes on')
    calls.wayOn = () => 'go on'
    begin('a')
    expect(calls.lastWords()).toBe(`the task was accepted; after that ${nothing}; go on`)
    end('a', 'done')
    expect(calls.lastWords()).toBe('the task was accepted; the session goes on')
    calls.wayOn = () => undefined
    calls.begin(event).reach('done')
    expect(calls.lastWords()).toBe('the task was accepted')
    calls.sayInstead(() => undefined, 'the task was accepted')
    expect(calls.lastWords()).toBe('the task was accepted')
  })
})

test('what is said first stands before the rest, until its work is done', async () => {
  const calls = new Calls()
  calls.expectChange()
  const meanwhile = await calls.sayFirst(
    () => 'one answer is lost',
    async () => calls.lastWords(),
  )
  expect(meanwhile).toBe('one answer is lost; nothing was sent')
  expect(calls.lastWords()).toBe('nothing was sent')
})

describe('whether a run that is interrupted may be run again', () => {
  test.each<[string, DeliveryRules, DeliveryState | undefined, string]>([
    ['nothing was sent', event, 'not-sent', 'later'],
    ['an event was refused', event, 'refused', 'later'],
    ['an event is on the way', event, 'sent', 'look-first'],
    ['an event was accepted', event, 'done', 'never'],
    ['a chat is on the way', asking, 'sent', 'later'],
    ['an answer was cut off', asking, 'answered', 'later'],
    ['an answer was read', asking, 'done', 'never'],
  ])('%s', (_, stakes, fate, retry) => {
    const calls = new Calls()
    calls.expectChange()
    const call = calls.begin(stakes)
    if (fate) call.reach(fate)
    expect(calls.retry).toBe(retry)
    call.end()
    expect(calls.retry).toBe(retry)
  })

  test('one that has sent nothing may, also before its first call', () => {
    const calls = new Calls()
    calls.expectChange()
    expect([calls.retry, calls.sent]).toEqual(['later', 'no'])
    calls.begin(event)
    expect([calls.retry, calls.sent]).toEqual(['later', 'no'])
  })

  test('one of whose calls another one was done may not', () => {
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
    ['an event was accepted, and the next is in doubt', event, 'done', 'sent', 'look-first'],
    ['an event is in doubt, and nothing of the next was sent', event, 'failed', 'not-sent', 'look-first'],
    ['an event is in doubt, and the next was refused', event, 'sent', 'refused', 'look-first'],
    ['an event is in doubt, and the next was accepted', event, 'answered', 'done', 'never'],
    ['an event was refused, and so was the next', event, 'refused', 'refused', 'later'],
    ['an answer was read, and the next request refused', asking, 'done', 'refused', 'later'],
    ['an answer was cut off, and the next request refused', asking, 'answered', 'refused', 'later'],
  ])('one of which %s', (_, stakes, first, then, retry) => {
    const { calls, begin, end } = startRun(stakes)
    calls.expectChange()
    begin('a')
    end('a', first)
    begin('b')
    end('b', then)
    expect(calls.retry).toBe(retry)
  })

  test('what was done, or is in doubt, counts however many calls follow; one that would go on has it in its audit', () => {
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

  test('one that would go on may, unless something is in doubt', () => {
    const calls = new Calls()
    calls.expectChange()
    const call = calls.begin(event)
    call.reach('done')
    let goesOn = true
    calls.isResumed = () => goesOn
    expect(calls.retry).toBe('later')
    goesOn = false
    expect(calls.retry).toBe('never')
    goesOn = true
    calls.begin(event).reach('sent')
    expect(calls.retry).toBe('look-first')
  })

  test('a run that only reads may; of many calls nobody knows', () => {
    const calls = new Calls()
    calls.begin(reading).reach('answered')
    expect(calls.retry).toBe('later')
    calls.expectChange()
    calls.begin(asking, true).reach('sent')
    expect(calls.retry).toBe('never')
  })
})
