import { usageError } from '../../errors.ts'

/** Maximum string length of V8, in UTF-16 units. Also the maximum size of a body, in bytes. */
export const maxTextLength = 0x1fffffe8

/** Throws a usage error if the text that `create` builds is too long for a string or a body. */
export function createTextWithinLimit(create: () => string): string {
  try {
    const text = create()
    if (Buffer.byteLength(text) <= maxTextLength) return text
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
  throw usageError('the request is longer than 512 MiB, the most that can be sent')
}
