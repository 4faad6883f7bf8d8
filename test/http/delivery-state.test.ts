import { expect, test } from 'vitest'
import {
  type DeliveryRules,
  type DeliveryState,
  deliveryStates,
  describeDelivery,
  getLaterDeliveryState,
} from '../../src/delivery-state.ts'
import { endpoints } from '../../src/wire/endpoints.ts'

const listRules = endpoints.listEvents
const chatRules = endpoints.chat
const event = { ...endpoints.sendEvents, inspectCommand: 'parley events list -s s1' }
const once: DeliveryRules = { repeat: 'unaccepted' }

const nothing = 'nothing was sent'
const unknownRequest = 'the request was sent, but it is not known whether it was carried out'
const unknownEvent =
  "the event may have been accepted: check with 'parley events list -s s1' before sending again"
const unlistedEvent = 'the event may have been accepted: check before sending again'
const interruptedRequest = 'the request was sent; it may have been carried out'
const failure = 'the request was answered with a failure'

/**
 * Each row: is the request known to be sent, may it be repeated, may a repetition bill or execute it twice,
 * and the messages of a failure and an interruption.
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
  '%s in the delivery state "%s" has the documented consequences',
  (_, state, rules, sent, isRepeatable, mayDuplicate, failed, interrupted) => {
    const outcome = { sent, isRepeatable, mayDuplicate, failed, interrupted }
    expect(describeDelivery(state, rules)).toEqual(outcome)
  },
)

test('a later attempt never lowers the delivery state of a call', () => {
  for (const before of deliveryStates) {
    for (const attempt of deliveryStates) {
      const after = getLaterDeliveryState(before, attempt)
      expect(deliveryStates.indexOf(after)).toBe(
        Math.max(deliveryStates.indexOf(before), deliveryStates.indexOf(attempt)),
      )
    }
  }
})
