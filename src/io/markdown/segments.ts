import { cjkCharacterSource } from '../spans.ts'
import { readInlineTokens } from './source.ts'

/**
 * An opening delimiter is printed as text if no closing delimiter follows within this number of characters.
 */
const maxOpenLength = 200

/** Limits the time for a text with many delimiters, because each check reads the open text again. */
const maxOpenChecks = 10

/** Longer words are cut, because the lexer is quadratic in the worst case. */
const maxWordLength = 4000

/**
 * Splits a paragraph that arrives in pieces into segments. A segment ends between words and outside of any
 * open delimiter, so later text cannot change its layout. The segments depend only on the text, not on the
 * pieces.
 */
export class ParagraphSplitter {
  #rest = ''
  #wordStart = 0
  #searchStart = 1
  /** Number of checks of `#rest` that found an open delimiter. */
  #openChecks = 0

  split(added: string, isEnd: boolean): string[] {
    this.#rest += added
    const segments: string[] = []
    for (let end = this.#findWordEnd(); end !== undefined; end = this.#findWordEnd())
      if (this.#isComplete(end)) segments.push(this.#cutOff(end))
    if (isEnd && this.#rest !== '') segments.push(this.#cutOff(this.#rest.length))
    return segments
  }

  #findWordEnd(): number | undefined {
    const limit = this.#wordStart + maxWordLength
    // A search from inside a surrogate pair would begin before the pair and find the same end again.
    wordEnd.lastIndex = lowSurrogate.test(this.#rest[this.#searchStart] ?? '')
      ? this.#searchStart + 1
      : this.#searchStart
    const { index: end = Infinity } = wordEnd.exec(this.#rest.slice(0, limit + 1)) ?? {}
    if (end <= limit) return end
    if (this.#rest.length > limit) return lowSurrogate.test(this.#rest[limit] as string) ? limit + 1 : limit
    this.#searchStart = Math.max(this.#searchStart, this.#rest.length)
    return undefined
  }

  #isComplete(end: number): boolean {
    const word = this.#rest.slice(this.#wordStart, end)
    this.#wordStart = end
    this.#searchStart = end + 1
    const mayBeOpen = end <= maxOpenLength && this.#openChecks < maxOpenChecks
    if (mayBeOpen && this.#openChecks > 0 && !mayClose.test(word)) return false
    // The character after the word decides whether `*` or `_` at its end closes emphasis.
    const isOpen = mayBeOpen && hasOpenDelimiter(this.#rest.slice(0, end + 1))
    if (isOpen) this.#openChecks++
    return !isOpen
  }

  #cutOff(end: number): string {
    const segment = this.#rest.slice(0, end)
    this.#rest = this.#rest.slice(end)
    this.#wordStart = 0
    this.#searchStart = 1
    this.#openChecks = 0
    return segment
  }
}

/**
 * Matches the end of a word. Also matches after a line break, so that a finished row does not wait for the
 * next row. Does not match after a backslash at the end of a line, because the lexer reads this hard line
 * break together with the next line.
 */
const wordEnd = new RegExp(`(?<=[^\\s\\\\])(?=\\s)|(?<=(?<!\\\\)\\n)|(?<=\\S)(?=${cjkCharacterSource})`, 'gu')
const lowSurrogate = /[\udc00-\udfff]/

const mayClose = /[`>)\]]|[^\s*_~][*_~]/

const delimiter = /[*_~`<[]/

const openDelimiter =
  /\*+(?=[^\s*])|~~+(?=[^\s~])|(?<![\p{L}\p{N}])_+(?=[^\s_])|`|<(?=[a-zA-Z/!?])|\[[^\]]*(?:$|\]\([^)]*$)/u

/**
 * Returns whether the text has a delimiter that later text may close. The lexer returns such a delimiter in a
 * token of type `text`.
 */
function hasOpenDelimiter(text: string): boolean {
  if (!delimiter.test(text)) return false
  const tokens = readInlineTokens(text)
  return tokens.some(({ type, raw }, index) => {
    // An open delimiter may precede another token, as in `***a** b*`. The pattern requires a character after
    // the delimiter, so `x` stands for that token.
    const isLast = index === tokens.length - 1
    return type === 'text' && openDelimiter.test(isLast ? raw : `${raw}x`)
  })
}
