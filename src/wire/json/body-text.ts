import { usageError } from '../../errors.ts'

/** Maximum string length of V8, in UTF-16 units. A body has at most as many bytes. */
export const maxTextLength = 0x1fffffe8

/** Returns the text that `spell` creates. Throws a usage error if it is too long for a string. */
export function createBodyText(spell: () => string): string {
  try {
    const text = spell()
    if (Buffer.byteLength(text) <= maxTextLength) return text
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
  throw usageError('the request is longer than 512 MiB, the most that can be sent')
}
