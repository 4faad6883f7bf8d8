import type { StdStream } from './output.ts'

const clearLine = '\r\x1b[2K'

export class StatusLine {
  readonly #stream: StdStream
  #shown = ''

  constructor(stream: StdStream) {
    this.#stream = stream
  }

  show(text: string): void {
    if (text === this.#shown) return
    this.#shown = text
    this.#write(clearLine + text)
  }

  printAbove<T>(write: () => T): T {
    if (this.#shown !== '') this.#write(clearLine)
    try {
      return write()
    } finally {
      if (this.#shown !== '') this.#write(this.#shown)
    }
  }

  /** Returns true if the status line was visible. The cursor is then at the start of a line. */
  readonly remove = (): boolean => {
    const wasShown = this.#shown !== ''
    if (wasShown) this.#write(clearLine)
    this.#shown = ''
    return wasShown
  }

  #write(text: string): void {
    this.#stream.open().write(text)
  }
}
