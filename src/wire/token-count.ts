import { isObject } from './json/parse.ts'

/** A number of tokens; `null` if the service tells one that cannot be read, such as a text. */
export type TokenCount = number | null

/** Tokens by the names that reports have; what a service does not tell is absent. */
export interface TokenCounts {
  inputTokens?: TokenCount
  outputTokens?: TokenCount
  cacheReadInputTokens?: TokenCount
  cacheCreationInputTokens?: TokenCount
}

/** `undefined` if nothing is told. */
export function readTokenCount(value: unknown): TokenCount | undefined {
  if (value === undefined || value === null) return undefined
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : null
}

/** A sum of which a part cannot be read is not known. */
export const addTokens = (one: TokenCount, other: TokenCount): TokenCount =>
  one === null || other === null ? null : one + other

/** The sum of those that are told; `undefined` if none is. */
export function sumOf(...counts: (TokenCount | undefined)[]): TokenCount | undefined {
  const told = counts.filter((count) => count !== undefined)
  return told.length > 0 ? told.reduce(addTokens) : undefined
}

/** Reads the usage of a message or a session. What is written to a cache is one number, or one for each lifetime. */
export function readUsedTokens(usage: unknown): TokenCounts {
  if (!isObject(usage)) return {}
  const { cache_creation: parts, cache_creation_input_tokens: whole } = usage
  const written = readTokenCount(whole)
  const split = isObject(parts) ? sumOf(...Object.values(parts).map(readTokenCount)) : undefined
  return {
    inputTokens: readTokenCount(usage.input_tokens),
    outputTokens: readTokenCount(usage.output_tokens),
    cacheReadInputTokens: readTokenCount(usage.cache_read_input_tokens),
    // Some services tell 0 beside parts that are more.
    cacheCreationInputTokens: split ?? (written === undefined ? split : written),
  }
}
