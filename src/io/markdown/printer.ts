import { escapeControls } from '../escape.ts'
import type { Output } from '../output.ts'
import type { Spinner } from '../spinner.ts'
import { MarkdownLayout, type MarkdownLayoutOptions } from './layout.ts'

export interface MarkdownOptions extends MarkdownLayoutOptions {
  waiting?: Spinner | undefined
}

/** Escapes control characters, also in a pipe, before the layout adds its own style codes. */
export class MarkdownPrinter {
  readonly #output: Output
  readonly #waiting: Spinner | undefined
  readonly #layout: MarkdownLayout
  #received = ''

  constructor(output: Output, { waiting, ...options }: MarkdownOptions) {
    this.#output = output
    this.#waiting = waiting
    this.#layout = new MarkdownLayout(options)
  }

  add(text: string): void {
    this.#received += text
  }

  async write(): Promise<void> {
    // A carriage return or half a surrogate pair at the end of the text is held back until more text arrives.
    const isHalf = /[\r\ud800-\udbff]$/.test(this.#received)
    this.#layOut(isHalf ? this.#received.length - 1 : this.#received.length)
    const text = this.#layout.takeText()
    if (text !== '') await this.#output.write(text)
    if (this.#layout.isTableHeld) this.#waiting?.show('waiting for the rest of the table')
  }

  async end(): Promise<void> {
    const text = this.#takeRest()
    if (text !== '') await this.#output.write(text)
    await this.#output.flush()
  }

  breakLine(): boolean {
    const text = this.#takeRest()
    if (text !== '') this.#output.write(text).catch(() => {})
    return text !== '' && this.#output.isTerminal
  }

  #takeRest(): string {
    this.#layOut(this.#received.length)
    this.#layout.end()
    return this.#layout.takeText()
  }

  #layOut(length: number): void {
    const text = this.#received.slice(0, length).replaceAll('\r\n', '\n')
    this.#received = this.#received.slice(length)
    this.#layout.add(escapeControls(text))
  }
}
