import { describe, expect, test } from 'vitest'
import {
  createJsonScanner,
  findEndOfJsonValue,
  findJsonField,
  findRepeatedJsonKey,
  isJsonDeeperThan,
  listJsonChildren,
  skipBlanks,
} from '../../../src/wire/json/scanner.ts'
import { cutsOf, smallTexts } from './texts.ts'

/** Scans a text that arrives in these chunks. Returns each token with its offset in the whole text. */
function walkOver(pieces: string[]): string {
  const walk = createJsonScanner()
  let marks = ''
  let before = 0
  for (const piece of pieces) {
    walk(piece, (mark, place) => {
      marks += `${mark}${before + place} `
    })
    before += piece.length
  }
  return marks
}

/** Reference scanner that reads character by character. */
function scanByCharacter(text: string): string {
  let isInString = false
  let isEscaped = false
  let marks = ''
  for (const [place, char] of [...text].entries()) {
    if (!isInString && '"[]{},\n'.includes(char)) marks += `${char}${place} `
    if (char === '"' && !isEscaped) isInString = !isInString
    isEscaped = isInString && char === '\\' && !isEscaped
  }
  return marks
}

test.each([
  [6, ['"', '\\', '[', 'x']],
  [3, ['"\\"', '"', '{', '}', ']', ',', '\n', ':']],
])('the JSON scanner finds all tokens outside of strings in texts of %i pieces from %j', (most, pieces) => {
  const wrong = smallTexts(pieces, most).filter((text) =>
    [[...text], ...cutsOf(text)].some((each) => walkOver(each) !== scanByCharacter(text)),
  )
  expect(wrong).toEqual([])
})

test('the JSON scanner starts at the given offset and stops if its callback returns true', () => {
  const marks: string[] = []
  createJsonScanner()('"[,{"x]}', (mark, place) => marks.push(`${mark}${place}`) === 2, 1)
  expect(marks).toEqual(['[1', ',2'])
})

/** Parses the JSON value at `start`. Finds nested values with `listJsonChildren`. */
function read(text: string, start = skipBlanks(text, 0)): unknown {
  const children = () => [...listJsonChildren(text, start)].map((each) => [each.name, read(text, each.start)])
  if (text[start] === '{') return Object.fromEntries(children())
  if (text[start] === '[') return children().map(([name, value]) => (name === undefined ? value : name))
  return JSON.parse(text.slice(start, findEndOfJsonValue(text, start)))
}

/** Generates JSON texts of values with at most two children, to this depth, with `blank` between tokens. */
function jsonTexts(depth: number, blank: string): string[] {
  const leaves = ['-1', '"],\\""']
  if (depth === 0) return leaves
  const inner = jsonTexts(depth - 1, blank)
  const lists = inner.flatMap((one) => [one, ...inner.map((other) => [one, other].join(`${blank},${blank}`))])
  const fields = inner.flatMap((one) => [
    `"a"${blank}:${blank}${one}`,
    ...inner.map((other) => `"\\"}"${blank}:${one}${blank},${blank}"\\u0061":${blank}${other}`),
  ])
  return [
    ...leaves,
    ...['', ...lists].map((list) => `[${blank}${list}${blank}]`),
    ...['', ...fields].map((list) => `{${blank}${list}${blank}}`),
  ]
}

describe.each(['', ' ', '\n', '\r\n\t'])('JSON with %j between tokens', (blank) => {
  test('the JSON scanner finds the same values as JSON.parse', () => {
    for (const text of jsonTexts(2, blank)) expect(read(blank + text), text).toEqual(JSON.parse(text))
  })

  test('a JSON value ends at the end of the text or before the next token', () => {
    for (const text of jsonTexts(1, blank)) {
      expect(findEndOfJsonValue(text, 0), text).toBe(text.length)
      for (const after of [' ', '\n', '\r', '\t', ',', ']', '}'])
        expect(findEndOfJsonValue(`[${text}${after}1`, 1), text).toBe(1 + text.length)
    }
  })
})

test('the JSON scanner returns no index after the end of an invalid text', () => {
  const pieces = ['{', '}', '[', ']', ',', ':', '"', '""', '\\', '1', ' ']
  const count = (text: string) => {
    try {
      return [...listJsonChildren(text, 0)].length
    } catch (error) {
      expect(error).toBeInstanceOf(SyntaxError)
      return 0
    }
  }
  expect(smallTexts(pieces, 4).filter((text) => count(text) > text.length)).toEqual([])
  expect(smallTexts(pieces, 4).filter((text) => findEndOfJsonValue(text, 0) > text.length)).toEqual([])
})

test.each<[text: string, key: string, found: string | undefined]>([
  ['{"a":1,"a":[2],"b":3}', 'a', '[2]'],
  ['{"b":{"a":1}}', 'a', undefined],
  ['["a"]', 'a', undefined],
  ['{}', 'constructor', undefined],
])('in the JSON %s, the last value of the key %j is %s', (text, key, found) => {
  expect(findJsonField(text, key)).toBe(found)
})

test.each([
  ['[[]]', 2],
  ['{"a":[{}],"b":[]}', 3],
  ['[[],[],{},{}]', 2],
  ['["[[[[{{{{",1]', 1],
  ['[[[]],[[]]]', 3],
  ['[[[', 3],
  [']]]}[', 0],
  ['"[["   ', 0],
])('the text %s has the nesting depth %i', (text, depth) => {
  for (const maxDepth of [0, 1, 2, 3, 4]) expect(isJsonDeeperThan(text, maxDepth)).toBe(depth > maxDepth)
})

test.each<[text: string, key: string | undefined]>([
  ['{"a":1,"b":2,"\\u0062" :3}', 'b'],
  ['{"a":1,"a"\n:2,"b":3,"b":4}', 'a'],
  ['[0,{"x":{"a":1,"a":2}}]', 'a'],
  ['{"x":[1],"y":{"x":2},"x":3}', 'x'],
  ['{"__proto__":1,"__proto__":2}', '__proto__'],
  ['{"":1,"":2}', ''],
  ['{":a":1,":a":2}', ':a'],
  ['[{"a":1},{"a":{"b":1},"b":2}]', undefined],
  ...['{"a":1,":b":2}', '{"a":"a","b":["a","a"],"c":{"a":1}}', '["a","a"]', '"a"'].map(
    (text): [string, undefined] => [text, undefined],
  ),
])('the repeated key in the JSON %s is %j', (text, key) => {
  expect(findRepeatedJsonKey(text)).toBe(key)
})
