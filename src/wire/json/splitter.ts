/** Cuts JSON that arrives piece by piece into values. */
export interface JsonSplitter {
  /** Returns the texts of the values that are complete now. */
  push(text: string): string[]
  /** The array's closing bracket came; anything further is ignored. */
  readonly closed: boolean
  /** A value has begun and is not complete. */
  readonly isInside: boolean
  /** What has come of that value. */
  readonly rest: string
}

/** Cuts an array into its elements. */
export const createArraySplitter = () => createSplitter(1)

/** Cuts values that follow each other, with or without line breaks between them. */
export const createSequenceSplitter = () => createSplitter(0)

/** `level` is how deep the values are. Text that is not JSON becomes a value too, and the parser rejects it later. */
function createSplitter(level: 0 | 1): JsonSplitter {
  const separator = level === 0 ? '\n' : ','
  let depth = 0
  let inString = false
  let escaped = false
  let closed = false
  let kept: string[] = []

  function push(text: string): string[] {
    const values: string[] = []
    let start = 0
    const cut = (end: number, next: number) => {
      const value = takeKept(text.slice(start, end))
      if (value !== '') values.push(value)
      start = next
    }
    for (let i = 0; i < text.length && !closed; i++) {
      const char = text[i]
      if (inString) {
        if (escaped) escaped = false
        else if (char === '\\') escaped = true
        else if (char === '"') inString = false
      } else if (char === '"') inString = true
      else if (char === '[' || char === '{') {
        if (depth++ === level) cut(i, i)
        else if (depth === level) cut(i, i + 1)
      } else if (char === ']' && depth === 1 && level === 1) {
        cut(i, text.length)
        closed = true
      } else if ((char === ']' || char === '}') && depth > level) {
        if (--depth === level) cut(i + 1, i + 1)
      } else if (char === separator && depth === level) cut(i, i + 1)
    }
    if (start < text.length && !closed) kept.push(text.slice(start))
    return values
  }

  function takeKept(tail: string): string {
    if (kept.length === 0) return tail.trim()
    // One join: otherwise a long value would be copied twice.
    const value = kept.concat(tail).join('')
    kept = []
    return value.trim()
  }

  return {
    push,
    get closed() {
      return closed
    },
    get isInside() {
      return kept.length > 0
    },
    get rest() {
      return kept.join('').trim()
    },
  }
}
