import { isObject } from './json/parse.ts'

/** Token counts by the names of the report. Counts that the service did not send are absent. */
export interface TokenCounts {
  inputTokens?: number
  outputTokens?: number
  cacheReadInputTokens?: number
  cacheCreationInputTokens?: number
}

/** Reads a number of tokens. Returns `undefined` for any other value. */
export const readTokenCount = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined

/** Sums the counts that are present. Returns `undefined` if none is. */
export function sumTokens(...counts: (number | undefined)[]): number | undefined {
  const present = counts.filter((count) => count !== undefined)
  return present.length > 0 ? present.reduce((sum, count) => sum + count, 0) : undefined
}

/**
 * Reads the usage of a message or a session. Services report the tokens written to a cache as one number, or
 * as one number per lifetime.
 */
export function readTokenCounts(usage: unknown): TokenCounts {
  if (!isObject(usage)) return {}
  const { cache_creation: parts, cache_creation_input_tokens: written } = usage
  const split = isObject(parts) ? sumTokens(...Object.values(parts).map(readTokenCount)) : undefined
  return {
    inputTokens: readTokenCount(usage.input_tokens),
    outputTokens: readTokenCount(usage.output_tokens),
    cacheReadInputTokens: readTokenCount(usage.cache_read_input_tokens),
    // Some services send 0 next to parts with a greater sum, so the sum counts.
    cacheCreationInputTokens: split ?? readTokenCount(written),
  }
}
