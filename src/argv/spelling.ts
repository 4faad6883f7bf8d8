import { closest, distance } from 'fastest-levenshtein'

/** A longer word is hardly a misspelling, and takes long to compare. */
const longest = 100

/** What a misspelt word probably means, as the end of a message: ` (did you mean x?)`, or nothing. */
export function didYouMean(word: string, candidates: readonly string[]): string {
  if (word.length > longest) return ''
  const candidate = closest(word, candidates)
  const isNear = distance(word, candidate) <= Math.max(2, word.length * 0.4)
  return isNear ? ` (did you mean ${candidate}?)` : ''
}
