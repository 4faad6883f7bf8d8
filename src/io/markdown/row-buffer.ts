import { colourLine, type Span, type StyledLine } from '../spans.ts'
import { trimLineEnd } from './inline.ts'

export const createBlankSpan = (count: number): Span => ({ text: ' '.repeat(count), sgr: '' })

export class RowBuffer {
  readonly #isColoured: boolean
  #text = ''
  #needsBlankLine = false
  #isEmpty = true
  #isInRow = false

  constructor(isColoured: boolean) {
    this.#isColoured = isColoured
  }

  /** True if the last row is unfinished. */
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
    this.#text += colourLine(spans, this.#isColoured)
  }

  endRow(): void {
    if (!this.#isInRow) this.append([])
    this.#text += '\n'
    this.#isInRow = false
  }

  takeText(): string {
    const text = this.#text
    this.#text = ''
    return text
  }

  takeRows(): string[] {
    const rows = this.#text.split('\n')
    this.#text = rows.pop() ?? ''
    return rows
  }
}
