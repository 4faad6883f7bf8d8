import { closest, distance } from 'fastest-levenshtein'

/** A longer word is hardly a misspelling, and takes long to compare. */
const longest = 100

/** What a misspelt word probably means, as the end of a message: ` (did you mean x?)`, or nothing. */
export function didYouMean(word: string, candidates: readonly string[]): string {
  if (word.length > longest) return ''
  const candidate = closest(word, candidates)
  return isNear(word, candidate) ? ` (did you mean ${candidate}?)` : ''
}

/** Whether there is at most one slip for every three letters. Letters that changed places are one slip. */
function isNear(word: string, candidate: string): boolean {
  const isSwapped = sorted(word) === sorted(candidate)
  const { length } = word.replace(/^-+/, '')
  return distance(word, candidate) - (isSwapped ? 1 : 0) <= Math.min(3, Math.floor(length / 3))
}

const sorted = (word: string) => [...word].sort().join('')
