import { canBreakBetween, measureLineWidth, type Span, type StyledLine, splitWords } from '../spans.ts'
import { layOutInlineTokens, trimLineEnd } from './inline.ts'
import { createBlankSpan, type RowBuffer } from './row-buffer.ts'
import { ParagraphSplitter } from './segments.ts'
import { readInlineTokens } from './source.ts'

interface ParagraphPrinterOptions {
  buffer: RowBuffer
  /** Text at the start of the first row, such as the bullet of a list item. */
  lead: StyledLine
  indent: number
  columns(): number
}

export class ParagraphPrinter {
  readonly #options: ParagraphPrinterOptions
  readonly #splitter = new ParagraphSplitter()
  #lead: StyledLine
  #width = 0
  #lastText: string | undefined
  #isEmpty = true

  constructor(options: ParagraphPrinterOptions) {
    this.#options = options
    this.#lead = options.lead
  }

  add(text: string): void {
    for (const segment of this.#splitter.split(text, false)) this.#print(segment)
  }

  /** Prints unclosed delimiters, such as `**`, as text. */
  end(): void {
    for (const segment of this.#splitter.split('', true)) this.#print(segment)
    // A list item keeps its marker if its text is empty, for example a code span that contains only a blank.
    const isOnlyMarker = this.#isEmpty && this.#lead.some(({ text }) => text.trim() !== '')
    if (isOnlyMarker) this.#options.buffer.append(trimLineEnd(this.#lead))
    if (isOnlyMarker || this.#lastText !== undefined) this.#endRow()
  }

  #print(segment: string): void {
    const text = segment.trimStart()
    const before = segment.slice(0, segment.length - text.length)
    const breaksRow = before.includes('\n')
    // After <br> the row has ended already.
    if (breaksRow && this.#lastText !== undefined) this.#endRow()
    if (text.trimEnd() === '') return
    const tokens = special.test(text) ? readInlineTokens(text) : [{ type: 'text', raw: text }]
    for (const [index, line] of layOutInlineTokens(tokens, '').entries()) {
      // A paragraph does not begin with an empty row.
      if (index > 0 && !this.#isEmpty) this.#endRow()
      this.#place(line, index > 0 || breaksRow ? '' : before.replaceAll('\t', '    '))
    }
  }

  #place(line: StyledLine, before: string): void {
    const { buffer, columns, indent } = this.#options
    const limit = columns()
    let gap: Span[] = before === '' ? [] : [{ text: before, sgr: '' }]
    let row: Span[] = []
    for (const { blanks, word } of splitWords(line)) {
      gap.push(...blanks)
      const added = measureLineWidth(gap) + measureLineWidth(word)
      const canBreak = gap.length > 0 || canBreakBetween(this.#lastText, word[0]?.text as string)
      if (this.#lastText !== undefined && canBreak && this.#width + added > limit) {
        buffer.append(row)
        row = []
        this.#endRow()
      }
      if (this.#lastText === undefined) {
        row.push(...this.#lead, ...word)
        const width = measureLineWidth(word)
        // A word that is wider than the terminal continues at the start of the next row.
        this.#width = width > limit ? ((width - limit - 1) % (limit + indent)) + 1 - indent : width
      } else {
        row.push(...gap, ...word)
        this.#width += added
      }
      this.#isEmpty = false
      this.#lastText = word.at(-1)?.text
      gap = []
    }
    if (row.length > 0) buffer.append(row)
  }

  #endRow(): void {
    this.#options.buffer.endRow()
    this.#lead = [createBlankSpan(this.#options.indent)]
    this.#lastText = undefined
    this.#width = 0
  }
}

const special = /[\\`*_~[\]<>&!:@]|www\./
