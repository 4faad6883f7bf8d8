import { usage } from '../errors.ts'
import { longestText } from '../wire/json/encoder.ts'

/**
 * Decodes text without its byte order mark. Throws a usage error if it is too long, or not UTF-8: then with the offset
 * of the first bad byte.
 */
export function decodeUtf8(bytes: Uint8Array, name: string): string {
  if (bytes.length > longestText) throw tooLong(name)
  const text = tryDecodeUtf8(bytes)
  if (text === undefined) throw usage(`${name}: not UTF-8 text: byte ${firstInvalid(bytes)} is not valid`)
  return text
}

/** The same, or `undefined` if the bytes are not UTF-8, or too long. */
export function tryDecodeUtf8(bytes: Uint8Array): string | undefined {
  if (bytes.length > longestText) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** The failure of an input that is longer than any text can be. */
export const tooLong = (name: string) => usage(`${name}: longer than 512 MiB, the most that parley reads`)

const step = 64 * 1024

/** The offset of the first byte that is not valid: first by steps, then by halves. */
function firstInvalid(bytes: Uint8Array): number {
  let valid = 0
  while (valid + step < bytes.length && isValidStart(bytes.subarray(valid, valid + step))) {
    valid += step
    // The next step begins at the start of a character.
    while (((bytes[valid] ?? 0) & 0xc0) === 0x80) valid--
  }
  const start = valid
  let invalid = Math.min(valid + step, bytes.length)
  while (valid + 1 < invalid) {
    const middle = (valid + invalid) >> 1
    if (isValidStart(bytes.subarray(start, middle))) valid = middle
    else invalid = middle
  }
  return valid
}

function isValidStart(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
    return true
  } catch {
    return false
  }
}
