/** A value in an object or a list, as a place in the text. */
export interface Child {
  /** Of an object's field; `undefined` in a list. */
  name: string | undefined
  start: number
  end: number
}

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c

const isBlank = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
const isOpening = (code: number) => code === 0x5b || code === 0x7b
const isClosing = (code: number) => code === 0x5d || code === 0x7d

/** The place of the first character from `start` on that is not blank. */
export function skipBlanks(text: string, start: number): number {
  let place = start
  while (isBlank(text.charCodeAt(place))) place++
  return place
}

/** The place after the closing quote of the string that opens at `start`. */
export function endOfString(text: string, start: number): number {
  for (let place = text.indexOf('"', start + 1); place >= 0; place = text.indexOf('"', place + 1)) {
    let slashes = 0
    while (text.charCodeAt(place - slashes - 1) === backslash) slashes++
    if (slashes % 2 === 0) return place + 1
  }
  return text.length
}

/** The place after the value that begins at `start`, in a text that `JSON.parse` accepts. */
export function endOfValue(text: string, start: number): number {
  let depth = 0
  let place = start
  while (place < text.length) {
    const code = text.charCodeAt(place)
    if (code === quote) place = endOfString(text, place)
    else {
      const isOver = isClosing(code) || code === comma || isBlank(code)
      if (depth === 0 && isOver) return place
      if (isOpening(code)) depth++
      else if (isClosing(code)) depth--
      place++
    }
    const last = text.charCodeAt(place - 1)
    if (depth === 0 && (last === quote || isClosing(last))) return place
  }
  return place
}

/** The values of the object or list that begins at `start`, in a text that `JSON.parse` accepts. */
export function* childrenOf(text: string, start: number): Generator<Child> {
  const isObject = text[start] === '{'
  let place = skipBlanks(text, start + 1)
  while (place < text.length && !isClosing(text.charCodeAt(place))) {
    let name: string | undefined
    if (isObject) {
      const end = endOfString(text, place)
      name = JSON.parse(text.slice(place, end)) as string
      place = skipBlanks(text, skipBlanks(text, end) + 1)
    }
    const end = endOfValue(text, place)
    yield { name, start: place, end }
    place = skipBlanks(text, end)
    if (text.charCodeAt(place) === comma) place = skipBlanks(text, place + 1)
  }
}

/** A field of the object, or an element of the list, that begins at `start`. Of fields with one name it is the last. */
export function findChild(text: string, start: number, key: string | number): Child | undefined {
  let found: Child | undefined
  let index = 0
  for (const child of childrenOf(text, start)) {
    if (child.name === key) found = child
    if (child.name === undefined && index++ === key) return child
  }
  return found
}

/** Whether objects and lists are nested more than `most` deep. The text may be anything. */
export function isDeeperThan(text: string, most: number): boolean {
  if (text.length <= most) return false
  let depth = 0
  for (let place = 0; place < text.length; ) {
    const code = text.charCodeAt(place)
    if (code === quote) {
      place = endOfString(text, place)
      continue
    }
    if (isOpening(code) && ++depth > most) return true
    if (isClosing(code)) depth--
    place++
  }
  return false
}
