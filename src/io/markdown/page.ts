import type { Output } from '../output.ts'
import { addColours, type Span, type StyledLine } from '../spans.ts'
import { trimLineEnd } from './inline.ts'

export const createBlankSpan = (count: number): Span => ({ text: ' '.repeat(count), sgr: '' })

export class MarkdownPage {
  readonly #output: Output
  readonly #isColoured: boolean
  #text = ''
  #needsBlankLine = false
  #isEmpty = true
  #isInRow = false

  constructor(output: Output, isColoured: boolean) {
    this.#output = output
    this.#isColoured = isColoured
  }

  /** True if the last row is unfinished. A spinner would then erase the row. */
  get isInRow(): boolean {
    return this.#isInRow
  }

  separate(): void {
    this.#needsBlankLine = true
  }

  print(lines: readonly StyledLine[], indent: number, lead: StyledLine = [createBlankSpan(indent)]): void {
    for (const [index, line] of lines.entries()) {
      const start = index === 0 ? lead : [createBlankSpan(indent)]
      this.append(line.length === 0 ? trimLineEnd(start) : [...start, ...line])
      this.endRow()
    }
  }

  append(spans: StyledLine): void {
    if (!this.#isInRow && this.#needsBlankLine && !this.#isEmpty) this.#text += '\n'
    this.#needsBlankLine = false
    this.#isEmpty = false
    this.#isInRow = true
    this.#text += addColours(spans, this.#isColoured)
  }

  endRow(): void {
    if (!this.#isInRow) this.append([])
    this.#text += '\n'
    this.#isInRow = false
  }

  async write(): Promise<void> {
    const text = this.#text
    this.#text = ''
    if (text !== '') await this.#output.write(text)
  }

  /** Returns true if text was written to a terminal. The cursor is then at the start of a line. */
  writeNow(): boolean {
    const isBroken = this.#text !== '' && this.#output.isTerminal
    this.write().catch(() => {})
    return isBroken
  }
}
