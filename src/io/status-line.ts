import type { StdStream } from './output.ts'

/** The last line of a terminal, which is written anew as work goes on. */
export interface StatusLine {
  show(text: string): void
  /** Has other text written above it. */
  above<T>(write: () => T): T
  remove(): void
}

export function createStatusLine(stream: StdStream): StatusLine {
  let shown = ''
  const write = (text: string) => void stream.open().write(text)
  /** On a terminal that is narrower by now it stands on several rows. */
  const clear = () => {
    const above = Math.ceil(shown.length / (stream.columns || Infinity)) - 1
    return above > 0 ? `\x1b[${above}A\r\x1b[J` : '\r\x1b[2K'
  }
  return {
    show(text) {
      if (text === shown) return
      const cleared = clear()
      shown = text
      write(cleared + text)
    },
    above(writeOther) {
      if (shown !== '') write(clear())
      try {
        return writeOther()
      } finally {
        if (shown !== '') write(shown)
      }
    },
    remove() {
      if (shown !== '') write(clear())
      shown = ''
    },
  }
}
