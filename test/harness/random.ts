/**
 * Returns a generator of pseudo-random numbers. Equal texts give equal numbers, so a failed run can be
 * repeated.
 */
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
