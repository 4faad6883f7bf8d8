/** Numbers that look random and depend only on the texts given: the same prompt gets the same answer. */
export function createRandom(seeds: readonly string[]): () => number {
  let state = 0x811c9dc5
  for (const char of seeds.join('\n')) state = Math.imul(state ^ (char.codePointAt(0) ?? 0), 0x01000193)
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const digits = '0123456789abcdefghijklmnopqrstuvwxyz'

/** An id such as `msg_01h4…`. */
export function randomId(prefix: string, random: () => number): string {
  let id = `${prefix}_`
  for (let i = 0; i < 20; i++) id += digits[Math.floor(random() * digits.length)]
  return id
}

/** The tokens of a text: one for each four characters begun. */
export const tokensIn = (text: string): number => Math.ceil(text.length / 4)
