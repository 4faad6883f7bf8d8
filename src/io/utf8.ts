import { usage } from '../errors.ts'
import { longestText } from '../wire/json/encoder.ts'

/**
 * Text must be UTF-8; a byte order mark is dropped. Throws a usage error for a text that is too long, and with the
 * offset of the first bad byte.
 */
export function decodeUtf8(bytes: Uint8Array, name: string): string {
  if (bytes.length > longestText) throw tooLong(name)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw usage(`${name}: not UTF-8 text: byte ${firstInvalid(bytes)} is not valid`)
  }
}

/** Of what is longer than any text can be. */
export const tooLong = (name: string) => usage(`${name}: longer than 512 MiB, the most that parley reads`)

const step = 64 * 1024

/** The first byte that makes the text before it invalid: its neighbourhood first, then by halves. */
function firstInvalid(bytes: Uint8Array): number {
  let valid = 0
  while (valid + step < bytes.length && isValidStart(bytes.subarray(valid, valid + step))) {
    valid += step
    // The next step begins where a character does.
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
