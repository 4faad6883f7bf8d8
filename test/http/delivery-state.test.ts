import { expect, test } from 'vitest'
import type { DeliveryRules, DeliveryState } from '../../src/delivery-state.ts'
import { deliveryStates, describeDelivery, getLaterDeliveryState } from '../../src/delivery-state.ts'
import { endpoints } from '../../src/wire/endpoints.ts'

const listRules = endpoints.listEvents
const chatRules = endpoints.chat
const unlisted = endpoints.sendEvents
const event = { ...unlisted, inspectCommand: 'parley events list -s s1' }
const once: DeliveryRules = { repeat: 'unaccepted' }

const unknownRequest = 'the request was sent, but it is not known whether it was carried out'
const unknownEvent =
  "the event may have been accepted: check with 'parley events list -s s1' before sending again"
const unlistedEvent = 'the event may have been accepted: check before sending again'
const interruptedRequest = 'the request was sent; it may have been carried out'
const failure = 'the request was answered with a failure'

type Row = [what: string, DeliveryState, string, boolean, boolean, DeliveryRules, failed?: string, string?]

test.each<Row>([
  ['a list request', 'not-sent', 'no', true, false, listRules],
  ['a list request', 'refused', 'yes', true, false, listRules, undefined, 'nothing was accepted'],
  ['a list request', 'failed', 'yes', true, false, listRules, undefined, failure],
  ['a list request', 'sent', 'unknown', true, false, listRules, undefined, interruptedRequest],
  ['a list request', 'answered', 'yes', true, false, listRules, undefined, 'the answer was cut off'],
  ['a list request', 'done', 'yes', true, false, listRules, undefined, undefined],
  ['a chat request', 'not-sent', 'no', true, false, chatRules],
  ['a chat request', 'refused', 'yes', true, false, chatRules, undefined, 'nothing was accepted'],
  ['a chat request', 'failed', 'yes', true, true, chatRules, undefined, failure],
  ['a chat request', 'sent', 'unknown', true, true, chatRules, unknownRequest, interruptedRequest],
  ['a chat request', 'answered', 'yes', true, true, chatRules, undefined, 'the answer was cut off'],
  ['a chat request', 'done', 'yes', true, true, chatRules, undefined, undefined],
  ['a request with an event', 'not-sent', 'no', true, false, event],
  ['a request with an event', 'refused', 'yes', true, false, event, undefined, 'nothing was accepted'],
  ['a request with an event', 'failed', 'yes', false, true, event, unknownEvent, unknownEvent],
  ['a request with an event', 'sent', 'unknown', false, true, event, unknownEvent, unknownEvent],
  ['a request with an event', 'answered', 'unknown', false, true, event, unknownEvent, unknownEvent],
  ['a request with an event', 'done', 'yes', false, true, event, undefined, undefined],
  ['an event that no command lists', 'sent', 'unknown', false, true, unlisted, unlistedEvent, unlistedEvent],
  ['a POST of api', 'not-sent', 'no', true, false, once],
  ['a POST of api', 'refused', 'yes', true, false, once, undefined, 'nothing was accepted'],
  ['a POST of api', 'failed', 'yes', false, true, once, unknownRequest, failure],
  ['a POST of api', 'sent', 'unknown', false, true, once, unknownRequest, interruptedRequest],
  ['a POST of api', 'answered', 'yes', false, true, once, undefined, interruptedRequest],
  ['a POST of api', 'done', 'yes', false, true, once, undefined, undefined],
])(
  '%s in the delivery state "%s" has `sent` "%s", `isRepeatable` %s and `mayDuplicate` %s',
  (_, state, sent, isRepeatable, mayDuplicate, rules, failed, interrupted) => {
    expect(describeDelivery(state, rules)).toEqual({ sent, isRepeatable, mayDuplicate, failed, interrupted })
  },
)

test('a later attempt never returns a call to an earlier delivery state', () => {
  for (const before of deliveryStates) {
    for (const attempt of deliveryStates) {
      expect(deliveryStates.indexOf(getLaterDeliveryState(before, attempt))).toBe(
        Math.max(deliveryStates.indexOf(before), deliveryStates.indexOf(attempt)),
      )
    }
  }
})
