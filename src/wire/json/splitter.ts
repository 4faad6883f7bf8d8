import { createWalk } from './scanner.ts'

/** Cuts JSON that arrives piece by piece into values. */
export type JsonSplitter = ReturnType<typeof createSplitter>

/** Cuts an array into its elements. */
export const createArraySplitter = () => createSplitter(1)

/** Cuts values that follow each other, with or without line breaks between them. */
export const createSequenceSplitter = () => createSplitter(0)

/** `level` is how deep the values are. Text that is not JSON becomes a value too, and the parser rejects it later. */
function createSplitter(level: 0 | 1) {
  const separator = level === 0 ? '\n' : ','
  const walk = createWalk()
  let depth = 0
  let closed = false
  let kept: string[] = []

  /** Returns the texts of the values that are complete now. */
  function push(text: string): string[] {
    if (closed) return []
    const values: string[] = []
    let start = 0
    const cut = (end: number, next: number) => {
      const value = takeKept(text.slice(start, end))
      if (value !== '') values.push(value)
      start = next
    }
    walk(text, (mark, place) => {
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
    // Blanks do not begin a value: a service may send them while it is silent.
    if (kept.length > 0 || rest.trim() !== '') kept.push(rest)
    return values
  }

  function takeKept(tail: string): string {
    // One join: otherwise a long value would be copied twice.
    const value = kept.concat(tail).join('')
    kept = []
    return value.trim()
  }

  return {
    push,
    /** A value has begun and is not complete, or the array's closing bracket has not come. */
    isInside: () => (level === 1 ? !closed : kept.length > 0),
    /** What has come of that value. */
    rest: () => kept.join('').trim(),
  }
}
