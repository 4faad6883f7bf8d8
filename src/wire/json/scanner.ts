const isBlank = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

export function skipBlanks(text: string, start: number): number {
  let place = start
  while (isBlank(text.charCodeAt(place))) place++
  return place
}

/**
 * Returns the index of the quote that closes a string, or -1 if there is none. `start` is an index inside
 * the string. `isEscaped` is true if a backslash before `start` escapes the character at `start`.
 */
export function findClosingQuote(text: string | Buffer, start: number, isEscaped = false): number {
  for (let quote = text.indexOf('"', start); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    if (!isEscapedAt(text, quote, start, isEscaped)) return quote
  }
  return -1
}

function isEscapedAt(text: string | Buffer, place: number, start: number, isEscaped: boolean): boolean {
  let first = place
  // The loop stops at the opening quote of the string, or at the start of the text.
  while (text[first - 1] === '\\' || text[first - 1] === 0x5c) first--
  const isOdd = (place - first) % 2 === 1
  return first === start && isEscaped ? !isOdd : isOdd
}

/**
 * Scans JSON text, which may arrive in pieces and may be invalid. Calls `visit` for each bracket, comma and
 * line break outside of strings, and for each quote that opens a string. Stops if `visit` returns true.
 * Reads each character once, so the time is linear.
 */
type Scan = (piece: string, visit: (mark: string, place: number) => unknown, start?: number) => void

export function createJsonScanner(): Scan {
  let isInString = false
  /** True if the previous piece ended with a backslash that escapes the next character. */
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

/** Indexed by character code, because such a lookup is four times faster than a regular expression. */
const marks = Array.from({ length: 128 }, (_, code) =>
  '"[]{},\n'.includes(String.fromCharCode(code)) ? String.fromCharCode(code) : undefined,
)

interface JsonChild {
  name: string | undefined
  start: number
  end: number
}

/**
 * Returns the index after the value that begins at `start`. For invalid JSON, returns any index from `start`
 * to the end.
 */
export function findEndOfJsonValue(text: string, start: number): number {
  if (text[start] === '"') return findEndOfString(text, start)
  if (text[start] !== '{' && text[start] !== '[') return findEndOfScalar(text, start)
  let depth = 0
  let end = text.length
  createJsonScanner()(
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

export function readJsonKey(validJson: string, start: number): string {
  const place = skipBlanks(validJson, start)
  return JSON.parse(validJson.slice(place, findEndOfString(validJson, place)))
}

/** `start` is the index of the bracket that opens an object or a list. */
export function* listJsonChildren(validJson: string, start: number): Generator<JsonChild> {
  const isObject = validJson[start] === '{'
  let place = skipBlanks(validJson, start + 1)
  while (place < validJson.length && validJson[place] !== '}' && validJson[place] !== ']') {
    let name: string | undefined
    if (isObject) {
      const end = findEndOfString(validJson, place)
      name = readJsonKey(validJson, place)
      place = skipBlanks(validJson, skipBlanks(validJson, end) + 1)
    }
    const end = findEndOfJsonValue(validJson, place)
    yield { name, start: place, end }
    place = skipBlanks(validJson, end)
    if (validJson[place] === ',') place = skipBlanks(validJson, place + 1)
  }
}

export interface JsonField {
  name: string | undefined
  json: string
}

/** Lists the fields of an object, including duplicate keys, or the elements of a list as unnamed fields. */
export const listJsonFields = (validJson: string): JsonField[] =>
  Array.from(listJsonChildren(validJson, skipBlanks(validJson, 0)), ({ name, start, end }) => ({
    name,
    json: validJson.slice(start, end),
  }))

/** If the key occurs twice, returns the last value, as `JSON.parse` does. */
export function findJsonField(validJson: string, key: string): string | undefined {
  let last: JsonChild | undefined
  for (const child of listJsonChildren(validJson, skipBlanks(validJson, 0)))
    if (child.name === key) last = child
  return last && validJson.slice(last.start, last.end)
}

/** Yields each bracket, colon and comma, and the source text of each name and scalar. */
export function* listJsonTokens(validJson: string): Generator<string> {
  for (let place = skipBlanks(validJson, 0); place < validJson.length; ) {
    const end = isMark(validJson.charAt(place)) ? place + 1 : findEndOfJsonValue(validJson, place)
    yield validJson.slice(place, end)
    place = skipBlanks(validJson, end)
  }
}

const isMark = (token: string): boolean => '{}[]:,'.includes(token)

/**
 * Returns the same text for values that differ only in the order of their fields, in blanks and in unneeded
 * escapes. Duplicate fields keep their order, and numbers keep their source text. The caller must limit the
 * depth of the JSON, because this function is recursive.
 */
export function toCanonicalJson(validJson: string): string {
  if (validJson.startsWith('"')) return JSON.stringify(JSON.parse(validJson))
  if (!/^[[{]/.test(validJson)) return validJson
  const fields = listJsonFields(validJson)
    .sort(({ name: one = '' }, { name: other = '' }) => Number(one > other) - Number(one < other))
    .map(({ name, json }) => (name === undefined ? '' : `${JSON.stringify(name)}:`) + toCanonicalJson(json))
  return `${validJson[0]}${fields.join()}${validJson.at(-1)}`
}

/** The text need not be valid JSON. */
export function isJsonDeeperThan(text: string, maxDepth: number): boolean {
  if (text.length <= maxDepth) return false
  let depth = 0
  createJsonScanner()(text, (mark) => {
    depth += getDepthChange(mark)
    return depth > maxDepth
  })
  return depth > maxDepth
}

export function findRepeatedJsonKey(validJson: string): string | undefined {
  const around: (Set<string> | undefined)[] = []
  let repeated: string | undefined
  createJsonScanner()(validJson, (mark, place) => {
    if (mark === '{') around.push(new Set())
    else if (mark === '[') around.push(undefined)
    else if (mark === '}' || mark === ']') around.pop()
    const keys = mark === '"' ? around.at(-1) : undefined
    const end = keys ? findEndOfString(validJson, place) : 0
    if (!keys || validJson[skipBlanks(validJson, end)] !== ':') return false
    const key = readJsonKey(validJson, place)
    if (keys.has(key)) repeated = key
    keys.add(key)
    return repeated !== undefined
  })
  return repeated
}
