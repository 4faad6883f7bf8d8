import type { StdStream } from './output.ts'

export class StatusLine {
  readonly #stream: StdStream
  #shown = ''

  constructor(stream: StdStream) {
    this.#stream = stream
  }

  show(text: string): void {
    if (text === this.#shown) return
    const cleared = this.#clear()
    this.#shown = text
    this.#write(cleared + text)
  }

  printAbove<T>(write: () => T): T {
    if (this.#shown !== '') this.#write(this.#clear())
    try {
      return write()
    } finally {
      if (this.#shown !== '') this.#write(this.#shown)
    }
  }

  /** Returns true if the status line was visible. The cursor is then at the start of a line. */
  readonly remove = (): boolean => {
    const wasShown = this.#shown !== ''
    if (wasShown) this.#write(this.#clear())
    this.#shown = ''
    return wasShown
  }

  /** If the terminal became narrower, the status line has several rows. */
  #clear(): string {
    const above = Math.ceil(this.#shown.length / (this.#stream.columns || Infinity)) - 1
    return above > 0 ? `\x1b[${above}A\r\x1b[J` : '\r\x1b[2K'
  }

  #write(text: string): void {
    this.#stream.open().write(text)
  }
}
