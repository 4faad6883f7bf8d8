import { expect, test } from 'vitest'
import { encodeJson, type JsonPart, partsOf } from '../../../src/wire/json/encoder.ts'

/** The longest text that is not a piece of its own. */
const short = 'é'.repeat(256 * 1024)
const long = `${short}x`
const half = 'h'.repeat(128 * 1024)

const json = (...texts: string[]): JsonPart[] => texts.map((text) => ({ json: text }))

test.each<[title: string, value: unknown, parts: JsonPart[]]>([
  ['short values', { a: [1, 'x', null, { b: true }] }, json('{"a":[1,"x",null,{"b":true}]}')],
  ['a short text', short, json(`"${short}"`)],
  ['a long text', long, [{ json: '"' }, { text: long }, { json: '"' }]],
  ['a name that is short with its text', { [half]: half }, json(`{"${half}":"${half}"}`)],
  [
    'a name that is long with its text',
    { [half]: `${half}x`, '"': { a: '' } },
    json('{', `"${half}":`, `"${half}x"`, ',', '"\\"":', '{"a":""}', '}'),
  ],
  [
    'texts that are long together',
    [half, half, 'x', null],
    json('[', `"${half}"`, ',', `"${half}"`, ',', '"x"', ',', 'null', ']'),
  ],
  [
    'a long text deep inside',
    { a: [{ b: long }, 1] },
    [...json('{', '"a":', '[', '{', '"b":', '"'), { text: long }, ...json('"', '}', ',', '1', ']', '}')],
  ],
])('%s: short values are a part as they are, long texts are not copied', (_, value, parts) => {
  const found = [...partsOf(value)]
  expect(found.length).toBe(parts.length)
  for (const [index, part] of parts.entries())
    expect(JSON.stringify(found[index]) === JSON.stringify(part), `${index}`).toBe(true)
})

/** Where two pieces meet: between the halves of an emoji, after one, after the half of one. */
const seams = ['x🦜x', 'xx🦜', '🦜xx', 'x\ud83e', '\ud83ex', 'x"\\\n', 'xé€']
const before = 'x'.repeat(256 * 1024 - 2)

test.each(seams)('the parts of a text are joined as JSON.stringify writes it: %j', (seam) => {
  for (const text of [seam, before + seam, before + before + seam + seam + before + seam]) {
    const parts = [{ json: '["' }, { text }, { json: `",${JSON.stringify(text)}]` }]
    const wanted = Buffer.from(JSON.stringify([text, text]))
    expect(Buffer.from(encodeJson(parts) ?? []).equals(wanted)).toBe(true)
  }
})

test.each([1, 100, 682, 683, 2048, 3000, 100_000])('%i short parts are joined', (count) => {
  for (const text of ['€', 'x', '\n']) {
    const bytes = encodeJson(Array(count).fill({ text }))
    expect(Buffer.from(bytes ?? []).toString()).toBe(JSON.stringify(text).slice(1, -1).repeat(count))
  }
})

test('the memory grows eightfold at least, for a piece at a time, so that few copies are made', () => {
  const roomOf = (...lengths: number[]) =>
    encodeJson(lengths.map((length) => ({ json: 'x'.repeat(length) })))?.buffer.byteLength
  expect([roomOf(10_000, 1), roomOf(10_000, 8000), roomOf(2 ** 20)]).toEqual([
    3 * 10_000,
    8 * 3 * 10_000,
    8 * 3 * 2 ** 18,
  ])
})

test('a text may have as many bytes as are allowed, and no more', () => {
  const parts: JsonPart[] = [{ json: '"' }, { text: '€\n' }, { json: '"' }]
  const lengths = [6, 7, 8].map((most) => encodeJson(parts, most)?.length)
  expect(lengths).toEqual([undefined, 7, 7])
})
