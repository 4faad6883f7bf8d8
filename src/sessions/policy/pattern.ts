export const maxPatternLength = 1000
export const maxPatternStars = 20

/**
 * Texts that a `*` may match. `narrow` excludes texts that could start another shell command or leave the
 * folder.
 */
type StarReach = 'any' | 'narrow'

interface Range {
  from: number
  to: number
}

/** Returns the largest offset at which a star's match can end if the match begins at `offset`. */
type StarEndFinder = (offset: number) => number

/**
 * Returns a function that matches a whole text against a pattern, in time linear in the length of the text.
 * If `reach` is `narrow`, a `*` does not match the texts in `stops`. `**` matches any text.
 */
export function createPatternMatcher(pattern: string, reach: StarReach): (text: string) => boolean {
  const [first = '', firstStar, ...rest] = pattern.split(/(\*+)/)
  if (firstStar === undefined) return (text) => text === pattern
  const last = rest.pop() as string
  const literals = rest.filter((_, index) => index % 2 === 0)
  return (text) => {
    const end = text.length - last.length
    if (end < first.length || !text.startsWith(first) || !text.endsWith(last)) return false
    // Most texts do not match, and this fast check rejects most of them.
    if (!literals.every((literal) => text.includes(literal))) return false
    const nextStop = createStopFinder(text)
    const getStarEnd = (star: string): StarEndFinder =>
      reach === 'narrow' && star === '*' ? nextStop : () => text.length
    const begin = text.slice(0, end)
    let ends: Range[] = [{ from: first.length, to: getStarEnd(firstStar)(first.length) }]
    for (const [index, literal] of literals.entries())
      ends = findEnds(begin, literal, ends, getStarEnd(rest[2 * index + 1] as string))
    return ends.some(({ from, to }) => from <= end && end <= to)
  }
}

/**
 * Finds a literal at the offsets in `starts`. Returns, in order, the ranges of offsets at which the match of
 * the star after the literal can end.
 */
function findEnds(
  text: string,
  literal: string,
  starts: readonly Range[],
  getStarEnd: StarEndFinder,
): Range[] {
  const ends: Range[] = []
  let start = -1
  for (const { from, to } of starts)
    for (;;) {
      // A match of the literal that ends inside the last range adds no offsets to `ends`, so the search skips
      // it.
      const least = Math.max(from, (ends.at(-1)?.to ?? 0) - literal.length + 1)
      if (start < least) start = text.indexOf(literal, least)
      if (start < 0) return ends
      if (start > to) break
      const end = start + literal.length
      addRange(ends, { from: end, to: getStarEnd(end) })
    }
  return ends
}

function addRange(ranges: Range[], { from, to }: Range): void {
  const last = ranges.at(-1)
  if (!last || from > last.to + 1) ranges.push({ from, to })
  else last.to = Math.max(last.to, to)
}

/**
 * Texts that a narrow `*` does not match: control characters, line breaks, shell metacharacters, and a `..`
 * that can be a path segment. In `-I../x`, a letter precedes the `..`, so `*` matches this `..`.
 */
const stops =
  /[\p{C}\p{Zl}\p{Zp};|&$()<>`\\!{}%^'"#~*?[\]]|(?<![\p{L}\p{N}_.-])\.\.(?!\.)|(?<!\.)\.\.(?![\p{L}\p{N}_.-])/gu

/**
 * Creates a function that finds the next match of `stops` after an offset. The function stores its last
 * result, because a new search for each of many neighboring offsets would take quadratic time.
 */
function createStopFinder(text: string): StarEndFinder {
  const last = { from: 0, to: -1 }
  return (offset) => {
    if (offset < last.from || last.to < offset) {
      last.from = offset
      last.to = findStop(text, offset)
    }
    return last.to
  }
}

/**
 * Returns the offset of the next match of `stops`. Returns `offset` itself if it is inside a match, and the
 * length of the text if no match follows.
 */
function findStop(text: string, offset: number): number {
  stops.lastIndex = Math.max(offset - 1, 0)
  for (let found = stops.exec(text); found; found = stops.exec(text))
    if (stops.lastIndex > offset) return Math.max(found.index, offset)
  return text.length
}

export const findStarStops = (text: string): string[] => [...new Set(text.match(stops))]
