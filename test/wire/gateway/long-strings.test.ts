import { expect, test } from 'vitest'
import { LongStringStore } from '../../../src/wire/gateway/long-strings.ts'

const shorten = (body: string) => {
  const strings = new LongStringStore()
  const text = Buffer.from(strings.replaceLongStrings(Buffer.from(body))).toString()
  return { text, bytesOf: strings.readBytes }
}

const cut = 64 * 1024
/** Returns the strings of an array with their original bytes. */
const strings = (body: string) => {
  const { text, bytesOf } = shorten(body)
  return (JSON.parse(text) as string[]).map((each) => ({
    isWhole: each === Buffer.from(bytesOf(each)).toString(),
    text: Buffer.from(bytesOf(each)).toString(),
  }))
}
const x = (length: number) => 'x'.repeat(length)
const accents = (bytes: number) => 'é'.repeat(bytes / 2)

test.each<[title: string, literals: string[], isWhole: boolean[]]>([
  ['strings of less than 64 KiB stay in the JSON text', ['a', x(cut - 1)], [true, true]],
  ['strings of 64 KiB are replaced by placeholders', ['a', x(cut), x(cut + 1)], [true, false, false]],
  [
    'a long string with an escape stays in the JSON text, and is not kept as separate bytes',
    [`${x(cut)}\\n`, `\\"${x(cut)}`, `${x(cut)}\\\\`, x(cut)],
    [true, true, true, false],
  ],
  ['the length of a string is measured in bytes', [cut, cut - 2].map(accents), [false, true]],
  ['escaped quotes do not end a string', ['\\"', '\\\\', '\\\\\\"', x(cut)], [true, true, true, false]],
])('%s', (_, literals, isWhole) => {
  const found = strings(`[${literals.map((each) => `"${each}"`).join(',')}]`)
  expect(found.map((each) => each.isWhole)).toEqual(isWhole)
  expect(found.every(({ text }, i) => text === JSON.parse(`"${literals[i]}"`))).toBe(true)
})

test('a long string that is the whole body is replaced by a placeholder', () => {
  const { text, bytesOf } = shorten(`"${x(cut)}"`)
  expect([text.length < cut, bytesOf(JSON.parse(text)).length]).toEqual([true, cut])
})

test('a long string without a closing quote stays in the JSON text', () => {
  const body = `{"a":"${x(cut)}`
  expect(shorten(body).text).toBe(body)
})

test('text that looks like the placeholder of a long string stays unchanged', () => {
  const { bytesOf } = shorten(`["${x(cut)}"]`)
  expect(Buffer.from(bytesOf('0')).toString()).toBe('0')
})
