import { isUtf8 } from 'node:buffer'
import { usageError } from '../errors.ts'
import { maxTextLength } from '../wire/json/text-limit.ts'

/**
 * Decodes text and drops its byte order mark. Throws a usage error that names the first line that is not
 * UTF-8. `advice` is a hint for input that is not text. `firstLine` is the line number of the start of
 * `bytes`.
 */
export function decodeUtf8(bytes: Uint8Array, name: string, advice?: string, firstLine = 1): string {
  if (bytes.length > maxTextLength) throw createTextTooLongError(name)
  const text = tryDecodeUtf8(bytes)
  if (text !== undefined) return text
  const ways = advice === undefined ? describeUtf8Fix(bytes) : `${advice}; ${describeUtf8Fix(bytes)}`
  throw usageError(`${name}: not UTF-8 text on line ${firstLine + countValidLines(bytes)}: ${ways}`)
}

export function tryDecodeUtf8(bytes: Uint8Array): string | undefined {
  if (bytes.length > maxTextLength || !isUtf8(bytes)) return undefined
  // TextDecoder would first make a copy of two bytes per character, so Buffer decodes the text.
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()
  return text.startsWith('\ufeff') ? text.slice(1) : text
}

export const describeUtf8Fix = (bytes: Uint8Array): string =>
  `if it is text, iconv -f ${isUtf16(bytes) ? 'utf-16' : 'latin1'} -t utf-8 converts it`

/** Detects UTF-16 by its byte order mark, which PowerShell writes. */
export const isUtf16 = ([first, second]: Uint8Array): boolean =>
  (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)

export const isBlank = (bytes: Uint8Array): boolean =>
  bytes.every((byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d))

export const createTextTooLongError = (name: string) =>
  usageError(`${name}: longer than 512 MiB, the most that parley reads`)

function countValidLines(bytes: Uint8Array): number {
  let count = 0
  let start = 0
  for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, start)) {
    if (!isUtf8(bytes.subarray(start, end))) break
    count++
    start = end + 1
  }
  return count
}

const newline = 0x0a

const pngSignature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')

const sampleLength = 4100

export async function detectMimeType(bytes: Uint8Array): Promise<string | undefined> {
  const sample = bytes.subarray(0, sampleLength)
  // Loading the library takes time, and most images are PNG, so parley detects PNG itself. The library would
  // also need complete PNG chunks, but the sample may end inside a chunk.
  if (pngSignature.equals(sample.subarray(0, pngSignature.length))) return 'image/png'
  const { fileTypeFromBuffer } = await import('file-type')
  return (await fileTypeFromBuffer(sample))?.mime
}

/** A PDF file may be valid UTF-8, so callers check for PDF before they decode text. */
export const isPdf = (bytes: Uint8Array): boolean =>
  Buffer.from(bytes.subarray(0, 5)).toString('latin1') === '%PDF-'
