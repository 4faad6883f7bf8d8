import type { AnswerPrinter } from '../answer-printer.ts'
import type { Output } from '../output.ts'
import type { StyledLine } from '../spans.ts'
import type { PendingSpinner } from '../spinner.ts'
import type { LinkStyle } from './inline.ts'
import { endsWithBlankLine, layOutBlocks, layOutFencedLine, layOutVerbatim } from './layout.ts'
import { Page } from './page.ts'
import {
  closesFence,
  type FencedCode,
  indentOf,
  MarkdownBuffer,
  maxBlockLength,
  openFence,
  readTokens,
} from './source.ts'

export interface MarkdownOptions {
  /** The terminal's current width, or Infinity in a pipe. */
  columns(): number
  isColoured: boolean
  links: LinkStyle
  /** Shown while a block is incomplete. */
  waiting?: PendingSpinner | undefined
}

/**
 * Prints Markdown block by block. Printed text is never moved or repeated. Control characters are escaped
 * before parsing, also in a pipe.
 */
export class MarkdownPrinter implements AnswerPrinter {
  readonly #output: Output
  readonly #options: MarkdownOptions
  readonly #source = new MarkdownBuffer()
  readonly #page: Page
  /** Lines of the incomplete block. */
  #open = ''
  /** The incomplete line. */
  #line = ''
  /**
   * Indentation of the last code block in a list. Later lines with this indentation belong to the same list
   * item.
   */
  #indent = 0
  #code: FencedCode | undefined
  /** A block or line was too long: everything up to the next blank line is printed verbatim. */
  #isTooLong = false

  constructor(output: Output, options: MarkdownOptions) {
    this.#output = output
    this.#options = options
    this.#page = new Page(output, options.isColoured)
  }

  add(text: string): void {
    this.#source.add(text)
  }

  async write(): Promise<void> {
    this.#readLines(this.#source.take(false))
    await this.#page.write()
    if (this.#open + this.#line !== '') this.#options.waiting?.show('waiting for the rest')
  }

  async end(): Promise<void> {
    this.#readLines(this.#source.take(true))
    if (this.#line !== '') this.#readLines('\n')
    this.#printOpen()
    await this.#page.write()
    await this.#output.flush()
  }

  breakLine(): boolean {
    this.#readLines(this.#source.take(true))
    const kept = this.#open + this.#line
    this.#open = ''
    this.#line = ''
    if (kept !== '') this.#print(layOutVerbatim(kept))
    return this.#page.writeNow()
  }

  #readLines(text: string): void {
    const [rest = '', ...lines] = text.split('\n')
    this.#line += rest
    for (const next of lines) {
      const line = this.#line
      this.#line = next
      this.#takeLine(line)
    }
  }

  #takeLine(line: string): void {
    if (this.#code) this.#takeCode(this.#code, line)
    else if (line.trim() === '') this.#takeBlank()
    else {
      const text = this.#takeIndent(line)
      if (text.length > maxBlockLength) {
        this.#printOpen()
        this.#isTooLong = true
      }
      if (this.#isTooLong && !fence.test(text)) this.#print(layOutVerbatim(text))
      else if (!this.#openCode(text)) this.#takeText(text)
    }
  }

  #takeBlank(): void {
    this.#isTooLong = false
    // The next item of a list may follow after a blank line, so the list stays open.
    if (isList(this.#open)) this.#open += '\n'
    else {
      this.#printOpen()
      this.#page.separate()
    }
  }

  #takeText(line: string): void {
    const mayBegin = isList(this.#open)
      ? /^\S/.test(line) && (begins.test(line) || endsWithBlankLine(this.#open))
      : begins.test(line)
    this.#open += `${line}\n`
    if (mayBegin) this.#printWhole()
    if (isHeading(this.#open)) this.#printOpen()
    if (this.#open.length <= maxBlockLength) return
    this.#print(layOutVerbatim(this.#open))
    this.#open = ''
    this.#isTooLong = true
  }

  /** Prints the blocks that the last line cannot continue. */
  #printWhole(): void {
    const tokens = readTokens(this.#open, 'blocks').filter(({ type }) => type !== 'space')
    const last = tokens.at(-1)
    if (!last) return
    const lastPiece = last.type === 'list' ? (last.items.at(-1)?.raw ?? '') : last.raw
    const end = this.#open.trimEnd().length - lastPiece.trimEnd().length
    if (end <= 0) return
    const whole = this.#open.slice(0, end)
    this.#open = this.#open.slice(end)
    this.#layOut(whole)
  }

  #printOpen(): void {
    const text = this.#open
    this.#open = ''
    this.#layOut(text)
  }

  #layOut(text: string): void {
    const { columns, links } = this.#options
    const room = { columns: Math.max(1, columns() - this.#indent), links, depth: this.#indent > 0 ? 1 : 0 }
    this.#print(layOutBlocks(readTokens(text, 'all'), room))
    if (endsWithBlankLine(text)) this.#page.separate()
  }

  #print(lines: readonly StyledLine[]): void {
    this.#page.print(lines, this.#indent)
  }

  /**
   * Returns the line without the indentation of the code before it. A line with less indentation leaves the
   * list item of the code.
   */
  #takeIndent(line: string): string {
    const indent = indentOf(line)
    if (indent < this.#indent) {
      this.#printOpen()
      this.#indent = indent
    }
    return line.slice(this.#indent)
  }

  /** Returns whether the line opens a code block. */
  #openCode(line: string): boolean {
    const [, before, start] = fence.exec(line) ?? []
    const opened = start === undefined ? undefined : openFence(start)
    if (before === undefined || !opened) return false
    // A list item may begin with code, so the text before the fence is printed first.
    if (before.trim() !== '') this.#takeText(before)
    const indent = this.#indent + before.length
    const isInList = isList(this.#open) || this.#indent > 0
    if (!isInList && indent > 3) return false
    this.#printOpen()
    // Two blanks are enough, even after a wider number, because models indent carelessly.
    this.#indent = isInList && indent >= 2 ? indent : 0
    this.#code = { ...opened, indent }
    return true
  }

  #takeCode(code: FencedCode, line: string): void {
    if (closesFence(code, line)) this.#code = undefined
    else this.#print([layOutFencedLine(code, line)])
  }
}

const fence = /^([ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*)((?:`{3}|~{3}).*)$/

/** Lines that begin a block without a blank line before them. */
const begins = /^ {0,3}(?:[-*+](?:\s|$)|\d{1,9}[.)](?:\s|$)|#{1,6}(?:\s|$)|>)/

const isList = (text: string): boolean => /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/.test(text)

const isHeading = (text: string): boolean => /^ {0,3}#{1,6}(?:[ \t].*)?\n$/.test(text)
