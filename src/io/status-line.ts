import type { StdStream } from './output.ts'

/** The last line of a terminal, which is written anew as work goes on. */
export interface StatusLine {
  show(text: string): void
  /** Has other text written above it. */
  above<T>(write: () => T): T
  remove(): void
}

const clear = '\r\x1b[2K'

export function createStatusLine(stream: StdStream): StatusLine {
  let shown = ''
  const write = (text: string) => void stream.open().write(text)
  return {
    show(text) {
      if (text === shown) return
      shown = text
      write(clear + text)
    },
    above(writeOther) {
      if (shown !== '') write(clear)
      try {
        return writeOther()
      } finally {
        if (shown !== '') write(shown)
      }
    },
    remove() {
      if (shown !== '') write(clear)
      shown = ''
    },
  }
}
