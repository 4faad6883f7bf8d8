import { usageError } from '../../errors.ts'

/** The longest string that V8 allows, in UTF-16 units; a body has at most as many bytes. */
export const longestText = 0x1fffffe8

/** The text of a body, as `spell` returns it. Throws a usage error if it is too long to be sent. */
export function spellBody(spell: () => string): string {
  try {
    const text = spell()
    if (Buffer.byteLength(text) <= longestText) return text
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
  throw usageError('the request is longer than 512 MiB, the most that can be sent')
}
