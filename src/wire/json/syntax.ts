import { skipBlanks } from './scanner.ts'

interface SyntaxFault {
  offset: number
  reason: string
}

/** Finds the first place where a text is not JSON, or is nested more than `deepest` deep. */
export function findFault(text: string, deepest: number): SyntaxFault | undefined {
  /** The closing brackets that must still come, the innermost last. */
  const closing: string[] = []
  let place = skipBlanks(text, 0)
  while (true) {
    const isOpen = text[place] === '{' || text[place] === '['
    if (isOpen && closing.length === deepest) {
      return { offset: place, reason: `nested more than ${deepest} deep` }
    }
    const end = isOpen ? place + 1 : readScalar(text, place)
    if (typeof end !== 'number') return end
    place = skipBlanks(text, end)
    if (isOpen) closing.push(text[end - 1] === '{' ? '}' : ']')
    if (!isOpen || text[place] === closing.at(-1)) {
      while (closing.length > 0 && text[place] === closing.at(-1)) {
        closing.pop()
        place = skipBlanks(text, place + 1)
      }
      if (closing.length === 0) {
        return place < text.length ? { offset: place, reason: 'end of text expected' } : undefined
      }
      if (text[place] !== ',') return { offset: place, reason: `comma or '${closing.at(-1)}' expected` }
      place = skipBlanks(text, place + 1)
    }
    const start = closing.at(-1) === '}' ? readName(text, place) : place
    if (typeof start !== 'number') return start
    place = start
  }
}

/** The place of the value after a field's name. */
function readName(text: string, start: number): number | SyntaxFault {
  if (text[start] !== '"') return { offset: start, reason: 'property name expected' }
  const end = readString(text, start)
  if (typeof end !== 'number') return end
  const colon = skipBlanks(text, end)
  return text[colon] === ':' ? skipBlanks(text, colon + 1) : { offset: colon, reason: 'colon expected' }
}

const numberOrWord = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y
const validEscape = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

/** The place after a string, a number or a word. */
function readScalar(text: string, start: number): number | SyntaxFault {
  if (text[start] === '"') return readString(text, start)
  numberOrWord.lastIndex = start
  return numberOrWord.test(text) ? numberOrWord.lastIndex : { offset: start, reason: 'value expected' }
}

function readString(text: string, start: number): number | SyntaxFault {
  for (let place = start + 1; place < text.length; place++) {
    const code = text.charCodeAt(place)
    if (code === 0x22) return place + 1
    if (code < 0x20) return { offset: place, reason: 'control character in a text' }
    if (code !== 0x5c) continue
    validEscape.lastIndex = place
    if (!validEscape.test(text)) return { offset: place, reason: 'invalid escape' }
    place = validEscape.lastIndex - 1
  }
  return { offset: text.length, reason: 'unclosed text' }
}
