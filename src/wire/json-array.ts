/**
 * Cuts a JSON array that arrives piece by piece into its elements. `push` returns the texts of the elements it
 * completed; after the closing bracket `closed` is true and anything further is ignored.
 */
export function createArraySplitter(): { push(text: string): string[]; readonly closed: boolean } {
  let depth = 0
  let inString = false
  let escaped = false
  let closed = false
  let element: string[] = []

  function push(text: string): string[] {
    const elements: string[] = []
    let start = 0
    const cut = (end: number) => {
      element.push(text.slice(start, end))
      const whole = element.join('').trim()
      if (whole !== '') elements.push(whole)
      element = []
      start = end + 1
    }
    for (let i = 0; i < text.length && !closed; i++) {
      const char = text[i]
      if (inString) {
        if (escaped) escaped = false
        else if (char === '\\') escaped = true
        else if (char === '"') inString = false
      } else if (char === '"') inString = true
      else if (char === '[' || char === '{') {
        depth++
        if (depth === 1) start = i + 1
      } else if (char === ',' && depth === 1) cut(i)
      else if (char === ']' || char === '}') {
        depth--
        if (depth === 0) {
          cut(i)
          closed = true
        }
      }
    }
    if (!closed && depth > 0 && start < text.length) element.push(text.slice(start))
    return elements
  }

  return {
    push,
    get closed() {
      return closed
    },
  }
}
