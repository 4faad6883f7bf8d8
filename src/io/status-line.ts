import type { StdStream } from './output.ts'

/** The last line of a terminal, which shows the progress of the work. */
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

  /** Calls `write`, whose text appears above the status line. */
  above<T>(write: () => T): T {
    if (this.#shown !== '') this.#write(this.#clear())
    try {
      return write()
    } finally {
      if (this.#shown !== '') this.#write(this.#shown)
    }
  }

  remove(): void {
    if (this.#shown !== '') this.#write(this.#clear())
    this.#shown = ''
  }

  /** If the terminal was made narrower, the line stands on several rows. */
  #clear(): string {
    const above = Math.ceil(this.#shown.length / (this.#stream.columns || Infinity)) - 1
    return above > 0 ? `\x1b[${above}A\r\x1b[J` : '\r\x1b[2K'
  }

  #write(text: string): void {
    this.#stream.open().write(text)
  }
}
