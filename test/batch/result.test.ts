import { expect, test } from 'vitest'
import { formatFailedResult, formatSuccessfulResult } from '../../src/batch/results-file.ts'

const seconds = 1.5
const rest = { model: 'm', stopReason: 'end_turn' }
const usage = { inputTokens: 1, totalTokens: 3 }
const unmetered = { seconds, attempts: 2, usage: {} }
const metered = { seconds, attempts: 2, usage }
const tail =
  '"model":"m","stopReason":"end_turn","usage":{"inputTokens":1,"totalTokens":3},"attempts":2,"seconds":1.5}'

test.each([
  [
    'a text answer and its usage',
    { index: 1, hash: 'h', ...metered },
    { content: { text: 'a\n"b"' }, ...rest },
    `{"index":1,"hash":"h","ok":true,"text":"a\\n\\"b\\"",${tail}`,
  ],
  [
    'the names of image files, without usage',
    { index: 2, id: 'a', hash: 'h#2', ...unmetered },
    { content: { files: ['out/002.png'] } },
    '{"index":2,"id":"a","hash":"h#2","ok":true,"files":["out/002.png"],"attempts":2,"seconds":1.5}',
  ],
  [
    'a JSON answer with unchanged number formats',
    { index: 3, id: 7, hash: 'h', ...unmetered },
    { content: { json: '{\r\n "n": 1.10,\n "s": "a\\n" }\n' }, model: 'm' },
    '{"index":3,"id":7,"hash":"h","ok":true,"json":{ "n": 1.10, "s": "a\\n" },"model":"m","attempts":2,"seconds":1.5}',
  ],
  [
    'a raw response with unchanged number formats',
    { index: 4, hash: 'h', ...metered },
    { content: { response: '{"big":12345678901234567890,\n"x":[1e400]}\n' }, ...rest },
    `{"index":4,"hash":"h","ok":true,"response":{"big":12345678901234567890,"x":[1e400]},${tail}`,
  ],
])('the result line of a batch contains %s', (_, subject, answer, line) =>
  expect(formatSuccessfulResult(subject, answer)).toBe(line),
)

test('the result line of a failed batch line contains the error, and usage if known', () => {
  const subject = { index: 1, id: 'a', hash: 'h', seconds, attempts: 0, usage: {} }
  expect(formatFailedResult(subject, { kind: 'service', exit: 7 })).toBe(
    '{"index":1,"id":"a","hash":"h","ok":false,"error":{"kind":"service","exit":7}}',
  )
  expect(formatFailedResult({ index: 1, hash: 'h', ...metered }, { kind: 'response', exit: 8 })).toBe(
    '{"index":1,"hash":"h","ok":false,"error":{"kind":"response","exit":8},"usage":{"inputTokens":1,"totalTokens":3}}',
  )
})
