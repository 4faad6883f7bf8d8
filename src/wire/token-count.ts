import { isObject } from './json/parse.ts'

/** A number of tokens, or `null` if the service sent a value that is not a number. */
export type TokenCount = number | null

export interface TokenCounts {
  inputTokens?: TokenCount
  outputTokens?: TokenCount
  cacheReadInputTokens?: TokenCount
  cacheCreationInputTokens?: TokenCount
}

export function readTokenCount(value: unknown): TokenCount | undefined {
  if (value === undefined || value === null) return undefined
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : null
}

export const addTokenCounts = (one: TokenCount, other: TokenCount): TokenCount =>
  one === null || other === null ? null : one + other

export function sumTokenCounts(...counts: (TokenCount | undefined)[]): TokenCount | undefined {
  const present = counts.filter((count) => count !== undefined)
  return present.length > 0 ? present.reduce(addTokenCounts) : undefined
}

/** Returns `undefined` if the input or the output is missing, because a partial sum would look complete. */
export const computeTotalTokens = (counts: TokenCounts): TokenCount | undefined =>
  counts.inputTokens === undefined || counts.outputTokens === undefined
    ? undefined
    : sumTokenCounts(...Object.values(counts))

/** Returns the total. If the total is unknown, returns the sum of the known input and output tokens, a minimum. */
export function countKnownTokens(counts: Record<string, unknown>): number {
  const read = (name: keyof TokenCounts | 'totalTokens') => readTokenCount(counts[name])
  return read('totalTokens') ?? (read('inputTokens') ?? 0) + (read('outputTokens') ?? 0)
}

/**
 * Reads the `usage` of an answer or a session. Services report the tokens written to a cache as one number,
 * or as one number for each cache lifetime.
 */
export function readTokenCounts(usage: unknown): TokenCounts {
  if (!isObject(usage)) return {}
  const { cache_creation: parts, cache_creation_input_tokens: whole } = usage
  const written = readTokenCount(whole)
  const split = isObject(parts) ? sumTokenCounts(...Object.values(parts).map(readTokenCount)) : undefined
  return {
    inputTokens: readTokenCount(usage.input_tokens),
    outputTokens: readTokenCount(usage.output_tokens),
    cacheReadInputTokens: readTokenCount(usage.cache_read_input_tokens),
    // Some services send a total of 0 next to larger parts, so the sum of the parts is used.
    cacheCreationInputTokens: split ?? (written === undefined ? split : written),
  }
}
