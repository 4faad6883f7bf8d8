import { isUtf8 } from 'node:buffer'
import { usageError } from '../errors.ts'
import { maxTextLength } from '../wire/json/body-text.ts'

/**
 * Decodes text and drops its byte order mark. Throws a usage error if the text is too long or not UTF-8. The
 * error names the first invalid byte and its line. `advice` explains how to give other content.
 */
export function decodeUtf8(bytes: Uint8Array, name: string, advice?: string): string {
  if (bytes.length > maxTextLength) throw tooLongError(name)
  const text = tryDecodeUtf8(bytes)
  if (text !== undefined) return text
  const invalid = findInvalidByte(bytes)
  const place = `byte ${invalid}, on line ${findLineNumber(bytes, invalid)}, is not valid`
  const ways = advice === undefined ? utf8Advice(bytes) : `${advice}; ${utf8Advice(bytes)}`
  throw usageError(`${name}: not UTF-8 text: ${place}; ${ways}`)
}

/** Decodes text. Returns `undefined` if it is too long or not UTF-8. */
export function tryDecodeUtf8(bytes: Uint8Array): string | undefined {
  if (bytes.length > maxTextLength || !isUtf8(bytes)) return undefined
  // TextDecoder would first make a copy of two bytes per character, so Buffer decodes the text.
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()
  return text.startsWith('\ufeff') ? text.slice(1) : text
}

/** Returns advice for text that is not UTF-8. */
export const utf8Advice = (bytes: Uint8Array): string =>
  `if it is text, iconv -f ${isUtf16(bytes) ? 'utf-16' : 'latin1'} -t utf-8 converts it`

/** Returns whether the bytes begin with UTF-16's byte order mark, as PowerShell writes it. */
export const isUtf16 = ([first, second]: Uint8Array): boolean =>
  (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)

/** Returns whether the bytes are only blanks and line ends. */
export const isBlank = (bytes: Uint8Array): boolean =>
  bytes.every((byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d))

export const tooLongError = (name: string) =>
  usageError(`${name}: longer than 512 MiB, the most that parley reads`)

/** Returns the number of the line that contains a byte. */
const findLineNumber = (bytes: Uint8Array, offset: number): number =>
  bytes.subarray(0, offset).reduce((line, byte) => (byte === 0x0a ? line + 1 : line), 1)

const step = 64 * 1024

/** Returns the offset of the first byte that is not part of a valid character. */
function findInvalidByte(bytes: Uint8Array): number {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let at = 0
  for (let start = 0; start < bytes.length; start += step) {
    for (const char of decoder.decode(bytes.subarray(start, start + step), { stream: true })) {
      if (char === '\ufffd' && !Buffer.from(char).equals(bytes.subarray(at, at + 3))) return at
      at += Buffer.byteLength(char)
    }
  }
  return at
}
