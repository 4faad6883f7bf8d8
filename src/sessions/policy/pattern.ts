/** A pattern in pieces: literal text, and what its stars stand for. */
type PatternToken = { literal: string } | { isNarrow: boolean }

/** In characters, and in stars: the time that a match takes grows with both. */
export const longestPattern = 1000
export const mostStars = 20

/** How far a star reaches: `narrow` stops it at what could make another command or another folder of it. */
export type Reach = 'any' | 'narrow'

/**
 * Makes what tells whether a whole text matches a pattern, in time linear in the text. With `narrow` a `*` stands for
 * text without what is listed in `stops` and without a `..` of a path, and `**` for any text.
 */
export function createMatcher(pattern: string, reach: Reach): (text: string) => boolean {
  const tokens = parse(pattern, reach)
  return (text) => {
    let isStop: Uint8Array | undefined
    /** Which places of the text the tokens so far can end at. */
    let ends = new Uint8Array(text.length + 1)
    ends[0] = 1
    for (const token of tokens) {
      if ('literal' in token) ends = afterLiteral(text, ends, token.literal)
      else {
        if (token.isNarrow) isStop ??= findStops(text)
        ends = afterStar(ends, token.isNarrow ? isStop : undefined)
      }
    }
    return ends[text.length] === 1
  }
}

function parse(pattern: string, reach: Reach): PatternToken[] {
  return pattern
    .split(/(\*+)/)
    .filter((piece) => piece !== '')
    .map((piece) =>
      piece[0] === '*' ? { isNarrow: reach === 'narrow' && piece === '*' } : { literal: piece },
    )
}

function afterStar(ends: Uint8Array<ArrayBuffer>, isStop: Uint8Array | undefined): Uint8Array<ArrayBuffer> {
  let isReached = 0
  return ends.map((isEnd, place) => {
    if (isStop?.[place - 1]) isReached = 0
    isReached ||= isEnd
    return isReached
  })
}

/** By the search of Knuth, Morris and Pratt: no text and no literal make it slow. */
function afterLiteral(text: string, ends: Uint8Array, literal: string): Uint8Array<ArrayBuffer> {
  const next = new Uint8Array(ends.length)
  const borders = bordersOf(literal)
  let length = 0
  for (let place = 0; place < text.length; place++) {
    while (length > 0 && text[place] !== literal[length]) length = borders[length - 1] as number
    if (text[place] === literal[length]) length++
    if (length < literal.length) continue
    const start = place + 1 - length
    if (ends[start]) next[place + 1] = 1
    length = borders[length - 1] as number
  }
  return next
}

/** For each beginning of a word, how long the longest shorter beginning is that is also its end. */
function bordersOf(word: string): number[] {
  const borders = [0]
  let length = 0
  for (let place = 1; place < word.length; place++) {
    while (length > 0 && word[place] !== word[length]) length = borders[length - 1] as number
    if (word[place] === word[length]) length++
    borders.push(length)
  }
  return borders
}

/** What a narrow star does not stand for: control characters, line ends, and what shells read as their own. */
const stops = /[\p{C}\p{Zl}\p{Zp};|&$()<>`\\!{}%^'"#~*?[\]]/gu

/** A `..` that may be one of a path: no name goes on at both its ends, as in `-I../x`. */
const parents = /(?<![\p{L}\p{N}_.-])\.\.(?!\.)|(?<!\.)\.\.(?![\p{L}\p{N}_.-])/gu

/** By place in the text, whether a narrow star stops there. */
function findStops(text: string): Uint8Array {
  const isStop = new Uint8Array(text.length)
  for (const expression of [stops, parents]) {
    for (const { index, 0: found } of text.matchAll(expression)) isStop.fill(1, index, index + found.length)
  }
  return isStop
}
