const isBlank = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

export function skipBlanks(text: string, start: number): number {
  let place = start
  while (isBlank(text.charCodeAt(place))) place++
  return place
}

/**
 * Returns -1 if no quote closes the string. `start` is inside the string. `isEscaped` means that a backslash
 * precedes `start`.
 */
export function findClosingQuote(text: string | Buffer, start: number, isEscaped = false): number {
  for (let quote = text.indexOf('"', start); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    if (!isEscapedAt(text, quote, start, isEscaped)) return quote
  }
  return -1
}

function isEscapedAt(text: string | Buffer, place: number, start: number, isEscaped: boolean): boolean {
  let first = place
  // The loop stops at the start of the string, because a quote precedes it.
  while (text[first - 1] === '\\' || text[first - 1] === 0x5c) first--
  const isOdd = (place - first) % 2 === 1
  return first === start && isEscaped ? !isOdd : isOdd
}

/**
 * Scans JSON text, which may arrive in pieces. Calls `visit` for each bracket, comma and line break outside
 * of strings, and for each quote that opens a string. Ends if `visit` returns true. The text may be invalid.
 * Each character is read once.
 */
type Scan = (piece: string, visit: (mark: string, place: number) => unknown, start?: number) => void

export function createScanner(): Scan {
  let isInString = false
  /** The previous piece ended with a backslash that escapes the next character. */
  let isEscaped = false

  function skipString(piece: string, start: number): number {
    const quote = findClosingQuote(piece, start, isEscaped)
    isInString = quote < 0
    isEscaped = isInString && isEscapedAt(piece, piece.length, start, isEscaped)
    return isInString ? piece.length : quote + 1
  }

  return (piece, visit, start = 0) => {
    let place = isInString ? skipString(piece, start) : start
    while (place < piece.length) {
      const mark = marks[piece.charCodeAt(place++)]
      if (mark === undefined) continue
      if (visit(mark, place - 1) === true) return
      if (mark === '"') place = skipString(piece, place)
    }
  }
}

/** A table lookup per character is four times faster than a regular expression. */
const marks = Array.from({ length: 128 }, (_, code) =>
  '"[]{},\n'.includes(String.fromCharCode(code)) ? String.fromCharCode(code) : undefined,
)

export interface ChildRange {
  name: string | undefined
  start: number
  end: number
}

/** `JSON.parse` must accept the text. */
export function findEndOfValue(text: string, start: number): number {
  if (text[start] === '"') return findEndOfString(text, start)
  if (text[start] !== '{' && text[start] !== '[') return findEndOfScalar(text, start)
  let depth = 0
  let end = text.length
  createScanner()(
    text,
    (mark, place) => {
      depth += getDepthChange(mark)
      if (depth > 0) return false
      end = place + 1
      return true
    },
    start,
  )
  return end
}

function findEndOfString(text: string, start: number): number {
  const quote = findClosingQuote(text, start + 1)
  return quote < 0 ? text.length : quote + 1
}

const scalar = /[^\s,\]}]*/y

function findEndOfScalar(text: string, start: number): number {
  scalar.lastIndex = start
  scalar.test(text)
  return scalar.lastIndex
}

const getDepthChange = (mark: string): number =>
  mark === '{' || mark === '[' ? 1 : mark === '}' || mark === ']' ? -1 : 0

/** Blanks may precede the key. `JSON.parse` must accept the text. */
export function readKey(text: string, start: number): string {
  const place = skipBlanks(text, start)
  return JSON.parse(text.slice(place, findEndOfString(text, place)))
}

/** `JSON.parse` must accept the text. */
export function* listChildren(text: string, start: number): Generator<ChildRange> {
  const isObject = text[start] === '{'
  let place = skipBlanks(text, start + 1)
  while (place < text.length && text[place] !== '}' && text[place] !== ']') {
    let name: string | undefined
    if (isObject) {
      const end = findEndOfString(text, place)
      name = readKey(text, place)
      place = skipBlanks(text, skipBlanks(text, end) + 1)
    }
    const end = findEndOfValue(text, place)
    yield { name, start: place, end }
    place = skipBlanks(text, end)
    if (text[place] === ',') place = skipBlanks(text, place + 1)
  }
}

/** If a name occurs twice, the last one counts. */
export const findChild = (text: string, start: number, key: string): ChildRange | undefined =>
  [...listChildren(text, start)].findLast(({ name }) => name === key)

/**
 * `JSON.parse` must accept the text. Strings lose unneeded escapes, and other scalars keep their source text.
 */
export function* listNamesAndScalars(json: string): Generator<string> {
  for (let place = 0; place < json.length; place++) {
    if (/[\s[\]{},:]/.test(json.charAt(place))) continue
    const end = findEndOfValue(json, place)
    const token = json.slice(place, end)
    yield token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : token
    place = end - 1
  }
}

/**
 * `JSON.parse` must accept the text. Numbers, `true`, `false` and `null` become their source text, because
 * `JSON.parse` rounds long numbers. Strings get a leading quote, which distinguishes them from these texts.
 */
export function parseWithSourceTexts(json: string): unknown {
  const parts: string[] = []
  for (let place = 0; place < json.length; ) {
    const char = json.charAt(place)
    const isToken = !/[\s[\]{},:]/.test(char)
    const end = isToken ? findEndOfValue(json, place) : place + 1
    const token = json.slice(place, end)
    parts.push(!isToken ? token : char === '"' ? `"\\"${token.slice(1)}` : `"${token}"`)
    place = end
  }
  return JSON.parse(parts.join(''))
}

/** The text need not be valid. */
export function isDeeperThan(text: string, maxDepth: number): boolean {
  if (text.length <= maxDepth) return false
  let depth = 0
  createScanner()(text, (mark) => {
    depth += getDepthChange(mark)
    return depth > maxDepth
  })
  return depth > maxDepth
}

/** The key occurs twice in one object. `JSON.parse` must accept the text. */
export function findRepeatedKey(text: string): string | undefined {
  const around: (Set<string> | undefined)[] = []
  let repeated: string | undefined
  createScanner()(text, (mark, place) => {
    if (mark === '{') around.push(new Set())
    else if (mark === '[') around.push(undefined)
    else if (mark === '}' || mark === ']') around.pop()
    const keys = mark === '"' ? around.at(-1) : undefined
    const end = keys ? findEndOfString(text, place) : 0
    if (!keys || text[skipBlanks(text, end)] !== ':') return false
    const key = readKey(text, place)
    if (keys.has(key)) repeated = key
    keys.add(key)
    return repeated !== undefined
  })
  return repeated
}
