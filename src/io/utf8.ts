import { isUtf8 } from 'node:buffer'
import { usageError } from '../errors.ts'
import { longestText } from '../wire/json/body-text.ts'

/**
 * Decodes text without its byte order mark. Throws a usage error if it is too long, or not UTF-8: then with the place
 * of the first bad byte.
 */
export function decodeUtf8(bytes: Uint8Array, name: string): string {
  if (bytes.length > longestText) throw tooLongError(name)
  const text = tryDecodeUtf8(bytes)
  if (text !== undefined) return text
  const invalid = firstInvalid(bytes)
  const place = `byte ${invalid}, on line ${lineOf(bytes, invalid)}, is not valid`
  throw usageError(`${name}: not UTF-8 text: ${place}; ${utf8Advice(bytes)}`)
}

/** Decodes text, or returns `undefined` if the bytes are not UTF-8, or too long. */
export function tryDecodeUtf8(bytes: Uint8Array): string | undefined {
  if (bytes.length > longestText || !isUtf8(bytes)) return undefined
  // Unlike TextDecoder it makes no copy of two bytes a character first.
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()
  return text.startsWith('\ufeff') ? text.slice(1) : text
}

/** The advice for text that is not UTF-8. */
export const utf8Advice = (bytes: Uint8Array): string =>
  `if it is text, iconv -f ${isUtf16(bytes) ? 'utf-16' : 'latin1'} -t utf-8 converts it`

/** Whether bytes begin with the byte order mark of UTF-16. PowerShell writes such files. */
export const isUtf16 = ([first, second]: Uint8Array): boolean =>
  (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)

/** Whether there is nothing but blanks and line ends. */
export const isBlank = (bytes: Uint8Array): boolean =>
  bytes.every((byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d))

/** The failure of an input that is longer than any text can be. */
export const tooLongError = (name: string) =>
  usageError(`${name}: longer than 512 MiB, the most that parley reads`)

/** The line of a byte, from 1. */
const lineOf = (bytes: Uint8Array, offset: number): number =>
  bytes.subarray(0, offset).reduce((line, byte) => (byte === 0x0a ? line + 1 : line), 1)

const step = 64 * 1024

/** The offset of the first byte that does not belong to a character. */
function firstInvalid(bytes: Uint8Array): number {
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
