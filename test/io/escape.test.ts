import { expect, test } from 'vitest'
import {
  disableInlineCiCommands,
  escapeControls,
  escapeControlsInJson,
  toOneLine,
} from '../../src/io/escape.ts'

const harmless = '\t\n ~\xa0\u2029\u202f\u2065\u206aé😀'

test.each([
  ['C0 control characters as caret notation', '\0\x07\x08\x0b\r\x1b\x1f', '^@^G^H^K^M^[^_'],
  ['DEL and C1 control characters as escapes', '\x7f\x80\x85\x9f', '^?\\u0080\\u0085\\u009f'],
  ['characters that reorder text as escapes', '\u202a\u202e\u2066\u2069', '\\u202a\\u202e\\u2066\\u2069'],
  ['harmless characters unchanged', harmless, harmless],
])('on a terminal, parley prints %s', (_, text, shown) => {
  expect(escapeControls(text)).toBe(shown)
  expect(escapeControls(`${text}a${text}`)).toBe(`${shown}a${shown}`)
})

test('parley escapes every control character in JSON with four digits', () => {
  expect(escapeControlsInJson('"\x1b\x7f\x9f\u202e\t\n~"')).toBe('"\\u001b\\u007f\\u009f\\u202e\t\n~"')
})

test.each<[text: string, length: number, shown: string]>([
  [' \r\n a \t\n b\u2028c \n', 9, 'a b c'],
  ['abcde', 5, 'abcde'],
  ['abcdef', 5, 'abcd…'],
  ['😀😀😀😀😀', 5, '😀😀😀😀😀'],
  ['😀😀😀😀😀😀', 5, '😀😀😀😀…'],
  ['ab\x1b[31m', 8, 'ab^[[31m'],
  // A text with unread characters counts as shortened, even if they are all blank.
  [`ab${' '.repeat(18)}`, 5, 'ab'],
  [`ab${' '.repeat(19)}`, 5, 'ab…'],
  // A character that is cut in half is dropped.
  [`${' '.repeat(19)}😀`, 5, '…'],
])('parley shortens %j to one line of at most %i characters: %j', (text, length, shown) => {
  expect(toOneLine(text, length)).toBe(shown)
})

test.each([
  ['a ##[group]b ###[endgroup]', 'a # #[group]b ## #[endgroup]'],
  ['##vso[task.complete]##VSO[x]', '# #vso[task.complete]# #VSO[x]'],
  ['##[[x]', '# #[[x]'],
  ['## [x] #[x] ##vso.x[y] ##1[x] ##vso', '## [x] #[x] ##vso.x[y] ##1[x] ##vso'],
])('parley disables the runner commands of GitHub and Azure in %j', (text, shown) => {
  expect(disableInlineCiCommands(text)).toBe(shown)
})
