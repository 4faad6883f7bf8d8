import type { Output } from '../output.ts'
import { paint, type Span, type StyledLine } from '../spans.ts'
import { trimEnd } from './inline.ts'

export const blanks = (count: number): Span => ({ text: ' '.repeat(count), sgr: '' })

/** Collects laid-out text and writes it to the output. Written text is never changed. */
export class Page {
  readonly #output: Output
  readonly #isColoured: boolean
  /** Laid-out text that is not written yet. */
  #text = ''
  /**
   * The source had blank lines. One blank line is printed before the next block, unless that block is the
   * first.
   */
  #needsBlankLine = false
  #isEmpty = true
  #isInRow = false

  constructor(output: Output, isColoured: boolean) {
    this.#output = output
    this.#isColoured = isColoured
  }

  /** The last row is unfinished. A spinner would erase such a row. */
  get isInRow(): boolean {
    return this.#isInRow
  }

  /** Puts a blank line before the next block. */
  separate(): void {
    this.#needsBlankLine = true
  }

  /** Prints lines. The first line begins with `lead`, every other line with `indent` blanks. */
  print(lines: readonly StyledLine[], indent: number, lead: StyledLine = [blanks(indent)]): void {
    for (const [index, line] of lines.entries()) {
      const start = index === 0 ? lead : [blanks(indent)]
      this.append(line.length === 0 ? trimEnd(start) : [...start, ...line])
      this.endRow()
    }
  }

  /** Appends to the last row. */
  append(spans: StyledLine): void {
    if (!this.#isInRow && this.#needsBlankLine && !this.#isEmpty) this.#text += '\n'
    this.#needsBlankLine = false
    this.#isEmpty = false
    this.#isInRow = true
    this.#text += paint(spans, this.#isColoured)
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

  /**
   * Writes without waiting. Returns true if it wrote to a terminal: then the cursor is at the start of a
   * line.
   */
  writeNow(): boolean {
    const isBroken = this.#text !== '' && this.#output.isTerminal
    this.write().catch(() => {})
    return isBroken
  }
}
