import { expect, test } from 'vitest'
import { decodeUtf8, detectMimeType, isBlank } from '../../src/io/file-content.ts'
import { smallTexts } from '../wire/json/texts.ts'

const latin1 = (text: string) => Buffer.from(text, 'latin1')

/** Returns the number of the first line that is not UTF-8, or `undefined`. */
function findInvalidLine(bytes: Buffer): number | undefined {
  const lines = bytes.toString('latin1').split('\n')
  const index = lines.findIndex((line) => Buffer.from(line, 'latin1').toString().includes('\ufffd'))
  return index < 0 ? undefined : index + 1
}

/** Bytes of characters of each length, complete and cut. */
const cut = ['\xc3', '\xe7\x8b', '\xe0\xa4', '\xf0\x9f\xa6', '\x90', '\xff']
const pieces = ['a', '\n', '\xc3\xa9', '\xe7\x8b\x90', '\xf0\x9f\xa6\x9c', ...cut]

const decodeOrMessage = (bytes: Uint8Array) => {
  try {
    return decodeUtf8(bytes, 'x')
  } catch (error) {
    return (error as Error).message
  }
}

test('the message about invalid UTF-8 names the first invalid line', () => {
  for (const text of smallTexts(pieces, 3)) {
    const bytes = latin1(text)
    const line = findInvalidLine(bytes)
    const message = `x: not UTF-8 text on line ${line}: if it is text, iconv -f latin1 -t utf-8 converts it`
    expect(decodeOrMessage(bytes), text).toBe(line === undefined ? bytes.toString() : message)
  }
})

test('parley removes a byte order mark only from the start of a text, and keeps control characters', () => {
  expect(decodeUtf8(Buffer.from('\ufeffa\ufeff\0\x01'), 'x')).toBe('a\ufeff\0\x01')
})

const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le')

test.each<[what: string, charset: string, bytes: Uint8Array]>([
  ['an image', 'latin1', Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')],
  ['UTF-16', 'utf-16', utf16('a\0')],
  ['UTF-16 of the other byte order', 'utf-16', utf16('a\0').swap16()],
  ['text with only the first byte of a UTF-16 byte order mark', 'latin1', latin1('\xffa')],
  ['text with only the first byte of the other byte order mark', 'latin1', latin1('\xfea')],
  ['text with only the second byte of a UTF-16 byte order mark', 'latin1', latin1('a\xfe')],
])('for %s, the message about invalid UTF-8 suggests iconv -f %s', (_, charset, bytes) =>
  expect(decodeOrMessage(bytes)).toBe(
    `x: not UTF-8 text on line 1: if it is text, iconv -f ${charset} -t utf-8 converts it`,
  ),
)

test('the message about invalid UTF-8 first gives the advice for input that is not text, then suggests iconv', () => {
  expect(() => decodeUtf8(latin1('\xff'), 'x', 'for an image, use -f')).toThrow(
    'x: not UTF-8 text on line 1: for an image, use -f; if it is text, iconv',
  )
})

test.each([
  ['', 'blank'],
  [' \t\n\v\f\r ', 'blank'],
  [' \b', 'not blank'],
  ['\x0e ', 'not blank'],
  ['\n\n!', 'not blank'],
  ['\u00a0', 'not blank'],
])('parley treats %j as %s', (text, kind) => expect(isBlank(Buffer.from(text))).toBe(kind === 'blank'))

test('parley detects a PNG by its signature alone', async () => {
  const signature = Buffer.from('89504e470d0a1a0a', 'hex')
  expect(await detectMimeType(signature)).toBe('image/png')
  expect(await detectMimeType(signature.subarray(1))).toBeUndefined()
})
