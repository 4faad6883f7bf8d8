import { expect, test } from 'vitest'
import { createTextDecoding } from '../../src/wire/charset.ts'

const latin1 = (text: string) => Buffer.from(text, 'latin1')
const utf16 = (text: string) => Buffer.from(text, 'utf16le')

/** Each piece of the text, with what is left at the end. */
function decode(contentType: string, bytes: Uint8Array, size = bytes.length): string[] {
  const decoding = createTextDecoding(contentType)
  const pieces: string[] = []
  for (let start = 0; start < bytes.length; start += size)
    pieces.push(decoding(bytes.subarray(start, start + size)))
  return [...pieces, decoding(new Uint8Array(), true)]
}

test.each<[contentType: string, bytes: Uint8Array | string, text: string]>([
  ['', 'schön 狐', 'schön 狐'],
  ['', latin1('a\xe9b'), 'a\ufffdb'],
  ['', '\ufeffa\n\ufeffb', 'a\n\ufeffb'],
  ['text/x; charset=utf-8', latin1('\xe9\n'), '\ufffd\n'],
  ['text/x; charset=UTF8', latin1('\xe9\n'), '\ufffd\n'],
  ['text/x; charset=utf8mb4', 'schön\n', 'schön\n'],
  // What is UTF-8 is read as that, whatever it is called.
  ['text/x; charset=latin1', 'schön 狐\nschön', 'schön 狐\nschön'],
  ['text/x; charset=latin1', '\ufeffschön', 'schön'],
  ['text/x; charset=latin1', '\ufeffa\n\ufeffb', 'a\n\ufeffb'],
  ['text/x; charset=klingon', 'schön\nschön', 'schön\nschön'],
  ['text/x; charset=x-utf-8', 'schön', 'schön'],
  ['text/x; charset=utf-16', 'schön\n', 'schön\n'],
  // From the first line on that is not, it is what it is called.
  ['text/x; charset=latin1', latin1('sch\xf6n'), 'schön'],
  ['text/x;CHARSET = "ISO-8859-1";a=b', latin1('sch\xf6n'), 'schön'],
  ['text/x; charset=latin1;a=b', latin1('sch\xf6n'), 'schön'],
  ['text/x; charset=latin1 ;a=b', latin1('sch\xf6n'), 'schön'],
  ['text/x; charset=latin1', latin1('plain\nsch\xf6n\n\xc3\xb6\n'), 'plain\nschön\nÃ¶\n'],
  ['text/x; charset=latin1', latin1('\n\xf6\n\n'), '\nö\n\n'],
  ['text/x; charset=utf-16', utf16('schön\nplain\n狐\u{10348}'), 'schön\nplain\n狐\u{10348}'],
  ['text/x; charset=utf-16', utf16('\ufeffplain\n'), 'plain\n'],
  ['text/x; charset=utf-16be', utf16('plain\n狐').swap16(), 'plain\n狐'],
  ['text/x; charset=gbk', latin1('\xba\xfc\n\xba\xfc'), '狐\n狐'],
  ['text/x; charset=gbk', latin1('\xba\xfc\n\xba'), '狐\n\ufffd'],
  ['text/x; charset=latin1', '', ''],
])('%j says how to read %j: as %j, however it is cut', (contentType, given, text) => {
  const bytes = Buffer.from(given)
  for (let size = 1; size <= bytes.length + 1; size++)
    expect({ size, text: decode(contentType, bytes, size).join('') }).toEqual({ size, text })
  expect(createTextDecoding(contentType)(bytes, true)).toBe(text)
})

test('what is certain comes at once: each character of UTF-8, else each whole line', () => {
  const text = Buffer.from('a狐\nb狐')
  expect(decode('', text, 3)).toEqual(['a', '狐\nb', '狐', ''])
  expect(decode('a/b; charset=utf8', text, 3)).toEqual(decode('', text, 3))
  expect(decode('a/b; charset=latin1', text, 3)).toEqual(['', 'a狐\n', '', 'b狐'])
  expect(decode('a/b; charset=latin1', latin1('\xe9\nb\xe9'), 1)).toEqual(['', 'é\n', '', '', 'bé'])
})

test.each([
  ['klingon', '\xe9'],
  ['x-utf-8', '\xe9'],
  ['utf8mb4', '\xe9'],
  ['klingon', 'plain\n\xe9\n'],
  ['klingon', 'zero\0'],
])('an unknown character set, %s, is a failure at the first line that needs it: %j', (charset, text) => {
  const message = `the answer is in an unknown character set, ${charset}`
  expect(() => createTextDecoding(`a/b; charset=${charset}`)(latin1(text), true)).toThrow(message)
})
