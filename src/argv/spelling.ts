import { closest, distance } from 'fastest-levenshtein'

/** Longer words are not compared, because comparing them takes long and they are rarely misspellings. */
const maxWordLength = 100

export function suggestSpelling(word: string, candidates: readonly string[]): string {
  if (word.length > maxWordLength) return ''
  const candidate = closest(word, candidates)
  return isMisspelling(word, candidate) ? ` (did you mean ${candidate}?)` : ''
}

/** Allows one typo per three letters. Two swapped letters are one typo. */
function isMisspelling(word: string, candidate: string): boolean {
  const isSwapped = sorted(word) === sorted(candidate)
  const { length } = word.replace(/^-+/, '')
  return distance(word, candidate) - (isSwapped ? 1 : 0) <= Math.min(3, Math.floor(length / 3))
}

const sorted = (word: string) => [...word].sort().join('')
