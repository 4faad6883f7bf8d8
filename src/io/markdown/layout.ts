import { type Span, type StyledLine, spanStyles, wrapLine } from '../spans.ts'
import { layOutInlineTokens, trimLineEnd } from './inline.ts'
import {
  isKindFinal,
  type MarkdownLineStart,
  maxLayoutDepth,
  mayBeDelimiterRow,
  parseMarkdownLineStart,
} from './line-start.ts'
import { OpenListItems } from './list-items.ts'
import { ParagraphPrinter } from './paragraph.ts'
import { createBlankSpan, RowBuffer } from './row-buffer.ts'
import {
  closesFence,
  countIndent,
  maxBlockLength,
  readInlineTokens,
  readOpeningFence,
  removeIndent,
} from './source.ts'
import { isDelimiterRow, layOutTable, maxTableLength } from './table.ts'

interface MarkdownLayoutOptions {
  columns(): number
  isColoured: boolean
}

interface HeldRows {
  /** A `row` becomes the header of a table if a delimiter row follows. */
  kind: 'row' | 'table'
  text: string
  indent: number
  /** True if the header was already printed as text, because its start did not look like a row of a table. */
  isHeaderPrinted?: boolean
}

/**
 * Lays out Markdown while it arrives: paragraphs and list items word by word, quotes line by line, tables when
 * they are complete. The layout depends only on the text, not on the pieces in which it arrives. An underlined
 * heading becomes a paragraph and a rule, because the paragraph is printed before its underline arrives. HTML
 * is printed as text.
 */
export class MarkdownLayout {
  readonly #options: MarkdownLayoutOptions
  readonly #quoteDepth: number
  readonly #buffer: RowBuffer
  readonly #items = new OpenListItems()
  /**
   * The received part of the current line. Empty if this part is already printed as text of a paragraph.
   */
  #line = ''
  #isInText = false
  #textLine = ''
  #flow: ParagraphPrinter | undefined
  #held: HeldRows | undefined
  #code: { mark: string; indent: number } | undefined
  #quote: MarkdownLayout | undefined
  #unprintedBullets: StyledLine | undefined

  constructor(options: MarkdownLayoutOptions, quoteDepth = 0) {
    this.#options = options
    this.#quoteDepth = quoteDepth
    this.#buffer = new RowBuffer(options.isColoured)
  }

  add(text: string): void {
    const [rest = '', ...lines] = text.split('\n')
    this.#addToLine(rest)
    for (const line of lines) {
      this.#endLine()
      this.#addToLine(line)
    }
  }

  end(): void {
    if (this.#line !== '') this.#endLine()
    this.#endBlock()
  }

  takeText(): string {
    return this.#buffer.takeText()
  }

  /** False during an unfinished row, which a spinner would erase. */
  get isTableHeld(): boolean {
    return !this.#buffer.isInRow && (this.#held !== undefined || /^[ \t]*\|/.test(this.#line))
  }

  #addToLine(text: string): void {
    if (text === '') return
    if (this.#isInText) {
      if (this.#textLine.length <= maxBlockLength) this.#textLine += text
      this.#flow?.add(text)
    } else {
      this.#line += text
      const needsWholeLine = this.#code || this.#quote || this.#held?.kind === 'table'
      if (!needsWholeLine) this.#startLine(false)
    }
  }

  #endLine(): void {
    const line = this.#line
    if (this.#isInText) this.#flow?.add('\n')
    else if (this.#code) {
      if (closesFence(line, this.#code.mark)) this.#code = undefined
      else this.#print([layOutCodeLine(removeIndent(line, this.#code.indent))])
    } else if (line.trim() === '') {
      this.#endBlock()
      this.#buffer.separate()
    } else {
      this.#startLine(true)
      if (this.#isInText) this.#flow?.add('\n')
    }
    this.#isInText = false
    this.#line = ''
  }

  #endBlock(): void {
    const held = this.#held
    this.#held = undefined
    if (held?.kind === 'row') this.#addToParagraph(`${held.text}\n`)
    else if (held) this.#printTable(held)
    this.#flow?.end()
    this.#flow = undefined
    this.#quote?.end()
    this.#printQuotedRows()
    this.#quote = undefined
    if (this.#unprintedBullets) this.#print([[]])
  }

  #startLine(isWhole: boolean): void {
    this.#line = this.#line.replace(manyBlanks, (text) => text.slice(0, maxBlockLength))
    if (this.#quote && this.#addToQuote(this.#quote)) return
    if (this.#held && !this.#leavesHeld(this.#held, isWhole)) return
    if (this.#flow && isHeader(this.#textLine) && mayBeDelimiterRow(this.#line)) {
      if (!isWhole) return
      if (isDelimiterRow(this.#line)) {
        this.#startTable(this.#textLine, countIndent(this.#line), true)
        return
      }
    }
    const start = this.#readStart()
    if (isWhole || (isKindFinal(this.#line) && start.kind !== 'code')) this.#beginBlock(start)
  }

  #readStart(): MarkdownLineStart {
    return parseMarkdownLineStart(this.#line, {
      hasText: this.#flow !== undefined,
      isInList: !this.#items.isEmpty,
      codeIndent: this.#items.sourceIndent + 4,
    })
  }

  /** Returns true if the line does not belong to the held rows. Otherwise keeps the line with the rows. */
  #leavesHeld(held: HeldRows, isWhole: boolean): boolean {
    if (held.kind === 'row') {
      if (!isWhole && mayBeDelimiterRow(this.#line)) return false
      this.#held = undefined
      if (!isWhole || !isDelimiterRow(this.#line)) {
        this.#addToParagraph(`${held.text}\n`)
        return true
      }
      this.#startTable(held.text, held.indent)
      return false
    }
    const isRow = isPlainText(this.#readStart())
    if (isRow) this.#addRow(held)
    else this.#endBlock()
    return !isRow
  }

  /** Adds a row to a table. A table over the maximum length is split, and each part repeats the header. */
  #addRow(table: HeldRows): void {
    const line = `${removeIndent(this.#line, this.#items.sourceIndent)}\n`
    if (table.text.length + line.length > maxTableLength) {
      this.#printTable(table)
      this.#buffer.separate()
      table.isHeaderPrinted = false
      table.text = `${table.text.split('\n', 2).join('\n')}\n`
    }
    table.text += line
  }

  #printTable({ text, isHeaderPrinted = false }: HeldRows): void {
    this.#print(layOutTable(text, this.#countColumns(), isHeaderPrinted))
  }

  /** Returns false if the line does not belong to the quote. A line without `>` may continue a paragraph. */
  #addToQuote(quote: MarkdownLayout): boolean {
    const start = this.#readStart()
    const isQuoted = start.kind === 'quote' && start.markers.length === 0
    if (isQuoted) quote.add(`${removeQuoteMark(start.text, start.indent)}\n`)
    else if (quote.#hasOpenText() && isPlainText(start)) quote.add(`${this.#line}\n`)
    else {
      this.#endBlock()
      return false
    }
    this.#printQuotedRows()
    return true
  }

  #hasOpenText(): boolean {
    const quote = this.#quote
    if (quote) return quote.#hasOpenText()
    return this.#flow !== undefined || this.#held?.kind === 'row'
  }

  #printQuotedRows(): void {
    const quote = this.#quote
    const rows = quote ? quote.#buffer.takeRows() : []
    this.#print(rows.map((row) => (row === '' ? trimLineEnd([bar]) : [bar, { text: row, sgr: '' }])))
  }

  #beginBlock({ kind, indent, markers, text }: MarkdownLineStart): void {
    const continuesText = this.#flow && markers.length === 0 && (kind === 'text' || kind === 'row')
    const isFirstText = this.#unprintedBullets && markers.length === 0 && this.#items.contains(indent)
    if (!continuesText && !isFirstText) {
      this.#endBlock()
      this.#leaveText(indent)
    }
    for (const marker of markers) this.#unprintedBullets = this.#items.open(marker, this.#takeLead())
    const textIndent = markers.at(-1)?.textIndent ?? indent
    if (kind === 'text') {
      if (text !== '') this.#addToParagraph(text)
      this.#isInText = text !== ''
      this.#textLine = text
    } else if (kind === 'fence') {
      if (this.#unprintedBullets) this.#print([[]])
      this.#code = { mark: readOpeningFence(text) as string, indent: textIndent }
    } else if (kind === 'heading') this.#print(layOutHeading(text, this.#countColumns()))
    else if (kind === 'rule') this.#print([layOutRule(this.#countColumns())])
    else if (kind === 'code')
      this.#print([layOutCodeLine(removeIndent(this.#line, this.#items.sourceIndent + 4))])
    else if (kind === 'row') this.#held = { kind: 'row', text, indent: textIndent }
    else if (this.#quoteDepth < maxLayoutDepth) this.#beginQuote(removeQuoteMark(text, textIndent))
    else this.#print([[{ text, sgr: '' }]])
  }

  #beginQuote(text: string): void {
    const columns = () => Math.max(1, this.#countColumns() - bar.text.length)
    this.#quote = new MarkdownLayout({ columns, isColoured: this.#options.isColoured }, this.#quoteDepth + 1)
    this.#quote.add(`${text}\n`)
    this.#printQuotedRows()
  }

  #leaveText(indent: number): void {
    this.#flow?.end()
    this.#flow = undefined
    this.#items.leave(indent)
  }

  #takeLead(): StyledLine {
    const lead = this.#unprintedBullets ?? [createBlankSpan(this.#items.indent)]
    this.#unprintedBullets = undefined
    return lead
  }

  #addToParagraph(text: string): void {
    const { indent } = this.#items
    this.#flow ??= new ParagraphPrinter({
      buffer: this.#buffer,
      lead: this.#takeLead(),
      indent,
      columns: () => this.#countColumns(),
    })
    this.#flow.add(text)
  }

  #startTable(header: string, indent: number, isHeaderPrinted = false): void {
    this.#leaveText(indent)
    this.#held = { kind: 'table', text: `${header}\n`, indent, isHeaderPrinted }
    this.#addRow(this.#held)
  }

  #countColumns(): number {
    return Math.max(1, this.#options.columns() - this.#items.indent)
  }

  #print(lines: readonly StyledLine[]): void {
    if (lines.length > 0) this.#buffer.print(lines, this.#items.indent, this.#takeLead())
  }
}

const manyBlanks = new RegExp(`^\\s{${maxBlockLength},}`)

const isHeader = (line: string): boolean => line.length <= maxBlockLength && line.includes('|')

/** Returns whether a line starts no block, so it may continue a table or a paragraph. */
const isPlainText = ({ kind, markers }: MarkdownLineStart): boolean =>
  markers.length === 0 && ['text', 'row', 'code'].includes(kind)

const bar: Span = { text: '│ ', sgr: spanStyles.frame }

/**
 * `indent` is the column of the `>`. The text after the `>` keeps its indentation, with spaces instead of
 * tabs.
 */
function removeQuoteMark(line: string, indent: number): string {
  const text = line.slice(1)
  const columns = countIndent(text, indent + 1)
  return ' '.repeat(Math.max(0, columns - 1)) + text.trimStart()
}

function layOutHeading(line: string, columns: number): StyledLine[] {
  const [mark = ''] = /^#+/.exec(line) ?? []
  const tokens = readInlineTokens(line.slice(mark.length).trim())
  const style = spanStyles.headings[mark.length - 1] ?? spanStyles.bold
  return layOutInlineTokens(tokens, style).flatMap((row) => wrapLine(row, columns))
}

const maxRuleColumns = 80

const layOutRule = (columns: number): StyledLine => [
  { text: '─'.repeat(Math.max(3, Math.min(columns, maxRuleColumns))), sgr: spanStyles.frame },
]

const layOutCodeLine = (line: string): StyledLine =>
  line === ''
    ? []
    : [
        { text: '  ', sgr: '' },
        { text: line, sgr: spanStyles.code },
      ]
