/** A number of tokens; `null` if the service tells one that cannot be read, such as a text. */
export type TokenCount = number | null

/** `undefined` if nothing is told. */
export function readTokenCount(value: unknown): TokenCount | undefined {
  if (value === undefined || value === null) return undefined
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : null
}

/** A sum of which a part cannot be read is not known. */
export const addTokens = (one: TokenCount, other: TokenCount): TokenCount =>
  one === null || other === null ? null : one + other
