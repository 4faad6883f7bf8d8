import { expect, test } from 'vitest'
import { parseBatchLine } from '../../src/batch/parsed-line.ts'

const body = '{ "contents": [ {"n": 1.10, "big": 12345678901234567890} ], "x":1e400 }'

test.each<[line: string, form: object]>([
  ['"a \\u00e9"', { prompt: 'a é' }],
  ['{"prompt":"p"}', { prompt: 'p' }],
  ['{"id":"a","prompt":"p","model":"m"}', { id: 'a', prompt: 'p', model: 'm' }],
  ['{"id":7,"prompt":"p"}', { id: 7, prompt: 'p' }],
  [body, { body }],
  [`{"custom_id":"a","method":"POST","url":"/v1","body":${body}}`, { id: 'a', body }],
  [`{"key":"a","request": ${body} }`, { id: 'a', body }],
  [`{"params":${body},"custom_id":"a"}`, { id: 'a', body }],
  [`{"custom_id":"a","body":{"contents":[]},"body":${body}}`, { id: 'a', body }],
  ['{"contents":[],"prompt":"p"}', { body: '{"contents":[],"prompt":"p"}' }],
])('a batch accepts the line %s', (line, form) => expect(parseBatchLine(line)).toEqual(form))

test.each([
  ['{"model":"m","contents":[1.0]}', '{"contents":[1.0]}'],
  ['{"contents":[1.0],"model":"m"}', '{"contents":[1.0]}'],
  [' {"contents":[1.0],"model":"m"}', ' {"contents":[1.0]}'],
  ['{ "a" : 1 , "model" : "x" , "contents" : [] }', '{ "a" : 1 , "contents" : [] }'],
  ['{"model":"x","contents":[],"mod\\u0065l":"m","z":{"model":1}}', '{"contents":[],"z":{"model":1}}'],
])('a batch removes the field model from the body %s', (line, body) => {
  expect(parseBatchLine(line)).toEqual({ model: expect.stringMatching(/^[mx]$/), body })
})

test('the message about an unknown field of a batch line shortens the name of the field', () => {
  const read = () => parseBatchLine(JSON.stringify({ prompt: 'p', ['k'.repeat(51)]: 1 }))
  expect(read).toThrow(`it has the unknown field "${'k'.repeat(50)}"`)
})

test.each([
  ['must be a prompt', ['[1]', '7', 'null', '{}', '{"messages":[]}', '{"__proto__":{"contents":[]}}']],
  ['prompt is empty', ['"  "', '{"prompt":""}']],
  ['"prompt" must be a string', ['{"prompt":["p"]}']],
  ['it has the unknown field "temperature"', ['{"prompt":"p","temperature":1}']],
  ['"id" must be', ['{"prompt":"p","id":null}', '{"prompt":"p","id":1.5}']],
  ['"model" must be', ['{"prompt":"p","model":""}', '{"contents":[],"model":7}']],
  ['no "custom_id" and no "key"', ['{"body":{"contents":[]}}']],
  ['the unknown field "key"', ['{"custom_id":"a","key":"b","body":{}}']],
  ['the unknown field "request"', ['{"custom_id":"a","body":{},"request":{}}']],
  ['"body" must be an object', ['{"custom_id":"a","body":"{}"}']],
  ['it has the unknown field "priority"', ['{"custom_id":"a","body":{},"priority":1}']],
])('a batch prints "%s" about each of the lines %j', (why, lines) => {
  for (const line of lines) expect(() => parseBatchLine(line), line).toThrow(why)
})

test('a batch rejects a line that is not JSON or nested too deep', () => {
  expect(() => parseBatchLine('hello')).toThrow(SyntaxError)
  expect(() => parseBatchLine('['.repeat(2000) + ']'.repeat(2000))).toThrow(SyntaxError)
})
