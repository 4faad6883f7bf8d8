import { describe, expect, test } from 'vitest'
import { type BodyValues, readBodyValues } from '../../../src/wire/gateway/body-values.ts'

const json = 'application/json'
const sse = 'text/event-stream'
const value = (value: unknown, event = '') => ({ value, event })

const read = (body: string, type: string) => {
  const { values, form, failure } = readBodyValues(Buffer.from(body), type)
  return { values, form, failure: failure?.message }
}

test.each<
  [type: string, body: string, form: BodyValues['form'], values: BodyValues['values'], failure?: string]
>([
  [json, '{"a":1}', 'body', [value({ a: 1 })]],
  ['text/html', ' {"a":1}', 'body', [value({ a: 1 })]],
  [sse, '{"a":1}', 'body', [value({ a: 1 })]],
  [sse, '\n{"a":1}', 'body', [value({ a: 1 })]],
  [json, '[{"a":1}]', 'body', [value({ a: 1 })]],
  [json, '[1,"x"]', 'chunks', [value(1), value('x')]],
  [json, '[]', 'chunks', []],
  [json, '"x"', 'body', [value('x')]],
  [json, '{"a":1}\n{"b":2} {}', 'sequence', [value({ a: 1 }), value({ b: 2 }), value({})]],
  [json, '{"a":1}5', 'sequence', [value({ a: 1 }), value(5)]],
  [sse, 'data: {"a":1}\n\nevent: x\ndata: [2]\n\n', 'events', [value({ a: 1 }), value([2], 'x')]],
  ...[':\n', 'data: \n', 'event: y\n\n', 'id: 1\n', 'retry: 1\n', ' \nid\n'].map(
    (start): [string, string, 'events', BodyValues['values']] => [
      json,
      `${start}\ndata: {"a":1}\n\n`,
      'events',
      [value({ a: 1 })],
    ],
  ),
  [`${sse}; charset=utf-8`, 'words\ndata:  \t{"a":1}', 'events', [value({ a: 1 })]],
  [sse, 'data: words{ {}\n\ndata: {}\n\n', 'events', [value({})]],
  [sse, 'data: ping\n\n{"a":1}\n', 'events', [value({ a: 1 })]],
  [sse, 'data: {"b":1}\n\ndata: [DONE]\n\ndata: {"a":1}\n\n', 'events', [value({ b: 1 })]],
  [sse, `event: error\ndata: ${'x'.repeat(10_001)}\n\n`, 'events', [value('x'.repeat(10_000), 'error')]],
  [sse, 'event: error\ndata: {"a":1}\n\n', 'events', [value({ a: 1 }, 'error')]],
  [sse, 'event: other\ndata: words\n\ndata: {}\n\n', 'events', [value({})]],
  [
    sse,
    'data: {"a":\n\ndata: {"b":1}\n\ndata: [\n\n',
    'events',
    [value({ b: 1 })],
    'an event of the stream is not JSON',
  ],
  [sse, 'data: {', 'events', [], 'an event of the stream is not JSON'],
])('%s %j', (type, body, form, values, failure) => {
  expect(read(body, type)).toEqual({ form, values, failure })
})

test.each([
  [json, '', 'the answer is empty'],
  [json, 'words', 'the answer is not JSON'],
  [json, 'datas', 'the answer is not JSON'],
  ['text/html', 'data: {}', 'the answer (text/html) is not JSON'],
  ['text/html; x', 'data: {}', 'the answer (text/html; x) is not JSON'],
  [json, 'x data: {}', 'the answer is not JSON'],
  [json, '[1]{"a":1}{}', 'the answer is not JSON'],
  [json, '{"a":1}{', 'the answer is not JSON'],
  [json, '{"a":1', 'the answer is not JSON'],
  [json, '[1][2]', 'the answer is not JSON'],
  [json, '{"a":1} words {}', 'the answer is not JSON'],
  [sse, 'data: ping\n\n', 'the stream has nothing of a documented shape'],
  [sse, 'data: [DONE]\n\ndata: {}\n\n', 'the stream has nothing of a documented shape'],
])('%s %j has no values', (type, body, message) => {
  expect(() => read(body, type)).toThrow(expect.objectContaining({ kind: 'response', message }))
})

describe('a long string stays as bytes', () => {
  const cut = 64 * 1024
  /** The strings of a list, and what they were in the body. */
  const strings = (body: string) => {
    const { values, bytesOf } = readBodyValues(Buffer.from(body), json)
    return values.map((each) => ({
      isWhole: each.value === Buffer.from(bytesOf(each.value as string)).toString(),
      text: Buffer.from(bytesOf(each.value as string)).toString(),
    }))
  }
  const x = (length: number) => 'x'.repeat(length)

  test.each<[title: string, literals: string[], isWhole: boolean[]]>([
    ['short ones do not', ['a', x(cut - 1)], [true, true]],
    ['long ones do', ['a', x(cut), 'b', x(cut + 1), x(cut)], [true, false, true, false, false]],
    [
      'one with an escape does not',
      [`${x(cut)}\\n`, `\\"${x(cut)}`, `${x(cut)}\\\\`, x(cut)],
      [true, true, true, false],
    ],
    ['its size is that of its bytes', ['é'.repeat(cut / 2), 'é'.repeat(cut / 2 - 1)], [false, true]],
    ['quotes that are escaped do not end it', ['\\"', '\\\\', '\\\\\\"', x(cut)], [true, true, true, false]],
  ])('%s', (_, literals, isWhole) => {
    const body = `[${literals.map((each) => `"${each}"`).join(',')}]`
    const found = strings(body)
    expect(found.map((each) => each.isWhole)).toEqual(isWhole)
    expect(found.map(({ text }) => text).every((text, i) => text === JSON.parse(`"${literals[i]}"`))).toBe(
      true,
    )
  })

  test('but not if it has a line break: a quote may stand alone in a stream of events', () => {
    const body = `data: ${x(10)}"\n\n${`: ${x(cut)}\n`}data: {"a":"b"}\n\n`
    expect(readBodyValues(Buffer.from(body), sse).values).toEqual([value({ a: 'b' })])
  })

  test('also if it is the whole body', () => {
    const { values, bytesOf } = readBodyValues(Buffer.from(`"${x(cut)}"`), json)
    const found = values[0]?.value as string
    expect([found.length < cut, bytesOf(found).length]).toEqual([true, cut])
  })

  test('and does not count for how much text is read', () => {
    const body = Buffer.from(`{"a":"${x(cut)}"}${x(1000)}`)
    const { length } = `{"a":"${crypto.randomUUID()}0"}${x(1000)}`
    expect(() => readBodyValues(body, json, length)).toThrow('the answer is not JSON')
    expect(() => readBodyValues(body, json, length - 1)).toThrow(
      expect.objectContaining({ kind: 'response', message: 'the answer is too long' }),
    )
  })

  test('and a text that only looks like a mark is left', () => {
    const { bytesOf } = readBodyValues(Buffer.from(`["${x(cut)}"]`), json)
    expect(Buffer.from(bytesOf('0')).toString()).toBe('0')
  })
})
