import { expect, test } from 'vitest'
import type { CliError } from '../../src/errors.ts'
import { findFailureKind } from '../../src/wire/problem/failure-kind.ts'
import type { ErrorBody } from '../../src/wire/problem/problem.ts'
import {
  createUnexpectedBodyFailure,
  isErrorEnvelope,
  readErrorBody,
  readErrorMessage,
} from '../../src/wire/problem/problem.ts'
import { parseReceivedBody, parseReceivedJson, readErrorEvent } from '../../src/wire/received-json.ts'

const x = (length: number) => 'x'.repeat(length)

/** Nests `message` in the given number of `error` fields. */
const nested = (depth: number): unknown => (depth === 0 ? 'm' : { error: nested(depth - 1) })

/** Nests the message as JSON inside JSON strings. */
const inJson = (depth: number): object => ({ message: depth === 0 ? 'm' : JSON.stringify(inJson(depth - 1)) })

test.each<[body: unknown, message: string | undefined]>([
  ['words', 'words'],
  ['  words\n', 'words'],
  [{ message: '' }, undefined],
  [{ message: ' m\n' }, 'm'],
  [{ Message: 'm' }, 'm'],
  [{ msg: 'm' }, 'm'],
  [{ message: null, msg: 'm' }, 'm'],
  [{ issues: [{ message: 'a' }] }, 'a'],
  [{ errors: ['a', { message: 'b' }, 5, null, ''] }, 'a; b'],
  [{ errors: Array(21).fill('a') }, Array(20).fill('a').join('; ')],
  [{ error: 'a', error_description: 'b' }, 'a: b'],
  [{ error: { message: 'a', details: { error_code: 'workflow_run_open' } } }, 'a (workflow_run_open)'],
  [{ error: { message: 'a b', details: { error_code: 'b' } } }, 'a b'],
  [{ error: { details: { error_code: 'b' } } }, 'b'],
  [{ error: { message: 'a', details: [{}, { error_code: 'b' }] } }, 'a (b)'],
  [{ error: { message: 'a', details: { error_code: 'two words' } } }, 'a'],
  [{ error: { message: 'a', details: { error_code: x(101) } } }, 'a'],
  [{ error: { message: 'a', details: { __proto__: { error_code: 'b' } } } }, 'a'],
  [{ error: 'a', message: 'b' }, 'a'],
  [{ fault: { faultstring: 'a' } }, 'a'],
  [{ title: 'a', detail: 'b' }, 'a: b'],
  [{ title: ' ', detail: 'b' }, 'b'],
  [{ title: 'a' }, 'a'],
  [{ loc: ['a', 0, { b: 1 }, null, 'c'], msg: 'm' }, 'a.0.c: m'],
  [{ loc: Array(21).fill('a'), msg: 'm' }, `${Array(20).fill('a').join('.')}: m`],
  [[[[[['m']]]]], 'm'],
  [[[[[[['m']]]]]], undefined],
  [{ message: '{"message":"in JSON"}' }, 'in JSON'],
  [{ message: ' [{"msg":"in JSON"}]' }, 'in JSON'],
  [{ message: '{"a":1}' }, '{"a":1}'],
  [{ message: '"a"' }, '"a"'],
  [{ message: 'a {"message":"b"}' }, 'a {"message":"b"}'],
  [[{ message: 'a' }, { message: 'b' }], 'a; b'],
  [Object.create({ message: 'of a prototype' }), undefined],
  ['data: {"message":"m"}\n\n', 'm'],
  ['\n event: error\ndata: {"message":"m"}\n\n', 'm'],
  [': \ndata: {"a":1}\n\ndata: {"message":"m"}\n\n', 'm'],
  ['retry: 1\ndata: {"message":"m"}\n\n', 'm'],
  ['a\ndata: {"message":"m"}\n\n', 'a\ndata: {"message":"m"}'],
  ['<html><title> a\n</title></html>', 'a'],
  [' <html><TITLE class="b">a</TITLE>', 'a'],
  ['<html>no title</html>', undefined],
  ['a <title>b</title>', 'a <title>b</title>'],
  ['<Error><Message>a</Message></Error>', 'a'],
  ['<e:message a="b"><![CDATA[c]]></e:message>', 'c'],
  ['<messages>a</messages>', undefined],
  [`<message ${x(499)}>a</message>`, 'a'],
  [`<message ${x(501)}>a</message>`, undefined],
  [`<${x(40)}:message>a</message>`, 'a'],
  [`<${x(41)}:message>a</message>`, undefined],
  [5, undefined],
  [null, undefined],
])('the message of readErrorBody(%j) is %j', (body, message) => {
  expect(readErrorBody(body).message).toBe(message)
})

test('readErrorMessage() adds the code of the error', () =>
  expect(readErrorMessage({ message: 'a', details: { error_code: 'b' } })).toBe('a (b)'))

test('readErrorBody() finds a message inside at most five nested error objects', () => {
  expect(readErrorBody(nested(5)).message).toBe('m')
  expect(readErrorBody(nested(6)).message).toBeUndefined()
})

test('readErrorBody() parses JSON inside a message at most twice', () => {
  expect(readErrorBody(inJson(2)).message).toBe('m')
  expect(readErrorBody(inJson(3)).message).toBe('{"message":"m"}')
})

test.each<[title: string, body: unknown, message: string | undefined]>([
  ['a message', { message: x(64 * 1024 + 1) }, x(64 * 1024)],
  ['plain text', x(64 * 1024 + 1), x(64 * 1024)],
  ['a stream whose first event is late', `:${x(2 ** 16)}\n\ndata: {"message":"m"}\n\n`, `:${x(2 ** 16 - 1)}`],
  ['a stream that continues', `data: {"message":"m"}\n\n${x(64 * 1024)}`, 'm'],
  ['a message in XML', `<message>${x(10_001)}</message>`, x(10_000)],
  ['XML whose message comes late', `<${x(64 * 1024)}><message>a</message>`, undefined],
])('readErrorBody() reads only the start of a long body with %s', (_, body, message) => {
  expect(readErrorBody(body).message === message).toBe(true)
})

const problemB = { type: 'a', message: 'b', requestId: 'r' }

test.each<[body: unknown, problem: ErrorBody]>([
  [{ error: { type: 'a' } }, { type: 'a' }],
  [{ type: 'error', error: { type: 'a', status: 'b', code: 5 } }, { type: 'a' }],
  [{ error: { code: 5 } }, { type: '5' }],
  [{ error: 'a' }, { type: 'a', message: 'a' }],
  [{ error: 'a b' }, { message: 'a b' }],
  [{ error: x(101) }, { message: x(101) }],
  [{ fault: { code: 'a' } }, { type: 'a' }],
  [{ Code: 'a' }, { type: 'a' }],
  [
    { statusCode: 500, error: 'a' },
    { type: '500', message: 'a' },
  ],
  [{ type: '', status: 'a' }, { type: 'a' }],
  [[{ type: 'a' }, { type: 'b' }], { type: 'a' }],
  [{ request_id: 'r' }, { requestId: 'r' }],
  [{ requestId: 'r' }, { requestId: 'r' }],
  [{ error: { RequestId: 'r' } }, { requestId: 'r' }],
  [{ request_id: 5 }, {}],
  [{ request_id: x(201) }, { requestId: x(200) }],
  ['<Error><Code>a</Code><Message>b</Message><RequestId>r</RequestId></Error>', problemB],
  ['<Error><Code>a</Code><RequestId>r</RequestId></Error>', {}],
  ['data: {"error":{"type":"a","message":"b"},"request_id":"r"}\n\n', problemB],
  ...['30s', '1.5s', '123456789.123456789s'].map((retryDelay): [unknown, ErrorBody] => [
    { error: { details: [{ a: 1 }, { retryDelay }] } },
    { retryAfterSeconds: Number.parseFloat(retryDelay) },
  ]),
  ...['30', 's', '-1s', '1.s', '.5s', '30s ', ' 30s', '1234567890s', '1.1234567891s', 30, ['3s'], null].map(
    (retryDelay): [unknown, ErrorBody] => [{ error: { details: [{ retryDelay }] } }, {}],
  ),
  [{ error: { details: { retryDelay: '30s' } } }, { retryAfterSeconds: 30 }],
  [{ error: { details: [{ retryDelay: 5 }, { retryDelay: '3s' }] } }, { retryAfterSeconds: 3 }],
])('the error body %j is read as %j', (body, problem) => {
  expect(readErrorBody(body)).toEqual(problem)
})

const answerFields = 'content candidates promptFeedback data choices predictions response events'.split(' ')

test.each([
  ...['{"type":"error"}', '{"type":"an_error","message":"m"}', '{"type":"about:blank","title":"m"}'],
  ...['{"type":"message","content":[1],"error":{"message":"m"}}', '{"type":"message_delta","error":"m"}'],
  ...['{"type":5,"message":"m"}', '[{"type":"error"},{}]', '{"success":false}', '{"error":"m"}'],
  ...['{"error":true}', '{"error":{"code":500}}', '{"error":["m"]}', '{"fault":{"a":1}}'],
  ...answerFields.map((name) => `{"${name}":[],"message":"m","code":5}`),
  ...['{"other":[1],"message":"m"}', '{"content":"","message":"m","code":5}', '{"Code":5,"message":"m"}'],
  ...['{"statusCode":500,"message":"m"}', '{"code":2000,"message":"m"}', '{"code":"not ok","message":"m"}'],
  ...['{"message":"m"}', '{"message":"m","ok":"true"}', '{"message":"m","status":500}'],
])('R86: isErrorEnvelope(%s) returns true', (json) => expect(isErrorEnvelope(JSON.parse(json))).toBe(true))

test.each([
  ...['{"type":"an_error"}', '{"type":"an_error_of","message":"m"}', '{"type":"blank","title":"m"}'],
  ...['{"type":"about:blank","title":5,"detail":"m"}', '{"type":"message","content":[1],"error":null}'],
  ...['{"type":"message_delta"}', '{"type":"messages","error":"m"}', '[{},{"type":"error"}]', '"message"'],
  ...['{"type":"a_message","error":{"message":"m"}}', '{"success":"false"}', '{"error":""}', '{"error":0}'],
  ...['{"error":false}', '{"error":{"code":200}}', '{"error":{}}', '{"error":[]}', '{"code":5}'],
  ...answerFields.map((name) => `{"${name}":[1],"message":"m","code":5}`),
  ...answerFields.map((name) => `{"${name}":[],"message":"m"}`),
  ...['{"content":"text","message":"m"}', '{"Code":0,"message":"m"}', '{"statusCode":200,"message":"m"}'],
  ...['{"code":0,"message":"m"}', '{"code":"OK","message":"m"}', '{"code":"204","message":"m"}'],
  ...['{"message":"m","success":true}', '{"message":"m","ok":true}', '{"message":"m","status":"success"}'],
  '{"message":"m","status":200}',
])('R86: isErrorEnvelope(%s) returns false', (json) => expect(isErrorEnvelope(JSON.parse(json))).toBe(false))

test.each<[names: string[], kind: string]>([
  [[], 'response'],
  [['odd', 'billing_error'], 'payment'],
  [['rate_limit_error', 'billing_error'], 'rate-limited'],
  ...[
    ['credentials', 'authentication unauthenticated unauthorized permission permission_denied access_denied'],
    ['credentials', 'forbidden invalid_token invalid_client invalid_api_key 401 403 AccessDeniedException'],
    ['refused', 'invalid_request invalid_argument failed_precondition validation bad_request not_found'],
    ['refused', '400 404 not_found_error ValidationException'],
    ['payment', 'billing payment_required 402'],
    ['rate-limited', 'rate_limit resource_exhausted too_many_requests throttling slow_down 429'],
    ['rate-limited', 'SlowDown RESOURCE_EXHAUSTED'],
    ['service', 'overloaded unavailable service_unavailable api internal internal_server server'],
    ['service', 'timeout gateway_timeout deadline_exceeded 500 502 599 internalServerError'],
    ['response', 'odd error_not_found not_found_error_x invalid_error_request 5000 1500 50x'],
  ].flatMap(([kind = '', names = '']) => names.split(' ').map((name): [string[], string] => [[name], kind])),
])('R85: an error with the types %j has the kind %s', (...[names, kind]) =>
  expect(findFailureKind(names)).toBe(kind),
)

const xmlStart = '<Error><Code>SlowDown</Code><Message>m</Message>'
const inSuccess = 'the service answered with an error in a successful response'
test.each<[body: unknown, kind: string, isError: true | undefined, says: string | undefined, id?: string]>([
  [{ error: { type: 'billing_error', message: 'm' } }, 'payment', true, 'm'],
  [[{ error: { type: 'overloaded_error', message: 'm' }, request_id: 'r' }], 'service', true, 'm', 'r'],
  [{ choices: [1], message: 'm', request_id: 'r' }, 'response', undefined, 'm', 'r'],
  ['words', 'response', undefined, 'words'],
  ['', 'response', undefined, undefined],
  ['data: {"a":1}\n\ndata: {"error":{"type":"billing_error","message":"m"}}\n\n', 'payment', true, 'm'],
  ['data: {"a":1}\n\n', 'response', undefined, 'data: {"a":1}'],
  [`${xmlStart}<RequestId>r</RequestId></Error>`, 'rate-limited', undefined, 'm', 'r'],
  ['<Error><Message>m</Message></Error>', 'response', undefined, 'm'],
  ['<title>503</title><code>503</code>', 'response', undefined, '503'],
  [5, 'response', undefined, undefined],
  [{ type: 'overloaded' }, 'response', undefined, undefined],
])('the unexpected body %j is a failure of kind %s', (body, kind, isError, serviceMessage, requestId) => {
  const failure = createUnexpectedBodyFailure(body, 'no answer')
  expect([failure.kind, failure.message]).toEqual([kind, isError ? inSuccess : 'no answer'])
  expect(failure.details).toEqual({ body, errorIn: isError && 'body', serviceMessage, requestId })
})

const failureOf = (read: () => unknown) => {
  try {
    return { value: read() }
  } catch (error) {
    const { kind, message, details } = error as CliError
    return { kind, message, body: details.body, says: details.serviceMessage, retry: details.retry }
  }
}
const nothing = { body: undefined, says: undefined, retry: 'later' }
const odd = (message: string, more: object = {}) => ({ kind: 'response', message, ...nothing, ...more })
const slowDown = `${xmlStart}</Error>`
const oddEvent = 'data: {"error":{"type":"x","message":"m"}}\n\n'
const deep = '['.repeat(1001) + ']'.repeat(1001)

test.each<[body: string, contentType: string, read: object]>([
  ['{"a":1}', 'application/json', { value: { a: 1 } }],
  ['', 'application/json', odd('the answer is empty')],
  [' \n', '', odd('the answer is empty')],
  [deep, '', odd('the answer is nested more than 1000 levels deep', { retry: undefined })],
  ['{"a"', '', odd('the answer is not JSON', { body: '{"a"' })],
  [' [1', 'application/json; charset=utf-8', odd('the answer is not JSON', { body: ' [1' })],
  ['"a', '', odd('the answer is not JSON', { body: '"a' })],
  ['words', 'text/plain', odd('the answer (text/plain) is not JSON', { body: 'words', says: 'words' })],
  ['a {', '', odd('the answer is not JSON', { body: 'a {', says: 'a {' })],
  [slowDown, '', { kind: 'rate-limited', message: 'the answer is not JSON', body: slowDown, says: 'm' }],
  [oddEvent, '', { kind: 'response', message: inSuccess, body: oddEvent, says: 'm' }],
])('the answer %j with the content type %j is read as %j', (body, contentType, read) => {
  expect(failureOf(() => parseReceivedBody(body, contentType))).toEqual(read)
})

test('the failure of a long incomplete JSON answer contains the first 64 KiB of the answer', () => {
  const failure = failureOf(() => parseReceivedBody(`{${x(64 * 1024)}`, ''))
  expect(failure.body === `{${x(64 * 1024 - 1)}`).toBe(true)
})

test.each<[text: string, read: object]>([
  ['5', { value: 5 }],
  [deep, odd('the list is nested more than 1000 levels deep', { retry: undefined })],
  ['words', odd('the list is not JSON')],
  [' \n<title>No</title>', odd('the list is not JSON', { says: 'No', body: ' \n<title>No</title>' })],
  ['words <title>Sign in</title>', odd('the list is not JSON')],
])('the response body %j of a list is read as %j', (text, read) => {
  expect(failureOf(() => parseReceivedJson(text, 'the list'))).toEqual(read)
})

test('an SSE error event is read as JSON, or as plain text if its data is not JSON', () => {
  expect(['{"a":1}', 'words', '{"a"'].map(readErrorEvent)).toEqual([{ a: 1 }, 'words', '{"a"'])
})
