import { createJsonScanner } from './scanner.ts'

export type JsonSplitter = ReturnType<typeof createSplitter>

export const createJsonArraySplitter = () => createSplitter(1)

export const createJsonSequenceSplitter = () => createSplitter(0)

/**
 * Splits JSON text into values. `level` is 1 for the elements of an array, and 0 for consecutive values.
 * Text that is not JSON is returned as a value, too, so that the parser of the caller rejects it.
 */
function createSplitter(level: 0 | 1) {
  const separator = level === 0 ? '\n' : ','
  const scan = createJsonScanner()
  let depth = 0
  let closed = false
  let pieces: string[] = []

  function push(text: string): string[] {
    if (closed) return []
    const values: string[] = []
    let start = 0
    const cut = (end: number, next: number) => {
      const value = takeValue(text.slice(start, end))
      if (value !== '') values.push(value)
      start = next
    }
    scan(text, (mark, place) => {
      if (mark === '[' || mark === '{') {
        if (depth++ === level) cut(place, place)
        else if (depth === level) cut(place, place + 1)
      } else if (mark === ']' && depth === 1 && level === 1) {
        cut(place, text.length)
        closed = true
      } else if ((mark === ']' || mark === '}') && depth > level) {
        if (--depth === level) cut(place + 1, place + 1)
      } else if (mark === separator && depth === level) cut(place, place + 1)
      return closed
    })
    const rest = text.slice(start)
    // Some services send blanks to keep the connection open, so blanks do not begin a value.
    if (pieces.length > 0 || rest.trim() !== '') pieces.push(rest)
    return values
  }

  function takeValue(tail: string): string {
    // Without this line, a body of only line breaks would take minutes, because each break would call
    // `concat`.
    if (pieces.length === 0) return tail.trim()
    // The pieces are joined once, because appending each piece would copy a long value repeatedly.
    const value = pieces.concat(tail).join('')
    pieces = []
    return value.trim()
  }

  return {
    push,
    isInside: () => (level === 1 ? !closed : pieces.length > 0),
    rest: () => pieces.join('').trim(),
  }
}
