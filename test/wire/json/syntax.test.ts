import { expect, test } from 'vitest'
import { describeJsonError } from '../../../src/wire/json/parse.ts'
import { findJsonSyntaxError } from '../../../src/wire/json/syntax.ts'
import { isJson, smallTexts } from './texts.ts'

test.each([
  ['values', ['{', '}', '[', ']', ',', '"a":', ' 1'], 5],
  ['fields', ['{', '"a"', ':', ',', '}'], 5],
  ['numbers', ['-', '0', '1', '.', 'e', 'E+'], 5],
  ['strings', ['"', '\\', '\\u', '00', 'aF', 'g'], 5],
  ['characters', ['"', ' ', '\x1f', '\x7f', '\u2028', '\\u00e9'], 3],
  ['escapes', ['"', '\\"', '\\\\', '\\/', '\\b', '\\f', '\\n', '\\r', '\\t', '\\x', '\\v'], 3],
  ['words', ['true', 'false', 'null', 'True', 'x'], 2],
  ['blanks', [' ', '\t', '\n', '\r', '\v', '\u00a0', '\ufeff', '[1]'], 3],
])('for all short texts made of %s, the JSON syntax check agrees with JSON.parse', (_, pieces, maxPieces) => {
  const isRight = (text: string) => (findJsonSyntaxError(text, 9) === undefined) === isJson(text)
  expect(smallTexts(pieces, maxPieces).filter((text) => !isRight(text))).toEqual([])
})

const wrongText = 'string with an invalid escape, a line break or no end'

test.each([
  ['value expected', ['^', ' \n^', '^tru', '[1,^]', '[^', '{"a":^}', '^01']],
  ['end of text expected', ['0 ^1', '[1] ^]']],
  ["comma or ']' expected", ['[1 ^2]', '[[]^}']],
  ["comma or '}' expected", ['{"a":1^]']],
  ['property name expected', ['{"a":1,^}', '{ ^a']],
  ['colon expected', ['{"a" ^1']],
  [wrongText, ['^"a', '{^"a', '[1,^"a\n"]', '[^"a\\x"]', '^"\\u00e9\\u00g"']],
  ['nested more than 2 levels deep', ['[{"a":^[', '[[],[],[^{']],
])('the JSON syntax error "%s" is at the mark ^ in each of the texts %j', (reason, texts) => {
  for (const marked of texts)
    expect(findJsonSyntaxError(marked.replace('^', ''), 2)).toEqual({ offset: marked.indexOf('^'), reason })
})

test.each([
  [' \n\t', 'it is empty'],
  ['{"a":1,}', 'line 1, column 8: property name expected'],
  ['\n[\nx', 'line 3, column 1: value expected'],
  ['[\n\n 1,\n  2 3]\n', "line 4, column 5: comma or ']' expected"],
  ['['.repeat(1001), 'line 1, column 1001: nested more than 1000 levels deep'],
  ['[\n]', 'line 2, column 2'],
])('the JSON syntax check reports the line and column of the error in %j', (text, expectedText) => {
  expect(describeJsonError(text)).toBe(expectedText)
})
