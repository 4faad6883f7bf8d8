import { expect, test } from 'vitest'
import {
  describeEventContent,
  EventsReceipt,
  isEventPiece,
  readEventText,
  readStopDetails,
  readStopReason,
  SessionEvent,
  stopsSession,
} from '../../../src/wire/sessions/session-event.ts'

const complete = { id: 'i', type: 'x', processed_at: 't', more: [1] }
const unprocessed = { type: 'x', processed_at: null }
const event = (fields: object): SessionEvent => SessionEvent.parse({ type: 'x', ...fields })

test.each<[given: unknown, read: unknown]>([
  [complete, complete],
  [{ id: 5, type: 'x', processed_at: {} }, { type: 'x' }],
  [{ id: null, type: '' }, { type: '' }],
  [unprocessed, unprocessed],
])('an event of a session needs only a valid type: %j', (given, read) => {
  expect(SessionEvent.parse(given)).toEqual(read)
  expect(EventsReceipt.parse({ data: [given] })).toEqual({ data: [read] })
})

test.each([{}, { type: 5 }, 'x', null, []])('%j is not an event of a session', (given) => {
  expect(SessionEvent.safeParse(given).success).toBe(false)
  expect(EventsReceipt.safeParse({ data: [given] }).success).toBe(false)
})

test('the response to sent events may have no events', () => {
  const accepted = [{}, { data: null }, { data: [] }, { data: 'x' }]
  expect(accepted.map((each) => EventsReceipt.safeParse(each).success)).toEqual([true, true, true, false])
})

const waits = (type: string, ...event_ids: string[]) => ({ type, event_ids })

test.each<[reason: unknown, read: ReturnType<typeof readStopReason>]>([
  ['end_turn', { type: 'end_turn' }],
  [{ type: 'end_turn' }, { type: 'end_turn' }],
  [waits('requires_action', 'a', 'b', 'a'), { type: 'requires_action', eventIds: ['a', 'b'] }],
  [{ event_ids: ['a', '', 5, null] }, { type: 'requires_action', eventIds: ['a'] }],
  [{ event_ids: [null] }, { type: 'requires_action' }],
  [waits('', 'a'), { type: 'requires_action', eventIds: ['a'] }],
  [waits('other', 'a'), { type: 'other', eventIds: ['a'] }],
  [{ event_ids: [] }, { eventIds: [] }],
  [{ type: 5, event_ids: 'a' }, {}],
  [{ type: null, event_ids: null }, {}],
  [null, {}],
  [undefined, {}],
  [['a'], {}],
])('the stop_reason %j is read as %j', (reason, read) =>
  expect(readStopReason(event({ stop_reason: reason }))).toEqual(read),
)

const details = { category: 'c', explanation: 'e' }

test.each<[fields: object, read: ReturnType<typeof readStopDetails>]>([
  [{ stop_details: details, stop_reason: { stop_details: { category: 'no' } } }, details],
  [{ stop_reason: { stop_details: { category: 'c' } } }, { category: 'c' }],
  [{ stop_details: null, stop_reason: { stop_details: { explanation: 'e' } } }, { explanation: 'e' }],
  [{ stop_details: { category: '', explanation: 5 } }, {}],
  [{ stop_details: { category: [], explanation: '' } }, {}],
  [{ stop_details: 'words' }, {}],
  [{ stop_reason: null }, {}],
  [{ stop_reason: 'refusal' }, {}],
  [{}, {}],
])('the stop details are read from the event or from its stop reason: %j', (fields, read) =>
  expect(readStopDetails(event(fields))).toEqual(read),
)

test.each<[content: unknown, text: string, cell: string]>([
  ['words', 'words', 'words'],
  [[{ type: 'text', text: 'a' }, { type: 'image' }, { type: 'other', text: 'b' }], 'ab', 'a [image] b'],
  [[{ type: 'text', text: 5 }, { text: 'a' }], 'a', '[text] a'],
  [[{ text: 'a' }, { type: 5 }, null, 'b', ['c']], 'a', 'a [unknown]'],
  [[], '', ''],
  [{ type: 'text', text: 'a' }, '', ''],
  [undefined, '', ''],
])('the event content %j has the text %j and the table cell %j', (content, text, cell) => {
  expect(readEventText(event({ content }))).toBe(text)
  expect(describeEventContent(event({ content }))).toBe(cell)
})

test.each(['event_start', 'event_delta'])('the event %s without an id is a piece of a later one', (type) => {
  expect(isEventPiece(event({ type }))).toBe(true)
  expect(isEventPiece(event({ type, id: 'i' }))).toBe(false)
})

test('session.status_idle, session.status_terminated and session.deleted stop a session, and no other event', () => {
  const stopping = ['session.status_idle', 'session.status_terminated', 'session.deleted']
  const types = [...stopping, 'session.status_running', 'session.deleted_x', 'x_session.deleted']
  expect(types.filter((type) => stopsSession(event({ type })))).toEqual(stopping)
  expect(types.filter((type) => isEventPiece(event({ type })))).toEqual([])
})
