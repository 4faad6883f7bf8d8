import type { StdStream } from './output.ts'

/** The last line of a terminal, which shows the progress of the work. */
export interface StatusLine {
  show(text: string): void
  /** Calls `write`, whose text appears above the status line. */
  above<T>(write: () => T): T
  remove(): void
}

export function createStatusLine(stream: StdStream): StatusLine {
  let shown = ''
  const write = (text: string) => void stream.open().write(text)
  /** If the terminal was made narrower, the line stands on several rows. */
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
