import { expect, test } from 'vitest'
import { decodeUtf8, detectMimeType, isBlank } from '../../src/io/file-content.ts'
import { smallTexts } from '../wire/json/texts.ts'

const latin1 = (text: string) => Buffer.from(text, 'latin1')
const latin1Advice = 'if it is text, iconv -f latin1 -t utf-8 converts it'
const utf16Advice = 'if it is text, iconv -f utf-16 -t utf-8 converts it'

/** Returns the number of the first line that is not UTF-8, or `undefined`. */
function findInvalidLine(bytes: Buffer): number | undefined {
  const lines = bytes.toString('latin1').split('\n')
  const index = lines.findIndex((line) => Buffer.from(line, 'latin1').toString().includes('\ufffd'))
  return index < 0 ? undefined : index + 1
}

/** Bytes of characters of each length, complete and cut. */
const pieces = [
  'a',
  '\n',
  '\xc3\xa9',
  '\xe7\x8b\x90',
  '\xf0\x9f\xa6\x9c',
  '\xc3',
  '\xe7\x8b',
  '\xe0\xa4',
  '\xf0\x9f\xa6',
  '\x90',
  '\xff',
]

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
    const message = `x: not UTF-8 text on line ${line}: ${latin1Advice}`
    expect({ text, result: decodeOrMessage(bytes) }).toEqual({
      text,
      result: line === undefined ? bytes.toString() : message,
    })
  }
})

test('parley removes a byte order mark only from the start of a text, and keeps control characters', () => {
  expect(decodeUtf8(Buffer.from('\ufeffa\ufeff\0\x01'), 'x')).toBe('a\ufeff\0\x01')
})

const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le')
const place = 'x: not UTF-8 text on line 1'

test.each<[title: string, bytes: Uint8Array, message: string]>([
  ['an image', Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), `${place}: ${latin1Advice}`],
  ['UTF-16', utf16('a\0'), `${place}: ${utf16Advice}`],
  ['UTF-16 of the other byte order', utf16('a\0').swap16(), `${place}: ${utf16Advice}`],
  ['only the first byte of a UTF-16 byte order mark', latin1('\xffa'), `${place}: ${latin1Advice}`],
  ['only the second byte of a UTF-16 byte order mark', latin1('\xfea'), `${place}: ${latin1Advice}`],
])('the message about invalid UTF-8 suggests the conversion that fits %s', (_, bytes, message) =>
  expect(decodeOrMessage(bytes)).toBe(message),
)

test.each([
  ['', true],
  [' \t\n\v\f\r ', true],
  ['a', false],
  [' \b', false],
  ['\x0e ', false],
  ['\n\n!', false],
  ['\u00a0', false],
])('parley treats input as blank if it has only ASCII blanks: %j, %j', (text, expected) =>
  expect(isBlank(Buffer.from(text))).toBe(expected),
)

test('parley detects a PNG by its signature alone', async () => {
  const signature = Buffer.from('89504e470d0a1a0a', 'hex')
  expect(await detectMimeType(signature)).toBe('image/png')
  expect(await detectMimeType(signature.subarray(1))).toBeUndefined()
})
