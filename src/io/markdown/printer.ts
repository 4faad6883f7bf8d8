import { getDefaults, Lexer, type MarkedToken, Tokenizer } from 'marked'
import type { AnswerPrinter } from '../answer-printer.ts'
import { escapeControls } from '../escape.ts'
import type { Output } from '../output.ts'
import { paint, type StyledLine } from '../spans.ts'
import type { PendingSpinner } from '../spinner.ts'
import { createHighlight, type Highlight } from './highlighter.ts'
import type { LinkStyle } from './inline.ts'
import { endsWithBlankLine, layOutBlocks, layOutCodeLine, layOutVerbatim } from './layout.ts'

/** Longer blocks are printed verbatim, because the lexer is quadratic in the worst case. In characters. */
const maxBlockLength = 4000

interface Code {
  /** The opening fence. The closing fence is at least as long. */
  fence: string
  /** Number of blanks to remove from the start of each line. */
  indent: number
  highlight: Highlight | undefined
}

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
  /** Added text that was not parsed yet. */
  #pending = ''
  /** Laid-out text that was not written yet. */
  #page = ''
  /** Lines of the incomplete block. */
  #open = ''
  /** The incomplete line. */
  #line = ''
  /**
   * Indentation of the last code block in a list. Later lines with this indentation belong to the same list
   * item.
   */
  #indent = 0
  #code: Code | undefined
  /** A block or line was too long: everything up to the next blank line is printed verbatim. */
  #isTooLong = false
  /**
   * Blank lines were read. One blank line is printed before the next block, unless that block is the first.
   */
  #isApart = false
  #isEmpty = true

  constructor(output: Output, options: MarkdownOptions) {
    this.#output = output
    this.#options = options
  }

  add(text: string): void {
    this.#pending += text
  }

  async write(): Promise<void> {
    this.#read(false)
    await this.#writePage()
    if (this.#open + this.#line !== '') this.#options.waiting?.show('waiting for the rest')
  }

  async end(): Promise<void> {
    this.#read(true)
    if (this.#line !== '') this.#readLines('\n')
    this.#printOpen()
    await this.#writePage()
    await this.#output.flush()
  }

  breakLine(): boolean {
    this.#read(true)
    const kept = this.#open + this.#line
    this.#open = ''
    this.#line = ''
    if (kept !== '') this.#print(layOutVerbatim(kept))
    const isBroken = this.#page !== '' && this.#output.isTerminal
    this.#writePage().catch(() => {})
    return isBroken
  }

  async #writePage(): Promise<void> {
    const text = this.#page
    this.#page = ''
    if (text !== '') await this.#output.write(text)
  }

  /** Parses the added text, except half a character or half a line break at its end. */
  #read(isEnd: boolean): void {
    const text = this.#pending
    const end = isEnd || !/[\r\ud800-\udbff]$/.test(text) ? text.length : text.length - 1
    this.#pending = text.slice(end)
    this.#readLines(escapeControls(text.slice(0, end).replaceAll('\r\n', '\n')))
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
      this.#isApart = true
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
    this.#isApart ||= endsWithBlankLine(text)
  }

  #print(lines: readonly StyledLine[]): void {
    if (lines.length === 0) return
    if (this.#isApart && !this.#isEmpty) this.#page += '\n'
    this.#isApart = false
    this.#isEmpty = false
    const lead = { text: ' '.repeat(this.#indent), sgr: '' }
    for (const line of lines)
      this.#page += `${paint(line.length === 0 ? [] : [lead, ...line], this.#options.isColoured)}\n`
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
    const [, before, mark, info = ''] = fence.exec(line) ?? []
    if (before === undefined || mark === undefined || (mark[0] === '`' && info.includes('`'))) return false
    // A list item may begin with code, so the text before the fence is printed first.
    if (before.trim() !== '') this.#takeText(before)
    const indent = this.#indent + before.length
    const isInList = isList(this.#open) || this.#indent > 0
    if (!isInList && indent > 3) return false
    this.#printOpen()
    // Two blanks are enough, even after a wider number, because models indent carelessly.
    this.#indent = isInList && indent >= 2 ? indent : 0
    const language = info.trim().split(/[\s{,]/, 1)[0] as string
    this.#code = { fence: mark, indent, highlight: createHighlight(language) }
    return true
  }

  #takeCode({ fence: { length, 0: mark = '' }, indent, highlight }: Code, line: string): void {
    const text = line.trim()
    if (text.length >= length && text === mark.repeat(text.length)) this.#code = undefined
    else {
      const code = line.slice(Math.min(indent, indentOf(line)))
      this.#print([layOutCodeLine(code, code.length > maxBlockLength ? undefined : highlight)])
    }
  }
}

const fence = /^([ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*)(`{3,}|~{3,})(.*)$/

/** Lines that begin a block without a blank line before them. */
const begins = /^ {0,3}(?:[-*+](?:\s|$)|\d{1,9}[.)](?:\s|$)|#{1,6}(?:\s|$)|>)/

const isList = (text: string): boolean => /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/.test(text)

const isHeading = (text: string): boolean => /^ {0,3}#{1,6}(?:[ \t].*)?\n$/.test(text)

const indentOf = (line: string): number => line.length - line.trimStart().length

/** Disables reference links, because a link's definition may be in a block that has not arrived. */
class Source extends Tokenizer {
  override reflink(): undefined {}
}

/** Matches a line with more quotes and list items than the lexer's recursion supports. */
const tooDeep = /^(?:[ \t]*(?:>|[-*+]|\d{1,9}[.)])){50}/m

/** Parses blocks only, or blocks with their inline content. */
function readTokens(text: string, what: 'blocks' | 'all'): MarkedToken[] {
  const lexer = new Lexer({ ...getDefaults(), tokenizer: new Source() })
  try {
    if (!tooDeep.test(text))
      return (what === 'all' ? lexer.lex(text) : lexer.blockTokens(text, [])) as MarkedToken[]
  } catch {
    // A parser error must not end a run whose answer was paid for, so the text is printed verbatim.
  }
  return [{ type: 'html', raw: text, text, block: true, pre: false }]
}
