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
  ['^', 'value expected'],
  [' \n^', 'value expected'],
  ['^tru', 'value expected'],
  ['[1,^]', 'value expected'],
  ['[^', 'value expected'],
  ['{"a":^}', 'value expected'],
  ['^01', 'value expected'],
  ['0 ^1', 'end of text expected'],
  ['[1] ^]', 'end of text expected'],
  ['[1 ^2]', "comma or ']' expected"],
  ['[[]^}', "comma or ']' expected"],
  ['{"a":1^]', "comma or '}' expected"],
  ['{"a":1,^}', 'property name expected'],
  ['{ ^a', 'property name expected'],
  ['{"a" ^1', 'colon expected'],
  ['^"a', wrongText],
  ['{^"a', wrongText],
  ['[1,^"a\n"]', wrongText],
  ['[^"a\\x"]', wrongText],
  ['^"\\u00e9\\u00g"', wrongText],
  ['[{"a":^[', 'nested more than 2 levels deep'],
  ['[[],[],[^{', 'nested more than 2 levels deep'],
])('the JSON syntax error at the mark ^ in %j is "%s"', (marked, reason) => {
  expect(findJsonSyntaxError(marked.replace('^', ''), 2)).toEqual({ offset: marked.indexOf('^'), reason })
})

test.each([
  ['', 'it is empty'],
  [' \n\t', 'it is empty'],
  ['{"a":1,}', 'line 1, column 8: property name expected'],
  ['\n x', 'line 2, column 2: value expected'],
  ['[\nx', 'line 2, column 1: value expected'],
  ['[\n\n 1,\n  2 3]\n', "line 4, column 5: comma or ']' expected"],
  ['"a\n', 'line 1, column 1: string with an invalid escape, a line break or no end'],
  ['['.repeat(1001), 'line 1, column 1001: nested more than 1000 levels deep'],
  ['[\n]', 'line 2, column 2'],
])('the JSON syntax check reports the line and column of the error in %j', (text, expectedText) => {
  expect(describeJsonError(text)).toBe(expectedText)
})
