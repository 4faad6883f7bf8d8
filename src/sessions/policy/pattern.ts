/** In characters. */
export const longestPattern = 1000
export const mostStars = 20

/** How far a star reaches: `narrow` stops it at what could make another command or another folder of it. */
export type Reach = 'any' | 'narrow'

/** Places of a text, from the first to the last. */
interface Span {
  from: number
  to: number
}

/** The last place that a star can reach from a place. */
type Stretch = (place: number) => number

/**
 * Makes a function that tells whether a whole text matches a pattern, in time linear in the text. With `narrow` a `*`
 * stands for text without what is listed in `stops` and without a `..` of a path, and `**` for any text.
 */
export function createMatcher(pattern: string, reach: Reach): (text: string) => boolean {
  const pieces = pattern.split(/(\*+)/)
  const [first = '', firstStar] = pieces
  const last = pieces.at(-1) as string
  if (firstStar === undefined) return (text) => text === pattern
  /** Each with the star after it. */
  const literals = pieces.slice(2, -1).flatMap((literal, index) => {
    if (index % 2 === 1) return []
    return [{ literal, borders: bordersOf(literal), star: pieces[index + 3] as string }]
  })
  return (text) => {
    const end = text.length - last.length
    if (end < first.length || !text.startsWith(first) || !text.endsWith(last)) return false
    // Most texts are short, and match few of many rules. In a long one this look-up may take longer than the search.
    if (text.length <= longestPattern && !literals.every(({ literal }) => text.includes(literal)))
      return false
    const nextStop = createStopFinder(text)
    const stretchOf = (star: string): Stretch =>
      reach === 'narrow' && star === '*' ? nextStop : () => text.length
    let places: Span[] = [{ from: first.length, to: stretchOf(firstStar)(first.length) }]
    for (const { literal, borders, star } of literals)
      places = findEnds(text, { literal, borders, end, places, stretch: stretchOf(star) })
    return places.some(({ from, to }) => from <= end && end <= to)
  }
}

interface Search {
  literal: string
  borders: readonly number[]
  /** The literal ends there or before. */
  end: number
  /** Where the literal may begin, in order. */
  places: readonly Span[]
  stretch: Stretch
}

/**
 * The places that the star after a literal reaches, in order. By the search of Knuth, Morris and Pratt, which reads no
 * character twice; what can bring nothing new is skipped.
 */
function findEnds(text: string, { literal, borders, end, places, stretch }: Search): Span[] {
  const found: Span[] = []
  /** How much of the literal stands before the place. */
  let length = 0
  /** The first span in which the literal may still begin. */
  let index = 0
  let place = places[0]?.from ?? end
  while (place < end) {
    while (length > 0 && text.charCodeAt(place) !== literal.charCodeAt(length))
      length = borders[length - 1] ?? 0
    if (text.charCodeAt(place) === literal.charCodeAt(length)) length++
    place++
    if (length < literal.length && place - length <= (places[index] as Span).to) continue
    if (length === literal.length) {
      const start = place - length
      length = borders[length - 1] ?? 0
      if ((places[index] as Span).from <= start && start <= (places[index] as Span).to)
        addSpan(found, { from: place, to: stretch(place) })
    }
    const reached = found.at(-1)?.to ?? 0
    const begin = Math.max(place - length, reached - literal.length + 1)
    while ((places[index]?.to ?? Infinity) < begin) index++
    const next = Math.max(begin, places[index]?.from ?? end)
    if (next <= place) continue
    place = next
    length = 0
  }
  return found
}

function addSpan(spans: Span[], { from, to }: Span): void {
  const top = spans.at(-1)
  if (!top || from > top.to + 1) spans.push({ from, to })
  else top.to = Math.max(top.to, to)
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

/** Makes a function that finds the first place, from a place on, that a narrow star does not cross. */
function createStopFinder(text: string): Stretch {
  const known = { from: 0, to: -1 }
  return (place) => {
    if (known.from <= place && place <= known.to) return known.to
    const found = [findFrom(stops, text, place), findFrom(parents, text, place)]
    known.from = place
    known.to = Math.min(...found)
    return known.to
  }
}

/** Where an expression matches from a place on, or is under way there; the text's end if it does not. */
function findFrom(expression: RegExp, text: string, place: number): number {
  expression.lastIndex = Math.max(place - 1, 0)
  for (;;) {
    const found = expression.exec(text)
    if (!found) return text.length
    if (found.index + found[0].length > place) return Math.max(found.index, place)
  }
}

/** What a narrow star stops at in a text, each once. */
export const stopsIn = (text: string): string[] => [
  ...new Set([stops, parents].flatMap((expression) => text.match(expression) ?? [])),
]
