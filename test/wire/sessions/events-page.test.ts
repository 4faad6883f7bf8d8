import { expect, test } from 'vitest'
import { CliError, type FailureKind } from '../../../src/errors.ts'
import {
  isPermanentServiceError,
  readEventItem,
  readEventsPage,
} from '../../../src/wire/sessions/events-page.ts'
import { catchFailure } from '../decoding.ts'

const first = '{"id":"a", "type":"x"}'

test.each<[text: string, events: object[], hasNextField: boolean, next?: string]>([
  [`[${first}]`, [{ id: 'a', type: 'x' }], false],
  [`{"data":[${first}],"next_page":"p"}`, [{ id: 'a', type: 'x' }], true, 'page=p'],
  ['{"data":[{"type":"x","id":5,"n":12345678901234567890}]}', [{ type: 'x' }], false],
])('readEventsPage(%s) returns the events %j, hasNextField %j and the next page %j', (...row) => {
  const [text, events, hasNextField, next] = row
  const page = readEventsPage(Buffer.from(text))
  expect(page).toMatchObject({ items: events.map((event) => ({ event })), hasNextField })
  expect(page.next()).toEqual(next)
  for (const { text: own } of page.items) expect(text).toContain(own)
})

test.each([
  ['5', 'must be an object'],
  ['null', 'must be an object'],
  ['{"id":"b"}', 'type: is missing'],
  ['{"id":"b","type":5}', 'type: must be text'],
])('readEventsPage returns the events before the invalid event %s, and next() throws', (other, problem) => {
  for (const more of ['', ',"has_more":false', ',"next_page":"p"']) {
    const text = `{"data":[${first},${other},${first}]${more}}`
    const { items, hasNextField, next } = readEventsPage(Buffer.from(text))
    expect(items).toEqual([{ event: { id: 'a', type: 'x' }, text: first }])
    expect(hasNextField).toBe(true)
    const message = `the list of events: [1]: ${problem}`
    expect(catchFailure(next)).toMatchObject({ kind: 'response', message })
  }
})

test('the message about an invalid events page names "the list of events"', () =>
  expect(() => readEventsPage(Buffer.from('{"data":5}'))).toThrow('the list of events: data must be a list'))

test.each<[data: string, name: string | undefined, text: string]>([
  ['{"type":"x"}', undefined, '{"type":"x"}'],
  ['{"type":"x"}', 'x', '{"type":"x"}'],
  ['{"type":"x"}', 'error', '{"type":"x"}'],
  ['{"type":\n"x",\r\n"n":1.0}', '', '{"type":"x","n":1.0}'],
  ['{"type":"session.error","error":{}}', '', '{"type":"session.error","error":{}}'],
])('the stream data %j with the event name %j is an event', (data, name, text) => {
  expect(readEventItem(data, name)).toEqual({ event: JSON.parse(data), text })
})

test.each([
  ['words', 'an event of the stream is not JSON'],
  ['{"id":"a"}', 'an event of the stream: type: is missing'],
  ['5', 'an event of the stream: must be an object'],
  ['null', 'an event of the stream: must be an object'],
])('the stream data `%s` is rejected with the message "%s"', (data, message) => {
  expect(catchFailure(() => readEventItem(data))).toMatchObject({ kind: 'response', message })
})

test.each<[data: string, name: string, kind: string, isPermanent: boolean, says: string | undefined]>([
  ['out of order', 'error', 'response', false, 'out of order'],
  ['"out of order"', 'error', 'response', false, 'out of order'],
  ['"out of order"', '', 'response', false, 'out of order'],
  ['{"error":{"type":"authentication_error","message":"m"}}', '', 'credentials', true, 'm'],
  ['{"error":{"type":"not_found_error","message":"m"}}', 'error', 'refused', true, 'm'],
  ['{"error":{"type":"billing_error","message":"m"}}', '', 'payment', true, 'm'],
  ['{"error":{"type":"rate_limit_error","message":"m"}}', '', 'response', false, 'm'],
  ['{"error":{"type":"overloaded_error","message":"m"}}', '', 'response', false, 'm'],
  ['{"error":{"type":"odd"},"request_id":"r1"}', 'x', 'response', false, undefined],
])(
  'Y89: the error data %j in a stream event named %j becomes a failure of kind %s with isPermanent %j',
  (data, name, kind, isPermanent, says) => {
    const failure = catchFailure(() => readEventItem(data, name))
    expect(failure).toMatchObject({
      kind,
      message: 'the stream of events ended with an error',
      details: { errorIn: 'stream', sent: 'yes', isPermanent, serviceMessage: says },
    })
    const body = data.startsWith('out') ? data : JSON.parse(data)
    expect(failure?.details).toMatchObject({ body, requestId: body.request_id })
  },
)

test('isPermanentServiceError returns true only for a permanent refusal in a 2xx or a stream', () => {
  const isPermanent = (...[kind, status, isPermanent]: [FailureKind, number?, boolean?]) =>
    isPermanentServiceError(new CliError(kind, 'x', { status, isPermanent }))
  expect([isPermanent('credentials', undefined, true), isPermanent('refused', 200, true)]).toEqual([
    true,
    true,
  ])
  expect([isPermanent('payment', 299, true), isPermanent('refused', 300, true)]).toEqual([true, false])
  expect([isPermanent('refused', 200), isPermanent('service', 200, true)]).toEqual([false, false])
})
