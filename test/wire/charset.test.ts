import { expect, test } from 'vitest'
import { createBodyTextDecoder, decodeBodyText, toUtf8 } from '../../src/wire/charset.ts'

const be = (text: string) => Buffer.from(text, 'utf16le').swap16()
const le = (text: string) => Buffer.from(text, 'utf16le')
const hex = (digits: string) => Buffer.from(digits.replaceAll(' ', ''), 'hex')

const rows: [charset: string, bytes: Uint8Array, text: string][] = [
  ['iso-8859-1', Buffer.from('{"é"}', 'latin1'), '{"é"}'],
  ['windows-1252', hex('22 80 93 94 81 9f 22'), '"€“”\x81Ÿ"'],
  ['latin1', hex('92 e9'), '’é'],
  ['iso-8859-15', hex('61 a4'), 'a€'],
  ['GBK', hex('22 c4 e3 ba c3 22'), '"你好"'],
  ['gb2312', hex('d6 d0 ce c4'), '中文'],
  ['shift_jis', hex('61 93 fa 96 7b'), 'a日本'],
  ['big5', hex('a4 a4 a4 e5'), '中文'],
  ['iso-2022-jp', hex('61 1b 24 42 46 7c 1b 28 42 62'), 'a日b'],
  ['utf-16', le('{"é€"}'), '{"é€"}'],
  ['utf-16', le('\ufeff{"é€"}'), '{"é€"}'],
  ['utf-16', be('\ufeff{"é€"}'), '{"é€"}'],
  ['utf-16', be('{"é€"}'), '{"é€"}'],
  ['utf-16be', be('{"é€🦊"}'), '{"é€🦊"}'],
  ['UTF-16LE', le('é€🦊'), 'é€🦊'],
  ['utf-16', Buffer.from('{"é狐"}'), '{"é狐"}'],
  ['utf-16', Buffer.from('{'), '{'],
  ['gbk', Buffer.from('plain'), 'plain'],
  ['gbk', Buffer.from('schön 狐'), 'schön 狐'],
  ['klingon', Buffer.from('schön 狐'), 'schön 狐'],
  ['klingon', hex('61 e9'), 'a\ufffd'],
  ['utf-8', Buffer.from('\ufeffé'), 'é'],
  ['utf-8', hex('61 e9'), 'a\ufffd'],
  ['gbk', hex(''), ''],
]

test.each(rows)('a whole body is decoded by its charset, or as UTF-8: %s %j', (charset, bytes, text) => {
  for (const type of [`application/json; charset=${charset}`, `text/plain;charset = "${charset}"; x=y`]) {
    expect(decodeBodyText(bytes, type)).toBe(text)
    expect(new TextDecoder().decode(toUtf8(bytes, type))).toBe(text)
  }
})

test.each(rows)('a streamed body is decoded the same however it is split: %s %j', (charset, bytes, text) => {
  for (const size of [1, 2, 3, 100]) {
    const decoder = createBodyTextDecoder(`text/event-stream; charset=${charset}`)
    let read = ''
    for (let start = 0; start < bytes.length; start += size)
      read += decoder.decode(bytes.subarray(start, start + size), { stream: true })
    expect(read + decoder.decode()).toBe(text)
  }
})

test.each<[what: string, charset: string, bytes: Uint8Array, isDamaged: boolean]>([
  ['UTF-8', 'utf-8', Buffer.from('aé狐🦊'), false],
  ['U+FFFD in the text', 'utf-8', Buffer.from('é\ufffd🦊\ufffd'), false],
  ['an invalid byte', 'utf-8', hex('c3 a9 ff c3 a9'), true],
  ['a continuation byte at the start', 'utf-8', hex('a9 61'), true],
  ['a continuation byte after U+FFFD', 'utf-8', hex('ef bf bd a9'), true],
  ['an incomplete character in the text', 'utf-8', hex('f0 9f a6 61'), true],
  ['an incomplete character at the end', 'utf-8', hex('61 f0 9f a6'), true],
  ['GBK', 'gbk', hex('c4 e3 0a'), false],
  ['half a character of GBK', 'gbk', hex('c4 e3 c4 0a'), true],
  ['GBK in UTF-8 after all', 'gbk', Buffer.from('a\ufffdé'), false],
  ['an unknown charset', 'klingon', hex('61 e9 62'), true],
])('invalid bytes of a body are reported however it is split: %s', (_, charset, bytes, isDamaged) => {
  for (const size of [1, 2, 3, 100]) {
    const decoder = createBodyTextDecoder(`text/event-stream; charset=${charset}`)
    for (let start = 0; start < bytes.length; start += size)
      decoder.decode(bytes.subarray(start, start + size), { stream: true })
    decoder.decode()
    expect([size, decoder.isDamaged()]).toEqual([size, isDamaged])
  }
})

test('a stream whose first non-ASCII character is UTF-8 is decoded as UTF-8 to its end', () => {
  const decoder = createBodyTextDecoder('text/event-stream; charset=gbk')
  expect(decoder.decode(Buffer.from('aéb'), { stream: true })).toBe('aéb')
  expect(decoder.ignoredCharset()).toBe('gbk')
  expect(decoder.decode(hex('c4 e3'), { stream: true }) + decoder.decode()).toBe('\ufffd\ufffd')
})

test('ASCII of a stream is decoded at once', () => {
  const decoder = createBodyTextDecoder('text/event-stream; charset=gbk')
  expect(decoder.decode(Buffer.from('data: x\n'), { stream: true })).toBe('data: x\n')
  expect(decoder.decode(hex('c4'), { stream: true })).toBe('')
  expect(decoder.decode(hex('e3 0a'), { stream: true })).toBe('你\n')
  expect(decoder.ignoredCharset()).toBeUndefined()
})

test('a whole body of several chunks is converted completely', () => {
  const text = `${'a'.repeat(65_535)}你好`.repeat(3)
  const gbk = Buffer.concat(
    Array.from({ length: 3 }, () => Buffer.concat([Buffer.from('a'.repeat(65_535)), hex('c4 e3 ba c3')])),
  )
  expect(new TextDecoder().decode(toUtf8(gbk, 'text/plain; charset=gbk'))).toBe(text)
})

test('a body in UTF-8 is not copied', () => {
  const bytes = Buffer.from('schön')
  for (const type of ['', 'text/plain', 'text/plain; charset=gbk', 'text/plain; charset=klingon'])
    expect(toUtf8(bytes, type)).toBe(bytes)
})
