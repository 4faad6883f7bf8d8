/** Cuts text that arrives in pieces into lines, which end in LF, CR LF or CR. */
export interface LineSplitter {
  push(text: string): void
  /** The start of a line whose end has not come. */
  readonly rest: string
  /** How long it is, in UTF-16 units. */
  readonly waiting: number
}

export function createLineSplitter(onLine: (line: string) => void): LineSplitter {
  const lineBreak = /\r\n|\n|\r/g
  let kept: string[] = []
  let waiting = 0
  let endedInCr = false

  return {
    push(text) {
      if (text === '') return
      let start = endedInCr && text[0] === '\n' ? 1 : 0
      endedInCr = text.endsWith('\r')
      lineBreak.lastIndex = start
      for (let found = lineBreak.exec(text); found; found = lineBreak.exec(text)) {
        const tail = text.slice(start, found.index)
        onLine(kept.length > 0 ? kept.join('') + tail : tail)
        kept = []
        waiting = 0
        start = lineBreak.lastIndex
      }
      if (start === text.length) return
      kept.push(text.slice(start))
      waiting += text.length - start
    },
    get rest() {
      return kept.join('')
    },
    get waiting() {
      return waiting
    },
  }
}
