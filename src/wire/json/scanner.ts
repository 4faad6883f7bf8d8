const isBlank = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

/** The place of the first character from `start` on that is not blank. */
export function skipBlanks(text: string, start: number): number {
  let place = start
  while (isBlank(text.charCodeAt(place))) place++
  return place
}

/**
 * The place of the quote that closes a string, in a text or its bytes, -1 if there is none; `isEscaped` says that of the
 * first character.
 */
export function closingQuote(text: string | Buffer, start: number, isEscaped = false): number {
  for (let quote = text.indexOf('"', start); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    if (!isEscapedAt(text, quote, start, isEscaped)) return quote
  }
  return -1
}

/** Whether an odd number of backslashes comes right before a place. */
function isEscapedAt(text: string | Buffer, place: number, start: number, isEscaped: boolean): boolean {
  let first = place
  // It ends at the string's start at the latest, before which is its quote.
  while (text[first - 1] === '\\' || text[first - 1] === 0x5c) first--
  const isOdd = (place - first) % 2 === 1
  return first === start && isEscaped ? !isOdd : isOdd
}

/**
 * Goes over JSON text, which may come in pieces that are cut anywhere. `visit` is called with each bracket, comma and
 * line break outside of strings, and with each quote that opens a string; if it returns true, the walk ends. The text
 * may be anything, and each character is looked at once.
 */
type Walk = (piece: string, visit: (mark: string, place: number) => unknown, start?: number) => void

export function createWalk(): Walk {
  let isInString = false
  /** A backslash at the end of the piece before escapes what comes. */
  let isEscaped = false

  /** The place after the string's closing quote, or after the piece. */
  function leaveString(piece: string, start: number): number {
    const quote = closingQuote(piece, start, isEscaped)
    isInString = quote < 0
    isEscaped = isInString && isEscapedAt(piece, piece.length, start, isEscaped)
    return isInString ? piece.length : quote + 1
  }

  return (piece, visit, start = 0) => {
    let place = isInString ? leaveString(piece, start) : start
    while (place < piece.length) {
      const mark = marks[piece.charCodeAt(place++)]
      if (mark === undefined) continue
      if (visit(mark, place - 1) === true) return
      if (mark === '"') place = leaveString(piece, place)
    }
  }
}

/** The marks of a walk by their codes: to look each up is four times as fast as to search for the next by an expression. */
const marks = Array.from({ length: 128 }, (_, code) =>
  '"[]{},\n'.includes(String.fromCharCode(code)) ? String.fromCharCode(code) : undefined,
)

/** A value in an object or a list, as a place in the text. */
export interface Child {
  /** Of an object's field; `undefined` in a list. */
  name: string | undefined
  start: number
  end: number
}

/** The place after the value that begins at `start`, in a text that `JSON.parse` accepts. */
export function endOfValue(text: string, start: number): number {
  if (text[start] === '"') return endOfString(text, start)
  if (text[start] !== '{' && text[start] !== '[') return endOfScalar(text, start)
  let depth = 0
  let end = text.length
  createWalk()(
    text,
    (mark, place) => {
      depth += depthOf(mark)
      if (depth > 0) return false
      end = place + 1
      return true
    },
    start,
  )
  return end
}

function endOfString(text: string, start: number): number {
  const quote = closingQuote(text, start + 1)
  return quote < 0 ? text.length : quote + 1
}

const scalar = /[^\s,\]}]*/y

function endOfScalar(text: string, start: number): number {
  scalar.lastIndex = start
  scalar.test(text)
  return scalar.lastIndex
}

/** What a mark adds to the depth. */
const depthOf = (mark: string): number =>
  mark === '{' || mark === '[' ? 1 : mark === '}' || mark === ']' ? -1 : 0

/** The key from `start` on, before which may be blanks, in a text that `JSON.parse` accepts. */
export function keyAt(text: string, start: number): string {
  const place = skipBlanks(text, start)
  return JSON.parse(text.slice(place, endOfString(text, place)))
}

/** The values of the object or list that begins at `start`, in a text that `JSON.parse` accepts. */
export function* childrenOf(text: string, start: number): Generator<Child> {
  const isObject = text[start] === '{'
  let place = skipBlanks(text, start + 1)
  while (place < text.length && text[place] !== '}' && text[place] !== ']') {
    let name: string | undefined
    if (isObject) {
      const end = endOfString(text, place)
      name = keyAt(text, place)
      place = skipBlanks(text, skipBlanks(text, end) + 1)
    }
    const end = endOfValue(text, place)
    yield { name, start: place, end }
    place = skipBlanks(text, end)
    if (text[place] === ',') place = skipBlanks(text, place + 1)
  }
}

/** A field of the object that begins at `start`: of fields with one name the last. */
export const findChild = (text: string, start: number, key: string): Child | undefined =>
  [...childrenOf(text, start)].findLast(({ name }) => name === key)

/** The keys and values in a text that `JSON.parse` accepts, each as it is spelled but for the escapes of texts. */
export function* tokensIn(json: string): Generator<string> {
  for (let place = 0; place < json.length; place++) {
    if (/[\s[\]{},:]/.test(json.charAt(place))) continue
    const end = endOfValue(json, place)
    const token = json.slice(place, end)
    yield token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : token
    place = end - 1
  }
}

/**
 * Parses a text that `JSON.parse` accepts, with each number, `true`, `false` and `null` as its source text, since `JSON.parse`
 * rounds long numbers. A text of the input begins with a quote, so that it differs from these.
 */
export function parseWithSourceTexts(json: string): unknown {
  const parts: string[] = []
  for (let place = 0; place < json.length; ) {
    const char = json.charAt(place)
    const isToken = !/[\s[\]{},:]/.test(char)
    const end = isToken ? endOfValue(json, place) : place + 1
    const token = json.slice(place, end)
    parts.push(!isToken ? token : char === '"' ? `"\\"${token.slice(1)}` : `"${token}"`)
    place = end
  }
  return JSON.parse(parts.join(''))
}

/** Whether objects and lists are nested more than `most` deep. The text may be anything. */
export function isDeeperThan(text: string, most: number): boolean {
  if (text.length <= most) return false
  let depth = 0
  createWalk()(text, (mark) => {
    depth += depthOf(mark)
    return depth > most
  })
  return depth > most
}

/** A key that one object of the text has twice, if there is any. The text is one that `JSON.parse` accepts. */
export function findRepeatedKey(text: string): string | undefined {
  /** The keys of each object around a place; `undefined` for a list. */
  const around: (Set<string> | undefined)[] = []
  let repeated: string | undefined
  createWalk()(text, (mark, place) => {
    if (mark === '{') around.push(new Set())
    else if (mark === '[') around.push(undefined)
    else if (mark === '}' || mark === ']') around.pop()
    const keys = mark === '"' ? around.at(-1) : undefined
    const end = keys ? endOfString(text, place) : 0
    if (!keys || text[skipBlanks(text, end)] !== ':') return false
    const key = keyAt(text, place)
    if (keys.has(key)) repeated = key
    keys.add(key)
    return repeated !== undefined
  })
  return repeated
}
