import type { Output } from '../output.ts'
import { measureWidth, type StyledLine } from '../spans.ts'
import type { Spinner } from '../spinner.ts'
import {
  createListItemMarker,
  layOutBlocks,
  layOutCodeLine,
  layOutFencedLine,
  maxLayoutDepth,
} from './layout.ts'
import {
  headingUnderlinePattern,
  type MarkdownLineStart,
  mayBeDelimiterRow,
  parseMarkdownLineStart,
} from './line-start.ts'
import { createBlankSpan, MarkdownPage } from './page.ts'
import { ParagraphPrinter } from './paragraph.ts'
import {
  closesFence,
  countIndent,
  type FencedCode,
  MarkdownBuffer,
  maxBlockLength,
  readBlockTokens,
  readOpeningFence,
  removeIndent,
} from './source.ts'
import { isDelimiterRow, layOutTable, maxTableLength } from './table.ts'

export interface MarkdownOptions {
  columns(): number
  isColoured: boolean
  /** If false, each paragraph waits for its second line, which may be the underline of a heading. */
  isStreamed: boolean
  waiting?: Spinner | undefined
}

interface ListItem {
  /** A line with at least this indentation belongs to the item. */
  minIndent: number
  /** Columns before the text of the item in the source. `indent` counts the columns on the terminal. */
  sourceIndent: number
  indent: number
}

interface HeldBlock {
  kind: 'row' | 'table' | 'quote'
  text: string
  indent: number
  /** The header had no pipe at its start, so it was already printed as text. */
  isHeaderPrinted?: boolean
}

/**
 * Prints Markdown while it arrives: paragraphs and list items word by word, other blocks when they are
 * complete. The output depends only on the text, not on the pieces in which it arrives. In a stream, an
 * underlined heading becomes a paragraph and a rule, because the paragraph is printed before its underline
 * arrives. HTML is printed as text.
 */
export class MarkdownPrinter {
  readonly #output: Output
  readonly #options: MarkdownOptions
  readonly #source = new MarkdownBuffer()
  readonly #page: MarkdownPage
  /**
   * The received part of the current line. Empty if this part is already printed as text of a paragraph.
   */
  #line = ''
  #isInText = false
  #textLine = ''
  #flow: ParagraphPrinter | undefined
  #held: HeldBlock | undefined
  #code: FencedCode | undefined
  #items: ListItem[] = []
  /** For each level, the sign and the number of the last item in the open list. */
  #lists: { sign: string; number: number }[] = []
  /** Bullets of list items whose text has not arrived. */
  #lead: StyledLine | undefined

  constructor(output: Output, options: MarkdownOptions) {
    this.#output = output
    this.#options = options
    this.#page = new MarkdownPage(output, options.isColoured)
  }

  add(text: string): void {
    this.#source.add(text)
  }

  async write(): Promise<void> {
    this.#read(this.#source.drain(false))
    await this.#page.write()
    if (this.#page.isInRow || (this.#line === '' && !this.#held)) return
    const kind = this.#held?.kind
    const isTable = kind === 'table' || kind === 'row' || /^[ \t]*\|/.test(this.#line)
    this.#options.waiting?.show(isTable ? 'waiting for the rest of the table' : 'waiting for the rest')
  }

  async end(): Promise<void> {
    this.#readRest()
    await this.#page.write()
    await this.#output.flush()
  }

  breakLine(): boolean {
    this.#readRest()
    return this.#page.writeNow()
  }

  #readRest(): void {
    this.#read(this.#source.drain(true))
    if (this.#line !== '') this.#endLine()
    this.#endBlock()
  }

  #read(text: string): void {
    const [rest = '', ...lines] = text.split('\n')
    this.#addToLine(rest)
    for (const line of lines) {
      this.#endLine()
      this.#addToLine(line)
    }
  }

  #addToLine(text: string): void {
    if (text === '') return
    if (this.#isInText) {
      if (this.#textLine.length <= maxBlockLength) this.#textLine += text
      this.#flow?.add(text)
    } else {
      this.#line += text
      const isHeld = this.#held && this.#held.kind !== 'row'
      const needsWholeLine = this.#code || isHeld || !this.#options.isStreamed
      if (!needsWholeLine) this.#startLine(false)
    }
  }

  #endLine(): void {
    const line = this.#line
    if (this.#isInText) this.#flow?.add('\n')
    else if (this.#code) {
      if (closesFence(this.#code, line)) this.#code = undefined
      else this.#print([layOutFencedLine(this.#code, line)])
    } else if (line.trim() === '') {
      this.#endBlock()
      this.#page.separate()
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
    else if (held) this.#printHeld(held)
    this.#flow?.end()
    this.#flow = undefined
    if (this.#lead) this.#print([[]])
  }

  #startLine(isWhole: boolean): void {
    this.#line = this.#line.replace(manyBlanks, (text) => text.slice(0, maxBlockLength))
    if (this.#held && !this.#leavesHeld(this.#held, isWhole)) return
    if (this.#flow && isHeader(this.#textLine) && mayBeDelimiterRow(this.#line)) {
      if (!isWhole) return
      if (isDelimiterRow(this.#line)) {
        this.#startTable(this.#textLine, countIndent(this.#line), true)
        return
      }
    }
    const start = this.#readStart(isWhole)
    if (start) this.#beginBlock(start)
  }

  #readStart(isWhole: boolean): MarkdownLineStart | undefined {
    return parseMarkdownLineStart(this.#line, {
      isWhole,
      hasText: this.#flow !== undefined,
      isInList: this.#items.length > 0,
      codeIndent: this.#sourceIndent + 4,
    })
  }

  /** Returns false after adding the line to the held block, and true if the line does not belong to it. */
  #leavesHeld(held: HeldBlock, isWhole: boolean): boolean {
    if (held.kind === 'row') {
      if (!isWhole && mayBeDelimiterRow(this.#line)) return false
      this.#held = undefined
      const underline = this.#line.trim()
      const mayBeHeading = !this.#options.isStreamed && !this.#flow
      const isInside = countIndent(this.#line) >= this.#sourceIndent
      if (mayBeHeading && isInside && headingUnderlinePattern.test(underline)) {
        this.#layOut(`${underline[0] === '=' ? '#' : '##'} ${held.text}`)
        return false
      }
      if (!isWhole || !isDelimiterRow(this.#line)) {
        this.#addToParagraph(`${held.text}\n`)
        return true
      }
      this.#startTable(held.text, held.indent)
      return false
    }
    const isInside = this.#belongsTo(held)
    if (isInside) this.#hold(held)
    else this.#endBlock()
    return !isInside
  }

  #belongsTo({ kind }: HeldBlock): boolean {
    const found = this.#readStart(true) as MarkdownLineStart
    const isText = found.markers.length === 0 && ['text', 'row', 'code'].includes(found.kind)
    return isText || (kind === 'quote' && found.kind === 'quote')
  }

  /**
   * Adds the current line to the held block. A block over the maximum length is printed in parts. Each part
   * of a table repeats the header.
   */
  #hold(held: HeldBlock): void {
    const isTable = held.kind === 'table'
    const line = `${removeIndent(this.#line, this.#sourceIndent)}\n`
    if (held.text.length + line.length > (isTable ? maxTableLength : maxBlockLength)) {
      this.#printHeld(held)
      if (isTable) this.#page.separate()
      held.isHeaderPrinted = false
      held.text = isTable ? `${held.text.split('\n', 2).join('\n')}\n` : ''
    }
    held.text += line
  }

  #printHeld({ kind, text, isHeaderPrinted = false }: HeldBlock): void {
    if (kind === 'table') this.#print(layOutTable(text, this.#countColumns(), isHeaderPrinted))
    else this.#layOut(text)
  }

  #beginBlock({ kind, indent, markers, text }: MarkdownLineStart): void {
    const continuesText = this.#flow && markers.length === 0 && (kind === 'text' || kind === 'row')
    const isFirstText = this.#lead && markers.length === 0 && indent >= (this.#items.at(-1)?.minIndent ?? 0)
    if (!continuesText && !isFirstText) {
      this.#endBlock()
      this.#leaveText(indent)
    }
    if (!continuesText && markers.length === 0) this.#lists.length = this.#items.length
    for (const marker of markers) this.#openItem(marker)
    const textIndent = markers.at(-1)?.textIndent ?? indent
    const mayBeHeading = !this.#options.isStreamed && !this.#flow && text !== ''
    if (kind === 'text' && !mayBeHeading) {
      if (text !== '') this.#addToParagraph(text)
      this.#isInText = text !== ''
      this.#textLine = text
    } else if (kind === 'fence') {
      if (this.#lead) this.#print([[]])
      this.#code = { mark: readOpeningFence(text) as string, indent: textIndent }
    } else if (kind === 'heading') this.#layOut(text)
    else if (kind === 'rule') this.#layOut('---')
    else if (kind === 'code') this.#print([layOutCodeLine(removeIndent(this.#line, this.#sourceIndent + 4))])
    else if (kind === 'quote') this.#held = { kind, text: `${text}\n`, indent: textIndent }
    else this.#held = { kind: 'row', text, indent: textIndent }
  }

  #leaveText(indent: number): void {
    this.#flow?.end()
    this.#flow = undefined
    while ((this.#items.at(-1)?.minIndent ?? 0) > indent) this.#items.pop()
  }

  #openItem({ mark, box, indent, textIndent }: MarkdownLineStart['markers'][number]): void {
    if (this.#items.length >= maxLayoutDepth) this.#items.pop()
    const level = this.#items.length
    const sign = mark.slice(-1)
    const last = this.#lists[level]
    // By CommonMark, only the number of the first item counts. The numbers of later items follow from it.
    const number = last?.sign === sign ? last.number + 1 : Number.parseInt(mark, 10)
    this.#lists.splice(level, Infinity, { sign, number })
    this.#lead = [...this.#removeLead(), ...createListItemMarker({ mark, box }, number, level)]
    this.#items.push({
      minIndent: Math.min(textIndent, indent + 2),
      sourceIndent: textIndent,
      indent: measureWidth(this.#lead),
    })
  }

  get #indent(): number {
    return this.#items.at(-1)?.indent ?? 0
  }

  get #sourceIndent(): number {
    return this.#items.at(-1)?.sourceIndent ?? 0
  }

  #removeLead(): StyledLine {
    const lead = this.#lead ?? [createBlankSpan(this.#indent)]
    this.#lead = undefined
    return lead
  }

  #addToParagraph(text: string): void {
    const indent = this.#indent
    this.#flow ??= new ParagraphPrinter({
      page: this.#page,
      lead: this.#removeLead(),
      indent,
      columns: () => this.#countColumns(),
    })
    this.#flow.add(text)
  }

  #layOut(text: string): void {
    const space = { columns: this.#countColumns(), depth: this.#items.length }
    this.#print(layOutBlocks(readBlockTokens(text), space))
  }

  #startTable(header: string, indent: number, isHeaderPrinted = false): void {
    this.#leaveText(indent)
    this.#held = { kind: 'table', text: `${header}\n`, indent, isHeaderPrinted }
    this.#hold(this.#held)
  }

  #countColumns(): number {
    return Math.max(1, this.#options.columns() - this.#indent)
  }

  #print(lines: readonly StyledLine[]): void {
    if (lines.length > 0) this.#page.print(lines, this.#indent, this.#removeLead())
  }
}

const manyBlanks = new RegExp(`^\\s{${maxBlockLength},}`)

const isHeader = (line: string): boolean => line.length <= maxBlockLength && line.includes('|')
