/** In characters. */
export const longestPattern = 1000
export const mostStars = 20

/** How far a star reaches: `narrow` stops it at what could make another command or another folder of it. */
export type Reach = 'any' | 'narrow'

/** Places of a text, from the first to the last. */
interface Range {
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
  const [first = '', firstStar, ...rest] = pattern.split(/(\*+)/)
  if (firstStar === undefined) return (text) => text === pattern
  const last = rest.pop() as string
  const literals = rest.filter((_, index) => index % 2 === 0)
  return (text) => {
    const end = text.length - last.length
    if (end < first.length || !text.startsWith(first) || !text.endsWith(last)) return false
    // Most texts match few of many rules, and this look-up is quick.
    if (!literals.every((literal) => text.includes(literal))) return false
    const nextStop = createStopFinder(text)
    const stretchOf = (star: string): Stretch =>
      reach === 'narrow' && star === '*' ? nextStop : () => text.length
    const begin = text.slice(0, end)
    let places: Range[] = [{ from: first.length, to: stretchOf(firstStar)(first.length) }]
    for (const [index, literal] of literals.entries())
      places = findEnds(begin, literal, places, stretchOf(rest[2 * index + 1] as string))
    return places.some(({ from, to }) => from <= end && end <= to)
  }
}

/** The places that the star after a literal reaches, in order. The literal begins at one of `starts`. */
function findEnds(text: string, literal: string, starts: readonly Range[], stretch: Stretch): Range[] {
  const ends: Range[] = []
  let start = -1
  for (const { from, to } of starts)
    for (;;) {
      // Skip what ends inside the last range: the star after it reaches no further than that range.
      const least = Math.max(from, (ends.at(-1)?.to ?? 0) - literal.length + 1)
      if (start < least) start = text.indexOf(literal, least)
      if (start < 0) return ends
      if (start > to) break
      const end = start + literal.length
      addRange(ends, { from: end, to: stretch(end) })
    }
  return ends
}

function addRange(spans: Range[], { from, to }: Range): void {
  const top = spans.at(-1)
  if (!top || from > top.to + 1) spans.push({ from, to })
  else top.to = Math.max(top.to, to)
}

/**
 * What a narrow star does not stand for: control characters, line ends, what shells read as their own, and a `..` that may
 * be one of a path: no name goes on at both its ends, as in `-I../x`.
 */
const stops =
  /[\p{C}\p{Zl}\p{Zp};|&$()<>`\\!{}%^'"#~*?[\]]|(?<![\p{L}\p{N}_.-])\.\.(?!\.)|(?<!\.)\.\.(?![\p{L}\p{N}_.-])/gu

/** Makes a function that finds the first place, from a place on, that a narrow star does not cross. */
function createStopFinder(text: string): Stretch {
  const known = { from: 0, to: -1 }
  return (place) => {
    if (place < known.from || known.to < place) {
      known.from = place
      known.to = findStop(text, place)
    }
    return known.to
  }
}

/** Where a stop begins from a place on, or the place if one has begun before it; the text's end if there is none. */
function findStop(text: string, place: number): number {
  stops.lastIndex = Math.max(place - 1, 0)
  for (let found = stops.exec(text); found; found = stops.exec(text))
    if (stops.lastIndex > place) return Math.max(found.index, place)
  return text.length
}

/** What a narrow star stops at in a text, each once. */
export const stopsIn = (text: string): string[] => [...new Set(text.match(stops))]
