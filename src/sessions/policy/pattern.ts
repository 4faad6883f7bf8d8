/** Maximum length of a pattern, in characters. */
export const maxPatternLength = 1000
export const maxStars = 20

/** Text that a `*` matches. `narrow` excludes text that could start another command or leave the folder. */
export type StarReach = 'any' | 'narrow'

/** A range of offsets, both ends included. */
interface Range {
  from: number
  to: number
}

/** Returns the last offset to which a star can extend from an offset. */
type StarEnd = (offset: number) => number

/**
 * Returns a function that matches a whole text against a pattern, in time linear in the text. With `narrow`,
 * `*` excludes the characters of `stops` and the `..` segment of a path; `**` matches any text.
 */
export function createMatcher(pattern: string, reach: StarReach): (text: string) => boolean {
  const [first = '', firstStar, ...rest] = pattern.split(/(\*+)/)
  if (firstStar === undefined) return (text) => text === pattern
  const last = rest.pop() as string
  const literals = rest.filter((_, index) => index % 2 === 0)
  return (text) => {
    const end = text.length - last.length
    if (end < first.length || !text.startsWith(first) || !text.endsWith(last)) return false
    // Most texts match few rules, so this fast check rejects most of them first.
    if (!literals.every((literal) => text.includes(literal))) return false
    const nextStop = createStopFinder(text)
    const getStarEnd = (star: string): StarEnd =>
      reach === 'narrow' && star === '*' ? nextStop : () => text.length
    const begin = text.slice(0, end)
    let ends: Range[] = [{ from: first.length, to: getStarEnd(firstStar)(first.length) }]
    for (const [index, literal] of literals.entries())
      ends = findEnds(begin, literal, ends, getStarEnd(rest[2 * index + 1] as string))
    return ends.some(({ from, to }) => from <= end && end <= to)
  }
}

/**
 * Returns the ranges in which the star after a literal can end, in order. The literal begins in one of
 * `starts`.
 */
function findEnds(text: string, literal: string, starts: readonly Range[], stretch: StarEnd): Range[] {
  const ends: Range[] = []
  let start = -1
  for (const { from, to } of starts)
    for (;;) {
      // Skips matches that end inside the last range, because the star after them extends no further than
      // that range.
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
 * Text that a narrow star does not match: control characters, line ends, shell metacharacters, and a `..`
 * that can be a path segment. In `-I../x` a letter precedes the `..`, so it is allowed.
 */
const stops =
  /[\p{C}\p{Zl}\p{Zp};|&$()<>`\\!{}%^'"#~*?[\]]|(?<![\p{L}\p{N}_.-])\.\.(?!\.)|(?<!\.)\.\.(?![\p{L}\p{N}_.-])/gu

/**
 * Returns a function that returns the offset of the next stop at or after an offset. The last result is
 * stored, because neighbouring offsets are often looked up one after another.
 */
function createStopFinder(text: string): StarEnd {
  const known = { from: 0, to: -1 }
  return (place) => {
    if (place < known.from || known.to < place) {
      known.from = place
      known.to = findStop(text, place)
    }
    return known.to
  }
}

/**
 * Returns the offset of the next stop, the given offset if it is inside a stop, or the length of the text.
 */
function findStop(text: string, place: number): number {
  stops.lastIndex = Math.max(place - 1, 0)
  for (let found = stops.exec(text); found; found = stops.exec(text))
    if (stops.lastIndex > place) return Math.max(found.index, place)
  return text.length
}

/** Returns the texts in a text that the `*` of an allow rule does not match, each once. */
export const findUnmatchedTexts = (text: string): string[] => [...new Set(text.match(stops))]
